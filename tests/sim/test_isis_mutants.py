"""The checkers of ISIS can fail: every mutant is caught, and every schedule is harmless to the real code."""

from dataclasses import replace

import pytest

from ordercast.protocols.isis.settings import Causality, FlushKind
from ordercast.sim.campaign import run_one
from ordercast.sim.hunt import catch
from ordercast.sim.isis.mutants.catalogue import CATALOGUE, SCHEDULES
from ordercast.sim.isis.stage import verdict


@pytest.mark.parametrize("name", [mutant.name for mutant in CATALOGUE])
def test_the_mutant_is_caught(name: str) -> None:
    caught = catch(name, "isis")
    assert caught.caught, f"{name} went unnoticed"
    assert caught.property != "invariant", f"{name} stopped a machine before any checker saw it"


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("causality", Causality)
@pytest.mark.parametrize("flush", FlushKind)
def test_the_schedule_that_catches_a_mutant_is_harmless_to_the_real_code(
    name: str, causality: Causality, flush: FlushKind
) -> None:
    schedule = SCHEDULES[name]()
    schedule.settings = replace(schedule.settings, causality=causality, flush=flush)
    violation, _ = verdict(schedule)
    assert violation is None


def test_each_schedule_is_for_a_mutant_and_each_mutant_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in CATALOGUE]
    assert len(dict.fromkeys(names)) == len(names)
    assert [name for name in SCHEDULES if name not in names] == []


def test_a_mutant_leaves_no_trace_behind() -> None:
    before = run_one(2, protocol="isis").digest
    for mutant in CATALOGUE:
        with mutant.applied():
            pass
    assert run_one(2, protocol="isis").digest == before
