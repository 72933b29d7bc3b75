"""Copying the log: what a newcomer does before it is a member, and a member that missed the end of a view.

Logs hold what is visible and never differ but in length, so anybody's will do. How a log is copied is the same for
all protocols (protocols/celllog). Here is what views add: how far a copy may go, and which entries may be taken.
Until a copy is complete, its replica is not ready for a view.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ordercast.core.ids import CLOCK_MAX
from ordercast.protocols.celllog import copying
from ordercast.protocols.isis.checking import check_entry
from ordercast.protocols.isis.era import key_of
from ordercast.protocols.isis.replica import Replica, cast_of
from ordercast.protocols.isis.snapshot import Snapshots
from ordercast.protocols.isis.stamps import stamp_in
from ordercast.v1.sequencer_pb2 import LogEntry, Snapshot

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis


class Copying(copying.Copying[Replica]):
    machine: "Isis"
    snapshots: Snapshots

    def __init__(self, machine: "Isis") -> None:
        # A piece counts with whoever copies it.
        super().__init__(machine, Snapshots(machine), waits_for_disk=True)

    # --------------------------------------------------------------------------------------------- how far

    def limit(self, replica: Replica) -> int | None:
        """How far the log may come: to where the view begins that is to be entered; None if it needs no copy."""
        if replica.is_learner:
            return CLOCK_MAX
        cut = replica.cut
        if cut is None or replica.view >= cut.view:
            return None
        return cut.first_position + len(cut.keys)

    def target(self, replica: Replica) -> int | None:
        limit, cut = self.limit(replica), replica.cut
        if limit is None or limit == CLOCK_MAX or replica.copied is not None:
            return limit
        end = limit if replica.lacks_of_cut() or cut is None else cut.first_position
        return end if replica.position < end else None

    def last_view(self, replica: Replica) -> int:
        """The latest one of which entries may be taken: complete, as far as we know, and not one to be entered.

        A member of v2 hears of its completion late, together with v3, which is defined without it. It is a learner
        now, but the cut before v2 may still come, and then it is in v2: from where v2 began.
        """
        group, completed = replica.group, replica.completed
        if not replica.is_learner:
            return min(completed, replica.cut.view - 1) if replica.cut is not None else completed
        members = group.former_replicas if group.former is not None else group.replicas
        return completed - 1 if replica.process in members and replica.view < completed else completed

    def is_for_us(self, replica: Replica, entry: LogEntry) -> bool:
        """We may be in a later view, and not have heard of it."""
        return stamp_in(entry).view <= self.last_view(replica)

    def may_begin(self, replica: Replica, begins: int) -> bool:
        """Whoever has a part in the view that ends has more of it than the log, and that counts with the log that
        it has. It lacks nothing that is gone elsewhere: see Replica.retained_from.
        """
        limit = self.limit(replica)
        ends = replica.completed if replica.is_learner else replica.cut_ends
        return limit is not None and begins <= limit and (replica.ending is None or replica.view < ends)

    def is_enough(self, replica: Replica, snapshot: Snapshot) -> bool:
        """It is all that a member needs to enter the view.

        Of the view v1 = {A, B, D}, B shows 9 entries and A shows 7, for it has not heard yet what others have on
        disk. C copies B's log, and B is gone. A and D show no more before v2 = {A, C, D} is complete, and that may
        need C. Learners wait: nobody waits for them.
        """
        if replica.cut is None or replica.is_learner:
            return False
        return snapshot.position >= replica.cut.first_position

    # -------------------------------------------------------------------------------------- asking, hearing

    def look(self, replica: Replica) -> None:
        """Ask for the next piece, unless one is on its way."""
        self.snapshots.tidy(replica)
        if self.target(replica) is not None and self.machine.now >= replica.fetch_due:
            self.ask_around(replica)

    def check_entries(self, replica: Replica, entries: Sequence[LogEntry]) -> None:
        for entry in entries:
            check_entry(replica.name, entry)

    def replay(self, replica: Replica, entries: Sequence[LogEntry]) -> None:
        machine = self.machine
        if not entries:
            return
        for entry in entries:
            self.take(replica, replica.position, entry)
            replica.replay(entry)
            machine.changes += replica.judged_changes()
        machine.changes.append(replica.position_record())
        machine.flushing.report(replica)
        machine.touched[replica.name] = None

    def take(self, replica: Replica, position: int, entry: LogEntry) -> None:
        cut = replica.cut
        if cut is not None and position >= cut.first_position:
            stamp = stamp_in(entry)
            # Others ended the view with it, and it may be here to be delivered as such: with all its messages.
            if stamp.view == cut.ends and not entry.dropped:
                replica.cut_casts[key_of(stamp.key)] = cast_of(replica.name, entry)
        super().take(replica, position, entry)

    def install(self, replica: Replica, snapshot: Snapshot, source: str) -> None:
        machine = self.machine
        machine.changes += [*replica.take_state(snapshot), replica.position_record()]
        machine.flushing.report(replica)
        machine.touched[replica.name] = None
        if self.target(replica) is not None:
            self.fetching.fetch(replica, source)

    def began(self, replica: Replica) -> None:
        """A view was adopted just now."""
        self.snapshots.began(replica)
