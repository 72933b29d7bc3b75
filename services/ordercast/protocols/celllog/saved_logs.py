"""What is on disk about logs, put together again: producers, and where the groups of a cell end.

A producer's head and each of its spans are records of their own, so that a delivery writes little. They come back
in no order that would help.
"""

from ordercast.core.ids import unpack_u64
from ordercast.protocols.celllog.group_log import GroupLog
from ordercast.protocols.celllog.idempotence import PRODUCER, SPAN, producer_of_span
from ordercast.protocols.celllog.records import GROUP_END, address_in, group_of
from ordercast.v1.common_pb2 import Span
from ordercast.v1.sequencer_pb2 import ProducerRecord


class SavedLogs:
    def __init__(self) -> None:
        #: By cell, and by the key of the head.
        self._heads: dict[str, dict[bytes, ProducerRecord]] = {}
        self._spans: dict[bytes, list[Span]] = {}
        #: By cell, and by group.
        self._ends: dict[str, dict[str, int]] = {}

    def add(self, key: bytes, value: bytes) -> bool:
        """Returns whether the record is one of these."""
        kind = key[:1]
        if kind == PRODUCER:
            self._heads.setdefault(group_of(key), {})[key] = ProducerRecord.FromString(value)
        elif kind == SPAN:
            self._spans.setdefault(producer_of_span(key), []).append(Span.FromString(value))
        elif kind == GROUP_END:
            self._ends.setdefault(group_of(key), {})[address_in(key)] = unpack_u64(value)
        return kind in (PRODUCER, SPAN, GROUP_END)

    def restore(self, log: GroupLog) -> None:
        """Give a log what is its own, once all records were added."""
        log.producers.load(self._producers_of(log.name))
        log.ends = self._ends.pop(log.name, {})

    def _producers_of(self, cell: str) -> list[ProducerRecord]:
        """Each with its spans in their order."""
        heads = self._heads.pop(cell, {})
        for key, head in heads.items():
            head.spans.extend(sorted(self._spans.pop(key, []), key=lambda span: span.first_sequence))
        return list(heads.values())
