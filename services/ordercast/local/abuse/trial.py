"""A cluster, an honest client, and one attack after the other beside it: what each of them did."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ordercast.bench.client import own_process
from ordercast.bench.meter import percentile_ms
from ordercast.local.abuse.attacks import Attack, play
from ordercast.local.abuse.honest import Honest
from ordercast.local.abuse.target import Target
from ordercast.local.cluster import HOST, LocalCluster, free_ports
from ordercast.local.setup import create_groups
from ordercast.local.usage import rss_anon_mb, threads

NODES = 3
VICTIM = "node-1"
#: The honest client has a group of its own: what is attacked is the node.
HONEST_GROUP, ATTACKED_GROUP = "honest", "attacked"
HONEST_PER_SECOND = 25.0
#: Goals. A p99 of a few milliseconds doubles by chance: what is below this floor counts as the floor.
P99_FACTOR_MAX = 3.0
P99_MS_FLOOR = 30.0
THREADS_MORE_MAX = 64
LOG_MB_MORE_MAX = 1.0
#: How long memory that is no longer used may take until it is given back.
RETURN_S_MAX = 10.0
LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class AttackRow:
    attack: str
    attempts: int
    refused: dict[str, int]
    honest_p99_ms_before: float
    honest_p99_ms_during: float
    #: Of the node that has most.
    rss_mb_before: float
    rss_mb_after: float
    #: Which goals were missed: p99, receipts, newcomer, memory, threads, log, died.
    missed: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.missed

    def document(self) -> dict[str, object]:
        return {**asdict(self), "ok": self.ok}


class AbuseTrial:
    """`scale` is the part of each attack's attempts that are made; `seconds`, how long each goes on at least."""

    def __init__(self, directory: Path, seconds: float, scale: float, on_row: Callable[[AttackRow], None]) -> None:
        self.cluster = LocalCluster(directory, nodes=NODES)
        self.seconds = seconds
        self.scale = scale
        self.on_row = on_row
        frames, metrics = free_ports(2)
        self.cluster.members[VICTIM].extra += [
            f"--frames-port={frames}",
            f"--telemetry.metrics-listen={HOST}:{metrics}",
        ]
        self.frames, self.metrics = f"{HOST}:{frames}", f"{HOST}:{metrics}"

    def run(self, attacks: Sequence[Attack]) -> list[AttackRow]:
        with self.cluster:
            self.cluster.start()
            self.cluster.wait_healthy()
            create_groups(self.cluster.gateways, [HONEST_GROUP, ATTACKED_GROUP])
            return asyncio.run(self._play_all(attacks))

    async def _play_all(self, attacks: Sequence[Attack]) -> list[AttackRow]:
        honest = Honest(self.cluster.gateways[0], HONEST_GROUP, HONEST_PER_SECOND)
        publishing = asyncio.create_task(honest.run())
        rows = []
        try:
            for attack in attacks:
                rows.append(await self._play(attack, honest))
                self.on_row(rows[-1])
        finally:
            publishing.cancel()
            await asyncio.gather(publishing, return_exceptions=True)
        return rows

    async def _play(self, attack: Attack, honest: Honest) -> AttackRow:
        target = Target(
            self.cluster.gateways[0],
            self.frames,
            self.metrics,
            ATTACKED_GROUP,
            attempts=max(1, int(attack.attempts * self.scale)),
            seconds=self.seconds,
        )
        await honest.settle()
        honest.begin_stretch()
        await asyncio.sleep(self.seconds)
        await honest.settle()
        before, rss_before = percentile_ms(honest.latencies, 0.99), self._rss_mb()
        threads_before, log_before = self._threads(), self._log_mb()
        honest.begin_stretch()
        with own_process() as attacker:
            loop = asyncio.get_running_loop()
            playing = loop.run_in_executor(attacker, play, attack.name, target)
            await asyncio.wait([playing], timeout=self.seconds / 2)
            gets_in = await honest.newcomer_gets_in()
            tally = await playing
        await honest.settle()
        during, failures = percentile_ms(honest.latencies, 0.99), honest.failures
        rss_after = await self._rss_mb_in_the_end(rss_before + attack.rss_mb_more_max)
        missed = {
            "p99": during > P99_FACTOR_MAX * max(before, P99_MS_FLOOR),
            "receipts": bool(failures),
            "newcomer": not gets_in,
            "memory": rss_after > rss_before + attack.rss_mb_more_max,
            "threads": self._threads() > threads_before + THREADS_MORE_MAX,
            "log": self._log_mb() > log_before + LOG_MB_MORE_MAX,
            "died": len(self.cluster.running()) < NODES,
        }
        return AttackRow(
            attack=attack.name,
            attempts=tally.attempts,
            refused=tally.refused,
            honest_p99_ms_before=round(before, 1),
            honest_p99_ms_during=round(during, 1),
            rss_mb_before=round(rss_before, 1),
            rss_mb_after=round(rss_after, 1),
            missed=tuple(goal for goal, is_missed in missed.items() if is_missed),
        )

    async def _rss_mb_in_the_end(self, goal: float) -> float:
        """As soon as it is at the goal, or what it still is after a while."""
        for _ in range(int(RETURN_S_MAX / LOOK_S)):
            if self._rss_mb() <= goal:
                break
            await asyncio.sleep(LOOK_S)
        return self._rss_mb()

    def _pids(self) -> list[int]:
        return [member.process.pid for member in self.cluster.running() if member.process is not None]

    def _rss_mb(self) -> float:
        return max(map(rss_anon_mb, self._pids()), default=0.0)

    def _threads(self) -> int:
        return max(map(threads, self._pids()), default=0)

    def _log_mb(self) -> float:
        return sum(member.log.stat().st_size for member in self.cluster.members.values()) / (1 << 20)
