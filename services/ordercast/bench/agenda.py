"""What a run of the bench shall do, and in which order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ordercast.bench.plan import DEFAULT, ONE, BenchPlan, pattern_named
from ordercast.bench.systems import OWN, PEERS
from ordercast.bench.trial import BenchTrial


@dataclass(frozen=True, slots=True)
class Agenda:
    plan: BenchPlan
    patterns: tuple[str, ...]
    depths: tuple[int, ...]
    peers: tuple[str, ...] = ()
    repetitions: int = 1

    def trials(self) -> list[BenchTrial]:
        """Those of one repetition.

        Beside peers, each system has one cluster for all depths, as peers have; alone, each row has a cluster.
        """
        found: list[BenchTrial] = []
        for pattern in self.patterns:
            depths = pattern_named(pattern, self.plan).depths(self.depths)
            if self.peers:
                peers = [peer for peer in self.peers if pattern in PEERS[peer].patterns]
                found += [BenchTrial(system, pattern, depths) for system in (OWN, *peers)]
            else:
                found += [BenchTrial(OWN, pattern, (depth,)) for depth in depths]
        if self.plan.protocol != DEFAULT:
            found.append(BenchTrial(OWN, ONE, (1,), beside=DEFAULT))
        return found

    def interleaved(self) -> Iterator[tuple[int, BenchTrial]]:
        """All repetitions of all trials: a change in the machine's mood meets every system."""
        trials = self.trials()
        for repetition in range(self.repetitions):
            for trial in rotated(trials, repetition):
                yield repetition, trial


def rotated(trials: Sequence[BenchTrial], by: int) -> list[BenchTrial]:
    """Nobody comes first every time."""
    first = by % len(trials)
    return [*trials[first:], *trials[:first]]
