"""Exactly once: the verdict on a range is a function of what the group delivered before it."""

from hypothesis import given
from hypothesis import strategies as st

from ordercast.core.ids import envelope_id, order_key
from ordercast.protocols.celllog.idempotence import ProducerTable
from ordercast.v1.common_pb2 import REFUSAL_FENCED, REFUSAL_GAP, REFUSAL_UNSPECIFIED, RangeOutcome, Span
from ordercast.v1.sequencer_pb2 import ProducerRecord
from tests.unit.driving import range_of

SET = ("a", "b")


def key_at(sn: int) -> bytes:
    return order_key(sn, envelope_id(1, sn))


class Group:
    """A group's log as far as producers see it: each range comes at the next sn, or at a given one."""

    def __init__(self, name: str = "a", distance: int = 1000, window: int = 1000) -> None:
        self.name = name
        self.table = ProducerTable(name, distance, window)
        self.sn = 0
        self.offset = 0
        self.disk: dict[bytes, bytes] = {}

    @classmethod
    def alone(cls, producer: bytes) -> "Group":
        group = cls()
        group.judge(producer=producer)
        return group

    def judge(
        self,
        first: int = 1,
        count: int = 1,
        *,
        epoch: int = 0,
        token: bytes = b"",
        producer: bytes = b"p",
        groups: tuple[str, ...] = SET,
        sn: int | None = None,
    ) -> RangeOutcome:
        self.sn = self.sn + 1 if sn is None else sn
        range_ = range_of(producer, first, count, epoch=epoch, open_token=token)
        outcome = self.table.judge(range_, groups, self.sn, key_at(self.sn), self.offset)
        self.offset += sum(span.count for span in outcome.spans if not span.duplicate)
        for key, value in (*self.table.changes(), *self.table.expire(self.sn)):
            self.disk.pop(key, None) if value is None else self.disk.update({key: value})
        return outcome


def fresh(first: int, count: int, offset: int, sn: int) -> Span:
    return Span(first_sequence=first, count=count, first_offset=offset, order_key=key_at(sn))


def again(first: int, count: int, offset: int, sn: int) -> Span:
    return Span(first_sequence=first, count=count, first_offset=offset, order_key=key_at(sn), duplicate=True)


def test_the_next_sequences_are_delivered_from_the_next_offset_on():
    group = Group()
    group.offset = 40
    assert list(group.judge(1, 3).spans) == [fresh(1, 3, 40, 1)]
    outcome = group.judge(4, 2)
    assert list(outcome.spans) == [fresh(4, 2, 43, 2)]
    assert (outcome.refusal, outcome.last_sequence) == (REFUSAL_UNSPECIFIED, 5)


def test_a_duplicate_is_told_where_it_was_delivered_first():
    group = Group()
    group.judge(1, 3)
    group.judge(4, 2)
    outcome = group.judge(4, 2)
    assert list(outcome.spans) == [again(4, 2, 3, 2)]
    assert outcome.last_sequence == 5


def test_other_batches_of_the_same_messages_are_split_into_what_is_known_and_what_is_new():
    """Two gateways batch differently: 1-3, 4-5 at one, 2-7 at the other."""
    group = Group()
    group.judge(1, 3)
    group.judge(4, 2)
    assert list(group.judge(2, 6).spans) == [again(2, 2, 1, 1), again(4, 2, 3, 2), fresh(6, 2, 5, 3)]


def test_a_gap_is_refused_and_leaves_no_trace():
    group = Group()
    group.judge(1, 2)
    outcome = group.judge(4, 1)
    assert (outcome.refusal, list(outcome.spans), outcome.last_sequence) == (REFUSAL_GAP, [], 2)
    assert list(group.judge(3, 2).spans) == [fresh(3, 2, 2, 3)]


def test_sequences_start_at_one():
    assert Group().judge(2).refusal == REFUSAL_GAP


def test_sequences_are_counted_per_producer_and_per_destination_set():
    group = Group()
    group.judge(1, 3)
    assert list(group.judge(1, producer=b"q").spans) == [fresh(1, 1, 3, 2)]
    assert list(group.judge(1, groups=("a",)).spans) == [fresh(1, 1, 4, 3)]
    assert group.judge(4).last_sequence == 4


