"""Recovery from the own disk.

[E5] A replica that comes back is a slow one: it reads what it persisted, and asks for the delivered prefix it
lacks.
"""

from typing import TYPE_CHECKING

from ordercast.core.ids import sn_of, unpack_u64
from ordercast.core.machine import ResetLog
from ordercast.protocols.celllog.saved_logs import SavedLogs
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.replica import Replica
from ordercast.v1.scalatom_pb2 import HandedOver, StampedRecord, StartedRecord
from ordercast.v1.sequencer_pb2 import DeliveredRecord, DoneRecord, PositionRecord

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom


class Recovery:
    def __init__(self, machine: "Scalatom") -> None:
        self.machine = machine

    def recover(self, saved: list[tuple[bytes, bytes]]) -> None:
        """Rebuild everything from the records; what they do not say, peers will."""
        machine = self.machine
        logs = SavedLogs()
        stamped: list[StampedRecord] = []
        starts = self._starts(saved)
        lost = self._lost(starts)
        for name, started in starts.items():
            if name in machine.replicas and name not in lost:
                replica = machine.replicas[name]
                replica.started = started.configuration
                replica.follow(replica.group)
                machine.hand_over.recover(name, started, None)
        for key, value in saved:
            kind = key[:1]
            if kind == records.STAMPED:
                stamped.append(StampedRecord.FromString(value))
            elif kind == records.CLOCK:
                machine.reserved = unpack_u64(value)
            elif kind == records.RETIRED:
                machine.retirement.below = unpack_u64(value)
            elif kind == records.VIEW:
                continue
            elif (name := records.group_of(key)) not in machine.replicas or name in lost:
                if name not in lost or kind != records.STARTED:  # which says that it is lost
                    machine.groups.delete_left_over(key)
            elif kind == records.POSITION:
                record = PositionRecord.FromString(value)
                replica = machine.replicas[name]
                replica.position, replica.offset = record.position, record.offset
                replica.last_key = record.order_key
            elif logs.add(key, value):
                continue
            elif kind == records.DELIVERED:
                self._recover_delivered(machine.replicas[name], value)
            elif kind == records.DONE:
                machine.replicas[name].load_done(DoneRecord.FromString(value))
            elif kind == records.COPIED:
                machine.replicas[name].copied = unpack_u64(value)
            elif kind == records.HANDED:
                machine.hand_over.recover(name, starts[name], HandedOver.FromString(value))
        for replica in machine.replicas.values():
            logs.restore(replica)
        for envelope in stamped:
            self._recover_stamped(envelope)
        self.restore_clock()
        self.restore_forgotten()

    def _starts(self, saved: list[tuple[bytes, bytes]]) -> dict[str, StartedRecord]:
        found = {k: v for k, v in saved if k[:1] == records.STARTED}
        return {records.group_of(key): StartedRecord.FromString(value) for key, value in found.items()}

    def _lost(self, starts: dict[str, StartedRecord]) -> frozenset[str]:
        """Groups of which nothing on this disk may be believed. What came after it was lost begins with such a
        mark.
        """
        machine = self.machine
        lost = []
        for name, replica in machine.replicas.items():
            group, former = replica.group, replica.group.former
            is_former = former is not None and machine.process in former.lost
            is_marked = name in starts and not machine.groups.has_lost(group, starts[name].configuration)
            if machine.process in group.lost or (is_former and not is_marked):
                lost.append(name)
        for name in lost:
            machine.out.append(ResetLog(name, 0))
            machine.changes.append((records.started(name), StartedRecord().SerializeToString()))
        return frozenset(lost)

    def restore_clock(self) -> None:
        """[E7] From the reservation: whatever clock we gossiped, it was not above that."""
        machine = self.machine
        machine.clock = machine.restored = machine.reserved
        for replica in machine.replicas.values():
            replica.clock = machine.restored

    def restore_forgotten(self) -> None:
        """[E8] What was forgotten before the crash is not known one by one any more: F is as high as it can be."""
        for replica in self.machine.replicas.values():
            replica.history.forget_all_below(replica.clock, replica.last_key)

    def _recover_delivered(self, replica: Replica, value: bytes) -> None:
        record = DeliveredRecord.FromString(value)
        rec_ts = record.rec_ts if record.HasField("rec_ts") else None
        replica.load_delivered(record, rec_ts)
        if rec_ts is None:
            return
        replica.history.add(record.id, rec_ts)
        machine = self.machine
        assert machine.view is not None
        held = machine.hear_of(record.id)
        held.names = machine.view.known(d.group for d in record.destinations)
        if replica.delivered[record.id].configuration == replica.started:
            held.own[replica.name] = rec_ts
        held.owners[machine.process] = None
        held.sn = sn_of(record.order_key)

    def _recover_stamped(self, record: StampedRecord) -> None:
        machine, envelope = self.machine, record.envelope
        assert machine.view is not None
        header = envelope.header
        held = machine.hear_of(header.id)
        held.names = machine.view.known(d.group for d in header.destinations)
        held.envelope = envelope
        held.owners[machine.process] = None
        own = {stamp.group: stamp for stamp in record.stamps}
        for name in held.names:
            replica = machine.replicas.get(name)
            if replica is None or not (replica.is_active or replica.is_sealed):
                continue
            stamp = own.get(name)
            if stamp is None and own:
                continue  # The group here was between two configurations, or not ours yet.
            rec_ts = stamp.rec_ts if stamp is not None else record.rec_ts
            held.own[name] = rec_ts
            if replica.is_active:
                held.note_stamp(name, machine.process, rec_ts)
            if not replica.has_delivered(held.id):
                held.undelivered[name] = None
                replica.stamp(held.id, stamp.entry if stamp is not None else rec_ts)
                if held.sn is not None:
                    replica.decide(held.id, held.sn)
        for name in held.names:
            replica = machine.replicas.get(name)
            if replica is not None and replica.is_member and not replica.has_delivered(held.id):
                held.undelivered[name] = None  # stamped when it has started
        if not held.undelivered:
            # It was only for groups that are gone, or waited only for those.
            machine.settle(held)
            machine.release(held.id)
