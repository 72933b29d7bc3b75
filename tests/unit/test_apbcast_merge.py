"""The Bias merge: turns, ties, marks, views, ends, numbers, and what it waits for."""

import pytest

from ordercast.protocols.apbcast.bias import InvalidRate, biases, rate_of
from ordercast.protocols.apbcast.merge import Merge, is_ahead
from ordercast.protocols.apbcast.producers import Producers
from ordercast.protocols.apbcast.streams import Stream
from ordercast.v1.apbcast_pb2 import (
    BroadcasterStream,
    Publication,
    StreamEnd,
    StreamEntry,
    StreamView,
)


def view(number, *streams, ends=(), biases_us=None):
    members = [
        BroadcasterStream(stream=s, first=0, bias_us=(biases_us or {}).get(s, 0), rate=1000) for s in streams
    ]
    return StreamView(number=number, streams=members, ends=ends)


def said(timestamp, sequence, producer=b"p", groups=("g",)):
    return StreamEntry(timestamp=timestamp, cast=Publication(producer=producer, sequence=sequence, groups=groups))


def null(timestamp):
    return StreamEntry(timestamp=timestamp)


def mark(timestamp, number):
    return StreamEntry(timestamp=timestamp, mark=number)


def stream(number, *entries, announced=None, end=None):
    return Stream(
        number, entries=list(entries), announced=len(entries) if announced is None else announced, end=end
    )


class Run:
    def __init__(self, *views):
        self.merge = Merge(100)
        self.views = {each.number: each for each in views}
        self.streams = {s.stream: Stream(s.stream) for each in views for s in each.streams}

    def give(self, number, *entries, announced=None):
        known = self.streams[number]
        known.put(known.length, entries)
        known.announced = known.length if announced is None else announced

    def go(self):
        merged = self.merge.advance(self.streams, self.views)
        return [m.numbered.cast.sequence for m in merged if m.numbered is not None]


def test_the_smallest_last_timestamp_is_next_and_not_the_smallest_of_its_own():
    run = Run(view(1, 1, 2))
    run.give(1, said(10, 1, b"a"), said(20, 2, b"a"))
    run.give(2, said(5, 3, b"b"), said(30, 4, b"b"))
    # Both begin at 0: the tie is the smaller stream's. Then 2 is at 0, at 5, and 1 at 10.
    assert run.go() == [1, 3, 4, 2]


def test_nothing_is_merged_past_one_whose_turn_it_is():
    run = Run(view(1, 1, 2))
    run.give(1, said(10, 1, b"a"), said(20, 2, b"a"))
    assert run.go() == [1]
    assert run.merge.waits_for == 2
    assert run.merge.wants(run.streams) == {2: 11}
    run.give(2, null(11))
    assert run.go() == [2]


def test_a_bias_weighs_a_slow_broadcaster():
    run = Run(view(1, 1, 2, biases_us={1: 100}))
    run.give(1, said(10, 1, b"a"))
    run.give(2, said(50, 2, b"b"), said(99, 3, b"b"), said(200, 4, b"b"))
    # Stream 1 stands at 100, and so comes behind 2's first three.
    assert run.go() == [2, 3, 4, 1]


def test_what_is_not_announced_waits_and_nulls_do_not():
    run = Run(view(1, 1))
    run.give(1, null(5), said(10, 1), said(11, 2), announced=1)
    assert run.go() == []
    assert run.merge.turns[1].index == 1
    run.streams[1].announced = 2
    assert run.go() == [1]


def test_a_view_begins_when_all_are_aside():
    run = Run(view(1, 1, 2), view(2, 1, 2))
    run.give(1, mark(10, 2), said(11, 1, b"a"))
    assert (run.go(), run.merge.view) == ([], 1)
    run.give(2, null(12), mark(13, 2))
    assert (run.go(), run.merge.view) == ([1], 2)


def test_a_view_begins_without_those_that_have_ended():
    run = Run(view(1, 1, 2), view(2, 1, ends=[StreamEnd(stream=2, length=1)]))
    run.streams[2].end = 1
    run.give(1, said(3, 1, b"a"), mark(10, 2))
    run.give(2, said(12, 2, b"b"), announced=0)
    assert (run.go(), run.merge.view) == ([1, 2], 2)


