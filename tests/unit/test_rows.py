"""Messages for different groups of the same cells in one request: what it says, what is refused, receipts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.client.lane import Item, Lane
from ordercast.client.rows import placed_by, put_messages
from ordercast.client.session import Session
from ordercast.client.types import GROUPS_MAX, Receipt
from ordercast.core.cells import TARGET_GROUPS_MAX, Runs, cells_of
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import GroupsClosed
from ordercast.gateway.rows import count_of, messages_of, rows_of, split
from ordercast.protocols.celllog.places import Place, appended, each, packed, place_of, unpacked, without_first
from ordercast.v1.common_pb2 import Batch, Message, RangeOutcome, Span
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_SEQUENCE_GAP,
    GroupPlace,
    PublishReply,
    PublishRequest,
    PublishStreamResponse,
)
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered
from tests.unit.driving import key_of
from tests.unit.gateway_host import Host, envelopes, payloads, replies, status

X, Y, Z = "a/x#1", "a/y#2", "a/z#3"
SETS = [(X,), (Y,), (X, Y), (Y, Z), (X, Y, Z)]


def batch_of(*sets: tuple[str, ...], first: int = 1, **fields) -> PublishRequest:
    """As the SDK writes it: the n-th message is called so."""
    request = PublishRequest(**{"producer": b"p", "first_sequence": first, **fields})
    lane: Lane[int] = Lane(cells_of(sets[0]), sets[0], "", is_open=True, is_known=True)
    items = [
        Item(number, lane, groups, Message(payload=b"%d" % number), 1, False, b"", 1e9, number)
        for number, groups in enumerate(sets, first)
    ]
    put_messages(request, items, as_batch=True)
    return request


def told(request: PublishRequest) -> list[tuple[tuple[str, ...], bytes]]:
    """For which groups each message is, as a gateway reads it."""
    messages = messages_of(request)
    rows = rows_of(request, tuple(sorted(request.groups)), messages)
    assert Batch.FromString(rows.batch).messages == list(messages)
    sets = [
        rows.targets[t] for t, count in zip(rows.runs[::2], rows.runs[1::2], strict=True) for _ in range(count)
    ]
    return list(zip(sets, [message.payload for message in messages], strict=True))


@given(st.lists(st.sampled_from(SETS), min_size=1, max_size=9), st.integers(1, 50))
def test_a_gateway_reads_what_the_sdk_writes_and_as_simple_requests_it_is_the_same(sets, first):
    request = batch_of(*sets, first=first, epoch=3, session=b"s", trace=b"t", cells=["cell"])
    assert count_of(request) == len(sets)
    expected = [(groups, b"%d" % number) for number, groups in enumerate(sets, first)]
    assert told(request) == expected
    parts = split(request)
    assert bool(parts) == (len(set(sets)) > 1)
    at = first
    for part in parts:
        assert (part.first_sequence, part.epoch, part.session, part.trace) == (at, 3, b"s", b"t")
        assert (part.batch, len(part.targets), len(part.runs)) == (b"", 0, 0)
        at += len(part.messages)
    assert not parts or [row for part in parts for row in told(part)] == expected


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"batch": b"\x0a"}, "a batch that is none"),
        ({"count": 2}, "a batch of 2 messages has 3"),
        ({"runs": [0, 1, 1, 1]}, "as many messages as the batch"),
        ({"runs": [0, 1, 1, 2, 0]}, "as many messages as the batch"),
        ({"runs": [0, 3, 1, 0]}, "as many messages as the batch"),
        ({"runs": [0, 1, 2, 2]}, "a run for a target that is not there"),
        ({"targets": [1, 0, 2, 1]}, "the last target is cut short"),
        ({"targets": [1, 0, 1, 2]}, "a target has a group that is not named"),
        ({"targets": [1, 0, 1, 0]}, "a group that no target has"),
        ({"targets": [2, 0, 1, 0]}, "live in the same cells"),
        ({"targets": [1, 0, 1, 1, 1, 0]}, "a target is named twice"),
        ({"groups": [X, "b/y#2"]}, "live in the same cells"),
        ({"batch": b"", "count": 0}, "only a batch has targets"),
    ],
)
def test_a_batch_that_does_not_say_plainly_for_whom_it_is_is_refused(change, why):
    request = batch_of((X,), (Y,), (Y,))
    assert (list(request.groups), list(request.targets), list(request.runs)) == (
        [X, Y],
        [1, 0, 1, 1],
        [0, 1, 1, 2],
    )
    for field, value in change.items():
        if field in ("runs", "targets", "groups"):
            del getattr(request, field)[:]
            getattr(request, field).extend(value)
        else:
            setattr(request, field, value)
    with pytest.raises(RemoteProtocolError, match=why):
        told(request)
    host = Host()
    (reply,) = replies(host.receive("c1", request))
    assert reply.status == PUBLISH_STATUS_INVALID_ARGUMENT


# ------------------------------------------------------------------------------------------------ at a gateway


def deliver(host: Host, envelope, bases, *outcomes):
    key = key_of(7, envelope)
    fresh = tuple(
        RangeOutcome(spans=[Span(first_sequence=r.first_sequence, count=r.count, first_offset=40, order_key=key)])
        for r in envelope.header.ranges
    )
    told = EnvelopeDelivered(
        id=envelope.header.id, group="a", order_key=key, outcomes=outcomes or fresh, bases=bases
    )
    return host.receive("n1", told)


def test_one_receipt_says_where_the_first_message_for_each_group_went():
    host = Host()
    (envelope,) = envelopes(host.receive("c1", batch_of((X,), (Y,), (X, Y), (X,))))
    assert payloads(envelope) == [b"1", b"2", b"3", b"4"]
    (range_,) = envelope.header.ranges
    assert (range_.count, list(range_.runs)) == (4, [0, 1, 1, 1, 2, 1, 0, 1])
    (reply,) = replies(deliver(host, envelope, [5, 9]))
    assert (reply.status, reply.first_sequence, reply.count) == (PUBLISH_STATUS_OK, 1, 4)
    assert (list(reply.groups), list(reply.bases), list(reply.cells)) == ([X, Y], [5, 9], ["a"])
    placed = placed_by(reply, "p", [(X,), (Y,), (X, Y), (X,)])
    assert [Receipt(placed, sequence).offsets for sequence in (1, 2, 3, 4)] == [
        {X: 5},
        {Y: 9},
        {X: 6, Y: 10},
        {X: 7},
    ]


def test_several_requests_in_a_range_have_one_receipt_and_another_producers_messages_count():
    host = Host(envelopes_busy=1)
    (first,) = envelopes(host.receive("c1", batch_of((Z,), (X, Z))))
    assert not envelopes(host.receive("c2", batch_of((X,), (Y,), producer=b"q")))
    assert not envelopes(host.receive("c1", batch_of((X,), (Y,), first=3)))
    assert not envelopes(host.receive("c1", batch_of((Y, Z), (Y, Z), first=5)))
    host.decide(first, 7, "n1")
    (envelope,) = envelopes(deliver(host, first, [0, 0]))
    assert [(r.producer, r.first_sequence, r.count) for r in envelope.header.ranges] == [
        (b"q", 1, 2),
        (b"p", 3, 4),
    ]
    q, p = replies(deliver(host, envelope, [1, 0, 2]))
    assert (q.producer, list(q.groups), list(q.bases)) == (b"q", [X, Y], [1, 0])
    assert (p.first_sequence, p.count, list(p.groups), list(p.bases)) == (3, 4, [X, Y, Z], [2, 1, 2])


def test_of_what_came_again_each_run_has_its_own_receipt():
    host = Host()
    (envelope,) = envelopes(host.receive("c1", batch_of((X,), (Y,), (Y,))))
    key = key_of(7, envelope)
    again = Span(first_sequence=1, count=1, first_offset=3, order_key=b"k", duplicate=True, offsets=[2])
    fresh = Span(first_sequence=2, count=2, first_offset=40, order_key=key)
    found = replies(deliver(host, envelope, [5, 9], RangeOutcome(spans=[again, fresh])))
    assert [
        (r.first_sequence, r.count, r.duplicate, [(o.group, o.first_offset) for o in r.offsets]) for r in found
    ] == [
        (1, 1, True, [(X, 2)]),
        (2, 2, False, [(Y, 9)]),
    ]
    assert not any(reply.bases for reply in found)


def test_who_repeats_it_hears_of_each_run_for_it_may_not_know_all_of_them():
    host = Host()
    request = batch_of((X,), (Y,))
    (envelope,) = envelopes(host.receive("c1", request))
    assert not host.receive("c2", batch_of((X,), (Y,)))
    found = replies(deliver(host, envelope, [5, 9]))
    assert [(list(r.groups), r.first_sequence, list(r.bases)) for r in found] == [([X], 1, []), ([Y], 2, [])]


def test_a_row_for_a_group_that_is_being_deleted_is_refused_alone():
    host = Host()
    host.step(GroupsClosed, [Y])
    effects = host.receive("c1", batch_of((X,), (X, Y), (X,)))
    (refusal,) = replies(effects)
    assert (refusal.status, refusal.first_sequence, refusal.count) == (PUBLISH_STATUS_NOT_FOUND, 2, 1)
    (envelope,) = envelopes(effects)
    assert [(r.first_sequence, r.count) for r in envelope.header.ranges] == [(1, 1), (3, 1)]


def test_rows_that_wait_when_a_group_closes_come_again_and_nothing_overtakes_them():
    host = Host(envelopes_busy=1)
    host.receive("c1", batch_of((X,)))
    assert not envelopes(host.receive("c1", batch_of((X,), (Y,), first=2)))
    (refusal,) = replies(host.step(GroupsClosed, [Y]))
    assert (refusal.status, refusal.first_sequence, refusal.count) == (PUBLISH_STATUS_SEQUENCE_GAP, 2, 2)
    overtaking = PublishRequest(producer=b"p", groups=[X, "b"], first_sequence=1, messages=[Message(payload=b"m")])
    assert status(host.receive("c1", overtaking)) == PUBLISH_STATUS_SEQUENCE_GAP
    (wrong,) = replies(host.receive("c1", batch_of((X,), (Y,), first=2)))
    assert (wrong.status, wrong.first_sequence) == (PUBLISH_STATUS_NOT_FOUND, 3)
    assert not replies(host.receive("c1", overtaking)), "all of it came again, or never will"


def test_rows_that_are_all_for_groups_that_close_are_gone():
    host = Host(envelopes_busy=1)
    host.receive("c1", batch_of((X,)))
    host.receive("c1", batch_of((Y,), (X, Y), first=2))
    (refusal,) = replies(host.step(GroupsClosed, [Y]))
    assert (refusal.status, refusal.count) == (PUBLISH_STATUS_NOT_FOUND, 2)


def test_too_many_rows_come_again_one_by_one():
    host = Host(envelope_messages_max=2)
    assert status(host.receive("c1", batch_of((X,), (Y,), (X,)))) == PUBLISH_STATUS_INVALID_ARGUMENT
    assert status(host.receive("c1", batch_of((Y,), first=2))) == PUBLISH_STATUS_SEQUENCE_GAP
    assert envelopes(host.receive("c1", batch_of((X,))))


# --------------------------------------------------------------------------------------------------- in the SDK


class Speaking:
    """A session whose groups all live in one cell."""

    def __init__(self, *, batches: bool = True) -> None:
        self.session: Session[int] = Session(b"p", b"i", cell_of=lambda group: "cell")
        self.number = 0
        self.session.dialed(0.0)
        self.hear(credits=512, batches=batches)

    def hear(self, **fields) -> None:
        self.session.received(self.session.stream, PublishStreamResponse(**fields), 0.0, 0.5)

    def publish(self, *groups: str) -> None:
        self.number += 1
        message = Message(payload=b"%d" % self.number)
        self.session.publish(message, groups, size=1, handle=self.number, deadline=1e9)

    def write(self) -> list[PublishRequest]:
        frame = self.session.frame(0.0)
        return [] if frame is None else list(frame.requests)


def test_the_sdk_mixes_groups_only_for_gateways_that_say_so():
    for batches, written in ((True, [(["u", "v"], 3)]), (False, [(["u"], 1), (["v"], 1), (["u"], 1)])):
        speaking = Speaking(batches=batches)
        for group in "uvu":
            speaking.publish(group)
        assert [(list(r.groups), count_of(r)) for r in speaking.write()] == written


def test_a_batch_names_no_more_groups_than_a_gateway_takes():
    speaking = Speaking()
    for number in range(GROUPS_MAX + 1):
        speaking.publish(f"g{number:03}")
    assert [(len(r.groups), count_of(r)) for r in speaking.write()] == [(GROUPS_MAX, GROUPS_MAX), (1, 1)]


def receipt_of(request: PublishRequest, *bases: int, **fields) -> PublishReply:
    said = {
        "first_sequence": request.first_sequence,
        "count": request.count,
        "status": PUBLISH_STATUS_OK,
        **fields,
    }
    return PublishReply(
        producer=b"p",
        groups=request.groups,
        cells=["cell"],
        order_key=b"k",
        bases=bases,
        **said,
    )


def test_each_message_of_a_batch_has_its_own_offsets():
    speaking = Speaking()
    for groups in ("uv", "v", "u", "uv"):
        speaking.publish(*groups)
    (request,) = speaking.write()
    speaking.hear(replies=[receipt_of(request, 10, 20)])
    outcomes = [outcome for _, outcome in speaking.session.take_settled()]
    assert [receipt.offsets for receipt in outcomes if isinstance(receipt, Receipt)] == [
        {"u": 10, "v": 20},
        {"v": 21},
        {"u": 11},
        {"u": 12, "v": 22},
    ]


def test_a_receipt_of_more_than_is_under_way_is_not_believed_and_what_it_is_of_is_repeated():
    speaking = Speaking()
    speaking.publish("u")
    speaking.publish("v")
    (request,) = speaking.write()
    speaking.hear(replies=[receipt_of(request, 10, 20, count=3)])
    session = speaking.session
    assert (session.stream, session.take_settled(), session.pending) == (0, [], 2)


def test_a_client_that_gives_up_a_row_goes_to_another_stream_before_it_repeats_what_was_refused_with_it():
    """The gateway keeps the place of all of them."""
    speaking = Speaking()
    speaking.publish("u")
    speaking.publish("v")
    (request,) = speaking.write()
    speaking.hear(replies=[receipt_of(request, status=PUBLISH_STATUS_RESOURCE_EXHAUSTED)])
    session = speaking.session
    assert session.retry_at is not None
    session.tick(session.retry_at, 0.5)
    (again,) = speaking.write()
    parts = split(again)
    gone = receipt_of(again, status=PUBLISH_STATUS_NOT_FOUND, first_sequence=parts[1].first_sequence, count=1)
    speaking.hear(replies=[gone, receipt_of(again, count=1, status=PUBLISH_STATUS_RESOURCE_EXHAUSTED)])
    assert (session.stream, session.retry_at is not None) == (1, True)
    session.tick(session.retry_at or 0.0, 0.5)
    assert session.stream == 0


def test_groups_that_a_session_knows_are_known_as_places():
    session: Session[int] = Session(b"p", b"i")
    session.places.told([GroupPlace(group="u", cell="cell")])
    assert session.places.cells_of(("u",)) == ("cell",)


# ------------------------------------------------------------------------------------------- what is remembered

RUNS = st.lists(
    st.tuples(st.integers(1, 9), st.lists(st.integers(0, 1 << 40), max_size=3).map(tuple)), min_size=2, max_size=5
)


def place_with(first: int, runs: list[tuple[int, tuple[int, ...]]]) -> Place:
    counts, offsets = [count for count, _ in runs], [offset for _, there in runs for offset in there]
    made = Runs(counts, [0] * len(runs), [len(there) for _, there in runs], offsets)
    return Place(first, sum(counts), 77, b"key", (), packed(made))


@given(RUNS)
def test_the_runs_of_a_place_are_packed_and_come_back(runs):
    place = place_with(5, runs)
    assert unpacked(place.runs) == runs
    assert place_of(place.span()) == place
    other = Place(1, 4, 3, b"k", (8, 9))
    places = appended(appended(b"", other), place)
    assert list(each(places)) == [other, place]
    assert list(each(without_first(places))) == [place]


@given(RUNS, st.data())
def test_a_part_of_a_place_says_of_each_of_its_messages_where_that_is(runs, data):
    place = place_with(5, runs)
    low = data.draw(st.integers(5, place.end - 1))
    high = data.draw(st.integers(low + 1, place.end))
    there = [
        (77 + index, tuple(offset + ahead for offset in offsets))
        for index, (ahead, offsets) in enumerate((ahead, there) for count, there in runs for ahead in range(count))
    ]
    found = [
        (span.first_offset + ahead, tuple(offset + ahead for offset in span.offsets))
        for span in place.parts(low, high)
        for ahead in range(span.count)
    ]
    assert found == there[low - 5 : high - 5]


@pytest.mark.parametrize(
    "runs",
    [b"", b"\0\0\0\1", packed(Runs([1], [0], [1], [5]))[:-1], packed(Runs([0], [0], [0], [])), b"\xff" * 9],
)
def test_runs_that_nobody_has_packed_are_refused(runs):
    with pytest.raises(RemoteProtocolError):
        unpacked(runs)


def test_a_run_has_as_many_offsets_as_a_target_may_have_groups():
    runs = Runs([1, 1], [0, 0], [TARGET_GROUPS_MAX, 0], list(range(TARGET_GROUPS_MAX)))
    assert [len(offsets) for _, offsets in unpacked(packed(runs))] == [TARGET_GROUPS_MAX, 0]
