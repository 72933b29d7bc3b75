"""What ISIS checks of itself: each invariant holds in a view with casts, and fails when just that is not so."""

from collections.abc import Callable
from typing import Any

import pytest

from ordercast.core.errors import InvariantBroken
from ordercast.core.machine import ChecksItself, TimerFired
from ordercast.protocols.isis.era import Era
from ordercast.protocols.isis.replica import Replica
from ordercast.sim.isis.stage import Stage

MEMBERS = ("n1", "n2", "n3")


@pytest.fixture
def stage() -> Stage:
    """n1 has delivered a few casts that are not everywhere, and some that are and are dropped."""
    stage = Stage({"a": MEMBERS})
    stage.publish("c1", "a", through="n1")
    stage.publish("c2", "a", through="n2")
    stage.run(1.0)
    stage.hold_disk("n3")
    stage.publish("c3", "a", through="n1")
    stage.run(1.0)
    return stage


def parts_of(stage: Stage) -> tuple[Replica, Era]:
    replica = stage.machine("n1").replicas["a"]
    assert replica.installed is not None
    return replica, replica.installed


def test_they_hold_where_there_is_something_to_check(stage: Stage):
    machine = stage.machine("n1")
    assert isinstance(machine, ChecksItself)
    machine.check_invariants()
    _, era = parts_of(stage)
    assert era.settled > era.start
    assert era.casts
    assert era.places
    assert era.sent
    assert any(era.rows[era.me].counts)


def another_era(replica: Replica, era: Era) -> None:
    replica.eras.append(Era("a", era.view, era.members, era.incarnations, era.me, era.start))


def the_same_view_again(replica: Replica, era: Era) -> None:
    era.is_closed = True
    another_era(replica, era)


def a_holder_that_orders_nothing(replica: Replica, era: Era) -> None:
    era.token.holder, era.token.is_taken = era.me, True
    era.unplaced[(era.me, era.sent)] = None


BREAKS: dict[str, Callable[[Replica, Era], Any]] = {
    "only 1 is complete": lambda replica, era: setattr(replica, "view", replica.view + 1),
    "is delivered behind": the_same_view_again,
    "a later one has begun": another_era,
    "delivered, and": lambda replica, era: era.delivered.__setitem__(1, era.received[1] + 1),
    "are dropped": lambda replica, era: era.settled_counts.__setitem__(0, era.delivered[0] + 1),
    "the order known up to": lambda replica, era: setattr(era, "passed", era.ordered + 1),
    "two casts have one place": lambda replica, era: era.place_of.__setitem__((0, 99), era.ordered - 1),
    "casts are kept": lambda replica, era: era.casts.popitem(),
    "were cast here": lambda replica, era: setattr(era, "sent", era.sent + 1),
    "did not come": lambda replica, era: setattr(era.rows[era.me], "positions", era.ordered + 1),
    "somebody has": lambda replica, era: setattr(era.rows[2], "positions", era.settled - 1),
    "the log ends at": lambda replica, era: setattr(replica, "position", era.ordered + 1),
    "has given no place": a_holder_that_orders_nothing,
}


@pytest.mark.parametrize("what", BREAKS)
def test_whatever_is_broken_is_noticed(stage: Stage, what: str):
    BREAKS[what](*parts_of(stage))
    with pytest.raises(InvariantBroken, match=what):
        stage.machine("n1").check_invariants()


def test_the_simulator_looks_after_every_step(stage: Stage):
    process = stage.world.processes["n1"]
    _, era = parts_of(stage)
    era.casts.popitem()
    with pytest.raises(InvariantBroken, match="casts are kept"):
        process.tell("isis", TimerFired(*process.clock(), "stability", 0))