def test_opening_raises_the_epoch_and_tells_the_last_sequence():
    group = Group()
    group.judge(1, 3)
    outcome = group.judge(0, 0, token=b"t1")
    assert (outcome.epoch, outcome.last_sequence, list(outcome.spans)) == (1, 3, [])


def test_a_token_opens_once_however_often_it_is_repeated():
    group = Group()
    assert [group.judge(0, 0, token=t).epoch for t in (b"t1", b"t1", b"t2", b"t2")] == [1, 1, 2, 2]


def test_whoever_uses_the_epoch_before_is_fenced():
    group = Group()
    group.judge(1, 3)
    group.judge(0, 0, token=b"t1")
    outcome = group.judge(4)
    assert (outcome.refusal, list(outcome.spans), outcome.last_sequence) == (REFUSAL_FENCED, [], 3)
    assert list(group.judge(4, epoch=1).spans) == [fresh(4, 1, 3, 4)]


def test_an_epoch_that_was_never_opened_is_fenced_too():
    assert Group().judge(1, epoch=1).refusal == REFUSAL_FENCED


def test_a_fenced_repetition_is_refused_even_if_it_was_delivered():
    group = Group()
    group.judge(1)
    group.judge(0, 0, token=b"t1")
    assert group.judge(1).refusal == REFUSAL_FENCED


def test_a_duplicate_older_than_the_window_is_still_a_duplicate_but_its_place_is_unknown():
    group = Group(window=4)
    for first in range(1, 21):
        group.judge(first)
    (span,) = group.judge(2, 1).spans
    assert span == Span(first_sequence=2, count=1, duplicate=True)


def test_a_duplicate_that_reaches_out_of_the_window_keeps_what_is_known():
    group = Group(window=4)
    for first in range(1, 11):
        group.judge(first)
    forgotten, *known = group.judge(3, 9).spans
    assert forgotten == Span(first_sequence=3, count=3, duplicate=True)
    assert known == [*(again(n, 1, n - 1, n) for n in range(6, 11)), fresh(11, 1, 10, 11)]


def test_a_window_of_sequences_is_kept_at_least():
    group = Group(window=4)
    for first in range(1, 11):
        group.judge(first)
        last = first
        for sequence in range(max(1, last - 3), last + 1):
            (span,) = group.judge(sequence).spans
            assert span.order_key, f"{sequence} of {last}"


def test_a_producer_expires_by_distance_in_the_order():
    group = Group(distance=10)
    group.judge(1, 3, sn=5)
    assert group.judge(4, sn=15).refusal == REFUSAL_UNSPECIFIED, "a distance of 10 is not yet too far"
    outcome = group.judge(5, sn=26)
    assert (outcome.refusal, outcome.last_sequence) == (REFUSAL_GAP, 0)


def test_a_refused_range_counts_as_having_been_heard_of():
    group = Group(distance=10)
    group.judge(1, sn=5)
    group.judge(9, sn=14)
    assert group.judge(2, sn=24).refusal == REFUSAL_UNSPECIFIED


def test_two_groups_with_different_traffic_forget_at_the_same_point():
    """In b, other producers' envelopes make the state disappear early; the verdict must be the same."""
    for sn in (14, 15, 16, 17, 40):
        a, b = Group("a", distance=10), Group("b", distance=10)
        verdicts = []
        for group in (a, b):
            group.judge(1, 3, sn=5)
            if group is b:
                for other in range(6, sn):
                    group.judge(1, producer=b"other %d" % other, groups=("b",), sn=other)
            outcome = group.judge(4, sn=sn)
            verdicts.append((outcome.refusal, outcome.last_sequence, [s.first_sequence for s in outcome.spans]))
        assert verdicts[0] == verdicts[1], sn


def test_expired_state_is_deleted_from_the_disk():
    group = Group(distance=10)
    group.judge(1, 3, sn=1)
    group.judge(4, 2, sn=3)
    group.judge(producer=b"q", sn=8)
    mine = set(group.disk) - {key for key, _ in Group.alone(b"q").table.records()}
    assert len(mine) == 3, "a head and two spans"
    assert group.table.expire(13) == []
    assert {(key, None) for key in mine} == set(group.table.expire(14))
    assert list(group.table.states) == [(b"q", SET)]


