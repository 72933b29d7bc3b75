"""The parts of the audit one by one, without Spark: ranges of positions, of envelopes, and runs."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.analytics.needed import need_packages

need_packages()

from ordercast.analytics.audit.envelopes import EnvelopeRange  # noqa: E402
from ordercast.analytics.audit.findings import TOLD_MAX, UNSEEN, VIOLATION, Finding  # noqa: E402
from ordercast.analytics.audit.packs import ENTRY, RANGE, RUN, packed, runs  # noqa: E402
from ordercast.analytics.audit.positions import PositionRange  # noqa: E402
from ordercast.analytics.audit.runs import GroupRuns  # noqa: E402
from ordercast.analytics.audit.stream import Kept, loaded, stored  # noqa: E402
from ordercast.analytics.synthetic import Cluster, Plan  # noqa: E402
from ordercast.core.ids import envelope_id  # noqa: E402


def entries(positions: range, **changes: int) -> np.ndarray:
    """Each position has the envelope and the key of its number, and one message."""
    made = np.zeros(len(positions), ENTRY)
    made["position"] = made["first_offset"] = list(positions)
    made["key"] = [position + 1 for position in positions]
    made["messages"] = 1
    made["envelope"] = [np.void(envelope_id(1, position)) for position in positions]
    made["trace"] = [np.void(position.to_bytes(16, "big")) for position in positions]
    for name, value in changes.items():
        made[name] += value
    return made


def group(number: int = 0, protocol: str = "scalatom") -> PositionRange:
    return PositionRange("a#1", number, "default", "a", protocol)


def told(part: PositionRange, node: str, incarnation: int, rows: np.ndarray) -> list[Finding]:
    return part.add([(node, incarnation)], np.zeros(len(rows), int), rows)


def kinds(found: list[Finding]) -> list[tuple[str | None, int]]:
    return [(finding.violation, finding.position) for finding in found]


def test_replicas_that_agree_are_not_told():
    part = group()
    assert told(part, "n1", 1, entries(range(50))) == []
    assert told(part, "n2", 2, entries(range(30))) == []
    assert told(part, "n2", 2, entries(range(30, 50))) == []
    closed = part.close()
    assert (closed.position, closed.position_last, closed.count, closed.replicas) == (0, 49, 100, 2)


def test_two_envelopes_at_one_position_are_told_with_both_sides():
    part = group()
    told(part, "n1", 1, entries(range(10)))
    other = entries(range(10))
    swapped = other.copy()
    for name in ("envelope", "key", "trace"):
        swapped[name][[3, 4]] = other[name][[4, 3]]
    found = told(part, "n2", 2, swapped)
    assert kinds(found) == [("order", 3), ("order", 4)]
    first = found[0]
    assert (first.node, first.other_node) == ("n2", "n1")
    assert first.trace == (4).to_bytes(16, "big").hex()
    assert first.other_trace == (3).to_bytes(16, "big").hex()


def test_keys_have_to_rise_for_scalatom_and_not_for_others():
    wrong = entries(range(5))
    wrong["key"][2] = 9
    assert kinds(told(group(), "n1", 1, wrong)) == [("order", 3)]
    assert told(group(protocol="isis"), "n1", 1, wrong) == []


def test_of_equal_numbers_the_id_decides():
    same = entries(range(3))
    same["key"] = 7
    assert told(group(), "n1", 1, same) == []
    same["envelope"] = same["envelope"][::-1].copy()
    assert kinds(told(group(), "n1", 1, same)) == [("order", 1), ("order", 2)]


def test_offsets_have_to_follow_on_also_from_one_range_to_the_next():
    part = group(1)
    assert told(part, "n1", 1, entries(range(RANGE - 1, RANGE + 3))) == []
    later = group(1)
    wrong = entries(range(RANGE - 1, RANGE + 3))
    wrong["first_offset"][1:] += 5
    assert kinds(told(later, "n1", 1, wrong)) == [("offset", RANGE)]


def test_a_key_or_an_offset_that_differs_between_replicas_is_told():
    for change, violation in (("key", "key"), ("first_offset", "offset"), ("messages", "offset")):
        part = group()
        told(part, "n1", 1, entries(range(4)))
        assert kinds(told(part, "n2", 2, entries(range(2, 3), **{change: 1}))) == [(violation, 2)]


def test_the_same_position_twice_is_a_duplicate_in_one_life_and_none_in_the_next():
    part = group()
    told(part, "n1", 1, entries(range(10)))
    assert kinds(told(part, "n1", 1, entries(range(5, 6)))) == [("duplicate", 5)]
    assert told(part, "n1", 8, entries(range(10))) == []
    twice = np.concatenate([entries(range(3)), entries(range(1, 2))])
    assert kinds(told(part, "n3", 3, twice)) == [("duplicate", 1)]


def test_it_is_the_same_who_contradicts_however_what_comes_is_cut_into_batches():
    one, other = entries(range(10)), entries(range(10), key=1)
    one["offset"], other["offset"] = np.arange(0, 20, 2), np.arange(1, 21, 2)
    replicas = [("n1", 1), ("n2", 2)]
    of, rows = np.tile([0, 1], 10), np.stack([one, other], axis=1).reshape(-1)
    whole = group().add(replicas, of, rows)
    for cut in (1, 7, 10, 19):
        part = group()
        pieces = part.add(replicas, of[:cut], rows[:cut]) + part.add(replicas, of[cut:], rows[cut:])
        assert pieces == whole
    assert {(finding.node, finding.other_node) for finding in whole} == {("n2", "n1")}


def test_a_replica_that_is_all_wrong_does_not_fill_the_table():
    part = group()
    told(part, "n1", 1, entries(range(500)))
    found = told(part, "n2", 2, entries(range(500), key=1))
    assert len(found) == TOLD_MAX
    assert sum(finding.count for finding in found) == 500


def add(part: EnvelopeRange, name: str, node: str, rows: np.ndarray) -> list[Finding]:
    of = np.zeros(len(rows), int)
    return part.add("default", "scalatom", (f"{name}#1", name), [(node, 1)], of, rows)


def test_an_envelope_with_two_keys_in_two_groups_is_told():
    part = EnvelopeRange()
    assert add(part, "a", "n1", entries(range(10))) == []
    assert add(part, "b", "n1", entries(range(5))) == []
    (found,) = add(part, "c", "n2", entries(range(7, 8), key=1, offset=5))
    assert (found.violation, found.group, found.other_group) == ("key", "c", "a")


def test_an_envelope_at_two_positions_is_a_duplicate():
    part = EnvelopeRange()
    assert add(part, "a", "n1", entries(range(10))) == []
    assert add(part, "a", "n2", entries(range(10))) == []
    assert kinds(add(part, "a", "n1", entries(range(3, 4), position=20))) == [("duplicate", 23)]


def heard(part: GroupRuns, node: str, incarnation: int, *positions: range, begins: bool = False) -> GroupRuns:
    rows = np.zeros(len(positions), RUN)
    for row, run in zip(rows, positions, strict=True):
        row["first"], row["last"], row["begins"] = run[0], run[-1], begins
    part.add(node, incarnation, rows, 1000)
    return part


def gaps(part: GroupRuns) -> list[tuple[str, str, int, int]]:
    return [(f.severity, f.node or "", f.position, f.position_last) for f in part.told(None)]


def test_a_hole_is_told_once_and_only_when_it_has_been_there_for_a_while():
    part = heard(GroupRuns("a#1"), "n1", 1, range(5), range(8, 20))
    assert part.told(until_ms=999) == []
    assert gaps(part) == [(VIOLATION, "n1", 5, 7)]
    assert gaps(heard(part, "n1", 1, range(20, 30))) == []


def test_a_hole_that_is_filled_later_is_none():
    part = heard(GroupRuns("a#1"), "n1", 1, range(5), range(8, 20))
    assert gaps(heard(part, "n1", 1, range(5, 8))) == []


def test_a_replica_may_begin_anywhere_and_a_log_may_be_set_anew():
    part = heard(GroupRuns("a#1"), "n1", 1, range(500, 510))
    assert gaps(heard(part, "n1", 1, range(900, 910), begins=True)) == []
    assert gaps(heard(part, "n1", 1, range(920, 930))) == [(VIOLATION, "n1", 910, 919)]


def test_the_next_life_may_begin_at_or_below_the_end_of_the_last():
    for first in (50, 99, 100):
        part = heard(GroupRuns("a#1"), "n1", 1, range(100))
        assert gaps(heard(part, "n1", 2, range(first, 120))) == []


def test_what_a_killed_process_could_not_tell_is_unseen_and_no_violation():
    part = heard(GroupRuns("a#1"), "n1", 1, range(100))
    assert gaps(heard(part, "n1", 2, range(110, 120))) == [(UNSEEN, "n1", 100, 109)]
    assert gaps(heard(part, "n1", 2, range(120, 130))) == []


def test_runs_are_cut_where_positions_do_not_follow_on_and_where_a_log_begins():
    rows = np.zeros(6, ENTRY)
    rows["position"] = [4, 5, 6, 9, 10, 11]
    made = runs(rows, np.array([False, False, False, False, False, True]))
    assert made[["first", "last", "begins"]].tolist() == [(4, 6, False), (9, 10, False), (11, 11, True)]


def test_state_comes_back_as_it_was_kept():
    part = group()
    told(part, "n1", 1, entries(range(10)))
    kept = loaded(("positions", "a#1", 0), stored(Kept(part, 5, 6)))
    again = kept.part
    assert (kept.received_ms, kept.landed_ms) == (5, 6)
    assert isinstance(again, PositionRange)
    assert kinds(told(again, "n2", 1, entries(range(2, 3), key=1))) == [("key", 2)]


@pytest.mark.parametrize("rows", [100, 5000])
def test_every_delivery_is_in_the_packs_of_its_ranges(rows: int):
    table = Cluster(Plan(3500, groups=("a",))).table()
    table = table.filter(pc.equal(table.column("kind"), "delivery"))
    table = table.append_column("begins", pa.repeat(False, table.num_rows))
    packs = pa.Table.from_batches(packed(iter(table.to_batches(max_chunksize=rows)))).to_pylist()
    held = {"positions": 0, "envelopes": 0, "runs": 0}
    for pack in packs:
        if pack["scope"] == "runs":
            held["runs"] += sum(last - first + 1 for first, last in _bounds(pack))
            continue
        made = np.frombuffer(pack["payload"], ENTRY)
        own = made["position"] // RANGE == pack["range"] if pack["scope"] == "positions" else made["key"] > 0
        held[pack["scope"]] += int(own.sum())
    assert held == dict.fromkeys(held, table.num_rows)


def _bounds(pack: dict[str, bytes]) -> list[tuple[int, int]]:
    return np.frombuffer(pack["payload"], RUN)[["first", "last"]].tolist()
