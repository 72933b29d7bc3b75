"""What attacks and campaigns have found in ISIS: each as the schedule that shows it, or as the run that did."""

from dataclasses import replace
from typing import ClassVar

import pytest

from ordercast.protocols.isis import receiving
from ordercast.sim.campaign import run_one
from ordercast.sim.isis.membership import ViewMembership
from ordercast.sim.isis.stage import Schedule, Stage, verdict
from ordercast.sim.isis.trial import TRIAL
from ordercast.sim.trial import run_scenario
from tests.sim.isis_as_found import ClusterAsFound, draw_as_found


class CopiedBeforeTheCut(Schedule):
    """A member becomes a learner through a view that is never completed, and copies part of the log. Then it is in
    the next view, and gets the cut without its casts: they are in its log, and were never delivered here.
    """

    mutant = ""
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n2")
        stage.publish("c1", "a", through="n1")
        stage.run(0.02)
        stage.believe_in("n1", "n3")
        stage.tell("n2")
        stage.run(0.5)
        stage.believe_in("n1", "n2", "n3")
        stage.tell("n1", "n2", "n3")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n1", "n2", "n3")
        stage.run(0.5)
        stage.tell("c2")
        stage.publish("c2", "a", through="n3")
        stage.run(0.02)
        stage.finish()


@pytest.mark.parametrize("schedule", [CopiedBeforeTheCut])
def test_the_schedule_is_survived(schedule):
    assert verdict(schedule())[0] is None


#: Runs that showed: a token taken over too early after a new connection, an order made after contributing, epochs
#: promised ahead of casts that a new connection brought later, gateways that saw one part of a message, what was
#: said behind casts that were lost with a view, or overtook them, parts that waited behind what waited for them, a
#: receipt whose other part settled what was open, a member that waited to be told what it had said itself.
FOUND_BY = [61, 70, 73, 92, 141, 158, 194, 264, 294, 569]
FOUND_BY += [815, 908, 918, 990, 1056, 1114, 1153, 1312, 1380, 1843, 2169, 2262, 3892]


@pytest.fixture
def nobody_is_lost(monkeypatch):
    """As in the runs that found these: a process that dies for good would make others of them."""
    monkeypatch.setattr(ViewMembership, "can_spare", lambda self, process: False)


@pytest.mark.parametrize("seed", FOUND_BY)
def test_the_run_is_clean(seed, nobody_is_lost):
    as_found = replace(TRIAL, cluster=ClusterAsFound)
    assert run_scenario(as_found, draw_as_found(seed), seed).violation is None


@pytest.mark.parametrize("seed", range(1, 7))
def test_what_did_not_fit_while_a_process_was_behind_is_asked_for_again(seed, monkeypatch):
    """It was dropped, and with it all that came behind it on the same connection, and nobody asked."""
    monkeypatch.setattr(receiving, "AHEAD_MAX", 1)
    monkeypatch.setattr(receiving, "EARLY_MAX", 1)
    assert run_one(seed, protocol="isis").violation is None
