"""What protocols in vector time share: casts of a view, messages that come too early, how a view ends."""

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive
from ordercast.protocols.causal import early
from ordercast.protocols.causal.casts import Casts
from ordercast.protocols.causal.early import Early
from ordercast.protocols.causal.flush import Attempt, between, contributors_of, coordinator_of, union
from ordercast.protocols.causal.times import Time


def a_view() -> Casts[str]:
    return Casts("all", 2, ("n1", "n2", "n3"), 0)


def test_a_cast_is_delivered_behind_what_it_comes_after():
    view = a_view()
    view.came((1, 1), "late", {"all": Time(2, {2: 1})})
    assert not view.precedes_is_delivered((1, 1)), "n3's first is missing"
    view.came((2, 1), "first", {})
    assert view.candidates() == [(1, 1), (2, 1)]
    assert view.precedes_is_delivered((2, 1))
    view.delivered[2] = 1
    assert view.precedes_is_delivered((1, 1))
    view.delivered[1] = 1
    assert not view.is_waiting
    view.lose((1, 1))
    assert list(view.casts) == [(2, 1)]


def test_a_cast_that_is_not_its_casters_next_has_not_come():
    with pytest.raises(AssertionError):
        a_view().came((1, 2), "second", {})


def event(number: int) -> Receive:
    return Receive(float(number), 0.0, "n1", 1, None)


def test_what_is_for_a_view_that_nobody_told_us_of_waits_for_it():
    kept = Early()
    for view in (3, 2, 3):
        kept.keep(event(view), ("all", view))
    kept.keep(event(9), ("other", 2))
    assert [e.now for e in kept.take("all", 3)] == [3.0, 3.0]
    assert (kept.kept, kept.places()) == (1, [("other", 2)]), "of an earlier view nothing counts any more"


def test_what_was_too_much_is_known_to_be_dropped():
    kept = Early()
    for _ in range(3):
        kept.keep(event(1), ("all", 3), at_most=2)
    assert (kept.kept, list(kept.dropped)) == (2, [("all", 3)])
    kept.forget(("all", 3))
    assert (kept.kept, kept.places()) == (0, [])


def test_there_is_a_limit_to_what_waits(monkeypatch):
    monkeypatch.setattr(early, "EARLY_TOTAL_MAX", 1)
    kept = Early()
    kept.keep(event(1), ("all", 3))
    with pytest.raises(RemoteProtocolError, match="too much"):
        kept.keep(event(1), ("all", 3))


def test_survivors_with_their_disks_contribute_and_one_that_stays_computes():
    contributors = contributors_of(("n1", "n2", "n3", "n4"), ("n1", "n2", "n3"), ("n2",))
    assert contributors == ("n1", "n3")
    assert coordinator_of(contributors, ("n3", "n5")) == "n3"
    assert coordinator_of(contributors, ()) == "n1", "all of them leave"
    assert coordinator_of((), ("n5",)) == ""


def test_the_cut_is_what_somebody_has():
    assert union([[1, 4, 0], [2, 3, 0]]) == [2, 4, 0]
    assert between([1, 4, 0], [2, 4, 2]) == [(0, 2), (2, 1), (2, 2)]


class Said:
    def __init__(self, *, behind: bool) -> None:
        self.behind = behind


def test_an_attempt_hears_all_contributors_and_counts_those_that_have_something():
    attempt: Attempt[str, Said] = Attempt(3, 2, ("n1", "n2"), ("n1", "n2"), "n1")
    attempt.flushes["n1"] = Said(behind=False)
    assert not attempt.is_heard
    attempt.flushes["n2"] = Said(behind=True)
    assert attempt.is_heard
    assert list(attempt.said()) == ["n1"]
    attempt.add((0, 1), "a", {})
    attempt.add((0, 1), "b", {"all": Time(2, {0: 1})})
    assert (attempt.casts, attempt.times) == ({(0, 1): "a"}, {(0, 1): {}})
