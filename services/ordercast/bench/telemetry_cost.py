"""What telemetry costs the servers: clusters without it, with the usual share of traces kept, and with all.

All are up at once, with one telemetry service, and take turns of a second or so: whatever else the machine does
meets all of them. The ones that wait for their turn beat their hearts, and nobody counts that. Processor time is
per 10,000 acknowledged messages, in each turn; the ratio to the cluster without telemetry is that of turns which
follow on each other. Told are medians, and the quartiles around them.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from statistics import median, quantiles
from typing import Any

from ordercast.bench import own
from ordercast.bench.client import drain, in_process_of_its_own
from ordercast.bench.meter import Meter, Stopwatch
from ordercast.bench.plan import SAME, BenchPlan, Pattern, pattern_named
from ordercast.bench.servers import BenchError, Servers
from ordercast.bench.systems import OWN
from ordercast.bench.trial import Say, empty_directory
from ordercast.local.telemetry import LocalTelemetry

OFF = "off"
#: The share of traces that is kept, by the name of the row.
SHARES = {"1 %": "0.01", "100 %": "1"}
TURN_S = 1.0
#: Before its turn counts: connecting, and opening the producer.
WARM_UP_S = 0.3

Entry = dict[str, Any]


def measure(plan: BenchPlan, depths: Sequence[int], say: Say) -> list[Entry]:
    pattern = pattern_named(SAME, plan)
    entries: list[Entry] = []
    with (
        empty_directory(OWN) as directory,
        LocalTelemetry(directory / "telemetry") as telemetry,
        ExitStack() as up,
    ):
        clusters: dict[str, Servers] = {}
        for name in (OFF, *SHARES):
            options = [] if name == OFF else [f"--telemetry.endpoint={telemetry.address}"]
            if name in SHARES:
                options.append(f"--telemetry.sampling={SHARES[name]}")
            path = directory / name.replace(" ", "").replace("%", "percent")
            cluster = up.enter_context(own.running_cluster(path, plan, pattern, options))
            clusters[name] = own.servers_of(cluster)
        for depth in depths:
            say(f"{OWN} with telemetry {', '.join(clusters)} in turns, {depth:,} in flight")
            turns = in_process_of_its_own(take_turns, clusters, plan, pattern, depth)
            entries += entries_of(depth, turns)
    return entries


# ------------------------------------------------------------------------------------- the client's process


def take_turns(
    clusters: Mapping[str, Servers], plan: BenchPlan, pattern: Pattern, in_flight: int
) -> dict[str, list[float]]:
    return asyncio.run(_take_turns(clusters, plan, pattern, in_flight))


async def _take_turns(
    clusters: Mapping[str, Servers], plan: BenchPlan, pattern: Pattern, in_flight: int
) -> dict[str, list[float]]:
    """Seconds of the servers' processors per 10,000 messages, turn by turn."""
    found: dict[str, list[float]] = {name: [] for name in clusters}
    turns = round(plan.seconds / TURN_S)
    of_turn = replace(plan, seconds=TURN_S, messages=None)
    for turn in range(turns):
        # Nobody comes first every time.
        names = list(clusters)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            found[name].append(await _take_turn(clusters[name], of_turn, pattern, in_flight))
    return found


async def _take_turn(servers: Servers, plan: BenchPlan, pattern: Pattern, in_flight: int) -> float:
    meter, stop = Meter(), asyncio.Event()
    producing = asyncio.create_task(own.produce(servers, plan, pattern, in_flight, meter, stop))
    await asyncio.sleep(WARM_UP_S)
    stopwatch = Stopwatch(servers.pids)
    meter.is_on = True
    await asyncio.sleep(plan.seconds)
    meter.is_on = False
    used = stopwatch.stop()
    stop.set()
    await drain(producing, OWN, in_flight)
    if not meter.count:
        raise BenchError(f"nothing was acknowledged with {in_flight} in flight: {meter.last_error!r}")
    return used.server_s / meter.count * 10_000


# --------------------------------------------------------------------------------------------- the reckoning


def entries_of(in_flight: int, turns: Mapping[str, Sequence[float]]) -> list[Entry]:
    entries: list[Entry] = []
    for name, spent in turns.items():
        ratios = [one / other for one, other in zip(spent, turns[OFF], strict=True)]
        low, _, high = quantiles(spent, n=4)
        ratio_low, _, ratio_high = quantiles(ratios, n=4)
        entries.append(
            {
                "in_flight": in_flight,
                "telemetry": name,
                "turns": len(spent),
                "server_cpu_s_per_10k": round(median(spent), 3),
                "server_cpu_s_per_10k_quartiles": [round(low, 3), round(high, 3)],
                "ratio": round(median(ratios), 3),
                "ratio_quartiles": [round(ratio_low, 3), round(ratio_high, 3)],
            }
        )
    return entries
