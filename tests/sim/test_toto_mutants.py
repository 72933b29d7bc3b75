"""The checkers of ToTo can fail: every mutant is caught, and every schedule is harmless to the real code."""

import pytest

from ordercast.sim.campaign import run_one
from ordercast.sim.hunt import catch
from ordercast.sim.toto.mutants.catalogue import CATALOGUE, SCHEDULES
from ordercast.sim.toto.mutants.schedules import SCHEDULES as CLUSTER_SCHEDULES
from ordercast.sim.toto.trial import play

#: Of those without a schedule, the ones that a run or two catch are tried always.
QUICK = ("follows-before-the-sync", "never-an-empty-message", "empty-messages-without-end", "nothing-said-again")


@pytest.mark.parametrize(
    "name",
    [
        mutant.name
        if mutant.name in SCHEDULES or mutant.name in QUICK
        else pytest.param(mutant.name, marks=pytest.mark.long)
        for mutant in CATALOGUE
    ],
)
def test_the_mutant_is_caught(name: str) -> None:
    assert catch(name, "toto").caught, f"{name} went unnoticed"


@pytest.mark.parametrize("name", [*CLUSTER_SCHEDULES, next(iter(SCHEDULES))])
def test_the_schedule_that_catches_a_mutant_is_harmless_to_the_real_code(name: str) -> None:
    assert play(SCHEDULES[name]()) is None


def test_each_schedule_is_for_a_mutant_and_each_mutant_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in CATALOGUE]
    assert len(dict.fromkeys(names)) == len(names)
    assert [name for name in SCHEDULES if name not in names] == []


def test_a_mutant_leaves_no_trace_behind() -> None:
    before = run_one(3, protocol="toto").digest
    for mutant in CATALOGUE:
        with mutant.applied():
            pass
    assert run_one(3, protocol="toto").digest == before
