"""Several logs as one stream in causal order: rule by rule."""

import pytest

from ordercast.client import causal_merge
from ordercast.client.causal_merge import CausalMerge, Time
from ordercast.errors import Internal, ResourceExhausted
from ordercast.v1.isis_pb2 import CastStamp, GroupTime
from tests.unit.causal_stamps import IDS, place_of, stamp, time_of


class Reading:
    """A merge of three groups, and what came out of it. Each entry has one message."""

    def __init__(self) -> None:
        self.merge: CausalMerge[str] = CausalMerge(IDS)
        self.ends = dict.fromkeys(IDS, 0)

    def add(self, name: str, cast: CastStamp) -> list[str]:
        """What comes out then. The entry's name begins with its group's."""
        group = name[0]
        offset = self.ends[group]
        self.ends[group] = offset + 1
        self.merge.add(group, place_of(cast), name, offset=offset, end=offset + 1, size=100)
        return self.drain()

    def told(self, group: str, view: int, offset: int) -> list[str]:
        self.merge.told(group, Time(view), offset)
        return self.drain()

    def drain(self) -> list[str]:
        found = []
        while (item := self.merge.next()) is not None:
            found.append(item)
        return found


def test_an_answer_waits_for_the_question_in_another_group():
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 1, {2: 1}))) == []
    assert reading.merge.waiting == {"a": 0, "b": 1, "c": 0}
    assert reading.add("a1", stamp(1, 2, 1)) == ["a1", "b1"]
    assert reading.merge.waiting == {"a": 0, "b": 0, "c": 0}


def test_what_is_carried_along_counts_like_the_rest():
    reading = Reading()
    cast = stamp(1, 0, 1)
    cast.carried.append(time_of("a", 1, {2: 1}))
    assert reading.add("b1", cast) == []
    assert reading.add("a1", stamp(1, 2, 1)) == ["a1", "b1"]


def test_groups_that_are_not_read_do_not_matter():
    merge: CausalMerge[str] = CausalMerge({"b": "b#2"})
    merge.add("b", place_of(stamp(1, 0, 1, time_of("a", 1, {2: 1}))), "b1", offset=0, end=1, size=1)
    assert merge.next() == "b1"


def test_a_group_of_the_same_name_that_was_deleted_does_not_matter():
    reading = Reading()
    gone = GroupTime(group="a#0", view=7, members=[1], counts=[5])
    assert reading.add("b1", stamp(1, 0, 1, gone)) == ["b1"]


def test_what_its_own_group_has_before_it_is_not_waited_for():
    reading = Reading()
    assert reading.add("a1", stamp(1, 0, 3, time_of("a", 1, {1: 4}))) == ["a1"]


def test_a_later_view_covers_all_of_an_earlier_one():
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 2, {0: 9}))) == []
    assert reading.add("a1", stamp(2, 0, 8)) == ["a1"]
    assert reading.add("a2", stamp(3, 1, 1)) == ["b1", "a2"]


def test_a_bare_view_means_all_from_before_it():
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 2))) == []
    assert reading.add("a1", stamp(1, 0, 1)) == ["a1"]
    assert reading.add("a2", stamp(2, 0, 1)) == ["b1", "a2"]


def test_replicas_are_asked_about_a_view_in_which_nothing_was_said():
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 2))) == []
    assert reading.merge.asks() == ["a"]
    # The view began with offset 1, which has not come: what is before it must come out first.
    assert reading.told("a", 2, 1) == []
    assert reading.merge.asks() == []
    assert reading.add("a1", stamp(1, 0, 1)) == ["a1", "b1"]


def test_an_answer_that_does_not_reach_far_enough_is_asked_for_again():
    reading = Reading()
    reading.add("b1", stamp(1, 0, 1, time_of("a", 3)))
    assert reading.told("a", 2, 0) == []
    assert reading.merge.asks() == ["a"]
    assert reading.told("a", 3, 0) == ["b1"]


def test_a_cast_without_a_message_is_known_from_who_comes_after_it():
    """a1 is the second of its caster: the first was a repetition, and is not shown."""
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 1, {0: 1, 1: 1}))) == []
    assert reading.add("a1", stamp(1, 0, 2, time_of("a", 1, {1: 1}))) == ["b1", "a1"]


def test_a_cast_without_a_message_is_known_though_who_comes_after_it_waits():
    """Each of them waits for what the other one has before it in its log."""
    reading = Reading()
    assert reading.add("a1", stamp(1, 0, 2, time_of("b", 1, {0: 1}))) == []
    assert reading.add("b1", stamp(1, 0, 2, time_of("a", 1, {0: 1}))) == ["a1", "b1"]


def test_what_comes_behind_a_held_up_entry_keeps_its_place():
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 1, {0: 1}))) == []
    assert reading.add("b2", stamp(1, 1, 1)) == []
    assert reading.add("a1", stamp(1, 0, 1)) == ["a1", "b1", "b2"]


