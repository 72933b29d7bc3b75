"""Flushing: who contributes, what the cut is, who may say it, and when it counts."""

import pytest

from ordercast.protocols.causal.casts import Key
from ordercast.protocols.causal.times import Time, Times
from ordercast.protocols.isis import cut
from ordercast.protocols.isis.cut import Contribution
from ordercast.protocols.isis.flush import attempt_for
from ordercast.protocols.isis.settings import FlushKind
from ordercast.v1.isis_pb2 import Cut, Flush, Forward
from tests.unit.isis_host import Company

# ------------------------------------------------------------------------------------------------- the cut


def contribution(received: list[int], places: dict[int, Key] | None = None, **fields: object) -> Contribution:
    found = {"settled_counts": [0] * len(received), "settled": 0, "epoch": 0, **fields}
    return Contribution(received=received, places=places or {}, **found)


def ending(
    *contributions: Contribution,
    behind: dict[Key, dict[int, int]] | None = None,
    epochs: dict[Key, int] | None = None,
) -> list[Key]:
    def times_of(key: Key) -> Times:
        return {"a": Time(1, (behind or {})[key])} if key in (behind or {}) else {}

    return cut.compute(contributions, "a", 1, times_of, lambda key: (epochs or {}).get(key, 0)).keys


def test_the_cut_is_all_that_anybody_has():
    assert ending(contribution([1, 0]), contribution([0, 2])) == [(0, 1), (1, 1), (1, 2)]


def test_what_is_placed_comes_first_in_that_order():
    known = {0: (1, 1), 1: (0, 1)}
    assert ending(contribution([2, 1], known), contribution([0, 1])) == [(1, 1), (0, 1), (0, 2)]


def test_places_that_several_know_are_put_together():
    first, second = contribution([1, 1], {0: (1, 1)}), contribution([1, 1], {1: (0, 1)})
    assert ending(first, second) == [(1, 1), (0, 1)]


def test_behind_a_place_that_nobody_knows_places_count_for_nothing():
    """What is at 0 may be any of them, so that at 1 the second may be wrong."""
    assert ending(contribution([1, 1, 1], {1: (2, 1)})) == [(0, 1), (1, 1), (2, 1)]


def test_a_placed_cast_that_nobody_has_is_skipped():
    placed = {0: (0, 1), 1: (2, 1), 2: (1, 1)}
    assert ending(contribution([0, 1, 1], placed)) == [(2, 1), (1, 1)], "and the places behind it count"


def test_what_follows_something_lost_is_an_orphan():
    assert ending(contribution([0, 2]), behind={(1, 1): {0: 1}}) == [], "and so is what its caster said next"


def test_the_rest_is_in_causal_order_and_then_by_key():
    found = ending(contribution([1, 1, 1]), behind={(0, 1): {2: 1}})
    assert found == [(1, 1), (2, 1), (0, 1)]


def test_a_lower_epoch_comes_before_a_lower_key():
    assert ending(contribution([1, 1]), epochs={(0, 1): 2, (1, 1): 1}) == [(1, 1), (0, 1)]


def test_what_is_settled_is_not_in_the_cut():
    """Everyone has it, in the log: the cut begins behind what the furthest knows to be everywhere."""
    far = contribution([2, 1], {1: (0, 2)}, settled=1, settled_counts=[1, 0])
    near = contribution([2, 1], {0: (0, 1), 1: (0, 2)})
    found = cut.compute([near, far], "a", 1, lambda key: {}, lambda key: 0)
    assert (found.first_position, found.keys) == (1, [(0, 2), (1, 1)])
    assert cut.needed([near, far]) == [(0, 2), (1, 1)]


def test_it_is_the_same_in_whatever_order_contributions_come():
    parts = [contribution([1, 0, 1], {0: (2, 1)}), contribution([0, 2, 1]), contribution([1, 1, 0], {1: (0, 1)})]
    assert ending(*parts) == ending(*parts[::-1]) == [(2, 1), (0, 1), (1, 1), (1, 2)]


# ------------------------------------------------------------------------------------------- who takes part


def group_of(company: Company, name: str = "n2"):
    return company.replica(name).group


def test_survivors_of_the_last_completed_view_contribute_and_those_who_leave():
    company = Company({"a": "n1 n2 n3 n4"}, spare="n5")
    company.define("a", "n2 n3 n5", leaving="n1")
    attempt = attempt_for(group_of(company))
    assert attempt.contributors == ("n1", "n2", "n3")
    assert attempt.coordinator == "n2", "one who stays"


def test_of_the_last_completed_view_also_when_others_were_defined_since():
    company = Company({"a": "n1 n2 n3 n4"})
    company.define("a", "n1 n2 n3", told="n2")
    company.define("a", "n2 n3 n4", told="n2")
    attempt = attempt_for(group_of(company))
    assert (attempt.ends, attempt.contributors) == (1, ("n2", "n3", "n4"))


@pytest.mark.parametrize("kind", list(FlushKind))
def test_contributions_go_to_all_or_to_one(kind: FlushKind):
    company = Company({"a": "n1 n2 n3"}, flush=kind)
    for to in ("n1", "n3"):
        company.hold("n2", to)
    company.define("a", "n1 n2 n3")
    told = [to for to in ("n1", "n3") if company.on_the_way("n2", to, Flush)]
    assert told == (["n1", "n3"] if kind == FlushKind.ALL else ["n1"])


