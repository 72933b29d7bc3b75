"""What peers may say that they know about producers, in snapshots of their state."""

from collections.abc import Iterable

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.protocols.celllog.places import OFFSETS_MAX, ORDER_KEY_BYTES_MAX, unpacked
from ordercast.v1.sequencer_pb2 import ProducerRecord


def check_records(records: Iterable[ProducerRecord]) -> None:
    """Their numbers leave room for what is to come, and their messages have places."""
    for record in records:
        if max(record.epoch, record.last_sequence, record.last_sn) > CLOCK_MAX:
            raise RemoteProtocolError("a producer with numbers beyond all limits")
        if list(record.groups) != sorted(set(record.groups)):
            raise RemoteProtocolError("a producer's groups must be sorted, each once")
        _check_places(record)


def _check_places(record: ProducerRecord) -> None:
    """The spans follow each other up to the last sequence, and each has what can be an order key."""
    spans = record.spans
    if not spans:
        return
    at = spans[0].first_sequence
    for span in spans:
        if span.first_sequence != at or not span.count or span.first_offset > CLOCK_MAX:
            raise RemoteProtocolError("a producer whose messages have no places")
        if len(span.order_key) > ORDER_KEY_BYTES_MAX:
            raise RemoteProtocolError("a producer's place without an order key")
        if len(span.offsets) > OFFSETS_MAX or any(offset > CLOCK_MAX for offset in span.offsets):
            raise RemoteProtocolError("a producer's place in no group")
        if span.runs and sum(messages for messages, _ in unpacked(span.runs)) != span.count:
            raise RemoteProtocolError("a producer's place with runs of other messages")
        at += span.count
    if at != record.last_sequence + 1:
        raise RemoteProtocolError("a producer whose messages have no places")