def test_a_producer_that_comes_back_after_it_expired_leaves_no_old_spans_on_disk():
    group = Group(distance=10)
    group.judge(1, 3, sn=1)
    group.judge(4, 3, sn=2)
    group.judge(1, 2, sn=20)
    assert group.disk == dict(group.table.records())


def test_what_is_on_disk_gives_back_the_same_table():
    group = Group(distance=20, window=4)
    for first in range(1, 8):
        group.judge(first)
        group.judge(producer=b"q%d" % first)
    group.judge(0, 0, token=b"t1")
    group.judge(8, 2, epoch=1)
    copy = Group(distance=20, window=4)
    copy.table.load([ProducerRecord.FromString(m.SerializeToString()) for m in reversed(group.table.messages())])
    assert copy.table.messages() == group.table.messages()
    copy.sn, copy.offset = group.sn, group.offset
    for first, count in ((1, 3), (6, 5), (11, 1), (13, 1)):
        assert copy.judge(first, count, epoch=1) == group.judge(first, count, epoch=1)
    assert copy.judge(0, 0, token=b"t1") == group.judge(0, 0, token=b"t1")


def test_loaded_state_expires_in_the_order_it_was_heard_of():
    group, copy = Group(distance=10), Group(distance=10)
    for producer in (b"z", b"y", b"x"):
        group.judge(producer=producer)
    group.judge(2, producer=b"z")
    copy.table.load(sorted(group.table.messages(), key=lambda message: message.producer))
    copy.table.expire(13)
    assert list(copy.table.states) == [(b"x", SET), (b"z", SET)]


def test_sets_and_producers_that_look_alike_have_records_of_their_own():
    group = Group()
    for producer, groups in ((b"p", ("a", "b")), (b"b\0p", ("a",)), (b"p", ("a",)), (b"p", ("b",))):
        group.judge(producer=producer, groups=groups)
    assert len(group.disk) == 8, "a head and a span each"


BATCHES = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 6)), min_size=1, max_size=20)


@given(BATCHES, st.integers(1, 12))
def test_each_sequence_is_delivered_once_however_it_is_batched_and_repeated(batches, window):
    """Each batch begins at most one behind the last sequence, so nothing is skipped."""
    group = Group(window=window)
    places: dict[int, tuple[int, bytes]] = {}
    for back, count in batches:
        first = max(1, len(places) + 1 - back)
        outcome = group.judge(first, count)
        covered = []
        for span in outcome.spans:
            for index in range(span.count):
                sequence = span.first_sequence + index
                covered.append(sequence)
                place = (span.first_offset + index, span.order_key)
                if not span.duplicate:
                    assert places.setdefault(sequence, place) is place, "delivered twice"
                elif span.order_key:
                    assert places[sequence] == place
                else:
                    assert len(places) - sequence >= window, "forgotten within the window"
        assert covered == list(range(first, first + count)), "an outcome speaks of each of its messages"
        assert outcome.last_sequence == len(places)
    assert list(places) == list(range(1, len(places) + 1))
    assert [offset for offset, _ in places.values()] == list(range(len(places)))


EVENTS = st.lists(
    st.tuples(
        st.integers(0, 6),  # how far the order moves on
        st.sampled_from([b"p", b"q"]),
        st.integers(1, 6),
        st.integers(0, 3),
        st.sampled_from([b"", b"", b"", b"t1", b"t2"]),
    ),
    max_size=20,
)


@given(EVENTS)
def test_the_disk_holds_what_the_table_holds_after_every_verdict(events):
    group = Group(distance=8, window=3)
    for further, producer, first, count, token in events:
        epoch = group.table.states[(producer, SET)].epoch if (producer, SET) in group.table.states else 0
        group.judge(first, count, epoch=epoch, token=token, producer=producer, sn=group.sn + further)
        assert group.disk == dict(group.table.records())


def test_an_opening_repeated_after_somebody_elses_is_fenced():
    group = Group()
    assert group.judge(0, 0, token=b"one").epoch == 1
    assert group.judge(0, 0, token=b"one").refusal == REFUSAL_UNSPECIFIED
    assert group.judge(0, 0, token=b"two").epoch == 2
    assert group.judge(0, 0, token=b"one").refusal == REFUSAL_FENCED
    assert group.judge(0, 0, token=b"two").refusal == REFUSAL_UNSPECIFIED
