"""Final delivery: Algorithm 1 l.29-33, Algorithm 3 l.40-45.

The stamped message with the lowest key is delivered when every source of the group has passed that key. Keys are
compared whole, and a message's own key counts as passed by its source [E1]. A message whose payload is not here
blocks all behind it, and is pulled; it is never skipped.
"""

from heapq import heappop
from typing import TYPE_CHECKING

from ordercast.core.ids import pack_u64
from ordercast.core.machine import Deliver, Observe, ReadLog, Send, Watermark
from ordercast.core.view import names_of
from ordercast.protocols.optimistic import keys, records
from ordercast.protocols.optimistic.payloads import as_destination
from ordercast.protocols.optimistic.replica import Replica
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered, LogEntry, PositionRecord

if TYPE_CHECKING:
    from ordercast.protocols.optimistic.machine import Optimistic


class Delivery:
    def __init__(self, machine: "Optimistic") -> None:
        self.machine = machine

    def deliver(self, replica: Replica) -> None:
        machine = self.machine
        barrier = replica.barrier
        while replica.heap and self._is_passed(replica.heap[0], barrier):
            key = replica.heap[0]
            cast = machine.payloads.held.get(replica.stamped[key].id)
            if cast is None:
                break
            heappop(replica.heap)
            self._append(replica, key)
        head = replica.heap[0] if replica.heap else None
        if replica.waits[0] != (head or keys.LOWEST):
            replica.waits = (head or keys.LOWEST, machine.now)
        if barrier > replica.marked and (head is None or head > barrier):
            replica.marked = barrier
            machine.out.append(Watermark(replica.name, barrier, replica.position))

    def _is_passed(self, key: bytes, barrier: bytes) -> bool:
        """[E1] The message's own key is its source's barrier until that moves on."""
        return key <= barrier

    def _append(self, replica: Replica, key: bytes) -> None:
        machine = self.machine
        id_ = replica.stamped.pop(key).id
        del replica.stamped_ids[id_]
        envelope = machine.payloads.held[id_].envelope
        header = envelope.header
        entry = LogEntry(
            order_key=key, envelope=envelope, first_offset=replica.offset, bases=replica.bases(header)
        )
        replica.complete(entry, names_of(header.destinations), keys.timestamp_of(key))
        machine.early.placed(replica, id_)
        machine.out.append(Deliver(replica.name, replica.position, entry))
        replica.placed[id_] = replica.position
        machine.note_finished(replica, header)
        machine.changes.append((records.placed(replica.name, id_), pack_u64(replica.position)))
        replica.position += 1
        replica.last_key = key
        record = PositionRecord(position=replica.position, offset=replica.offset, order_key=key)
        machine.changes.append((records.position(replica.name), record.SerializeToString()))
        machine.changes.append((records.stamped(replica.name, key), None))
        machine.changes += replica.judged_changes()
        machine.payloads.done(id_, as_destination(replica.name))
        self.report(replica.name, entry)
        if machine.observe:
            machine.out.append(Observe("delivered", id_, group=replica.name))

    def report(self, group: str, entry: LogEntry) -> None:
        header = entry.envelope.header
        report = EnvelopeDelivered(
            id=header.id, group=group, order_key=entry.order_key, outcomes=entry.outcomes, bases=entry.bases
        )
        self.machine.out.append(Send((header.gateway,), report))

    def report_again(self, replica: Replica, id_: bytes) -> None:
        """The gateway has not heard that it was delivered."""
        position = replica.placed.get(id_)
        if position is not None:
            self.machine.out.append(ReadLog(replica.name, position, 1, ""))
