"""The logs of several groups as one stream: what comes out, what is waited for, and how much is kept."""

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import last_key_of, order_key
from ordercast.core.merge import Merge, Wanted
from ordercast.core.place import Place


def key(sn: int) -> bytes:
    return order_key(sn, bytes(16))


def merge_of(*groups: str, start: Place | None = None, until: Place | None = None) -> Merge[str]:
    return Merge(groups, start or Place(), until, size_max=100)


def came(merge: Merge[str], group: str, *sns: int, watermark: int | None = None, size: int = 1) -> None:
    entries = [(key(sn), f"{group}{sn}", size) for sn in sns]
    merge.received(group, entries, last_key_of(watermark) if watermark is not None else b"")


def shown(merge: Merge[str], count_max: int = 100) -> list[list[str]]:
    return [[part.entry for part in merged.parts] for merged in merge.take(count_max)]


# ------------------------------------------------------------------------------------------------- what comes out


def test_entries_come_out_by_their_keys_whatever_group_they_are_of():
    merge = merge_of("a", "b")
    came(merge, "a", 1, 4)
    came(merge, "b", 2, 3, 5)
    assert shown(merge) == [["a1"], ["b2"], ["b3"], ["a4"]]


def test_nothing_comes_out_before_every_group_has_passed_it():
    merge = merge_of("a", "b", "c")
    came(merge, "a", 3)
    came(merge, "b", 5)
    assert shown(merge) == []
    came(merge, "c", watermark=4)
    assert shown(merge) == [["a3"]]


def test_an_envelope_for_several_groups_comes_out_once():
    merge = merge_of("a", "b", "c")
    came(merge, "c", 2, 3)
    came(merge, "a", 2)
    came(merge, "b", watermark=9)
    assert shown(merge) == [["a2", "c2"]]


def test_a_log_that_brings_what_it_has_passed_is_no_log_that_can_be_merged():
    merge = merge_of("a", "b")
    came(merge, "a", watermark=7)
    with pytest.raises(InvariantBroken):
        came(merge, "a", 7)


def test_as_much_comes_out_at_once_as_is_asked_for():
    merge = merge_of("a")
    came(merge, "a", 1, 2, 3)
    assert shown(merge, 2) == [["a1"], ["a2"]]
    assert shown(merge, 2) == [["a3"]]


# ------------------------------------------------------------------------------------------ begin, end


def test_what_is_before_the_start_is_left_out_and_the_envelope_there_is_not():
    merge = merge_of("a", start=Place(key(2), 5))
    came(merge, "a", 1, 2, 3)
    assert shown(merge) == [["a2"], ["a3"]]


def test_it_ends_when_all_groups_have_passed_the_cut():
    cut = Place(last_key_of(4))
    merge = merge_of("a", "b", until=cut)
    came(merge, "a", 1, 7)
    assert merge.wanted() == Wanted(key(1), ("b",))
    came(merge, "b", watermark=2)
    assert shown(merge) == [["a1"]]
    assert (merge.has_ended, merge.wanted()) == (False, Wanted(last_key_of(4), ("b",)))
    came(merge, "b", watermark=4)
    assert (merge.has_ended, shown(merge), merge.wanted()) == (True, [], None)


def test_it_does_not_end_before_what_is_below_the_cut_came_out():
    merge = merge_of("a", until=Place(last_key_of(4)))
    came(merge, "a", 1, watermark=9)
    assert not merge.has_ended
    assert shown(merge) == [["a1"]]
    assert merge.has_ended


# ----------------------------------------------------------------------------------------------- waiting


def test_only_those_that_have_not_passed_the_first_entry_are_waited_for():
    merge = merge_of("a", "b", "c")
    assert merge.wanted() is None, "nothing is there that could come out"
    came(merge, "a", 3, 8)
    came(merge, "b", watermark=4)
    assert merge.wanted() == Wanted(key(3), ("c",))
    came(merge, "c", watermark=3)
    assert shown(merge) == [["a3"]]
    assert merge.wanted() == Wanted(key(8), ("b", "c"))


# ------------------------------------------------------------------------------------------------ how much is kept


def test_a_fast_group_has_no_room_while_a_slow_one_is_waited_for():
    merge = merge_of("a", "b")
    came(merge, "a", 1, 2, size=30)
    assert (merge.has_room("a"), merge.has_room("b")) == (False, True)
    came(merge, "b", watermark=9)
    shown(merge)
    assert (merge.has_room("a"), merge.size) == (True, 0)


# ---------------------------------------------------------------------------------------------- who comes and goes


def test_a_group_that_joins_is_waited_for_behind_its_place():
    merge = merge_of("a")
    came(merge, "a", 1, 5)
    assert shown(merge, 1) == [["a1"]]
    merge.join("b", last_key_of(3))
    assert merge.wanted() == Wanted(key(5), ("b",))
    came(merge, "b", 4)
    assert shown(merge) == [["b4"]]


def test_a_group_that_leaves_holds_nobody_up_and_shows_nothing_more():
    merge = merge_of("a", "b", "c")
    came(merge, "a", 2)
    came(merge, "b", 1)
    merge.leave("c")
    assert shown(merge) == [["b1"]]
    merge.leave("b")
    assert (shown(merge), merge.size) == ([["a2"]], 0)


# -------------------------------------------------------------------------------------------------- in any order


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_whatever_comes_when_the_stream_is_the_sorted_union(data: st.DataObject):
    """Groups bring pieces of their logs in any order, with and without watermarks."""
    names = ["a", "b", "c"][: data.draw(st.integers(1, 3))]
    logs = {name: sorted(data.draw(st.sets(st.integers(1, 20), max_size=8))) for name in names}
    start = data.draw(st.integers(0, 12))
    merge = merge_of(*names, start=Place(key(start)))
    at = dict.fromkeys(names, 0)
    found: list[tuple[bytes, list[str]]] = []
    for _ in count():
        if (wanted := merge.wanted()) is None and all(at[name] == len(logs[name]) for name in names):
            break
        waiting = [name for name in names if at[name] < len(logs[name]) or (wanted and name in wanted.sources)]
        name = data.draw(st.sampled_from(waiting))
        following = logs[name][at[name] :][: data.draw(st.integers(0, 3))]
        at[name] += len(following)
        rest = logs[name][at[name] :]
        watermark = rest[0] - 1 if rest else 21
        came(merge, name, *following, watermark=watermark if data.draw(st.booleans()) or not following else None)
        assert all(
            merge.has_room(name) for name in (wanted.sources if wanted else ()) if not merge.sources[name].ahead
        )
        found += [
            (m.order_key, sorted(p.entry for p in m.parts)) for m in merge.take(data.draw(st.integers(0, 9)))
        ]
    for name in names:
        came(merge, name, watermark=21)
    found += [(m.order_key, sorted(p.entry for p in m.parts)) for m in merge.take(100)]
    sns = sorted({sn for log in logs.values() for sn in log if sn >= start})
    assert found == [(key(sn), [f"{name}{sn}" for name in names if sn in logs[name]]) for sn in sns]
