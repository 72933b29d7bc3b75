"""How fast a local cluster is, with durable settings as in production: throughput, latency, processor, memory.

A row is one pattern with so many messages in flight: `same` is one producer and one set of groups, `random` many
producers and random sets of the same size. Each row has a cluster of its own, on an empty disk.
"""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import ordercast
from ordercast.local.cluster import LocalCluster
from ordercast.local.setup import create_groups
from ordercast.local.usage import cpu_s, rss_anon_mb

WARM_UP_S = 1.0
#: Pattern `random`: producers, and how many groups they choose from for each that a message goes to.
PRODUCERS = 16
GROUPS_TO_CHOOSE_FROM = 2


@dataclass(slots=True)
class Row:
    system: str
    pattern: str
    in_flight: int
    messages_per_second: float
    p50_ms: float
    p99_ms: float
    server_cpu_s_per_10k: float
    client_cpu_s_per_10k: float
    rss_anon_mb_max: float


@dataclass(frozen=True, slots=True)
class Plan:
    nodes: int = 3
    #: Groups that each message goes to.
    groups: int = 2
    replicas: int = 3
    size: int = 256
    seconds: float = 10.0
    #: Instead of so many seconds.
    messages: int | None = None


class Meter:
    """Counts what was acknowledged, and how long it took, between two moments."""

    def __init__(self) -> None:
        self.count = 0
        self.latencies: list[float] = []
        self.is_on = False

    def done(self, begun: float, room: asyncio.Semaphore, _: object) -> None:
        room.release()
        if self.is_on:
            self.count += 1
            self.latencies.append(time.perf_counter() - begun)

    def percentile_ms(self, part: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000 if ordered else 0.0


class Bench:
    def __init__(self, plan: Plan, say: Callable[[str], None] = lambda text: None) -> None:
        self.plan = plan
        self.say = say
        self.stages: list[dict[str, Any]] = []
        self.replays: list[dict[str, Any]] = []

    def run(self, pattern: str, in_flight: int) -> Row:
        with tempfile.TemporaryDirectory(prefix="ordercast-bench-", dir=Path.cwd()) as directory:
            cluster = LocalCluster(Path(directory), nodes=self.plan.nodes)
            with cluster:
                cluster.start()
                cluster.wait_healthy()
                names = [f"g{n}" for n in range(self._groups(pattern))]
                create_groups(cluster.gateways, names, self.plan.replicas)
                row = asyncio.run(self._measure(cluster, names, pattern, in_flight))
                cluster.stop()
        return row

    def _groups(self, pattern: str) -> int:
        return self.plan.groups * (1 if pattern == "same" else GROUPS_TO_CHOOSE_FROM)

    async def _measure(self, cluster: LocalCluster, names: list[str], pattern: str, in_flight: int) -> Row:

        meter = Meter()
        producers = 1 if pattern == "same" else min(PRODUCERS, in_flight)
        stop = asyncio.Event()
        tasks = [
            asyncio.create_task(self._produce(cluster, names, number, in_flight // producers, meter, stop))
            for number in range(producers)
        ]
        await asyncio.sleep(WARM_UP_S)
        pids = [member.process.pid for member in cluster.members.values() if member.process is not None]
        before_s, before_client_s, begun = sum(map(cpu_s, pids)), cpu_s(os.getpid()), time.perf_counter()
        meter.is_on = True
        while not self._is_over(meter, begun) and not any(task.done() for task in tasks):
            await asyncio.sleep(0.1)
        meter.is_on = False
        elapsed = time.perf_counter() - begun
        server_s, client_s = sum(map(cpu_s, pids)) - before_s, cpu_s(os.getpid()) - before_client_s
        stop.set()
        await asyncio.gather(*tasks)
        count = max(meter.count, 1)
        row = Row(
            "ordercast",
            pattern,
            in_flight,
            round(meter.count / elapsed, 1),
            round(meter.percentile_ms(0.50), 3),
            round(meter.percentile_ms(0.99), 3),
            round(server_s / count * 10_000, 3),
            round(client_s / count * 10_000, 3),
            round(max(map(rss_anon_mb, pids)), 1),
        )
        await self._replay(cluster, names[0], pattern, in_flight)
        return row

    def _is_over(self, meter: Meter, begun: float) -> bool:
        if self.plan.messages is not None:
            return meter.count >= self.plan.messages
        return time.perf_counter() - begun >= self.plan.seconds

    async def _produce(
        self,
        cluster: LocalCluster,
        names: list[str],
        number: int,
        in_flight: int,
        meter: Meter,
        stop: asyncio.Event,
    ) -> None:
        gateways = cluster.gateways[number % len(cluster.gateways) :] + cluster.gateways
        payload = os.urandom(self.plan.size)
        random = Random(number)
        sets = [sorted(random.sample(names, self.plan.groups)) for _ in range(16)]
        async with ordercast.connect(*dict.fromkeys(gateways), in_flight_max=in_flight) as connection:
            sent = 0
            last = None
            room = asyncio.Semaphore(in_flight)
            while not stop.is_set():
                # The wait for room is not the message's.
                await room.acquire()
                begun = time.perf_counter()
                last = await connection.publish_soon(payload, to=sets[sent % len(sets)])
                last.add_done_callback(partial(meter.done, begun, room))
                sent += 1
            if last is not None:
                await last

    async def _replay(self, cluster: LocalCluster, group: str, pattern: str, in_flight: int) -> None:
        """One subscriber reads everything from the beginning."""
        async with ordercast.connect(*cluster.gateways) as connection:
            count = 0
            begun = time.perf_counter()
            async with connection.subscribe(group, start="earliest", stop_at_end=True) as deliveries:
                async for _ in deliveries:
                    count += 1
            elapsed = time.perf_counter() - begun
        self.replays.append(
            {
                "pattern": pattern,
                "in_flight": in_flight,
                "messages": count,
                "messages_per_second": round(count / elapsed, 1),
            }
        )

    # -------------------------------------------------------------------------------------------- profile

    def profile(self, in_flight: int) -> list[dict[str, Any]]:
        """Where the servers' time goes, by stage, in a run of its own that is slowed down by the looking."""
        with tempfile.TemporaryDirectory(prefix="ordercast-bench-", dir=Path.cwd()) as directory:
            cluster = LocalCluster(Path(directory), nodes=self.plan.nodes, options=["--profile"])
            with cluster:
                cluster.start()
                cluster.wait_healthy()
                names = [f"g{n}" for n in range(self.plan.groups)]
                create_groups(cluster.gateways, names, self.plan.replicas)
                row = asyncio.run(self._measure(cluster, names, "same", in_flight))
                cluster.stop()
                spent = [profile_of(member.log) for member in cluster.members.values()]
        return by_stage(spent, row)


#: Which stage of an envelope's way a step of a machine belongs to.
STAGES = {
    "PublishRequest": "gateway",
    "Disseminate": "dissemination",
    "RecTs": "timestamps",
    "Propose": "consensus",
    "Prepare": "consensus",
    "Promise": "consensus",
    "Accept": "consensus",
    "Accepted": "consensus",
    "Rejected": "consensus",
    "Close": "consensus",
    "Closed": "consensus",
    "Decided": "delivery",
    "Decide": "delivery",
    "Gossip": "predecessors",
    "GossipAsk": "predecessors",
    "EnvelopeDecided": "gateway",
    "EnvelopeDelivered": "gateway",
    "EnvelopeDurable": "gateway",
}


def profile_of(log: Path) -> dict[str, Any]:
    """The line that a process with --profile logs when it stops."""
    for line in reversed(log.read_text().splitlines()):
        if '"event": "profile"' in line:
            document: dict[str, Any] = json.loads(line)
            return document
    return {}


def by_stage(profiles: list[dict[str, Any]], row: Row) -> list[dict[str, Any]]:
    """Seconds of all processes together; what no machine's step accounts for is the runtime's."""
    stages: dict[str, tuple[int, float]] = {}
    total = sum(profile.get("cpu_s", 0.0) for profile in profiles)
    for profile in profiles:
        for kind, (count, spent) in profile.get("spent", {}).items():
            stage = STAGES.get(kind.rpartition(" ")[2], "other")
            before = stages.get(stage, (0, 0.0))
            stages[stage] = (before[0] + count, before[1] + spent)
    stages["runtime"] = (0, total - sum(spent for _, spent in stages.values()))
    return [
        {
            "stage": stage,
            "events": count,
            "cpu_s": round(spent, 3),
            "share": round(spent / total, 3) if total else 0,
        }
        for stage, (count, spent) in sorted(stages.items(), key=lambda item: -item[1][1])
    ]


def document(rows: list[Row], bench: Bench, stages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"rows": [asdict(row) for row in rows], "replay": bench.replays, "stages": stages}
