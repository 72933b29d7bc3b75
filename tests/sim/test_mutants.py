"""The checkers can fail: every mutant is caught, and every schedule is harmless to the real code."""

from dataclasses import replace

import pytest

from ordercast.sim.mutants.catching import CATALOGUE, SCHEDULES, catch
from ordercast.sim.run import run_seed
from ordercast.sim.stage import verdict

#: They take a schedule of many changes, or many seeds.
SLOW = {"asked-before-it-is-sealed", "F-not-carried-over"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(mutant.name, marks=[pytest.mark.long] if mutant.name in SLOW else []) for mutant in CATALOGUE],
)
def test_the_mutant_is_caught(name: str) -> None:
    caught = catch(name)
    assert caught.caught, f"{name} went unnoticed"
    assert caught.property


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("stamps_wait_s", [0.0, 0.01])
def test_the_schedule_that_catches_a_mutant_is_harmless_to_the_real_code(name: str, stamps_wait_s: float) -> None:
    schedule = SCHEDULES[name]()
    schedule.settings = replace(schedule.settings, stamps_wait_s=stamps_wait_s)
    violation, _ = verdict(schedule)
    assert violation is None


def test_each_schedule_is_for_a_mutant_and_each_mutant_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in CATALOGUE]
    assert len(dict.fromkeys(names)) == len(names)
    assert [name for name in SCHEDULES if name not in names] == []


def test_a_mutant_leaves_no_trace_behind() -> None:
    before = run_seed(3).digest
    with CATALOGUE[0].applied():
        pass
    assert run_seed(3).digest == before


def test_a_violation_says_how_to_see_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    from ordercast.cli.sim import explain

    with next(m for m in CATALOGUE if m.name == "delivery-before-a-predecessor-is-decided").applied():
        result = run_seed(1)
    explain(result)
    printed = capsys.readouterr().err
    assert "seed 1" in printed
    assert "--seed 1 --trace" in printed