@pytest.mark.parametrize("kind", list(FlushKind))
def test_the_cut_waits_for_every_contribution(kind: FlushKind):
    company = Company({"a": "n1 n2 n3"}, flush=kind)
    company.hold("n3", "n1", "n2")
    company.define("a", "n1 n2 n3")
    assert not company.has_cut("n1")
    assert not company.has_cut("n2")
    company.release("n3", "n1", "n2")
    assert all(company.has_cut(name) for name in company.members)


@pytest.mark.parametrize("kind", list(FlushKind))
def test_what_one_alone_has_is_forwarded_before_its_contribution(kind: FlushKind):
    company = Company({"a": "n1 n2 n3"}, flush=kind)
    company.hold("n3", "n1")
    company.cast("n3", "a", "m1")
    company.crash("n3")
    company.hold("n2", "n1")
    company.define("a", "n1 n2")
    said = [type(one) for one in company.on_the_way("n2", "n1") if isinstance(one, Forward | Flush)]
    assert said == [Forward, Flush]
    company.release("n2", "n1")
    company.complete("a")
    assert company.live("n1") == company.live("n2") == "m1"


# --------------------------------------------------------------------------------------- sealed, void, again


def test_nothing_of_the_view_that_ends_is_taken_or_said_to_be_on_disk_any_more():
    company = Company({"a": "n1 n2 n3"})
    company.define("a", "n1 n2", told="n1 n2")
    company.hold("n1", "n3")
    company.cast("n3", "a", "m1")
    assert company.live("n1") == ""
    assert company.on_the_way("n1", "n3") == []
    company.complete("a", told="n1 n2")
    assert company.log("n1") == company.log("n2") == ""


def test_a_view_that_is_defined_meanwhile_makes_the_attempt_void():
    """n1 has a cut for view 2 on disk. For view 3 all begins again, from the view that was last complete."""
    company = Company({"a": "n1 n2 n3"})
    company.hold("n2", "n3")
    company.cast("n2", "a", "m1")
    company.define("a", "n1 n2", told="n1 n2")
    assert company.has_cut("n1")
    company.define("a", "n1 n2 n3")
    assert company.replica("n1").attempt.view == 3
    company.release("n2", "n3")
    assert company.replica("n1").cut.view == 3
    company.complete("a")
    assert [company.live(name) for name in company.members] == ["m1"] * 3


def test_a_contribution_to_a_view_that_is_not_heard_of_yet_is_kept():
    company = Company({"a": "n1 n2 n3"})
    company.define("a", "n1 n2 n3", told="n2 n3")
    assert company.machine("n1").receiving.early_count() == 2
    company.tell("n1")
    assert company.machine("n1").receiving.early_count() == 0
    assert all(company.has_cut(name) for name in company.members)


def test_a_contribution_that_was_lost_comes_again_with_a_new_connection():
    company = Company({"a": "n1 n2 n3"})
    company.hold("n2", "n1")
    company.define("a", "n1 n2 n3")
    company.held.clear()
    company.lose("n2", "n1")
    company.run()
    assert not company.has_cut("n1")
    company.reconnect("n1", "n2")
    assert company.has_cut("n1")


def test_so_does_the_cut():
    company = Company({"a": "n1 n2 n3"})
    company.hold("n1", "n3")
    company.define("a", "n1 n2 n3")
    assert company.on_the_way("n1", "n3", Cut)
    company.held.clear()
    company.reconnect("n1", "n3")
    assert company.has_cut("n3")


def test_who_missed_the_cut_of_a_view_that_is_complete_asks_for_it():
    """n1, who had computed it, is gone. Any member of the view has it."""
    company = Company({"a": "n1 n2 n3"})
    company.cast("n1", "a", "m1")
    company.hold("n1", "n3")
    company.define("a", "n1 n2 n3")
    company.complete("a")
    company.crash("n1")
    assert not company.has_cut("n3")
    for _ in range(3):
        company.wait()
    assert company.era("n3").view == 2
    assert company.live("n3") == "m1"


def test_a_cut_counts_when_it_is_on_disk():
    company = Company({"a": "n1 n2 n3"})
    company.slow_disk("n2")
    company.define("a", "n1 n2 n3")
    assert (company.has_cut("n1"), company.has_cut("n2")) == (True, False)
    company.sync("n2")
    assert company.has_cut("n2")


def test_a_member_that_is_behind_contributes_nothing_and_holds_nobody_up():
    """n3 does not know how view 1 ended, and view 2 ends already."""
    company = Company({"a": "n1 n2 n3"})
    company.hold("n1", "n3")
    company.hold("n2", "n3")
    company.cast("n1", "a", "m1")
    company.define("a", "n1 n2 n3")
    company.complete("a")
    company.cast("n1", "a", "m2")
    company.define("a", "n1 n2 n3")
    assert company.has_cut("n1")
    company.complete("a")
    company.held.clear()
    company.run()
    for _ in range(3):
        company.wait()
    assert company.era("n3").view == 3
    assert company.log("n3") == company.log("n1") == "m1 m2"
