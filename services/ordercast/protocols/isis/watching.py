"""What the way of a cast looks like from outside: its stages, and what it waited for last.

Nothing here has any effect on order. A cast is released by whatever came in the step in which it moves on: that is
what it waited for.
"""

from typing import TYPE_CHECKING

from ordercast.core.machine import Event, Observe, Receive, ViewChanged
from ordercast.protocols.causal.casts import Key
from ordercast.protocols.isis.era import Era
from ordercast.protocols.isis.replica import Replica
from ordercast.v1.isis_pb2 import Cast, SetsOrder

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis


class Watching:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine
        #: Of the current step.
        self.cause: Event | None = None
        self._came: dict[tuple[str, bytes], None] = {}
        #: Casts that are here and not visible, as far as somebody has looked: since when.
        self._under_way: dict[tuple[str, int, Key], float] = {}

    def look(self) -> dict[tuple[str, int, Key], float]:
        """Casts that are here and not visible, and since when they have been seen here."""
        now, before = self.machine.now, self._under_way
        self._under_way = {
            (name, era.view, key): before.get((name, era.view, key), now)
            for name, replica in self.machine.replicas.items()
            for era in replica.eras
            for key in era.casts
            if era.place_of.get(key, replica.position) >= replica.position
        }
        return self._under_way

    def begin(self, event: Event) -> None:
        self.cause = event
        if self._came:
            self._came = {}

    # ------------------------------------------------------------------------------------------------ stages

    def received(self, replica: Replica, cast: Cast) -> None:
        if self.machine.observe:
            id_ = cast.envelope.header.id
            self._came[(replica.name, id_)] = None
            self._tell("received", id_, replica.name)

    def delivered(self, replica: Replica, cast: Cast) -> None:
        """Live, in causal order. What came in this very step has waited for nothing."""
        if self.machine.observe:
            id_ = cast.envelope.header.id
            waited = (replica.name, id_) not in self._came
            self._tell("causal", id_, replica.name, self._released(replica, id_) if waited else "")

    def placed(self, replica: Replica, era: Era, key: Key) -> None:
        if self.machine.observe and key in era.casts:
            blocked_on = "" if era.is_holder else f"token:{era.members[era.token.holder]}"
            self._tell("ordered", era.casts[key].envelope.header.id, replica.name, blocked_on)

    def visible(self, replica: Replica, cast: Cast, position: int) -> None:
        if self.machine.observe:
            id_ = cast.envelope.header.id
            effect = Observe("delivered", id_, f"{replica.name} {position}", group=replica.name)
            effect.blocked_on = self._released(replica, id_)
            self.machine.out.append(effect)

    def stable(self, replica: Replica, cast: Cast) -> None:
        if self.machine.observe:
            self._tell("stable", cast.envelope.header.id, replica.name)

    def sealed(self, replica: Replica) -> None:
        """A later view is defined: the flush begins."""
        if self.machine.observe:
            group = replica.group
            self.machine.out.append(Observe("sealed", b"", f"{replica.name} {group.configuration}"))

    def _tell(self, stage: str, id_: bytes, group: str, blocked_on: str = "") -> None:
        self.machine.out.append(Observe(stage, id_, group=group, blocked_on=blocked_on))

    # ------------------------------------------------------------------------------------------------ reasons

    def _released(self, replica: Replica, id_: bytes) -> str:
        """By what came just now."""
        match self.cause:
            case Receive(message=Cast() as cast) if cast.envelope.header.id != id_:
                return f"message:{cast.envelope.header.id.hex()}"
            case Receive(message=SetsOrder(), source=source):
                return f"token:{source}"
            case Receive(source=source) if source != self.machine.process:
                return f"replica:{source}"
            case ViewChanged():
                return f"view:{replica.name}/{replica.group.configuration}"
            case _:
                return ""
