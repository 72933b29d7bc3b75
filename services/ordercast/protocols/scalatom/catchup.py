"""Catching up with the group: from its log, or, where that no longer begins early enough, from a snapshot.

[E5] A replica that comes back is a slow one, and asks for the delivered prefix it lacks. A learner does nothing
else. [E8] Nobody counts an envelope as delivered because somebody calls it closed; only its place in the log says
what came before it.

How a log is copied is the same for all protocols (protocols/celllog). Here is what SCALATOM adds: when a replica
asks, what an entry must be, and what follows from entries and from a state.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, KEY_BYTES, KEY_MIN, sn_of
from ordercast.core.machine import LogRead
from ordercast.core.view import OtherConfiguration, names_of
from ordercast.protocols.celllog.copying import Copying
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.replica import Replica
from ordercast.protocols.scalatom.snapshot import Snapshots
from ordercast.v1.common_pb2 import Header
from ordercast.v1.sequencer_pb2 import LogChunk, LogEntry, Snapshot

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom


class CatchUp(Copying[Replica]):
    machine: "Scalatom"
    snapshots: Snapshots
    may_lack_checksum = True

    def __init__(self, machine: "Scalatom") -> None:
        # Entries are decided: that holds whether they are on this disk or not.
        super().__init__(machine, Snapshots(machine), waits_for_disk=False)

    # --------------------------------------------------------------------------------------------- asking

    def on_tick(self, replica: Replica) -> None:
        """Stuck for a whole tick though somebody is further: its log has what we lack."""
        is_due = self.machine.now >= replica.fetch_due
        if not replica.is_active or replica.copied is not None:
            if is_due and not replica.is_stopped:
                self.ask_around(replica)
            return
        if replica.position == replica.position_at_tick and is_due:
            ahead = [name for name, peer in replica.peers.items() if peer.position > replica.position]
            if ahead:
                self.fetching.fetch_in_turn(replica, ahead)
            else:
                self._ask_those_who_forgot(replica)
        replica.position_at_tick = replica.position

    def _ask_those_who_forgot(self, replica: Replica) -> None:
        for name, peer in replica.peers.items():
            if not replica.reached(peer.forgotten):
                self.fetching.fetch(replica, name)

    def fetch_from_anyone(self, replica: Replica) -> None:
        """Once for all envelopes that are missed: after a pause they are thousands."""
        if self.machine.now >= replica.fetch_due:
            for name in replica.peers:
                self.fetching.fetch(replica, name)

    def on_log_read(self, event: LogRead) -> None:
        if not event.tag.startswith(records.REPORT):
            self.giving.on_read(event)
        elif event.group in self.machine.replicas:
            id_ = bytes.fromhex(event.tag.removeprefix(records.REPORT))
            self.machine.on_report_read(event.group, id_, event.entries)

    # --------------------------------------------------------------------------------------------- hearing

    def target(self, replica: Replica) -> int | None:
        return None if replica.is_stopped else CLOCK_MAX

    def heard(self, replica: Replica, source: str, head: int) -> None:
        peer = replica.peers.get(source)
        if peer is not None:
            peer.position = max(peer.position, head)

    def replay(self, replica: Replica, entries: Sequence[LogEntry]) -> None:
        machine = self.machine
        for entry in entries:
            machine.deliver(replica, entry.order_key, entry.envelope, entry.dropped)
        machine.raise_clock(replica, sn_of(replica.last_key) + 1)
        machine.touched[replica.name] = None

    def check_news(self, replica: Replica, chunk: LogChunk) -> None:
        if replica.is_stopped or replica.copied is not None or chunk.begins > replica.position:
            return  # Nothing of it is replayed.
        news = self.news_in(replica, chunk, CLOCK_MAX)
        if any(replica.is_in_prefix(entry.envelope.header.id) for entry in news):
            raise RemoteProtocolError("an entry that was delivered before")

    def progressed(self, replica: Replica) -> None:
        self.machine.hand_over.on_progress(replica)

    def check_entries(self, replica: Replica, entries: Sequence[LogEntry]) -> None:
        last = KEY_MIN
        for entry in entries:
            self._check_header(replica, entry.envelope.header)
            key = entry.order_key
            if len(key) != KEY_BYTES or key[8:] != entry.envelope.header.id:
                raise RemoteProtocolError("not an entry of this group's log")
            if key <= last or sn_of(key) > CLOCK_MAX:
                raise RemoteProtocolError("a log that is out of order")
            last = key

    def _check_header(self, replica: Replica, header: Header) -> None:
        """By its own group only: others that it names may be gone by now, or not yet in our view."""
        self.machine.stamping.check_form(header)
        if replica.name not in names_of(header.destinations):
            raise RemoteProtocolError("not an entry of this group's log")
        for destination in header.destinations:
            if destination.group == replica.name and destination.configuration > replica.group.configuration:
                raise OtherConfiguration(replica.name, "an entry of a later configuration")

    # --------------------------------------------------------------------------------------------- state

    def is_enough(self, replica: Replica, snapshot: Snapshot) -> bool:
        """For a member that has not started, whatever state it is: the sealed hand over what is open behind it.

        Of {A, B, D}, B has delivered 9 envelopes and the others 7. All are replaced by {C, E, F}. C and E copy B's
        log, and B is gone before it gave its state. F starts from A and D, and alone delivers no more than they
        had. If C and E waited for a state at 9, the group would stand still. Learners wait: nobody waits for them.
        """
        return replica.is_member and not replica.is_active and snapshot.position >= replica.position

    def install(self, replica: Replica, snapshot: Snapshot, source: str) -> None:
        self.snapshots.install(replica, snapshot)

    def clear(self, replica: Replica) -> list[Record]:
        """Everything but the position: the group is gone."""
        return [*replica.clear_envelopes(), *replica.clear()]