def test_nulls_behind_an_end_count_nowhere():
    run = Run(view(1, 1, 2))
    run.give(2, null(5), null(100))
    run.give(1, said(10, 1, b"a"), said(20, 2, b"a"))
    assert run.go() == [1, 2]
    run.streams[2].end = 1
    assert run.merge.turns[2].index > run.streams[2].end
    run.give(1, said(200, 3, b"a"))
    assert run.go() == [3]
    assert run.merge.wants(run.streams) == {}


def test_messages_alone_get_numbers_and_each_once():
    run = Run(view(1, 1, 2))
    run.give(1, said(1, 1), said(2, 2), null(50))
    run.give(2, said(10, 1), said(11, 2), said(12, 3), null(60))
    assert run.go() == [1, 2, 3]
    assert run.merge.mseq == 3
    assert run.merge.offsets == {"g": 3}


def test_a_mark_holds_up_what_is_behind_it_and_nothing_of_it_is_wanted():
    run = Run(view(1, 1, 2))
    run.give(1, mark(10, 2), said(500, 1, b"a"))
    run.give(2, null(3))
    assert run.go() == []
    assert run.merge.wants(run.streams) == {}  # its mark's turn came at 0; what is behind it waits for a view
    run.give(1, said(600, 2, b"a"))
    assert run.merge.wants(run.streams) == {}


def test_a_merge_goes_on_from_the_state_of_another():
    run = Run(view(1, 1, 2))
    run.give(1, said(10, 1, b"a"), null(40))
    run.give(2, said(5, 2, b"b"), null(41))
    run.go()
    other = Merge(100)
    other.adopt(run.merge.state())
    assert other.state() == run.merge.state()
    for each in (run.merge, other):
        run.streams[1].put(2, [said(50, 3, b"a")])
        run.streams[1].announced = 3
        numbers = [m.numbered.mseq for m in each.advance(run.streams, run.views) if m.numbered is not None]
        assert numbers == [2]


def test_ahead_is_who_has_the_later_view_the_higher_number_or_more_nulls():
    run, behind = Run(view(1, 1, 2)), Run(view(1, 1, 2))
    for each in (run, behind):
        each.give(1, said(10, 1, b"a"))
        each.go()
    run.give(2, null(9))
    run.go()
    ahead, state = run.merge.state(), behind.merge.state()
    assert is_ahead(ahead, state, {})
    assert not is_ahead(state, ahead, {})
    assert not is_ahead(ahead, ahead, {})
    assert not is_ahead(ahead, state, {2: 0}), "behind its end it counts nowhere"


def test_a_stream_is_without_gap_and_forgets_only_from_its_beginning():
    known = stream(1, null(1), null(2))
    assert not known.put(4, [null(5)])
    assert (known.length, known.spoken_of, known.needed) == (2, 5, 5)
    assert known.put(1, [null(2), null(3), said(4, 1)])
    assert known.worth_writing() == 4
    known.drop_below(3)
    assert (known.base, known.length, known.entry(2)) == (3, 4, None)
    assert known.entry(3) is not None


def test_nulls_at_the_end_wait_for_company_on_their_way_to_the_disk():
    known = stream(1, said(1, 1), null(2), null(3))
    assert known.worth_writing() == 1
    known.put(3, [mark(4, 2)])
    assert known.worth_writing() == 4


def test_producers_are_forgotten_by_the_order_alone():
    producers = Producers(2)
    assert producers.is_new(b"a", 1, 0)
    assert producers.is_new(b"b", 1, 1)
    assert not producers.is_new(b"a", 1, 2)
    assert producers.is_new(b"a", 2, 2)
    assert producers.is_new(b"c", 1, 3)  # b is forgotten: it was heard of first
    assert list(producers.known) == [b"a", b"c"]
    again = Producers(2)
    again.adopt(producers.states())
    assert again.known == producers.known


def test_only_differences_of_biases_matter_and_the_fastest_has_none():
    assert biases([rate_of(10), rate_of(10)]) == [0, 0]
    fast, slow = biases([rate_of(100), rate_of(10)])
    assert (fast, slow) == (0, 23026)  # ln(10) / 100 s


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf"), 1e12])
def test_what_is_no_rate_is_refused(rate):
    with pytest.raises(InvalidRate, match="rate is"):
        rate_of(rate)
