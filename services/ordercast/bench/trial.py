"""A trial: one system on an empty disk, one pattern, and rows with more and more messages in flight."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ordercast.bench import turns
from ordercast.bench.client import in_process_of_its_own, measure
from ordercast.bench.plan import BenchPlan, pattern_named
from ordercast.bench.rows import BenchRow
from ordercast.bench.systems import SYSTEMS

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BenchTrial:
    system: str
    pattern: str
    depths: tuple[int, ...]
    #: Another protocol of ours, with which it takes turns in one cluster.
    beside: str = ""


def run(trial: BenchTrial, plan: BenchPlan, say: Say) -> list[BenchRow]:
    pattern = pattern_named(trial.pattern, plan)
    if trial.beside:
        say(f"{trial.system} {trial.pattern}, in turns with {trial.beside}")
        with empty_directory(trial.system) as directory:
            return turns.run(directory, plan, pattern, trial.beside)
    rows = []
    with (
        empty_directory(trial.system) as directory,
        SYSTEMS[trial.system].running(directory, plan, pattern) as servers,
    ):
        for depth in trial.depths:
            say(f"{trial.system} {trial.pattern}, {depth:,} in flight")
            rows.append(in_process_of_its_own(measure, trial.system, servers, plan, pattern, depth))
    return rows


@contextmanager
def empty_directory(system: str) -> Iterator[Path]:
    """For the data of all systems alike, on the disk of the working directory."""
    with tempfile.TemporaryDirectory(prefix=f"ordercast-bench-{system}-", dir=Path.cwd()) as directory:
        yield Path(directory)
