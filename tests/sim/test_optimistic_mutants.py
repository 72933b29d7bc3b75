"""The checkers of the optimistic protocol can fail: mutants are caught, and schedules are harmless."""

import pytest

from ordercast.sim.hunt import catch
from ordercast.sim.optimistic.mutants import CATALOGUE
from ordercast.sim.optimistic.schedules import SCHEDULES
from ordercast.sim.optimistic.stage import verdict

#: Those that the first runs catch, in a second or so.
QUICK = ("not_raised", "E6", "E7", "window", "self", "believed", "gap", "open_key")


@pytest.mark.parametrize(
    "name",
    [
        mutant.name if mutant.name in QUICK else pytest.param(mutant.name, marks=pytest.mark.long)
        for mutant in CATALOGUE
    ],
)
def test_the_mutant_is_caught(name: str) -> None:
    assert catch(name, "optimistic", range(1, 41)).caught, f"{name} went unnoticed"


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_schedule_that_catches_a_mutant_is_harmless_to_the_real_code(name: str) -> None:
    violation, _ = verdict(SCHEDULES[name]())
    assert violation is None


def test_each_schedule_is_for_a_mutant_and_each_mutant_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in CATALOGUE]
    assert len(dict.fromkeys(names)) == len(names)
    assert [name for name in SCHEDULES if name not in names] == []
