"""What peers may say that they know about producers, in snapshots of their state."""

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.v1.sequencer_pb2 import ProducerRecord


def check_record(record: ProducerRecord) -> None:
    """Its numbers leave room for what is to come, and its spans follow each other up to the last sequence."""
    if max(record.epoch, record.last_sequence, record.last_sn) > CLOCK_MAX:
        raise RemoteProtocolError("a producer with numbers beyond all limits")
    if list(record.groups) != sorted(set(record.groups)):
        raise RemoteProtocolError("a producer's groups must be sorted, each once")
    spans = record.spans
    if not spans:
        return
    at = spans[0].first_sequence
    for span in spans:
        if span.first_sequence != at or not span.count or span.first_offset > CLOCK_MAX:
            raise RemoteProtocolError("a producer whose messages have no places")
        at += span.count
    if at != record.last_sequence + 1:
        raise RemoteProtocolError("a producer whose messages have no places")
