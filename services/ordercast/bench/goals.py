"""What we want to reach, and whether a run did.

Only figures of one run are compared with each other, and only where groups have three replicas on three nodes.
Messages go to two groups, or to sets of several sizes; to one group, where two protocols of ours are compared.
What was not measured is neither reached nor missed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ordercast.bench.plan import (
    CAUSAL,
    CELLS_SIX,
    DEFAULT,
    FIXED_IN_FLIGHT,
    GROUPS_PREFIX,
    ONE,
    RANDOM_SETS,
    SAME,
    BenchPlan,
)
from ordercast.bench.rows import BenchRow, Replay
from ordercast.bench.systems import OWN

NODES, GROUPS, REPLICAS = 3, 2, 3
#: A shorter log says nothing about the speed of a replay, or about memory.
REPLAY_MESSAGES_MIN = 100_000
MEMORY_MESSAGES_MIN = 1_000_000


@dataclass(frozen=True, slots=True)
class Goal:
    goal: str
    target: float | None
    reached: float | None
    #: What was reached, divided by what it is compared with: the peer's figure, or else the target.
    ratio: float | None
    met: bool | None
    is_stretch: bool = False


def judge(rows: Sequence[BenchRow], plan: BenchPlan) -> list[Goal]:
    figures = Figures(rows, plan)
    return [*_random_sets(figures), *_against_peers(figures), *_many_groups(figures), *_beside_default(rows, plan)]


class Figures:
    """The rows that goals are about; None for what is not there."""

    def __init__(self, rows: Sequence[BenchRow], plan: BenchPlan) -> None:
        is_standard = (plan.nodes, plan.groups, plan.replicas) == (NODES, GROUPS, REPLICAS)
        self._rows = {row.case: row for row in rows} if is_standard else {}

    def get(self, what: str, system: str, in_flight: int, pattern: str = SAME) -> float | None:
        row = self._rows.get((system, pattern, in_flight))
        return None if row is None else getattr(row, what)

    def many_groups(self) -> tuple[float | None, float | None, str]:
        """Messages per second with many groups and with one, and the name of the former."""
        one = f"{GROUPS_PREFIX}1"
        many = next(
            (p for _, p, _ in self._rows if p.startswith(GROUPS_PREFIX) and p != one), f"{GROUPS_PREFIX}64"
        )
        rates = {row.pattern: row.messages_per_second for row in self._rows.values()}
        return rates.get(many), rates.get(one), many


def _random_sets(figures: Figures) -> list[Goal]:
    """What genuine order is for: nobody but a message's own groups has to do with it."""
    rate, cpu = "messages_per_second", "server_cpu_s_per_10k"

    def both(what: str, pattern: str) -> tuple[float | None, float | None]:
        own, etcd = (figures.get(what, system, FIXED_IN_FLIGHT, pattern) for system in (OWN, "etcd"))
        return own, etcd

    found: list[Goal] = []
    for pattern, (producers, _) in RANDOM_SETS.items():
        own, etcd = both(rate, pattern)
        times, further = (2, 4) if producers > 1 else (4, 10)
        found += [
            at_least(f"{pattern}: messages/s, {times} x etcd's", own, times, etcd),
            at_least(f"{pattern}: messages/s, {further} x etcd's", own, further, etcd, is_stretch=True),
        ]
        if producers > 1:
            own_s, etcd_s = both(cpu, pattern)
            found.append(at_most(f"{pattern}: server CPU s/10k, half of etcd's", own_s, 0.5, etcd_s))
    own, etcd = both(rate, CELLS_SIX)
    return [
        *found,
        at_least(f"{CELLS_SIX}: messages/s, not below etcd's", own, 1, etcd),
        at_least(f"{CELLS_SIX}: messages/s, 2 x etcd's", own, 2, etcd, is_stretch=True),
    ]


