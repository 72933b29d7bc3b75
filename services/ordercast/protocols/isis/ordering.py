"""The token holder's order [BSS91 5.2].

The holder lists what it delivers, in the order in which it does; an ABCAST is delivered elsewhere when it is its
turn in that list. In a causal domain nothing waits for the list: it only fixes the log. A sets-order is not a
cast: its timestamp would cover the very ABCASTs that wait for it. It has no place in vector time and is acted on
at once.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive, Send, SetTimer
from ordercast.protocols.causal.casts import Key
from ordercast.protocols.isis import records
from ordercast.protocols.isis.checking import check_numbers, check_order
from ordercast.protocols.isis.era import Era, Token, message_of
from ordercast.protocols.isis.replica import Replica
from ordercast.v1.isis_pb2 import SetsOrder

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis

ORDER_TIMER = "order"


class Ordering:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine
        self._is_timed = False
        #: Groups whose order is not told yet.
        self.untold: dict[str, None] = {}

    # ------------------------------------------------------------------------------------------- holding

    def place(self, replica: Replica, era: Era, key: Key) -> int:
        """The holder delivers it now: that is its place."""
        position = era.ordered
        self.learn(replica, era, position, key)
        era.token.untold.append(key)
        self.untold[replica.name] = None
        casts_of = era.token.casts_of
        casts_of[key[0]] = casts_of.get(key[0], 0) + 1
        return position

    def learn(self, replica: Replica, era: Era, position: int, key: Key) -> None:
        machine = self.machine
        era.place(position, key)
        record = message_of(key).SerializeToString()
        machine.changes.append((records.order(replica.name, position), record))
        machine.stability.took(replica, None)
        machine.watching.placed(replica, era, key)

    def take_over(self, replica: Replica, era: Era) -> None:
        """Order what was delivered here, and not by the holder before; the rest follows as it is delivered."""
        if era.is_holder:
            for key in list(era.unplaced):
                self.place(replica, era, key)

    def tell_all(self, *, at_once: bool) -> None:
        for name in list(self.untold):
            replica = self.machine.replicas.get(name)
            if replica is not None:
                self.tell(replica, at_once=at_once)
            era = replica.installed if replica is not None else None
            if era is None or not era.token.untold:
                del self.untold[name]

    def tell(self, replica: Replica, *, at_once: bool) -> None:
        """[5.2 step 3] Batched if so desired, but never behind a cast of our own."""
        era = replica.installed
        if era is None or not era.token.untold:
            return
        settings = self.machine.settings
        if not at_once and len(era.token.untold) < settings.order_batch:
            if not self._is_timed:
                self._is_timed = True
                self.machine.out.append(SetTimer(ORDER_TIMER, settings.order_wait_s))
            return
        keys, era.token.untold = era.token.untold, []
        if not era.others:
            return
        self._move(era)
        self._send(replica, era, era.ordered - len(keys), keys, era.others)

    def _move(self, era: Era) -> None:
        """[5.2] Ordering is cheapest where most casts come from: the token goes there."""
        token, settings = era.token, self.machine.settings
        total = sum(token.casts_of.values())
        if total < settings.token_window:
            return
        busiest = max(token.casts_of, key=lambda member: (token.casts_of[member], -member))
        if busiest != era.me and token.casts_of[busiest] >= settings.token_share * total:
            era.token = Token(busiest, token.turn + 1, era.ordered)
        else:
            token.casts_of = {}

    def _send(self, replica: Replica, era: Era, first: int, keys: list[Key], to: list[str]) -> None:
        message = SetsOrder(
            group=replica.name,
            view=era.view,
            first_position=first,
            keys=[message_of(key) for key in keys],
            holder=era.token.holder,
            turn=era.token.turn,
            since=era.token.since,
        )
        self.machine.out.append(Send(to, message))

    def on_timer(self) -> None:
        self._is_timed = False
        self.tell_all(at_once=True)

    def tell_again(self, replica: Replica, era: Era, peer: str, known: int) -> None:
        """Positions that the peer may have missed, whoever made them. Those below are with everyone."""
        first = max(known, era.settled)
        keys = [era.places[position] for position in range(first, era.ordered)]
        if not keys and not era.token.turn:
            return
        self._send(replica, era, first, keys, [peer])

    # ------------------------------------------------------------------------------------------- hearing

    def on_sets_order(self, event: Receive) -> None:
        message: SetsOrder = event.message
        machine = self.machine
        replica = machine.listening(event, message.group, message.view)
        if replica is None:
            return
        era = replica.current
        assert era is not None
        if era.index_of(event.source, event.incarnation) is None:
            machine.stale(event)
            return
        if message.holder >= len(era.members):
            raise RemoteProtocolError("not an order of this view")
        check_numbers(message.turn, message.since)
        self.hear(replica, era, check_order(era, message.first_position, message.keys))
        if message.turn > era.token.turn:
            era.token = Token(message.holder, message.turn, message.since)
            machine.stability.took(replica, None)
        machine.touched[replica.name] = None

    def hear(self, replica: Replica, era: Era, news: Iterable[tuple[int, Key]]) -> None:
        """What `check_order` found to be new."""
        for position, key in news:
            self.learn(replica, era, position, key)