def contradiction(*, total: bool) -> list[tuple[str, CastStamp]]:
    """a1 comes after b2, and b1 after a2."""
    return [
        ("a1", stamp(1, 0, 1, time_of("b", 1, {0: 1}), total=total)),
        ("a2", stamp(1, 1, 1, total=total)),
        ("b1", stamp(1, 1, 1, time_of("a", 1, {1: 1}), total=total)),
        ("b2", stamp(1, 0, 1, total=total)),
    ]


def test_logs_that_contradict_each_other_still_come_out_in_causal_order():
    reading = Reading()
    *others, last = contradiction(total=False)
    assert [reading.add(name, cast) for name, cast in others] == [[], [], []]
    released = reading.add(*last)
    assert sorted(released) == ["a1", "a2", "b1", "b2"]
    assert released.index("b2") < released.index("a1")
    assert released.index("a2") < released.index("b1")


def test_what_passes_others_does_not_pass_what_it_comes_after():
    """As above, and b3 could go before b1 if it did not come after b2, which is held up by c2, behind c1."""
    reading = Reading()
    late = time_of("a", 1, {1: 1})
    for name, cast in [
        ("b1", stamp(1, 1, 1, late)),
        ("b2", stamp(1, 0, 1, time_of("c", 1, {1: 1}))),
        ("b3", stamp(1, 0, 2)),
        ("a1", stamp(1, 0, 1, time_of("b", 1, {0: 2}))),
        ("c1", stamp(1, 0, 1, late)),
        ("c2", stamp(1, 1, 1)),
    ]:
        assert reading.add(name, cast) == []
    released = reading.add("a2", stamp(1, 1, 1))
    assert len(released) == 7
    assert released.index("c2") < released.index("b2") < released.index("b3") < released.index("a1")


def test_nothing_passes_a_cast_with_a_total_order():
    reading = Reading()
    *others, last = contradiction(total=True)
    for name, cast in others:
        assert reading.add(name, cast) == []
    with pytest.raises(ResourceExhausted):
        reading.add(*last)


def test_while_something_can_still_come_the_order_of_a_log_is_kept():
    """b1 could be passed by b2; but c1 has only not come yet."""
    reading = Reading()
    assert reading.add("b1", stamp(1, 0, 1, time_of("c", 1, {0: 1}))) == []
    assert reading.add("b2", stamp(1, 1, 1)) == []
    assert reading.add("a1", stamp(1, 0, 1, time_of("b", 1, {1: 1}))) == []
    assert reading.add("c1", stamp(1, 0, 1)) == ["c1", "b1", "b2", "a1"]


@pytest.mark.parametrize(("bound", "most"), [("WAITING_ENTRIES_MAX", 2), ("WAITING_BYTES_MAX", 200)])
def test_what_waits_is_bounded(monkeypatch, bound, most):
    monkeypatch.setattr(causal_merge, bound, most)
    reading = Reading()
    for number in (1, 2):
        assert reading.merge.has_room("b")
        reading.add(f"b{number}", stamp(1, 0, number, time_of("a", 1, {0: 1})))
    assert not reading.merge.has_room("b")
    assert reading.merge.has_room("a")
    reading.add("a1", stamp(1, 0, 1))
    assert reading.merge.has_room("b")


def test_a_contradiction_that_is_longer_than_the_bounds_is_an_error(monkeypatch):
    monkeypatch.setattr(causal_merge, "WAITING_ENTRIES_MAX", 1)
    reading = Reading()
    casts = dict(contradiction(total=False))
    reading.add("a1", casts["a1"])
    with pytest.raises(ResourceExhausted):
        reading.add("b1", casts["b1"])


def test_what_lies_before_the_start_counts_as_released():
    reading = Reading()
    reading.merge.begin("a", 10)
    reading.merge.pass_over("a", place_of(stamp(4, 0, 7, time_of("a", 4, {1: 3}))), end=11)
    assert reading.add("b1", stamp(1, 0, 1, time_of("a", 4, {0: 7, 1: 3}))) == ["b1"]
    assert reading.merge.offsets == {"a": 11, "b": 1, "c": 0}


def test_the_offsets_are_those_of_what_waits():
    reading = Reading()
    reading.add("b1", stamp(1, 1, 1))
    reading.add("b2", stamp(1, 0, 1, time_of("a", 1, {0: 1})))
    reading.add("b3", stamp(1, 0, 2))
    assert reading.merge.offsets == {"a": 0, "b": 1, "c": 0}


@pytest.mark.parametrize(
    "cast",
    [
        CastStamp(),
        stamp(1, 0, 1),
        stamp(2, 0, 0),
        stamp(2, 0, 1),
        stamp(2, 1, 3),
    ],
    ids=["no stamp", "an earlier view", "no number", "the same again", "named by an earlier one"],
)
def test_an_entry_that_cannot_be_is_an_error(cast):
    reading = Reading()
    reading.add("a1", stamp(2, 0, 1, time_of("a", 2, {1: 3})))
    with pytest.raises(Internal):
        reading.add("a2", cast)
