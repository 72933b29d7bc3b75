"""Two protocols of ours in one cluster, in turns: one message in flight, to one group of each.

The same processes, disks and client, a fraction of a second for the one and then for the other: a change in the
machine's mood meets both. Receipts promise the same, for both are given when a majority has the message on disk.
"""

import asyncio
import os
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import ordercast
from ordercast.bench import own
from ordercast.bench.client import WARM_UP_S, in_process_of_its_own, row_of
from ordercast.bench.meter import Meter, Stopwatch, Used
from ordercast.bench.plan import BenchPlan, Pattern
from ordercast.bench.rows import BenchRow
from ordercast.bench.servers import BenchError, Servers
from ordercast.bench.systems import OWN
from ordercast.local.cluster import LocalCluster
from ordercast.local.setup import create_groups

#: At least so many for each, and none longer than this.
TURNS_MIN = 4
TURN_S_MAX = 0.25
#: What is still said about a turn's last message is over before the next turn begins.
REST_S = 0.03
#: How long a message may take.
PATIENCE_S = 20.0


def run(directory: Path, plan: BenchPlan, pattern: Pattern, beside: str) -> list[BenchRow]:
    """A row for the plan's protocol, and one for the other, whose group has its name."""
    with LocalCluster(directory, nodes=plan.nodes) as cluster:
        cluster.start()
        cluster.wait_healthy()
        own.create_all(cluster, plan, pattern)
        create_groups(cluster.gateways, [beside], plan.replicas)
        groups = {OWN: pattern.groups[0], beside: beside}
        rows = in_process_of_its_own(measure, own.servers_of(cluster), plan, pattern, groups)
        cluster.stop()
    return rows


@dataclass(slots=True)
class Turns:
    """What one protocol did in all of its turns."""

    meter: Meter = field(default_factory=Meter)
    used: Used = field(default_factory=lambda: Used(0.0, 0.0, 0.0, 0.0))

    def add(self, elapsed_s: float, used: Used) -> None:
        """Processor time is that of the rest, too: what follows a message is a part of what it costs."""
        self.used = Used(
            self.used.elapsed_s + elapsed_s,
            self.used.server_s + used.server_s,
            self.used.client_s + used.client_s,
            max(self.used.rss_anon_mb_max, used.rss_anon_mb_max),
        )


def measure(servers: Servers, plan: BenchPlan, pattern: Pattern, groups: dict[str, str]) -> list[BenchRow]:
    return asyncio.run(_measure(servers, plan, pattern, groups))


async def _measure(servers: Servers, plan: BenchPlan, pattern: Pattern, groups: dict[str, str]) -> list[BenchRow]:
    found = {system: Turns() for system in groups}
    turns = max(TURNS_MIN, round(plan.seconds / TURN_S_MAX))
    of_turn = replace(
        plan,
        seconds=plan.seconds / turns,
        messages=None if plan.messages is None else max(1, plan.messages // turns),
    )
    async with AsyncExitStack() as stack:
        clients: dict[str, ordercast.Connection] = {}
        for system, group in groups.items():
            # One for each: what a client has seen of the one domain is none of the other's business.
            client = ordercast.connect(*servers.addresses, in_flight_max=1)
            clients[system] = await stack.enter_async_context(client)
            await _take_turn(clients[system], replace(plan, seconds=WARM_UP_S, messages=None), group, Meter())
        for turn in range(turns):
            # Nobody comes first every time.
            for system in list(groups)[:: -1 if turn % 2 else 1]:
                found[system].meter.is_on = True
                stopwatch = Stopwatch(servers.pids)
                elapsed_s = await _take_turn(clients[system], of_turn, groups[system], found[system].meter)
                found[system].add(elapsed_s, stopwatch.stop())
    for system, of_system in found.items():
        if not of_system.meter.count:
            raise BenchError(f"{system} acknowledged nothing in its turns: {of_system.meter.last_error!r}")
    return [row_of(system, pattern, 1, turns.meter, turns.used) for system, turns in found.items()]


async def _take_turn(connection: ordercast.Connection, plan: BenchPlan, group: str, meter: Meter) -> float:
    """How long it took, without the rest after it."""
    payload = os.urandom(plan.size)
    first = time.perf_counter()
    count = 0
    while (
        (begun := time.perf_counter()) - first < plan.seconds if plan.messages is None else count < plan.messages
    ):
        count += 1
        try:
            await connection.publish(payload, to=[group], timeout=PATIENCE_S)
        except ordercast.OrdercastError as error:
            meter.refused(error)
        else:
            meter.answered(begun)
    elapsed_s = time.perf_counter() - first
    await asyncio.sleep(REST_S)
    return elapsed_s
