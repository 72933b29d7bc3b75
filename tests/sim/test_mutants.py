"""The checkers can fail: every mutant is caught, and every schedule is harmless to the real code."""

from dataclasses import replace

import pytest

from ordercast.sim.campaign import run_one
from ordercast.sim.hunt import catch
from ordercast.sim.scalatom.stage import verdict
from ordercast.sim.scalatom.trial import TRIAL

#: They take a schedule of many changes, or many seeds.
SLOW = {"asked-before-it-is-sealed", "F-not-carried-over"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(mutant.name, marks=[pytest.mark.long] if mutant.name in SLOW else [])
        for mutant in TRIAL.mutants
    ],
)
def test_the_mutant_is_caught(name: str) -> None:
    caught = catch(name, "scalatom")
    assert caught.caught, f"{name} went unnoticed"
    assert caught.property


@pytest.mark.parametrize("name", TRIAL.schedules)
@pytest.mark.parametrize("stamps_wait_s", [0.0, 0.01])
def test_the_schedule_that_catches_a_mutant_is_harmless_to_the_real_code(name: str, stamps_wait_s: float) -> None:
    schedule = TRIAL.schedules[name]()
    schedule.settings = replace(schedule.settings, stamps_wait_s=stamps_wait_s)
    violation, _ = verdict(schedule)
    assert violation is None


def test_each_schedule_is_for_a_mutant_and_each_mutant_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in TRIAL.mutants]
    assert len(dict.fromkeys(names)) == len(names)
    assert [name for name in TRIAL.schedules if name not in names] == []


def test_a_mutant_leaves_no_trace_behind() -> None:
    before = run_one(3, protocol="scalatom").digest
    with TRIAL.mutants[0].applied():
        pass
    assert run_one(3, protocol="scalatom").digest == before


def test_a_violation_says_how_to_see_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    from ordercast.cli.sim import explain

    with next(m for m in TRIAL.mutants if m.name == "delivery-before-a-predecessor-is-decided").applied(
        TRIAL.assertions
    ):
        result = run_one(1, protocol="scalatom")
    explain(result, "scalatom")
    printed = capsys.readouterr().err
    assert "seed 1" in printed
    assert "--seed 1 --trace" in printed
