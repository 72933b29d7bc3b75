"""Many seeds, on several cores."""

import gc
import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from ordercast.sim.trial import RunResult, run_seed
from ordercast.sim.trials import trial_of


@dataclass(slots=True)
class Campaign:
    runs: int = 0
    delivered: int = 0
    messages: int = 0
    #: Processor seconds, over all jobs.
    cpu_s: float = 0.0
    violations: list[RunResult] = field(default_factory=list)
    strikes: dict[str, int] = field(default_factory=dict)
    _digests: dict[int, str] = field(default_factory=dict)

    def add(self, result: RunResult, cpu_s: float) -> None:
        self.runs += 1
        self.delivered += result.delivered
        self.messages += result.messages
        self.cpu_s += cpu_s
        self._digests[result.seed] = result.digest
        if result.violation is not None:
            self.violations.append(result)
        for kind, count in result.strikes.items():
            self.strikes[kind] = self.strikes.get(kind, 0) + count

    @property
    def messages_per_second(self) -> float:
        """Simulated protocol messages per second and core."""
        return self.messages / self.cpu_s if self.cpu_s else 0.0

    @property
    def digest(self) -> str:
        """Of all runs: the same for the same seeds, in any order, on any number of cores."""
        if len(self._digests) == 1:
            return next(iter(self._digests.values()))
        together = "".join(f"{seed}:{digest} " for seed, digest in sorted(self._digests.items()))
        return hashlib.blake2b(together.encode(), digest_size=16).hexdigest()


def run_one(seed: int, *, protocol: str, reconfigure: bool = False, tracing: bool = False) -> RunResult:
    return run_seed(trial_of(protocol), seed, reconfigure=reconfigure, tracing=tracing)


def timed_run(seed: int, *, protocol: str, reconfigure: bool = False) -> tuple[RunResult, float]:
    # A run is short and makes no cycles worth collecting before it ends.
    gc.disable()
    start = time.process_time()
    result = run_one(seed, protocol=protocol, reconfigure=reconfigure)
    cpu_s = time.process_time() - start
    gc.enable()
    return result, cpu_s


def run_many(
    seeds: range,
    jobs: int,
    progress: Callable[[Campaign], None] | None = None,
    *,
    protocol: str,
    reconfigure: bool = False,
) -> Campaign:
    campaign = Campaign()
    run = partial(timed_run, protocol=protocol, reconfigure=reconfigure)
    for result, cpu_s in _results(seeds, jobs, run):
        campaign.add(result, cpu_s)
        if progress is not None:
            progress(campaign)
    return campaign


def _results(
    seeds: range, jobs: int, run: Callable[[int], tuple[RunResult, float]]
) -> Iterator[tuple[RunResult, float]]:
    if jobs <= 1 or len(seeds) == 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, seeds, chunksize=4)
