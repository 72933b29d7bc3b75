"""Recovery from the own disk, and catching up with the group: from its log, or from a snapshot.

[E5] A replica that comes back is a slow one: it reads what it persisted, and asks for the delivered prefix it
lacks. [E8] It never counts an envelope as delivered because somebody calls it closed; only its place in the
log says what came before it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, ID_BYTES, KEY_BYTES, KEY_MIN, sn_of, unpack_u64
from ordercast.core.machine import Deliver, LogRead, Persist, ReadLog, Receive, ResetLog, Send
from ordercast.core.view import names_of
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.held import Held
from ordercast.protocols.scalatom.records import Record
from ordercast.protocols.scalatom.replica import Replica
from ordercast.v1.common_pb2 import Header, Span
from ordercast.v1.sequencer_pb2 import (
    DeliveredRecord,
    DoneRecord,
    FetchLog,
    LogChunk,
    LogEntry,
    PositionRecord,
    ProducerRecord,
    Snapshot,
    StampedRecord,
)

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom


class CatchUp:
    def __init__(self, machine: "Scalatom") -> None:
        self.machine = machine

    # ------------------------------------------------------------------------------------------- recovery

    def recover(self, saved: list[tuple[bytes, bytes]]) -> None:
        """Rebuild everything from the records; what they do not say, peers will."""
        machine = self.machine
        producers: dict[bytes, ProducerRecord] = {}
        spans: dict[bytes, list[Span]] = {}
        stamped: list[StampedRecord] = []
        for key, value in saved:
            kind = key[:1]
            if kind == records.STAMPED:
                stamped.append(StampedRecord.FromString(value))
            elif kind == records.CLOCK:
                machine.reserved = unpack_u64(value)
            elif kind == records.RETIRED:
                machine.retirement.below = unpack_u64(value)
            elif kind in records.OF_GROUPS and records.group_of(key) not in machine.replicas:
                machine.groups.delete_left_over(key)
            elif kind == records.POSITION:
                record = PositionRecord.FromString(value)
                replica = machine.replicas[records.group_of(key)]
                replica.position, replica.offset = record.position, record.offset
                replica.last_key = record.order_key
            elif kind == records.PRODUCER:
                producers[key] = ProducerRecord.FromString(value)
            elif kind == records.SPAN:
                spans.setdefault(records.producer_of_span(key), []).append(Span.FromString(value))
            elif kind == records.DELIVERED:
                self._recover_delivered(machine.replicas[records.group_of(key)], value)
            elif kind == records.DONE:
                machine.replicas[records.group_of(key)].load_done(DoneRecord.FromString(value))
        for name, replica in machine.replicas.items():
            mine = {key: head for key, head in producers.items() if records.group_of(key) == name}
            for key, head in mine.items():
                head.spans.extend(sorted(spans.get(key, []), key=lambda span: span.first_sequence))
            replica.producers.load(list(mine.values()))
        for envelope in stamped:
            self._recover_stamped(envelope)
        self.restore_clock()
        for replica in machine.replicas.values():
            # What was forgotten before the crash is not known one by one any more.
            replica.history.forget_all_below(replica.clock, replica.last_key)

    def restore_clock(self) -> None:
        """[E7] From the reservation: whatever clock we gossiped, it was not above that."""
        machine = self.machine
        machine.clock = machine.restored = machine.reserved
        for replica in machine.replicas.values():
            replica.clock = machine.restored

    def _recover_delivered(self, replica: Replica, value: bytes) -> None:
        record = DeliveredRecord.FromString(value)
        rec_ts = record.rec_ts if record.HasField("rec_ts") else None
        replica.load_delivered(record, rec_ts)
        if rec_ts is None:
            return
        replica.history.add(record.id, rec_ts)
        assert self.machine.view is not None
        held = self.machine.hear_of(record.id)
        held.names = self.machine.view.known(d.group for d in record.destinations)
        self._own(held, rec_ts)
        held.sn = sn_of(record.order_key)

    def _recover_stamped(self, record: StampedRecord) -> None:
        machine, envelope = self.machine, record.envelope
        assert machine.view is not None
        held = machine.hear_of(envelope.header.id)
        held.names = machine.view.known(d.group for d in envelope.header.destinations)
        held.envelope = envelope
        self._own(held, record.rec_ts)
        local = [name for name in held.names if name in machine.replicas]
        held.undelivered = {n: None for n in local if not machine.replicas[n].has_delivered(held.id)}
        for name in held.undelivered:
            machine.replicas[name].stamp(held.id, record.rec_ts)
            if held.sn is not None:
                machine.replicas[name].decide(held.id, held.sn)
        if not held.undelivered:
            # It was only for groups that are gone, or waited only for those.
            machine.settle(held)
            machine.release(held.id)

    def _own(self, held: Held, rec_ts: int) -> None:
        held.rec_ts = held.stamps[self.machine.process] = rec_ts
        held.owners[self.machine.process] = None

    # ------------------------------------------------------------------------------------------- fetching

    def on_tick(self, replica: Replica) -> None:
        """Stuck for a whole tick though somebody is further: its log has what we lack."""
        if replica.position == replica.position_at_tick and self.machine.now >= replica.fetch_due:
            ahead = [name for name, peer in replica.peers.items() if peer.position > replica.position]
            if ahead:
                # In turn: one of them may be dead and never answer.
                replica.fetches += 1
                self.fetch(replica, ahead[replica.fetches % len(ahead)])
            else:
                self._ask_those_who_forgot(replica)
        replica.position_at_tick = replica.position

    def _ask_those_who_forgot(self, replica: Replica) -> None:
        for name, peer in replica.peers.items():
            if not replica.reached(peer.forgotten):
                self.fetch(replica, name)

    def fetch(self, replica: Replica, source: str) -> None:
        fetch = FetchLog(group=replica.name, configuration=replica.group.configuration, position=replica.position)
        replica.fetch_due = self.machine.now + self.machine.patience_s()
        self.machine.out.append(Send((source,), fetch))

    def fetch_from_anyone(self, replica: Replica) -> None:
        """Once for all envelopes that are missed: after a pause they are thousands."""
        if self.machine.now >= replica.fetch_due:
            for name in replica.peers:
                self.fetch(replica, name)

    def on_fetch(self, event: Receive) -> None:
        fetch: FetchLog = event.message
        replica, _ = self.machine.gossiper.checked(fetch.group, fetch.configuration, event.source)
        if fetch.position < replica.position:
            count = self.machine.settings.log_chunk
            self.machine.out.append(ReadLog(replica.name, fetch.position, count, tag=event.source))

    def on_log_read(self, event: LogRead) -> None:
        machine = self.machine
        replica = machine.replicas.get(event.group)
        if replica is None:
            return  # The group is gone since we asked.
        if event.tag.startswith(records.REPORT):
            id_ = bytes.fromhex(event.tag.removeprefix(records.REPORT))
            machine.on_report_read(event.group, id_, event.entries)
        elif event.tag.startswith(records.SNAPSHOT):
            self._send_snapshot(replica, event)
        elif event.position < event.begins:
            self._read_for_snapshot(replica, event.begins, records.SNAPSHOT + event.tag)
        elif event.entries:
            chunk = LogChunk(
                group=replica.name,
                configuration=replica.group.configuration,
                position=event.position,
                entries=self._as_fit(event.entries),
                head=replica.position,
            )
            machine.out.append(Send((event.tag,), chunk))

    def _as_fit(self, entries: Sequence[LogEntry]) -> Sequence[LogEntry]:
        """As many as a chunk may have bytes, but one at least; whoever catches up asks for the rest."""
        total = 0
        for count, entry in enumerate(entries):
            total += entry.ByteSize()
            if count and total > self.machine.settings.log_chunk_bytes:
                return entries[:count]
        return entries

    def on_chunk(self, event: Receive) -> None:
        chunk: LogChunk = event.message
        machine = self.machine
        replica, peer = machine.gossiper.checked(chunk.group, chunk.configuration, event.source)
        peer.position = max(peer.position, chunk.head)
        new = list(chunk.entries)[max(replica.position - chunk.position, 0) :]
        self._check_entries(replica, chunk.entries)
        if chunk.position <= replica.position and any(replica.is_in_prefix(e.envelope.header.id) for e in new):
            raise RemoteProtocolError("an entry that was delivered before")
        news = False
        for index, entry in enumerate(chunk.entries):
            if chunk.position + index == replica.position:
                machine.deliver(replica, entry.order_key, entry.envelope)
                news = True
        machine.raise_clock(replica, sn_of(replica.last_key) + 1)
        machine.touched[replica.name] = None
        if news and replica.position < chunk.head:
            self.fetch(replica, event.source)

    def _check_entries(self, replica: Replica, entries: Sequence[LogEntry]) -> None:
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
        self.machine.check_form(header)
        if replica.name not in names_of(header.destinations):
            raise RemoteProtocolError("not an entry of this group's log")
        for destination in header.destinations:
            if destination.group == replica.name:
                replica.group.check(destination.configuration)

    # ------------------------------------------------------------------------------------------- snapshots

    def snapshot(self, replica: Replica) -> Snapshot:
        """Everything that follows from the log, for someone to whom the log itself is no longer available."""
        return Snapshot(
            group=replica.name,
            configuration=replica.group.configuration,
            position=replica.position,
            offset=replica.offset,
            order_key=replica.last_key,
            producers=replica.producers.messages(),
            done=[replica.done_message(incarnation) for incarnation in replica.done],
            delivered=[replica.delivered_message(id_) for id_ in replica.delivered],
            retired=self.machine.retired,
        )

    def _read_for_snapshot(self, replica: Replica, begins: int, tag: str) -> None:
        """The state, and all that is left of the log: whoever takes the state counts as having the bodies."""
        self.machine.out.append(ReadLog(replica.name, begins, replica.position - begins, tag))

    def _send_snapshot(self, replica: Replica, event: LogRead) -> None:
        if event.position + len(event.entries) != replica.position:
            # Something was delivered, or dropped by retention, since we asked: state and log must fit together.
            self._read_for_snapshot(replica, max(event.position, event.begins), event.tag)
            return
        snapshot = self.snapshot(replica)
        snapshot.entries.extend(event.entries)
        self.machine.out.append(Send((event.tag.removeprefix(records.SNAPSHOT),), snapshot))

    def on_snapshot(self, event: Receive) -> None:
        snapshot: Snapshot = event.message
        machine = self.machine
        replica, _ = machine.gossiper.checked(snapshot.group, snapshot.configuration, event.source)
        self._check_snapshot(replica, snapshot)
        if snapshot.position <= replica.position:
            return
        changes = self.clear(replica)
        machine.retire(snapshot.retired)
        replica.position, replica.offset = snapshot.position, snapshot.offset
        replica.last_key = snapshot.order_key
        replica.producers.load(list(snapshot.producers))
        for done in snapshot.done:
            replica.load_done(done)
        for record in snapshot.delivered:
            held = machine.held.get(record.id)
            mine = held.rec_ts if held is not None and not record.buried else None
            replica.load_delivered(record, mine)
        machine.raise_clock(replica, sn_of(replica.last_key) + 1)
        changes += self._records(replica)
        self._settle_delivered(replica)
        begins = replica.position - len(snapshot.entries)
        machine.out.append(ResetLog(replica.name, begins))
        for index, entry in enumerate(snapshot.entries):
            machine.out.append(Deliver(replica.name, begins + index, entry))
        machine.out.append(Persist(changes + machine.changes))
        machine.changes = []
        machine.touched[replica.name] = None

    def _check_snapshot(self, replica: Replica, snapshot: Snapshot) -> None:
        """Nothing of it is behind its own end, and its end is not behind ours."""
        end = snapshot.order_key
        if len(end) != KEY_BYTES or sn_of(end) > CLOCK_MAX:
            raise RemoteProtocolError("not an order key")
        if snapshot.retired > CLOCK_MAX:
            raise RemoteProtocolError("not an incarnation")
        self._check_entries(replica, snapshot.entries)
        if len(snapshot.entries) > snapshot.position or any(entry.order_key > end for entry in snapshot.entries):
            raise RemoteProtocolError("a snapshot with entries behind its end")
        for record in snapshot.delivered:
            if len(record.id) != ID_BYTES or len(record.order_key) != KEY_BYTES:
                raise RemoteProtocolError("a snapshot with a record of no envelope")
            if record.order_key > end or record.position >= snapshot.position:
                raise RemoteProtocolError("a snapshot with a record behind its end")
        if snapshot.position > replica.position and end <= replica.last_key:
            raise RemoteProtocolError("a snapshot that is further and behind at once")

    def clear(self, replica: Replica) -> list[Record]:
        """Everything but the position: a snapshot replaces it, or the group is gone."""
        changes: list[Record] = [(records.delivered(replica.name, id_), None) for id_ in replica.delivered]
        changes += [(records.done(replica.name, i), None) for i in replica.done]
        changes += replica.producers.clear()
        replica.delivered, replica.done = {}, {}
        return changes

    def _records(self, replica: Replica) -> list[Record]:
        changes = [replica.delivered_record(id_) for id_ in replica.delivered]
        changes += replica.producers.records()
        changes += [replica.done_record(incarnation) for incarnation in replica.done]
        changes.append(replica.position_record())
        return changes

    def _settle_delivered(self, replica: Replica) -> None:
        """Own entries that the snapshot covers: kept if its table has them, else they count as forgotten."""
        machine = self.machine
        replica.drop_open()
        for held in list(machine.held.values()):
            if not replica.has_delivered(held.id):
                continue
            delivered = replica.delivered.get(held.id)
            held.undelivered.pop(replica.name, None)
            if delivered is not None:
                machine.learn(held, sn_of(delivered.key))
            if held.rec_ts is not None and (delivered is None or delivered.buried):
                replica.history.forget(held.id, held.rec_ts, replica.last_key)
                replica.forgotten.append(held.id)
            machine.settle(held)
        replica.history.forget_all_below(replica.clock, replica.last_key)
        machine.release_forgotten(replica)
