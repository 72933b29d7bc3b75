"""What a run of the bench shall do, and in which order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ordercast.bench.plan import DEFAULT, ONE, Plan, pattern_named
from ordercast.bench.systems import OWN, PEERS
from ordercast.bench.trial import Trial


@dataclass(frozen=True, slots=True)
class Agenda:
    plan: Plan
    patterns: tuple[str, ...]
    depths: tuple[int, ...]
    peers: tuple[str, ...] = ()
    repetitions: int = 1

    def trials(self) -> list[Trial]:
        """Those of one repetition.

        Beside peers, each system has one cluster for all depths, as peers have; alone, each row has a cluster.
        """
        found: list[Trial] = []
        for pattern in self.patterns:
            depths = pattern_named(pattern, self.plan).depths(self.depths)
            if self.peers:
                peers = [peer for peer in self.peers if pattern in PEERS[peer].patterns]
                found += [Trial(system, pattern, depths) for system in (OWN, *peers)]
            else:
                found += [Trial(OWN, pattern, (depth,)) for depth in depths]
        if self.plan.protocol != DEFAULT:
            found.append(Trial(OWN, ONE, (1,), beside=DEFAULT))
        return found

    def interleaved(self) -> Iterator[tuple[int, Trial]]:
        """All repetitions of all trials: a change in the machine's mood meets every system."""
        trials = self.trials()
        for repetition in range(self.repetitions):
            for trial in rotated(trials, repetition):
                yield repetition, trial


def rotated(trials: Sequence[Trial], by: int) -> list[Trial]:
    """Nobody comes first every time."""
    first = by % len(trials)
    return [*trials[first:], *trials[:first]]
