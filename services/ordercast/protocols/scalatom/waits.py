"""What envelopes wait for, for whoever looks on. Nothing here has any effect on order.

A number is found when enough replicas have stamped: it waited for the one whose stamp came last, or for those that
were given up waiting for. Where acceptors vote, it waited for the last vote. In each group an envelope then waits
for histories that reach its number, which the gossip that came in the step completes; for an undecided
predecessor; or just for the envelope before it.
"""

from typing import TYPE_CHECKING

from ordercast.core.machine import Event, Observe, Receive
from ordercast.protocols.scalatom.held import Held
from ordercast.protocols.scalatom.replica import Replica
from ordercast.v1.sequencer_pb2 import Disseminate

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom


class Waits:
    def __init__(self, machine: "Scalatom") -> None:
        self.machine = machine
        #: Of the current step.
        self.cause: Event | None = None
        self._decided: dict[bytes, None] = {}
        #: By group: the head of its queue, and the undecided envelope that it waits for; if none, for histories.
        self.heads: dict[str, tuple[bytes, bytes | None]] = {}

    def begin(self, event: Event) -> None:
        self.cause = event
        if self._decided:
            self._decided = {}

    # ------------------------------------------------------------------------------------------ the number

    def proposes(self, held: Held, missing: list[str]) -> None:
        """We coordinate it, and wait no longer for these; or somebody's stamp was the last that was needed."""
        if self.machine.observe and not held.blocked_on:
            held.blocked_on = f"replica:{missing[0]}" if missing else self._source()
            held.waited_in_vain = bool(missing)

    def voted(self, held: Held | None, last: str) -> None:
        """Acceptors have decided it. Our own vote may be the last, when our disk is slow."""
        if self.machine.observe and held is not None and last and not held.waited_in_vain:
            held.blocked_on = f"replica:{last}"

    def decided(self, held: Held, sn: int) -> None:
        if self.machine.observe:
            self._decided[held.id] = None
            observed = Observe("decided", held.id, f"sn {sn}")
            observed.blocked_on = held.blocked_on
            self.machine.out.append(observed)

    def _source(self) -> str:
        """Whoever spoke last. What came just now itself has waited for nobody."""
        match self.cause:
            case Receive(message=Disseminate()):
                return ""
            case Receive(source=source) if source != self.machine.process:
                return f"replica:{source}"
            case _:
                return ""

    # ---------------------------------------------------------------------------------------- predecessors

    def stays(self, replica: Replica) -> None:
        """The head of the queue cannot be delivered yet."""
        if not self.machine.observe or not replica.queue:
            return
        head = (replica.queue[0], replica.head_waits_for)
        if head != self.heads.get(replica.name):
            self.heads[replica.name] = head

    def released(self, replica: Replica, key: bytes) -> str:
        """It is the next one of its group: what it waited for, if it did."""
        if not self.machine.observe:
            return ""
        head = self.heads.pop(replica.name, None)
        if head is not None and head[0] == key:
            if head[1] is not None:
                return f"message:{head[1].hex()}"
            self._known(replica, key, self._source())
        elif key[8:] in self._decided:
            self._known(replica, key, "")
        elif replica.position:
            # It was behind another one, which was delivered just now.
            return f"message:{replica.last_key[8:].hex()}"
        return ""

    def delivered(self, replica: Replica, id_: bytes, position: int, blocked_on: str) -> None:
        if self.machine.observe:
            where = f"{replica.name} {position}"
            observed = Observe("delivered", id_, where, group=replica.name, blocked_on=blocked_on)
            self.machine.out.append(observed)

    def _known(self, replica: Replica, key: bytes, blocked_on: str) -> None:
        self.machine.out.append(Observe("predecessors", key[8:], group=replica.name, blocked_on=blocked_on))
