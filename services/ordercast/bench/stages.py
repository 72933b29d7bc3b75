"""Where a message's time goes: how long envelopes took, by the stage of their way through a running cluster.

Processes that run with `--stages` log when each envelope reached which stage, and clocks of one machine agree, so
the stages can be put together from all logs. An envelope's total is that of its first message, which waited
longest, as the client saw it; its receipt tells which envelope it was in. All stages of an envelope add up to it.

A stage ends when what follows may leave the process. What has to wait there for another envelope's sync counts to
the stage that it holds up, and what waits in a process for its turn to the next one.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Protocol

from ordercast.bench import cast_stages, own
from ordercast.bench.client import WARM_UP_S, drain, in_process_of_its_own
from ordercast.bench.meter import Meter, percentile_ms
from ordercast.bench.plan import SAME, BenchPlan, Pattern, pattern_named
from ordercast.bench.servers import BenchError, Servers
from ordercast.bench.systems import OWN
from ordercast.bench.trial import Say, empty_directory
from ordercast.core.ids import ID_BYTES
from ordercast.runtime.telemetry.envelope_stages import EVENT, Marks

CLIENT = cast_stages.CLIENT
NUMBER = "number"
TOTAL = "total"
#: Between the moments of `Way.moments`, in their order.
WITHIN = (
    "waiting for an envelope",
    "dissemination",
    "sync of the stamp",
    "stamps to the coordinator",
    NUMBER,
    "predecessors",
    "receipt",
)
STAGES = (CLIENT, *WITHIN)

Entry = dict[str, Any]


class Followed(Protocol):
    """The way of one envelope, from the client and back."""

    @property
    def total_s(self) -> float: ...

    def spent_s(self) -> dict[str, float]:
        """By the stage, in order."""


def measure(plan: BenchPlan, depths: Sequence[int], say: Say) -> list[Entry]:
    return [entry for depth in depths for entry in entries_of(depth, follow(plan, depth, say))]


def follow(plan: BenchPlan, in_flight: int, say: Say) -> list[Followed]:
    """The ways of envelopes through a cluster of their own."""
    pattern = pattern_named(SAME, plan)
    say(f"{OWN} stages, {in_flight:,} in flight")
    with empty_directory(OWN) as directory:
        with own.running_cluster(directory, plan, pattern, ["--stages"]) as cluster:
            totals = in_process_of_its_own(publish, own.servers_of(cluster), plan, pattern, in_flight)
        # Each process logs what it saw when it stops.
        seen = [marks_in(member.log) for member in cluster.members.values()]
    way: Callable[[float, Sequence[Marks]], Followed | None]
    way = cast_stages.way_of if plan.traits.causal else way_of
    ways = [way(total_s, [marks[id_] for marks in seen if id_ in marks]) for id_, total_s in totals.items()]
    return [found for found in ways if found is not None]


# ------------------------------------------------------------------------------------- the client's process


class EnvelopeMeter(Meter):
    """Also knows of each envelope when its first message was published, and how long that took."""

    def __init__(self) -> None:
        super().__init__()
        self.envelopes: dict[bytes, tuple[float, float]] = {}

    def settle(self, begun: float, room: asyncio.Semaphore, soon: "asyncio.Future[Any]") -> None:
        super().settle(begun, room, soon)
        if soon.exception() is None:
            id_ = soon.result().order_key[-ID_BYTES:]
            if id_ not in self.envelopes:
                self.envelopes[id_] = (begun, time.perf_counter() - begun)

    async def all_envelopes(self) -> dict[bytes, tuple[float, float]]:
        return self.envelopes


def publish(servers: Servers, plan: BenchPlan, pattern: Pattern, in_flight: int) -> dict[str, float]:
    """Seconds that each envelope took, without those of the warm-up."""
    return asyncio.run(_publish(servers, plan, pattern, in_flight))


async def _publish(servers: Servers, plan: BenchPlan, pattern: Pattern, in_flight: int) -> dict[str, float]:
    stop = asyncio.Event()
    meter = (
        cast_stages.OffsetMeter(pattern.groups[0], servers.addresses[0]) if plan.traits.causal else EnvelopeMeter()
    )
    producing = asyncio.create_task(own.produce(servers, plan, pattern, in_flight, meter, stop))
    await asyncio.sleep(WARM_UP_S)
    measured_from = time.perf_counter()
    await asyncio.wait([producing], timeout=plan.seconds)
    stop.set()
    await drain(producing, OWN, in_flight)
    envelopes = await meter.all_envelopes()
    return {id_.hex(): total_s for id_, (begun, total_s) in envelopes.items() if begun >= measured_from}


# --------------------------------------------------------------------------------------------- the reckoning


@dataclass(frozen=True, slots=True)
class EnvelopeWay:
    """Of one envelope, from the client and back."""

    total_s: float
    #: Of the monotonic clock: accepted, submitted, received at the replica whose stamp came last, stamped there,
    #: stamps known, decided, delivered in all groups, answered.
    moments: tuple[float, ...]
    #: The stamps left no choice about its number.
    is_implied: bool

    def spent_s(self) -> dict[str, float]:
        # A process notes that it sent something when it has, and itself receives it a moment before that.
        moments = list(accumulate(self.moments, max))
        within = [later - earlier for earlier, later in pairwise(moments)]
        return dict(zip(STAGES, (self.total_s - sum(within), *within), strict=True))


def marks_in(log: Path) -> dict[str, Marks]:
    """By envelope, what a process with --stages logs when it stops."""
    lines = (json.loads(line) for line in log.read_text().splitlines() if EVENT in line)
    return {line["envelope"]: line["marks"] for line in lines}


def way_of(total_s: float, seen: Sequence[Marks]) -> EnvelopeWay | None:
    """From the marks of all processes; None if one of them has forgotten what is needed."""
    gateway = next((marks for marks in seen if "answered" in marks and "submit" in marks), None)
    decisions = [marks for marks in seen if "decided" in marks]
    if gateway is None or not decisions:
        return None
    # Others may propose, too, when it takes long; who got it decided knows first.
    coordinator = min(decisions, key=lambda marks: reached(marks, "decided"))
    decided = reached(coordinator, "decided")
    is_implied = "proposed" not in coordinator
    known = decided if is_implied else reached(coordinator, "proposed")
    stamps = [marks["timestamped"] for marks in seen if "timestamped" in marks]
    counted = [stamp for stamp in stamps if stamp[1] <= known]
    if not counted:
        return None
    received, stamped = max(counted, key=lambda stamp: stamp[1])
    accepted, submitted = gateway["submit"]
    delivered = max(first_deliveries(seen).values(), default=decided)
    answered = reached(gateway, "answered")
    moments = (accepted, submitted, received, stamped, known, decided, delivered, answered)
    return EnvelopeWay(total_s, moments, is_implied)


def reached(marks: Marks, stage: str) -> float:
    return marks[stage][1]


def first_deliveries(seen: Sequence[Marks]) -> Mapping[str, float]:
    """In each group at that replica which was first: the receipt waits for no other."""
    first: dict[str, float] = {}
    for marks in seen:
        for stage in marks:
            if stage.startswith("delivered "):
                first[stage] = min(reached(marks, stage), first.get(stage, float("inf")))
    return first


def entries_of(in_flight: int, ways: Sequence[Followed]) -> list[Entry]:
    """Stages in order, and the total."""
    if not ways:
        raise BenchError(f"no envelope could be followed with {in_flight} in flight")
    by_total = sorted(ways, key=lambda way: way.total_s)
    spent = [{**way.spent_s(), TOTAL: way.total_s} for way in by_total]
    columns = {stage: [one[stage] for one in spent] for stage in spent[0]}
    middle = middle_fifth(len(ways))
    middle_s = sum(columns[TOTAL][middle])
    entries: list[Entry] = [
        {
            "in_flight": in_flight,
            "stage": stage,
            "p50_ms": round(percentile_ms(values, 0.50), 3),
            "p99_ms": round(percentile_ms(values, 0.99), 3),
            "share": round(sum(values[middle]) / middle_s, 3),
            "envelopes": len(values),
        }
        for stage, values in columns.items()
    ]
    implied = [way.is_implied for way in ways if isinstance(way, EnvelopeWay)]
    if implied:
        entries[STAGES.index(NUMBER)]["implied_share"] = round(sum(implied) / len(implied), 3)
    return entries


def middle_fifth(count: int) -> slice:
    """Of envelopes by their total. Medians of stages need not add up to that of the total; in these, shares do."""
    return slice(count * 2 // 5, count - count * 2 // 5)
