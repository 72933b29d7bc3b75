"""What attacks and campaigns have found in ISIS: each as the schedule that shows it.

More of it is told with mutants that undo what was mended (sim/isis/mutants/found.py).
"""

from typing import ClassVar

import pytest

from ordercast.protocols.isis import receiving
from ordercast.sim.campaign import run_one
from ordercast.sim.client import ClientSettings, Plan
from ordercast.sim.isis.stage import Schedule, Stage, verdict


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


class ReceiptOfAnotherProducer(Schedule):
    """A client has a receipt from a, which stands for a cast in b, and publishes in b as another producer, through
    a member that lacks that cast. Checkers were told that it had seen the receipt, and its gateway was not.
    """

    mutant = ""
    groups: ClassVar = {"a": ("n2",), "b": ("n1", "n2", "n3")}
    publishers: ClassVar = {
        "cp0": ClientSettings(
            [Plan(0.1, ("a",), 1, unordered=False), Plan(0.2, ("b",), 1, unordered=False)],
            ["n3"],
            passing=True,
        )
    }

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n3")
        stage.publish("c1", "b", through="n1")
        stage.run(0.4)
        stage.finish()


@pytest.mark.parametrize("schedule", [CopiedBeforeTheCut, ReceiptOfAnotherProducer])
def test_the_schedule_is_survived(schedule):
    assert verdict(schedule())[0] is None


@pytest.mark.parametrize("seed", range(1, 7))
def test_what_did_not_fit_while_a_process_was_behind_is_asked_for_again(seed, monkeypatch):
    """It was dropped, and with it all that came behind it on the same connection, and nobody asked."""
    monkeypatch.setattr(receiving, "AHEAD_MAX", 1)
    monkeypatch.setattr(receiving, "EARLY_MAX", 1)
    assert run_one(seed, protocol="isis").violation is None
