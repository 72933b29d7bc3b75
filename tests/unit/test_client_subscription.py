"""A subscription without I/O: unpacking entries, resuming, acknowledging."""

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.client import stream_reader
from ordercast.client.errors import FailedPrecondition, Internal, InvalidArgument
from ordercast.client.subscription import Reader, unpack
from ordercast.client.types import Delivery, message_id
from ordercast.v1.common_pb2 import (
    Batch,
    Destination,
    Envelope,
    Header,
    Message,
    MessageField,
    ProducerRange,
    RangeOutcome,
    Span,
)
from ordercast.v1.gateway_pb2 import Acked, Deliveries, SubscribeResponse, SubscribeStarted
from ordercast.v1.sequencer_pb2 import LogEntry, StartAt


def entry(first_offset: int, ranges: list[tuple[bytes, int, int, int]]) -> bytes:
    """Ranges of (producer, first sequence, count, how many at the front are duplicates)."""
    messages, found, outcomes, offset = [], [], [], first_offset
    for producer, first, count, duplicates in ranges:
        found.append(ProducerRange(producer=producer, first_sequence=first, count=count))
        messages += [Message(payload=b"%s/%d" % (producer, first + index)) for index in range(count)]
        outcome = RangeOutcome()
        if duplicates:
            outcome.spans.append(Span(first_sequence=first, count=duplicates, first_offset=0, duplicate=True))
        if duplicates < count:
            fresh = count - duplicates
            outcome.spans.append(Span(first_sequence=first + duplicates, count=fresh, first_offset=offset))
            offset += fresh
        outcomes.append(outcome)
    header = Header(destinations=[Destination(group="a#1"), Destination(group="b#7")], ranges=found)
    envelope = Envelope(header=header, body=Batch(messages=messages).SerializeToString())
    return LogEntry(
        order_key=b"key", envelope=envelope, first_offset=first_offset, outcomes=outcomes
    ).SerializeToString()


def reader(**options) -> Reader[Delivery]:
    options.setdefault("start", StartAt(earliest=True))
    found = Reader("a", Delivery, **options)
    found.start_request()
    return found


def started(offset: int) -> SubscribeResponse:
    return SubscribeResponse(started=SubscribeStarted(offset=offset))


def deliveries(*entries: bytes, session: bytes = b"") -> SubscribeResponse:
    return SubscribeResponse(deliveries=Deliveries(entries=entries, session=session))


def test_deliveries_say_when_their_entry_was_stored():
    found = reader()
    found.received(started(0))
    response = deliveries(entry(0, [(b"p", 1, 2, 0)]), entry(2, [(b"p", 3, 1, 0)]))
    response.deliveries.stored_ms.extend([1_000, 1_794_000_000_123])
    found.received(response)
    times = [delivery.stored_at for delivery in (*found.take(), *found.take())]
    first = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert times == [first, first, datetime(2026, 11, 6, 21, 20, 0, 123_000, tzinfo=UTC)]


def test_an_early_gateway_does_not_say_when_an_entry_was_stored():
    found = reader()
    found.received(started(0))
    found.received(deliveries(entry(0, [(b"p", 1, 1, 0)])))
    assert found.take()[0].stored_at is None


def test_times_that_do_not_match_the_entries_are_an_error():
    found = reader()
    found.received(started(0))
    response = deliveries(entry(0, [(b"p", 1, 1, 0)]))
    response.deliveries.stored_ms.extend([1, 2])
    with pytest.raises(Internal, match="times"):
        found.received(response)


def test_an_entry_yields_what_is_new_in_it():
    found, end = unpack(entry(5, [(b"p", 3, 4, 2), (b"q", 1, 2, 0), (b"r", 1, 1, 1)]), "a", 0, Delivery)
    assert [(d.offset, d.producer, d.sequence, d.payload) for d in found] == [
        (5, b"p", 5, b"p/5"),
        (6, b"p", 6, b"p/6"),
        (7, b"q", 1, b"q/1"),
        (8, b"q", 2, b"q/2"),
    ]
    assert end == 9
    assert found[0].message_id == message_id(b"p", ["b", "a"], 5)
    assert found[0].order_key == b"key"


def test_headers_and_keys_come_along():
    log_entry = LogEntry.FromString(entry(0, [(b"p", 1, 1, 0)]))
    message = Message(payload=b"x", key=b"k", headers=[MessageField(name="n", value=b"v")])
    log_entry.envelope.body = Batch(messages=[message]).SerializeToString()
    ((delivery,), _) = unpack(log_entry.SerializeToString(), "a", 0, Delivery)
    assert (delivery.key, delivery.headers) == (b"k", {"n": b"v"})


@given(wanted=st.integers(0, 12))
def test_what_lies_before_the_wanted_offset_is_skipped(wanted):
    found, _ = unpack(entry(2, [(b"p", 1, 3, 0), (b"q", 4, 5, 1), (b"r", 1, 2, 0)]), "a", wanted, Delivery)
    assert [delivery.offset for delivery in found] == [offset for offset in range(2, 11) if offset >= wanted]
    assert all(d.payload == b"%s/%d" % (d.producer, d.sequence) for d in found)


@given(garbage=st.binary(max_size=200))
def test_a_damaged_entry_is_an_error_and_nothing_else(garbage):
    with contextlib.suppress(Internal):
        unpack(garbage, "a", 0, Delivery)


