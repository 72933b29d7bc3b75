"""Answers to one part of a message to several groups come behind all of it, whoever speaks, whenever it came."""

import pytest

from ordercast.protocols.isis.settings import Causality, Settings
from ordercast.sim.isis.stage import Stage


def log_of(stage: Stage, group: str) -> list[tuple[str, ...]]:
    """Where each message of it was sent to."""
    logs = stage.cluster.logs
    return [key[1] for key in logs.groups[group].messages]


@pytest.mark.parametrize("causality", list(Causality))
def test_an_answer_to_one_part_follows_the_other_part_too(causality: Causality):
    stage = Stage({"a": ("n1", "n2", "n3"), "b": ("n2", "n4", "n5")}, settings=Settings(causality=causality))
    stage.hold("n1", "n4")  # which is to cast the part in b
    stage.publish("c1", "a", "b", through="n1")
    stage.run(0.02)
    stage.sees("c2", "a", at="n3")
    stage.publish("c2", "b", through="n5")
    stage.run(0.02)
    stage.finish()
    assert log_of(stage, "b") == [("a", "b"), ("b",)]


@pytest.mark.parametrize("causality", list(Causality))
def test_what_a_newcomer_says_elsewhere_follows_parts_that_precede_what_it_heard(causality: Causality):
    stage = Stage({"a": ("n1", "n2", "n3"), "b": ("n4", "n5", "n6")}, settings=Settings(causality=causality))
    for name in ("n1", "n2", "n3"):
        stage.hold(name, "n4", "n5")
    stage.publish("c1", "a", "b", through="n1")
    stage.run(0.02)
    stage.place("a", "n1", "n2", "n3", "n6")
    stage.tell("n1", "n2", "n3", "n6")
    stage.run(0.02)
    stage.believe_in("n1", "n2", "n3", "n4", "n5", "n6")
    stage.tell("n1", "n2", "n3", "n6")
    stage.run(0.04)
    stage.look()
    stage.run(0.02)
    stage.tell("n1", "n2", "n3", "n4", "n5", "n6", "c2", "c3")
    stage.run(0.04)
    stage.publish("c2", "a", through="n1")  # It follows the part in a, and n1 need not wait for the other.
    stage.run(0.02)
    stage.publish("c3", "b", through="n6")
    stage.run(0.02)
    stage.finish()
    assert log_of(stage, "b") == [("a", "b"), ("b",)]
