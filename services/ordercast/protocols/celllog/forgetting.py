"""Which producers of a destination set are forgotten, if there are too many of them.

**The rule.** The producers of a set stand in queues: one for each client, for those that were heard of once, and
another one for those that were heard of more often. Whoever is heard of goes to the end of its queue. If there are
more than `idempotence_producers` in the set, its queues are cut to one common length, the highest that leaves a
little room: those that are longer lose their oldest. If there are so many clients that one producer for each is
too many, the clients that were heard of longest ago lose theirs.

So a flood of producers drives out producers of the same client that were as short-lived, and nobody else's. A
producer that was heard of twice is safe from any number of one-shot producers, even of its own client; and a
client with few producers from any number of producers of others.

**Why all groups agree.** The rule looks at nothing but the envelopes to exactly this set, whose order all groups
of the set share, at what is written in those envelopes, and at distances in the order, which all of them measure
between the same numbers (`idempotence.py`). It does not look at a group's other sets, of which the other groups
know nothing: a bound for all producers of a group would have to, and then one group would deliver what another one
refuses. So each set has its own bound.

**Clients** are what gateways write into envelopes: 8 bytes that stand for an identity, or for an address if there
is none. A gateway writes them once all nodes understand them (`core/level.py`), and a producer is in a queue from
the first envelope on that names its client. What is in the log from before means the same to older software.
"""

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ordercast.protocols.celllog.idempotence import ProducerState, SetKey

#: All replicas have to have the same default: another one takes a higher level (core/level.py).
PRODUCERS_MAX = 16_384
#: The setting of a domain, and within which bounds it can be.
IDEMPOTENCE_PRODUCERS = "idempotence_producers"
PRODUCERS_BOUNDS = (1024, 1 << 20)
#: The level (core/level.py) from which on envelopes name clients, and domains have that setting.
CLIENTS_LEVEL = 3
#: When there are too many, this share goes at once, so that queues are not looked through every time.
_ROOM = 64


def settings_at(names: Iterable[str], level: int) -> list[str]:
    """Those of a domain's settings that the software of some level knows."""
    return [name for name in names if name != IDEMPOTENCE_PRODUCERS or level >= CLIENTS_LEVEL]


class Queue:
    """Producers of one client, least recently heard of first."""

    __slots__ = ("client", "established", "members")

    def __init__(self, client: bytes, established: bool) -> None:
        self.client = client
        self.established = established
        self.members: dict[SetKey, ProducerState] = {}

    @property
    def last_turn(self) -> int:
        return next(reversed(self.members.values())).turn


class DestinationSet:
    """What a group remembers about the producers of one set, beside each one's own state."""

    __slots__ = ("epoch_forgotten", "groups", "known", "queued", "queues")

    def __init__(self, groups: tuple[str, ...]) -> None:
        self.groups = groups
        #: How many producers it has, and how many of them are in queues.
        self.known = 0
        self.queued = 0
        self.queues: dict[tuple[bytes, bool], Queue] = {}
        #: The highest epoch among those that were forgotten. An epoch that is given to somebody who is unknown is
        #: higher: an instance that was forgotten must not pass for the one that came after it.
        self.epoch_forgotten = 0

    def first_epoch(self) -> int:
        """For a producer that is unknown. Its next one would be one higher: by that clients tell the two."""
        return self.epoch_forgotten + 2 if self.epoch_forgotten else 1

    def enter(self, key: "SetKey", state: "ProducerState", client: bytes, *, established: bool) -> None:
        """At the end of its queue."""
        self.leave(key, state)
        queue = self.queues.get((client, established))
        if queue is None:
            queue = self.queues[(client, established)] = Queue(client, established)
        queue.members[key] = state
        state.queue = queue
        self.queued += 1

    def leave(self, key: "SetKey", state: "ProducerState") -> None:
        queue, state.queue = state.queue, None
        if queue is None:
            return
        del queue.members[key]
        self.queued -= 1
        if not queue.members:
            del self.queues[(queue.client, queue.established)]

    def surplus(self, count_max: int) -> list["SetKey"]:
        """Those that have to go. Whoever was heard of last is never among them."""
        if self.queued <= count_max:
            return []
        room = count_max - count_max // _ROOM
        queues = list(self.queues.values())
        length = common_length((len(queue.members) for queue in queues), room)
        gone: list[SetKey] = []
        if not length:
            length = 1
            queues.sort(key=lambda queue: queue.last_turn)
            silent = len(queues) - room
            gone = [key for queue in queues[:silent] for key in queue.members]
            queues = queues[silent:]
        for queue in queues:
            gone += islice(queue.members, max(len(queue.members) - length, 0))
        return gone


def common_length(lengths: Iterable[int], room: int) -> int:
    """The highest to which all can be cut so that they fit, given that they do not."""
    left = sorted(lengths)
    for index, length in enumerate(left):
        share = room // (len(left) - index)
        if length > share:
            return share
        room -= length
    raise AssertionError("they fit")
