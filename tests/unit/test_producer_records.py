"""What a peer's snapshot may say about producers."""

from typing import Any

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.protocols.celllog.producer_records import check_records
from ordercast.v1.common_pb2 import Span
from ordercast.v1.sequencer_pb2 import ProducerRecord


def record(*spans: Span, **fields: Any) -> ProducerRecord:
    values = {"producer": b"p", "groups": ["a", "b"], "last_sequence": 9, **fields}
    return ProducerRecord(spans=spans, **values)


GOOD = record(
    Span(first_sequence=5, count=2, first_offset=7, order_key=bytes(24)),
    Span(first_sequence=7, count=3, first_offset=CLOCK_MAX, order_key=bytes(255)),
)


def test_producers_with_places_for_their_last_messages_or_without_any_are_as_they_should_be():
    check_records([GOOD, record(), record(epoch=CLOCK_MAX, last_sequence=CLOCK_MAX, last_sn=CLOCK_MAX)])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (record(epoch=CLOCK_MAX + 1), "beyond all limits"),
        (record(last_sequence=CLOCK_MAX + 1), "beyond all limits"),
        (record(last_sn=CLOCK_MAX + 1), "beyond all limits"),
        (record(groups=["b", "a"]), "sorted"),
        (record(groups=["a", "a"]), "each once"),
        (record(Span(first_sequence=9)), "no places"),
        (record(Span(first_sequence=8, count=1)), "no places"),
        (record(Span(first_sequence=8, count=3)), "no places"),
        (record(Span(first_sequence=6, count=1), Span(first_sequence=8, count=2)), "no places"),
        (record(Span(first_sequence=9, count=1, first_offset=CLOCK_MAX + 1)), "no places"),
        (record(Span(first_sequence=9, count=1, order_key=bytes(256))), "order key"),
    ],
)
def test_what_no_replica_remembers_of_a_producer_is_a_mistake_of_the_peer(wrong, why):
    with pytest.raises(RemoteProtocolError, match=why):
        check_records([GOOD, wrong])
