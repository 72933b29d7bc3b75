"""A trial: one system on an empty disk, one pattern, and rows with more and more messages in flight."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ordercast.bench import own, turns
from ordercast.bench.client import in_process_of_its_own, measure
from ordercast.bench.plan import Pattern, Plan, pattern_named
from ordercast.bench.rows import Replay, Row
from ordercast.bench.servers import Servers
from ordercast.bench.systems import SYSTEMS
from ordercast.local.usage import rss_anon_mb

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Trial:
    system: str
    pattern: str
    depths: tuple[int, ...]
    #: Whether a subscriber reads everything in the end; only our own system has one.
    is_replayed: bool = False
    #: Another protocol of ours, with which it takes turns in one cluster.
    beside: str = ""


@dataclass(slots=True)
class Outcome:
    rows: list[Row] = field(default_factory=list)
    replays: list[Replay] = field(default_factory=list)


def run(trial: Trial, plan: Plan, say: Say) -> Outcome:
    outcome = Outcome()
    pattern = pattern_named(trial.pattern, plan)
    if trial.beside:
        say(f"{trial.system} {trial.pattern}, in turns with {trial.beside}")
        with empty_directory(trial.system) as directory:
            return Outcome(turns.run(directory, plan, pattern, trial.beside))
    with (
        empty_directory(trial.system) as directory,
        SYSTEMS[trial.system].running(directory, plan, pattern) as servers,
    ):
        for depth in trial.depths:
            say(f"{trial.system} {trial.pattern}, {depth:,} in flight")
            outcome.rows.append(in_process_of_its_own(measure, trial.system, servers, plan, pattern, depth))
        if trial.is_replayed:
            outcome.replays.append(in_process_of_its_own(replay, servers, pattern, trial.depths[-1]))
    return outcome


def replay(servers: Servers, pattern: Pattern, in_flight: int) -> Replay:
    """One subscriber reads the first group from the beginning."""
    count, elapsed_s = asyncio.run(own.read_all(servers, pattern.groups[0]))
    memory = [round(rss_anon_mb(pid), 1) for pid in servers.pids]
    return Replay(pattern.name, in_flight, count, round(count / elapsed_s, 1), memory)


@contextmanager
def empty_directory(system: str) -> Iterator[Path]:
    """For the data of all systems alike, on the disk of the working directory."""
    with tempfile.TemporaryDirectory(prefix=f"ordercast-bench-{system}-", dir=Path.cwd()) as directory:
        yield Path(directory)