@pytest.mark.parametrize("part", ["outcomes", "body", "span"])
def test_an_entry_that_contradicts_itself_is_an_error(part):
    log_entry = LogEntry.FromString(entry(0, [(b"p", 3, 2, 0)]))
    match part:
        case "outcomes":
            del log_entry.outcomes[:]
        case "body":
            log_entry.envelope.body = b""
        case "span":
            log_entry.outcomes[0].spans[0].first_sequence = 1
    with pytest.raises(Internal):
        unpack(log_entry.SerializeToString(), "a", 0, Delivery)


def test_a_new_stream_goes_on_behind_what_was_used():
    subscriber = reader()
    subscriber.received(started(0))
    first, second = entry(0, [(b"p", 1, 3, 0)]), entry(3, [(b"p", 4, 3, 0)])
    subscriber.received(deliveries(first, second))
    assert [delivery.offset for delivery in subscriber.take()] == [0, 1, 2]
    assert subscriber.start_request().start.start.offset == 3
    assert subscriber.take() == []  # what was read ahead comes again
    subscriber.received(started(3))
    subscriber.received(deliveries(second))
    assert [delivery.offset for delivery in subscriber.take()] == [3, 4, 5]


def test_the_token_of_a_response_is_seen_with_the_first_that_is_taken_of_it():
    subscriber = reader()
    subscriber.received(started(0))
    two = [entry(0, [(b"p", 1, 1, 0)]), entry(1, [(b"p", 2, 1, 0)])]
    subscriber.received(deliveries(*two, session=b"behind two"))
    subscriber.received(deliveries(entry(2, [(b"p", 3, 1, 0)]), session=b"behind three"))
    seen = [subscriber.session]
    while subscriber.take():
        seen.append(subscriber.session)
    assert seen == [b"", b"behind two", b"behind two", b"behind three"]


def test_entries_without_news_are_passed_over():
    subscriber = reader()
    subscriber.received(started(0))
    subscriber.received(deliveries(entry(0, [(b"p", 1, 1, 1)]), entry(0, []), entry(0, [(b"p", 2, 1, 0)])))
    assert [delivery.offset for delivery in subscriber.take()] == [0]


def test_a_gap_is_an_error():
    subscriber = reader()
    subscriber.received(started(0))
    subscriber.received(deliveries(entry(1, [(b"p", 1, 1, 0)])))
    with pytest.raises(Internal):
        subscriber.take()


def test_deliveries_before_the_start_are_an_error():
    with pytest.raises(Internal):
        reader().received(deliveries(entry(0, [(b"p", 1, 1, 0)])))


def test_reading_ahead_is_bounded(monkeypatch):
    monkeypatch.setattr(stream_reader, "AHEAD_ENTRIES_MAX", 2)
    subscriber = reader()
    subscriber.received(started(0))
    assert subscriber.has_room
    subscriber.received(deliveries(entry(0, [(b"p", 1, 1, 0)]), entry(1, [(b"p", 2, 1, 0)])))
    assert not subscriber.has_room
    subscriber.take()
    assert subscriber.has_room


def test_acknowledgements_that_come_meanwhile_become_one():
    subscriber = reader(cursor="c")
    subscriber.received(started(0))
    subscriber.received(deliveries(entry(0, [(b"p", 1, 5, 0)])))
    subscriber.take()
    subscriber.ack(0)
    assert subscriber.ack_request().ack.offset == 1
    for offset in (1, 2, 1):
        subscriber.ack(offset)
    assert subscriber.ack_request() is None
    subscriber.received(SubscribeResponse(acked=Acked(offset=1)))
    assert subscriber.ack_request().ack.offset == 3
    assert subscriber.unconfirmed == 3
    subscriber.received(SubscribeResponse(acked=Acked(offset=3)))
    assert subscriber.unconfirmed is None


def test_a_new_stream_gets_no_acknowledgement_of_what_it_did_not_deliver():
    subscriber = reader(cursor="c")
    subscriber.received(started(0))
    both = entry(0, [(b"p", 1, 2, 0)])
    subscriber.received(deliveries(both))
    subscriber.take()
    subscriber.ack(1)
    subscriber.start_request()
    subscriber.received(started(0))
    assert subscriber.ack_request() is None
    subscriber.received(deliveries(both))
    assert subscriber.take() == []  # nothing comes twice
    assert subscriber.ack_request().ack.offset == 2


def test_a_cursor_that_stands_there_already_needs_no_other_confirmation():
    subscriber = reader(cursor="c")
    subscriber.received(started(0))
    subscriber.received(deliveries(entry(0, [(b"p", 1, 2, 0)])))
    subscriber.take()
    subscriber.ack(1)
    subscriber.ack_request()
    subscriber.start_request()
    subscriber.received(started(2))
    assert subscriber.unconfirmed is None


def test_a_cursor_that_someone_else_moved_ahead_is_an_error():
    subscriber = reader(cursor="c")
    subscriber.received(started(0))
    subscriber.start_request()
    with pytest.raises(FailedPrecondition, match="moved to offset 5"):
        subscriber.received(started(5))


def test_only_what_was_delivered_can_be_acknowledged_and_only_with_a_cursor():
    subscriber = reader(cursor="c")
    subscriber.received(started(0))
    with pytest.raises(InvalidArgument):
        subscriber.ack(0)
    without = reader()
    with pytest.raises(FailedPrecondition):
        without.ack(0)
    with pytest.raises(InvalidArgument):
        Reader("a", Delivery, start=None)
