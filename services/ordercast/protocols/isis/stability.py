"""Who has what on disk [BSS91 5.3].

A row says what one member has synced, of everyone's casts and of the order. The caster and the token holder hear
of it at once: receipts and k-stability wait for them. The others hear of it with the next cast, or when nothing
was cast for a while. Rows only rise, so it does not matter in which order they come, or how often.
"""

from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive, Send, SetTimer
from ordercast.core.quorums import majority
from ordercast.protocols.isis.era import Era, Row
from ordercast.protocols.isis.replica import Replica
from ordercast.protocols.isis.settings import ALL, K_STABILITY, MAJORITY, Causality
from ordercast.v1.isis_pb2 import Stability, SyncedRow

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis

STABILITY_TIMER = "stability"


class Stabilising:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine
        self._is_timed = False
        #: Casters whose casts came in this step, by group: they wait to hear that they are on disk.
        self.eager: dict[str, dict[int, None]] = {}

    def k(self, era: Era) -> int:
        """[6.5, 6.7] How many disks make a cast stable enough to speak elsewhere about it."""
        settings, size = self.machine.settings, len(era.members)
        own = dict(self.machine.replicas[era.group].group.settings)
        k = own.get(K_STABILITY, settings.k_stability)
        if settings.causality == Causality.CONSERVATIVE or k == ALL:
            return size
        if k == MAJORITY:
            return majority(size)
        return min(int(k), size)

    # --------------------------------------------------------------------------------------------- telling

    def took(self, replica: Replica, caster: int | None) -> None:
        """Something of this group goes to the disk in this step."""
        casters = self.eager.setdefault(replica.name, {})
        if caster is not None:
            casters[caster] = None

    def flush(self) -> None:
        """At the end of a step: say what is on disk, once it is."""
        machine = self.machine
        for name, casters in self.eager.items():
            replica = machine.replicas.get(name)
            era = replica.current if replica is not None else None
            if era is None:
                continue
            row = Row(list(era.received), era.ordered).message()
            message = Stability(group=name, view=era.view, row=row)
            to = [machine.process]
            if machine.replicas[name].installed is era:
                wanted = [*casters, era.token.holder]
                to += [era.members[i] for i in dict.fromkeys(wanted) if i != era.me]
            machine.then.append(Send(to, message))
        self.eager = {}

    def tell_others(self, replica: Replica) -> None:
        """All of it to all, if it is news."""
        era = replica.installed
        if era is None or era.told_row == era.rows[era.me] or not era.others:
            return
        message = Stability(group=replica.name, view=era.view, row=self.row_to_tell(era))
        self.machine.out.append(Send(era.others, message, urgent=False))

    def row_to_tell(self, era: Era) -> SyncedRow:
        row = era.rows[era.me]
        era.told_row = Row(list(row.counts), row.positions)
        return row.message()

    def on_timer(self) -> None:
        self._is_timed = False
        for replica in self.machine.replicas.values():
            self.tell_others(replica)

    # --------------------------------------------------------------------------------------------- hearing

    def on_stability(self, event: Receive) -> None:
        message: Stability = event.message
        machine = self.machine
        replica = machine.listening(event, message.group, message.view)
        if replica is None:
            return
        era = replica.current
        assert era is not None
        member = era.index_of(event.source, event.incarnation)
        if member is None:
            machine.stale(event)
            return
        self.heard(replica, era, member, message.row)
        if member == era.me and replica.installed is era and era.others and not self._is_timed:
            self._is_timed = True
            machine.out.append(SetTimer(STABILITY_TIMER, machine.settings.stability_idle_s))

    def check(self, era: Era, row: SyncedRow) -> None:
        if len(row.counts) != len(era.members):
            raise RemoteProtocolError("not a row of this view")
        # What is said to be on enough disks counts as safe when it is cast: nobody has it before.
        if row.counts[era.me] > era.sent:
            raise RemoteProtocolError("it has more of our casts than there are")

    def heard(self, replica: Replica, era: Era, member: int, row: SyncedRow) -> None:
        self.check(era, row)
        if era.rows[member].raise_to(list(row.counts), row.positions):
            self.machine.touched[replica.name] = None
