"""One view of the domain: the DAG of its messages, the order that is read off it, and what of that is visible.

A message leaves its sender only when all that it follows is on the sender's disk, itself included. So "j sent a
message that follows m" means "j has m on disk", with the body if j holds a replica of one of m's groups.

* *Final:* the order machine is fed only with messages that a majority of the view follows. That part of the DAG is
  causally closed, and inside every later cut.
* *Visible:* final, followed by a majority of the replicas of each of its groups, and so is everything that
  comes before it in the order. It is at its place in the logs, for good.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ordercast.core.quorums import majority
from ordercast.protocols.causal.casts import Casts
from ordercast.protocols.causal.times import Time, Times
from ordercast.protocols.toto.ballot import Ballot, Key
from ordercast.protocols.toto.order import Activation, Order
from ordercast.v1.causal_pb2 import CastKey
from ordercast.v1.toto_pb2 import DagBegin, DagMessage, DagRecord

#: What a view is of, where groups have names.
DOMAIN = ""

#: Of a group; nobody's of one that is not known.
Replicas = Callable[[str], Sequence[str]]

#: By group, where its log ends.
Positions = dict[str, int]


def key_of(message: CastKey) -> Key:
    return (message.member, message.number)


def message_of(key: Key) -> CastKey:
    return CastKey(member=key[0], number=key[1])


def time_of(message: DagMessage) -> Times:
    """What precedes it: its sender's messages are in their order anyway."""
    sender = message.key.member
    counts = {place: count for place, count in enumerate(message.vector) if count and place != sender}
    return {DOMAIN: Time(message.view, counts)}


@dataclass(slots=True)
class Ordered:
    """A message that has its place in the order, and is not visible yet."""

    key: Key
    #: How many come before it, from the domain's first one on.
    index: int


def begin_of(view: int, index: int, positions: Mapping[str, int]) -> DagBegin:
    groups = sorted(positions)
    return DagBegin(view=view, index=index, groups=groups, positions=[positions[group] for group in groups])