def _against_peers(figures: Figures) -> list[Goal]:
    rate, p50, p99, cpu = "messages_per_second", "p50_ms", "p99_ms", "server_cpu_s_per_10k"

    def own(what: str, in_flight: int) -> float | None:
        return figures.get(what, OWN, in_flight)

    def etcd(what: str, in_flight: int) -> float | None:
        return figures.get(what, "etcd", in_flight)

    def nats(what: str, in_flight: int) -> float | None:
        return figures.get(what, "nats", in_flight)

    return [
        at_least("1,024 in flight: messages/s, 5 x etcd's", own(rate, 1024), 5, etcd(rate, 1024)),
        at_least("1,024 in flight: messages/s, ahead of NATS", own(rate, 1024), 1, nats(rate, 1024)),
        at_least("1,024 in flight: 100,000 messages/s", own(rate, 1024), 1, 100_000, is_stretch=True),
        at_least("64 in flight: messages/s, 2 x etcd's", own(rate, 64), 2, etcd(rate, 64)),
        at_most("64 in flight: p99 ms, not above etcd's", own(p99, 64), 1, etcd(p99, 64)),
        at_least("64 in flight: messages/s, ahead of NATS", own(rate, 64), 1, nats(rate, 64), is_stretch=True),
        at_most("1 in flight: p50 ms, at most 3 x etcd's", own(p50, 1), 3, etcd(p50, 1)),
        at_most("1 in flight: p50 ms, at most 2 x etcd's", own(p50, 1), 2, etcd(p50, 1), is_stretch=True),
        at_most("1,024 in flight: server CPU s/10k, not above etcd's", own(cpu, 1024), 1, etcd(cpu, 1024)),
    ]


def _many_groups(figures: Figures) -> list[Goal]:
    many, one, name = figures.many_groups()
    return [
        at_least(f"{name}: messages/s, half of {GROUPS_PREFIX}1", many, 0.5, one),
        at_least(f"{name}: messages/s, four fifths of {GROUPS_PREFIX}1", many, 0.8, one, is_stretch=True),
    ]


def of_replays(replays: Sequence[Replay]) -> list[Goal]:
    longest = max(replays, key=lambda replay: replay.messages, default=None)
    speed = longest.messages_per_second if longest and longest.messages >= REPLAY_MESSAGES_MIN else None
    return [
        at_least("replay: 100,000 messages/s", speed, 1, 100_000),
        at_least("replay: 200,000 messages/s", speed, 1, 200_000, is_stretch=True),
        *_memory(longest, replays),
    ]


def _beside_default(rows: Sequence[BenchRow], plan: BenchPlan) -> list[Goal]:
    """A cast needs no agreement about its number: nobody has to wait for anybody's stamp."""
    if not plan.traits.causal or plan.ordering != CAUSAL:
        return []
    is_standard = (plan.nodes, plan.replicas) == (NODES, REPLICAS)
    p50 = {row.system: row.p50_ms for row in rows if row.pattern == ONE and row.in_flight == 1 and is_standard}
    return [
        at_most(
            f"1 in flight, one group: p50 ms of CBCAST, half of {DEFAULT.upper()}'s",
            p50.get(OWN),
            0.5,
            p50.get(DEFAULT),
        )
    ]


def of_telemetry(entries: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """That of what is not kept hardly anybody notices anything."""
    return [
        at_most(
            f"{entry['in_flight']:,} in flight: server CPU, telemetry at {entry['telemetry']}, within 5 % of off",
            entry["ratio"],
            1.05,
            1.0,
        )
        for entry in entries
        if entry["telemetry"] == "1 %"
    ]


def _memory(longest: Replay | None, replays: Sequence[Replay]) -> list[Goal]:
    end = max(longest.rss_anon_mb) if longest and longest.messages >= MEMORY_MESSAGES_MIN else None
    half = next((r for r in replays if longest and r.messages == longest.messages // 2), None)
    middle = max(half.rss_anon_mb) if half else None
    target = None if middle is None else middle * 1.1 + 5
    return [
        at_most("RssAnon MB after 1,000,000 messages, at most 120", end, 1, 120),
        _goal("RssAnon MB after 1,000,000 messages, flat since half of them", end, target, middle, is_upper=True),
    ]


def _times(
    goal: str,
    reached: float | None,
    factor: float,
    reference: float | None,
    *,
    is_upper: bool,
    is_stretch: bool = False,
) -> Goal:
    target = None if reference is None else factor * reference
    return _goal(goal, reached, target, reference, is_upper=is_upper, is_stretch=is_stretch)


at_least = partial(_times, is_upper=False)
at_most = partial(_times, is_upper=True)


def _goal(
    goal: str,
    reached: float | None,
    target: float | None,
    reference: float | None,
    *,
    is_upper: bool,
    is_stretch: bool = False,
) -> Goal:
    if reached is None or target is None or not reference:
        return Goal(goal, target, reached, None, None, is_stretch)
    is_met = reached <= target if is_upper else reached >= target
    return Goal(goal, round(target, 3), reached, round(reached / reference, 3), is_met, is_stretch)
