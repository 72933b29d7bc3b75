"""What a run of the bench shall do, and in which order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ordercast.bench.plan import DEFAULT, GROUPS_PREFIX, ONE, SAME, Plan
from ordercast.bench.systems import OWN
from ordercast.bench.trial import Trial

#: Messages in flight, over all groups, where one group is compared with many.
MANY_GROUPS_IN_FLIGHT = 1024


@dataclass(frozen=True, slots=True)
class Agenda:
    plan: Plan
    patterns: tuple[str, ...]
    depths: tuple[int, ...]
    peers: tuple[str, ...] = ()
    repetitions: int = 1
    #: 0: not compared.
    many_groups: int = 0
    #: 0: no long log.
    replay_messages: int = 0
    is_profiled: bool = False
    has_stages: bool = False
    has_overload: bool = False
    has_telemetry: bool = False

    def trials(self) -> list[Trial]:
        """Those of one repetition.

        Beside peers, each system has one cluster for all depths, as peers have; alone, each row has a cluster.
        """
        if self.peers:
            found = [Trial(OWN, pattern, self.depths, is_replayed=True) for pattern in self.patterns]
            found += [Trial(peer, SAME, self.depths) for peer in self.peers]
        else:
            found = [
                Trial(OWN, pattern, (depth,), is_replayed=True)
                for pattern in self.patterns
                for depth in self.depths
            ]
        if self.plan.protocol != DEFAULT:
            found.append(Trial(OWN, ONE, (1,), beside=DEFAULT))
        counts = (1, self.many_groups) if self.many_groups else ()
        return found + [Trial(OWN, f"{GROUPS_PREFIX}{count}", (MANY_GROUPS_IN_FLIGHT,)) for count in counts]

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