class Era(Casts[DagMessage]):
    def __init__(self, begin: DagBegin, members: tuple[str, ...], me: int, phi: int) -> None:
        super().__init__(DOMAIN, begin.view, members, me)
        size = len(members)
        self.begin = begin
        #: The final order; and the votes about its current activation, over all that has come.
        self.order = Order(size, phi)
        self.votes = Ballot(size)
        #: By sender and then by member: how many of its messages are followed by what that one has sent. Of our
        #: own messages only those count that are on disk.
        self.said = [[0] * size for _ in range(size)]
        #: The vector of our own last message, on disk or not.
        self.spoken: Sequence[int] = [0] * size
        #: By member: how many of its messages a majority follows.
        self.followed = [0] * size
        #: How many agreed messages have their place, which of them are not visible, and where the logs end.
        self.index = begin.index
        self.queue: deque[Ordered] = deque()
        self.positions: Positions = dict(zip(begin.groups, begin.positions, strict=True))
        #: By member: messages that are dropped.
        self.settled = [0] * size
        #: By envelope id: agreed messages that are kept.
        self.ids: dict[bytes, Key] = {}
        #: Of each sender, its last agreed message that is for a group of ours: it is owed a vote of ours.
        self.owed = [0] * size
        #: Agreed messages of which nobody has the body, as the cut has it.
        self.voids: dict[Key, None] = {}

    @property
    def size(self) -> int:
        return len(self.members)

    # ---------------------------------------------------------------------------------------------- what comes

    def take(self, message: DagMessage) -> None:
        """The next one of its sender. It enters the DAG when all that it follows is there."""
        self.came(key_of(message.key), message, time_of(message))
        if message.agreed:
            self.ids[message.id] = key_of(message.key)

    def enter(self) -> None:
        """All that can enter now."""
        moved = True
        while moved:
            moved = False
            for key in self.candidates():
                if self.precedes_is_delivered(key):
                    moved = True
                    self._enter(key)

    def _enter(self, key: Key) -> None:
        message = self.casts[key]
        self.delivered[key[0]] = key[1]
        self.votes.receive(key, message.vector, is_agreed=message.agreed)
        if key[0] != self.me:
            self.say(key[0], message.vector)

    def say(self, member: int, vector: Sequence[int]) -> None:
        """That member has sent a message with this vector: all that it follows is on its disk."""
        said = self.said[member]
        needed = majority(self.size)
        for place, count in enumerate(vector):
            if count > said[place]:
                said[place] = count
                counts = sorted((row[place] for row in self.said), reverse=True)
                self.followed[place] = counts[needed - 1]

    # ---------------------------------------------------------------------------------------------- the order

    def advance(self) -> None:
        """Feed the order with what a majority follows."""
        moved = True
        while moved:
            moved = False
            for sender, count in enumerate(self.followed):
                while self.order.received[sender] < count and self._feed(
                    (sender, self.order.received[sender] + 1)
                ):
                    moved = True

    def _feed(self, key: Key) -> bool:
        """Unless something that it follows is not fed yet."""
        message, fed = self.casts[key], self.order.received
        if any(count > fed[place] for place, count in enumerate(message.vector) if place != key[0]):
            return False
        self._append(self.order.add(key, message.vector, is_agreed=message.agreed))
        return True

    def _append(self, activations: Iterable[Activation]) -> None:
        for activation in activations:
            self.votes.deliver(activation.keys)
            for key in activation.keys:
                self.queue.append(Ordered(key, self.index))
                self.index += 1

    def end(self, cut: Sequence[int]) -> None:
        """[DKM93 5.2] The view has ended with these counts, and all of it is here: everything gets its place."""
        self.is_closed = True
        self.followed = list(cut)
        self.advance()
        assert self.order.received == list(cut), "a cut holds with each message all that it follows"
        self._append(self.order.end())

    # ---------------------------------------------------------------------------------------------- visible

    def is_replicated(self, key: Key, replicas: Replicas) -> bool:
        """A majority of the replicas of each of its groups follows it. Of a group that is not known that is not
        so.
        """
        return all(self._has_majority(key, replicas(group)) for group in self.casts[key].groups)

    def _has_majority(self, key: Key, replicas: Sequence[str]) -> bool:
        sender, number = key
        there = sum(
            1 for place, name in enumerate(self.members) if name in replicas and self.said[place][sender] >= number
        )
        return bool(replicas) and there >= majority(len(replicas))

    def next_visible(self, replicas: Replicas) -> Ordered | None:
        """The first in the order, if it is visible. In a cut everything is that somebody has."""
        if not self.queue:
            return None
        first = self.queue[0]
        return first if self.is_closed or self.is_replicated(first.key, replicas) else None

    def show(self) -> dict[str, int]:
        """The first in the order is visible: its position in each of its groups."""
        ordered = self.queue.popleft()
        if ordered.key in self.voids:
            return {}
        places = {}
        for group in self.casts[ordered.key].groups:
            places[group] = self.positions.get(group, 0)
            self.positions[group] = places[group] + 1
        return places

    # ---------------------------------------------------------------------------------------------- voting

    def owes_vote(self) -> bool:
        """Somebody waits for a message of ours: a first vote of the current activation, the candidate itself
        included, is not followed by any; or a message to a group of ours is not, and its receipt needs that.
        """
        mine = self.spoken
        if any(first > mine[place] for place, first in enumerate(self.votes.first)):
            return True
        return any(number > mine[place] for place, number in enumerate(self.owed))

    def speak(self) -> list[int]:
        """The vector of our next message: it follows all that is in the DAG."""
        self.sent += 1
        vector = list(self.delivered)
        vector[self.me] = self.sent
        self.spoken = vector
        return vector

    def is_visible(self, key: Key) -> bool:
        """Of an agreed message that is kept."""
        return key[1] <= self.order.delivered[key[0]] and all(ordered.key != key for ordered in self.queue)

    def hidden(self) -> list[DagMessage]:
        """Agreed messages that are not visible."""
        return [message for key, message in self.casts.items() if message.agreed and not self.is_visible(key)]

    # ---------------------------------------------------------------------------------------------- dropping

    def droppable(self) -> list[int]:
        """By member: messages that nobody needs any more. Everybody has them, they precede every first vote and
        everything that is not visible, and each member's last one stays: it says what that member has.
        """
        limits = []
        for place in range(self.size):
            limit = min(self.received[place] - 1, self.order.received[place])
            limit = min(limit, *(row[place] for row in self.said))
            for ballot in (self.order, self.votes):
                if ballot.first[place]:
                    limit = min(limit, ballot.first[place] - 1)
            limits.append(max(limit, self.settled[place]))
        for ordered in self.queue:
            sender, number = ordered.key
            limits[sender] = max(min(limits[sender], number - 1), self.settled[sender])
        return limits

    def drop(self, limits: Sequence[int]) -> list[Key]:
        gone = [
            (place, number)
            for place, limit in enumerate(limits)
            for number in range(self.settled[place] + 1, limit + 1)
        ]
        for key in gone:
            self.lose(key)
        self.settled = list(limits)
        return gone

    def lose(self, key: Key) -> None:
        message = self.casts[key]
        if message.agreed and self.ids.get(message.id) == key:
            del self.ids[message.id]
        super().lose(key)

    def forget_orphans(self) -> list[Key]:
        """What came and could not enter, since something that it follows did not come: nobody here speaks of
        it, and what it follows may be lost.
        """
        gone = [
            (place, number)
            for place, count in enumerate(self.delivered)
            for number in range(count + 1, self.received[place] + 1)
        ]
        for key in gone:
            self.lose(key)
        self.received = list(self.delivered)
        return gone

    # ---------------------------------------------------------------------------------------------- on disk

    def record(self) -> DagRecord:
        """As of now: how the view began, what is forgotten of it, and what that led to."""
        record = DagRecord(view=self.view, members=self.members, begin=self.begin)
        record.settled.extend(self.settled)
        record.delivered.extend(self.order.delivered)
        record.activations, record.index = self.order.activations, self.index
        record.groups.extend(sorted(self.positions))
        record.positions.extend(self.positions[group] for group in record.groups)
        record.queue.extend(message_of(ordered.key) for ordered in self.queue)
        return record

    def resume(self, record: DagRecord) -> None:
        """From the disk: what is kept of the view comes next, message by message."""
        if not record.settled:
            return
        self.settled = list(record.settled)
        self.received, self.delivered = list(record.settled), list(record.settled)
        for ballot in (self.order, self.votes):
            ballot.received = list(record.settled)
            ballot.delivered = list(record.delivered)
        self.order.activations, self.index = record.activations, record.index
        self.positions = dict(zip(record.groups, record.positions, strict=True))
        first = record.index - len(record.queue)
        self.queue.extend(Ordered(key_of(key), first + place) for place, key in enumerate(record.queue))

    def take_again(self, messages: Iterable[DagMessage]) -> None:
        """What was kept on the disk, in the order of their senders and numbers. Own ones are there, so they
        count.
        """
        for message in messages:
            if message.key.number == self.received[message.key.member] + 1:
                self.take(message)
        self.enter()
        self.sent = self.delivered[self.me]
        if (self.me, self.sent) in self.casts:
            self.spoken = list(self.casts[(self.me, self.sent)].vector)
            self.say(self.me, self.spoken)
