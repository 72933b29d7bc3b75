"""The client's process: one for each row, and alike for all systems.

It publishes, measures itself, and looks from outside at what the servers use.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

from ordercast.bench import own
from ordercast.bench.meter import Meter, Stopwatch, Used
from ordercast.bench.own import LogEnds
from ordercast.bench.plan import BenchPlan, Pattern
from ordercast.bench.rows import BenchRow
from ordercast.bench.servers import BenchError, Servers
from ordercast.bench.systems import OWN, SYSTEMS

WARM_UP_S = 1.0
#: How often it looks whether it is over.
LOOK_S = 0.05
#: How long what is still in flight may take in the end. A client that lost its connection waits for ever.
DRAIN_S_MAX = 30.0

P = ParamSpec("P")
T = TypeVar("T")


def own_process() -> ProcessPoolExecutor:
    """One, that is spawned and not forked: gRPC has threads."""
    return ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn"))


def in_process_of_its_own(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the function returns, or raises. A new process each time: grpc.aio has one event loop in its life."""
    with own_process() as pool:
        return pool.submit(function, *args, **kwargs).result()


def measure(system: str, servers: Servers, plan: BenchPlan, pattern: Pattern, in_flight: int) -> BenchRow:
    return asyncio.run(_measure(system, servers, plan, pattern, in_flight))


async def _measure(system: str, servers: Servers, plan: BenchPlan, pattern: Pattern, in_flight: int) -> BenchRow:
    meter, stop = Meter(), asyncio.Event()
    producing = asyncio.create_task(SYSTEMS[system].produce(servers, plan, pattern, in_flight, meter, stop))
    await asyncio.sleep(WARM_UP_S)
    logs_before = await own.log_ends(servers, pattern) if system == OWN else None
    stopwatch = Stopwatch(servers.pids)
    meter.is_on = True
    while not producing.done() and not _is_over(plan, meter, stopwatch):
        await asyncio.sleep(LOOK_S)
    meter.is_on = False
    used = stopwatch.stop()
    logs_after = await own.log_ends(servers, pattern) if system == OWN else None
    stop.set()
    await drain(producing, system, in_flight)
    if not meter.count:
        raise BenchError(f"{system} acknowledged nothing with {in_flight} in flight: {meter.last_error!r}")
    row = row_of(system, pattern, in_flight, meter, used)
    if logs_before is None or logs_after is None:
        return row
    return _with_envelopes(row, meter.count, used, logs_before, logs_after)


async def drain(producing: "asyncio.Task[None]", system: str, in_flight: int) -> None:
    """Until what is in flight is answered, by a producer that was told to stop."""
    try:
        async with asyncio.timeout(DRAIN_S_MAX):
            await producing
    except Exception as error:
        raise BenchError(f"{system} failed with {in_flight} in flight: {error!r}") from error


def _is_over(plan: BenchPlan, meter: Meter, stopwatch: Stopwatch) -> bool:
    if plan.messages is not None:
        return meter.count >= plan.messages
    return stopwatch.elapsed_s >= plan.seconds


def row_of(system: str, pattern: Pattern, in_flight: int, meter: Meter, used: Used) -> BenchRow:
    rate = round(meter.count / used.elapsed_s, 1)
    return BenchRow(
        system=system,
        pattern=pattern.name,
        in_flight=in_flight,
        messages_per_second=rate,
        p50_ms=round(meter.percentile_ms(0.50), 3),
        p99_ms=round(meter.percentile_ms(0.99), 3),
        server_cpu_s_per_10k=round(used.server_s / meter.count * 10_000, 3),
        client_cpu_s_per_10k=round(used.client_s / meter.count * 10_000, 3),
        rss_anon_mb_max=round(used.rss_anon_mb_max, 1),
        failed=meter.failed,
        messages_per_second_min=rate,
        messages_per_second_max=rate,
    )


def _with_envelopes(row: BenchRow, count: int, used: Used, before: LogEnds, after: LogEnds) -> BenchRow:
    """The logs were looked at a moment before and after: their ratio holds for what was measured in between."""
    if after.envelopes == before.envelopes:
        return row
    per_envelope = (after.messages - before.messages) / (after.envelopes - before.envelopes)
    envelopes = count / per_envelope
    return replace(
        row,
        envelopes=round(envelopes),
        messages_per_envelope=round(per_envelope, 2),
        server_cpu_ms_per_envelope=round(used.server_s * 1000 / envelopes, 3),
    )
