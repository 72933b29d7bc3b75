"""Run every mutant until something notices: first its scripted schedule, if it has one, else random seeds."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from ordercast.sim.mutants.catalogue import CATALOGUE as FIXED
from ordercast.sim.mutants.configuration_schedules import CONFIGURATION_SCHEDULES
from ordercast.sim.mutants.configurations import RECONFIGURING
from ordercast.sim.mutants.schedules import SCHEDULES as FIXED_SCHEDULES
from ordercast.sim.run import run_seed
from ordercast.sim.stage import verdict

CATALOGUE = [*FIXED, *RECONFIGURING]
SCHEDULES = FIXED_SCHEDULES | CONFIGURATION_SCHEDULES

#: A mutant that random runs catch more rarely than this has a schedule of its own.
SEEDS_MAX = 200


@dataclass(slots=True)
class Catch:
    mutant: str
    caught: bool
    #: The seed of the run that caught it, or the name of the schedule.
    seed: int | str | None
    property: str | None


def catch(name: str, seeds: range = range(1, SEEDS_MAX + 1)) -> Catch:
    mutant = next(mutant for mutant in CATALOGUE if mutant.name == name)
    schedule = SCHEDULES.get(name)
    with mutant.applied():
        if schedule is not None:
            violation, _ = verdict(schedule())
            found = violation.property if violation is not None else None
            return Catch(name, violation is not None, schedule.__name__, found)
        for seed in seeds:
            result = run_seed(seed, reconfigure=mutant.reconfigures)
            if result.violation is not None:
                return Catch(name, True, seed, result.violation.property)
    return Catch(name, False, None, None)


def catch_all(only: str | None, jobs: int, progress: Callable[[int, int, Catch], None]) -> list[Catch]:
    names = [mutant.name for mutant in CATALOGUE if only in (None, mutant.name)]
    catches: dict[str, Catch] = {}
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(catch, name) for name in names]
        for future in as_completed(futures):
            caught = future.result()
            catches[caught.mutant] = caught
            progress(len(catches), len(names), caught)
    return [catches[name] for name in names]
