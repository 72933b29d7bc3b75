"""A group's log on one node: entries by position, judged with the idempotence code that all protocols share."""

from collections import deque
from collections.abc import Iterable

from ordercast.core.ids import pack_u64, unpack_u64
from ordercast.core.machine import Deliver, Effect, Observe, Persist, Send
from ordercast.core.view import names_of
from ordercast.protocols.celllog.idempotence import PRODUCER, SPAN, ProducerTable, Record, producer_of_span
from ordercast.v1.common_pb2 import Span
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered, LogEntry, ProducerRecord
from ordercast_tandem.tandem_pb2 import Have, Numbered

#: Producers are forgotten after this distance in numbers; so many of their latest messages keep their places.
DISTANCE, WINDOW = 1_000_000_000, 4096


class Replica:
    #: Retention asks whether the log is being copied from elsewhere. It never is.
    copied = None

    def __init__(self, group: str) -> None:
        self.group = group
        self.position = self.offset = 0
        self.producers = ProducerTable(group, DISTANCE, WINDOW)
        #: Number and position of what gateways may still ask about; everything before `settled` is settled.
        self.recent: deque[tuple[int, int]] = deque()
        self.settled = 0

    def load(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        heads: dict[bytes, ProducerRecord] = {}
        spans: dict[bytes, list[Span]] = {}
        for key, value in records:
            if key[:1] == PRODUCER:
                heads[key] = ProducerRecord.FromString(value)
            elif key[:1] == SPAN:
                spans.setdefault(producer_of_span(key), []).append(Span.FromString(value))
            else:
                self.position, self.offset = unpack_u64(value[:8]), unpack_u64(value[8:])
        for key, head in heads.items():
            head.spans.extend(sorted(spans.get(key, ()), key=lambda span: span.first_sequence))
        self.producers.load(heads.values())

    def cleared(self) -> list[Record]:
        """The removal of all its records."""
        return [(b"p" + self.group.encode(), None), *self.producers.clear()]

    def deliver(self, numbered: Numbered, sequencer: str, *, observe: bool) -> list[Effect]:
        header = numbered.envelope.header
        key = pack_u64(numbered.number)
        entry = LogEntry(order_key=key, envelope=numbered.envelope, first_offset=self.offset)
        for range_ in header.ranges:
            outcome = self.producers.judge(
                range_, names_of(header.destinations), numbered.number, key, self.offset
            )
            entry.outcomes.append(outcome)
            self.offset += sum(span.count for span in outcome.spans if not span.duplicate)
        delivered = Deliver(self.group, self.position, entry)
        self.recent.append((numbered.number, self.position))
        self.position += 1
        position = (b"p" + self.group.encode(), pack_u64(self.position) + pack_u64(self.offset))
        told = [
            Send((header.gateway,), report_of(self.group, entry)),
            Send((sequencer,), Have(group=self.group, position=self.position)),
        ]
        seen = [Observe("delivered", header.id, group=self.group)] if observe else []
        # Nobody hears of it, from this or from a later message, before it is on the disk.
        return [delivered, Persist([position, *self.producers.changes()]), *told, *seen]

    def let_go(self, floor: int) -> None:
        """Everything with a lower number is finished: nobody asks how it fared. Numbers rise with positions."""
        while self.recent and self.recent[0][0] < floor:
            self.settled = self.recent.popleft()[1] + 1

    def retained_from(self) -> int:
        return self.settled

    def slowest(self, wanted: int) -> int:
        """Of the other replicas: what they lack is with the sequencer, so none of them needs this log."""
        return wanted


def report_of(group: str, entry: LogEntry) -> EnvelopeDelivered:
    header = entry.envelope.header
    return EnvelopeDelivered(id=header.id, group=group, order_key=entry.order_key, outcomes=entry.outcomes)
