"""What the harness itself promises: it asks nothing impossible of a cluster, and it says what it found."""

import pytest

from ordercast.sim.checkers.violation import Violation
from ordercast.sim.scalatom.stage import Stage


def a_and_spare() -> Stage:
    return Stage({"a": ("n1", "n2", "n3")}, acceptors=None, spare=("n4",))


def test_a_change_that_the_gone_leave_without_a_majority_is_never_begun() -> None:
    story = a_and_spare()
    story.crash("n3")
    story.cluster.gone["n3"] = None
    story.prepare("a", ("n2", "n3"))
    assert story.cluster.membership.groups["a"].configuration == 1
    assert not story.cluster.reconfiguration.next
    story.finish("n3")


def test_a_change_is_cancelled_when_the_gone_leave_it_without_a_majority() -> None:
    story = a_and_spare()
    story.prepare("a", ("n3", "n4"))
    assert "a" in story.cluster.reconfiguration.next
    story.crash("n3")
    story.cluster.gone["n3"] = None
    story.look()
    assert story.cluster.membership.changes["change_cancelled"] == 1
    story.finish("n3")


def test_a_run_whose_time_is_used_up_says_what_it_waits_for() -> None:
    story = a_and_spare()
    story.change("a", ("n1", "n2"))
    story.crash("n2")
    with pytest.raises(Violation, match="a change of a is not over"):
        story.finish("n2")
