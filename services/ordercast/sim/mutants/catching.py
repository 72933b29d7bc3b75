"""Run every mutant of a protocol until something notices: its schedule, if it has one, or else random seeds."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from ordercast.sim.checkers.violation import Violation
from ordercast.sim.isis.mutants import catalogue as isis
from ordercast.sim.isis.run import run_seed as run_isis
from ordercast.sim.isis.stage import verdict as isis_verdict
from ordercast.sim.mutants.catalogue import CATALOGUE as FIXED
from ordercast.sim.mutants.configuration_schedules import CONFIGURATION_SCHEDULES
from ordercast.sim.mutants.configurations import RECONFIGURING
from ordercast.sim.mutants.mutant import Mutant
from ordercast.sim.mutants.restart_schedules import RESTART_SCHEDULES
from ordercast.sim.mutants.restarts import RESTARTING
from ordercast.sim.mutants.schedules import SCHEDULES as FIXED_SCHEDULES
from ordercast.sim.run import run_seed
from ordercast.sim.stage import verdict

CATALOGUE = [*FIXED, *RESTARTING, *RECONFIGURING]
SCHEDULES = FIXED_SCHEDULES | RESTART_SCHEDULES | CONFIGURATION_SCHEDULES

#: A mutant that random runs catch more rarely than this has a schedule of its own.
SEEDS_MAX = 200


@dataclass(frozen=True, slots=True)
class Hunt:
    """The mutants of a protocol, and how they are looked for."""

    mutants: Sequence[Mutant]
    #: By mutant.
    schedules: Mapping[str, type[Any]]
    play: Callable[[Any], Violation | None]
    run: Callable[[int, Mutant], Violation | None]

    def mutant(self, name: str) -> Mutant:
        return next(mutant for mutant in self.mutants if mutant.name == name)


HUNTS = {
    "scalatom": Hunt(
        CATALOGUE,
        SCHEDULES,
        lambda schedule: verdict(schedule)[0],
        lambda seed, mutant: run_seed(seed, reconfigure=mutant.reconfigures).violation,
    ),
    "isis": Hunt(
        isis.CATALOGUE,
        isis.SCHEDULES,
        lambda schedule: isis_verdict(schedule)[0],
        lambda seed, mutant: run_isis(seed).violation,
    ),
}


@dataclass(slots=True)
class Catch:
    mutant: str
    caught: bool
    #: The seed of the run that caught it, or the name of the schedule.
    seed: int | str | None
    property: str | None


def catch(name: str, protocol: str = "scalatom", seeds: range = range(1, SEEDS_MAX + 1)) -> Catch:
    hunt = HUNTS[protocol]
    mutant, schedule = hunt.mutant(name), hunt.schedules.get(name)
    with mutant.applied():
        if schedule is not None:
            violation = hunt.play(schedule())
            found = violation.property if violation is not None else None
            return Catch(name, violation is not None, schedule.__name__, found)
        for seed in seeds:
            violation = hunt.run(seed, mutant)
            if violation is not None:
                return Catch(name, True, seed, violation.property)
    return Catch(name, False, None, None)


def catch_all(
    only: str | None, jobs: int, progress: Callable[[int, int, Catch], None], protocol: str = "scalatom"
) -> list[Catch]:
    names = [mutant.name for mutant in HUNTS[protocol].mutants if only in (None, mutant.name)]
    catches: dict[str, Catch] = {}
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(catch, name, protocol) for name in names]
        for future in as_completed(futures):
            caught = future.result()
            catches[caught.mutant] = caught
            progress(len(catches), len(names), caught)
    return [catches[name] for name in names]
