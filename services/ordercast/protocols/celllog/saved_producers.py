"""What is on disk about producers, put together again.

A producer's head and each of its spans are records of their own, so that a delivery writes little. They come back
in no order that would help.
"""

from ordercast.protocols.celllog.idempotence import PRODUCER, SPAN, producer_of_span
from ordercast.protocols.celllog.records import group_of
from ordercast.v1.common_pb2 import Span
from ordercast.v1.sequencer_pb2 import ProducerRecord


class SavedProducers:
    def __init__(self) -> None:
        #: By group, and by the key of the head.
        self._heads: dict[str, dict[bytes, ProducerRecord]] = {}
        self._spans: dict[bytes, list[Span]] = {}

    def add(self, key: bytes, value: bytes) -> bool:
        """Returns whether the record is one about a producer."""
        kind = key[:1]
        if kind == PRODUCER:
            self._heads.setdefault(group_of(key), {})[key] = ProducerRecord.FromString(value)
        elif kind == SPAN:
            self._spans.setdefault(producer_of_span(key), []).append(Span.FromString(value))
        return kind in (PRODUCER, SPAN)

    def of(self, group: str) -> list[ProducerRecord]:
        """Those of a group, each with its spans in their order, once all records were added."""
        heads = self._heads.pop(group, {})
        for key, head in heads.items():
            head.spans.extend(sorted(self._spans.pop(key, []), key=lambda span: span.first_sequence))
        return list(heads.values())
