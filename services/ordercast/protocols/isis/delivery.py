"""Causal delivery over all groups of a process [BSS91 5.1, 6.1].

What came is in its era until its past is delivered. A cast that was delivered may be the past of another one in
another group, so groups are looked at in turn until nothing moves.
"""

from typing import TYPE_CHECKING

from ordercast.core.machine import Deliver, Interrupted, Observe
from ordercast.protocols.causal import times
from ordercast.protocols.causal.casts import Key
from ordercast.protocols.causal.times import Times
from ordercast.protocols.isis.era import Era
from ordercast.protocols.isis.replica import Replica, stamp_of
from ordercast.protocols.isis.stamps import bytes_of
from ordercast.v1.sequencer_pb2 import LogEntry

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis


class Delivering:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine

    def drain(self) -> None:
        """Deliver what may be delivered, wherever; install what is to be installed."""
        moved = True
        while moved:
            moved = False
            for replica in self.machine.replicas.values():
                while replica.eras and replica.eras[0].is_waiting and self._drain_first(replica):
                    moved = True

    def _drain_first(self, replica: Replica) -> bool:
        era = replica.eras[0]
        moved = False
        for key in era.candidates():
            while self.is_deliverable(replica, era, key):
                self.deliver(replica, era, key)
                moved = True
                key = (key[0], key[1] + 1)
                if key not in era.casts:
                    break
        if era.is_closed and era.delivered == era.received:
            replica.eras.popleft()
            self._installed(replica)
            return True
        return moved

    # ---------------------------------------------------------------------------------------------- rules

    def is_deliverable(self, replica: Replica, era: Era, key: Key) -> bool:
        """[6.1] Rule 2', of own casts too: 5.1's "need not delay" breaks causality across groups."""
        if not era.precedes_is_delivered(key):
            return False
        cast = era.casts[key]
        if cast.domain_view > self.machine.view_number:
            return False  # It came with a flush: see Receiving.on_cast.
        if not self.has_delivered(era.times[key], replica.name):
            return False
        if not self.machine.epochs.is_open(replica, cast):
            return False
        return not cast.total or self.may_deliver_total(era, key)

    def may_deliver_total(self, era: Era, key: Key) -> bool:
        """[5.2] In its turn; the token holder makes the turns, behind all that others have ordered before it."""
        if key in era.place_of or era.is_closed:
            return era.is_in_turn(key)
        return era.is_holder and era.pass_over() == era.ordered

    def has_delivered(self, stamp: Times, besides: str = "") -> bool:
        """[6.1 rule 2.3'] In the groups that this process is in. 2.3' must leave out the cast's own group."""
        for group, time in stamp.items():
            if group == besides:
                continue
            known = self.machine.view.groups.get(group) if self.machine.view is not None else None
            if known is not None and time.view > known.configuration:
                return False  # We may be in that view, and not have heard of it.
            replica = self.machine.replicas.get(group)
            if replica is not None and not self._covers(replica, time):
                return False
        return True

    def _covers(self, replica: Replica, time: times.Time) -> bool:
        if replica.eras:
            era = replica.eras[0]
            return time.is_covered(era.view, era.delivered)
        # About to enter the present view: casts of it are for us. Those of earlier views were for another life.
        return not replica.is_member or time.view < replica.group.configuration

    # ------------------------------------------------------------------------------------------ delivering

    def deliver(self, replica: Replica, era: Era, key: Key) -> None:
        machine = self.machine
        cast = era.casts[key]
        era.delivered[key[0]] = key[1]
        machine.know(era.times[key], era.carried[key])
        machine.knows_cast(replica.name, era.view, key, era.carried[key])
        if not era.is_closed and key not in era.place_of:
            if era.is_holder:
                machine.ordering.take_over(replica, era)
                machine.ordering.place(replica, era, key)
            else:
                era.unplaced[key] = None
        if cast.total:
            era.total_end = max(era.total_end, era.place_of[key] + 1)
        machine.watching.delivered(replica, cast)
        machine.epochs.delivered(replica.name, cast)
        machine.parts.delivered(replica, era, key)
        entry = LogEntry(
            envelope=cast.envelope,
            protocol=stamp_of(cast).SerializeToString(),
            besides=bytes_of(machine.confirmed.read(replica)),
        )
        machine.out.append(Deliver(replica.name, 0, entry, final=False))
        machine.touched[replica.name] = None

    def _installed(self, replica: Replica) -> None:
        """Everything from before the view is delivered: take part in it."""
        machine = self.machine
        machine.views.is_due = True
        machine.touched[replica.name] = None
        if not replica.eras:
            machine.out.append(Interrupted(replica.name))
        elif machine.observe:
            machine.out.append(Observe("installed", b"", f"{replica.name} {replica.eras[0].view}"))
        era = replica.installed
        if era is not None:
            machine.stability.took(replica, None)
