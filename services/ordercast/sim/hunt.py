"""Run every mutant of a protocol until something notices: its schedule, if it has one, or else random seeds."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from ordercast.sim.trial import run_seed
from ordercast.sim.trials import trial_of

#: A mutant that random runs catch more rarely than this has a schedule of its own.
SEEDS_MAX = 200


@dataclass(slots=True)
class Catch:
    mutant: str
    caught: bool
    #: The seed of the run that caught it, or the name of the schedule.
    seed: int | str | None
    property: str | None


def catch(name: str, protocol: str, seeds: range = range(1, SEEDS_MAX + 1)) -> Catch:
    """All seeds if need be, the mutant's own first."""
    trial = trial_of(protocol)
    mutant, schedule = trial.mutant(name), trial.schedules.get(name)
    with mutant.applied(trial.assertions):
        if schedule is not None:
            violation = trial.play(schedule())
            found = violation.property if violation is not None else None
            return Catch(name, violation is not None, schedule.__name__, found)
        begin = seeds.index(mutant.seed) if mutant.seed in seeds else 0
        for seed in (*seeds[begin:], *seeds[:begin]):
            violation = run_seed(trial, seed, reconfigure=mutant.reconfigures).violation
            if violation is not None:
                return Catch(name, True, seed, violation.property)
    return Catch(name, False, None, None)


def catch_all(
    only: str | None, jobs: int, progress: Callable[[int, int, Catch], None], protocol: str
) -> list[Catch]:
    names = [mutant.name for mutant in trial_of(protocol).mutants if only in (None, mutant.name)]
    catches: dict[str, Catch] = {}
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(catch, name, protocol) for name in names]
        for future in as_completed(futures):
            caught = future.result()
            catches[caught.mutant] = caught
            progress(len(catches), len(names), caught)
    return [catches[name] for name in names]
