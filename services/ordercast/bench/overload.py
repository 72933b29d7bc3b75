"""What a cluster does when it is offered ten times more than it can order.

Three phases, on one cluster. *Peak*: clients in a closed loop, at the depth that gives most. *Overload*: clients
in an open loop offer ten times that rate and wait for nobody, while a few with the SDK, who keep to their credits,
go on publishing beside them. *After*: the closed loop again, second by second, until it is nearly as fast again.

Clients and servers share the machine, and everything counts against the servers: what the flood takes of the
processors, to send and to be refused, they have less. `acknowledged_per_second` is of all clients together, and
its ratio to the peak is the goodput that is left. Where the flood is held back by the transport, since a gateway
does not read from who was refused and writes on, `offered_per_second` counts what it had ready to send. In the
overload `p50_ms` and `p99_ms` are of the clients that keep to their credits; for the flood the time in the
transport counts too, so it is told apart. `server_cpu_s_per_10k` is for 10,000 acknowledged messages: it can be
compared even if the machine had more to do beside it in one phase than in another.
"""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from ordercast.bench import flood
from ordercast.bench.client import WARM_UP_S, own_process
from ordercast.bench.meter import Meter, percentile_ms
from ordercast.bench.own import from_gateway, produce_alone, running_cluster, servers_of
from ordercast.bench.plan import SAME, BenchPlan, pattern_named
from ordercast.bench.servers import Servers
from ordercast.bench.systems import OWN
from ordercast.bench.trial import Say, empty_directory
from ordercast.local.usage import cpu_s, rss_anon_mb

#: Messages that each producer of a closed loop has in flight: the best of these is the peak.
DEPTHS = (512, 1024, 2048)
TIMES_THE_PEAK = 10
#: Of the SDK, one at each gateway, and messages in flight of each.
POLITE_IN_FLIGHT = 64
#: When it is as fast as before, or nearly; how long it is waited for, and how long each look at it takes.
RECOVERED_RATIO = 0.8
RECOVERY_S_MAX = 60.0
RECOVERY_LOOK_S = 1.0
RECOVERY_WARM_UP_S = 0.2
#: How often memory is looked at.
LOOK_S = 0.1

Entry = dict[str, Any]


@dataclass(slots=True)
class PhaseUse:
    """By the servers, in a phase."""

    rss_anon_mb_max: float = 0.0
    cpu_s: float = 0.0


def measure(plan: BenchPlan, say: Say) -> list[Entry]:
    pattern = pattern_named(SAME, plan)
    with (
        empty_directory(OWN) as directory,
        running_cluster(directory, plan, pattern) as cluster,
        own_process() as client,
    ):
        return Overload(plan, servers_of(cluster), pattern.groups, client, say).run()


class Overload:
    def __init__(
        self,
        plan: BenchPlan,
        servers: Servers,
        groups: tuple[str, ...],
        client: ProcessPoolExecutor,
        say: Say,
    ) -> None:
        self.plan = plan
        self.servers = servers
        self.groups = groups
        self.client = client
        self.say = say

    def run(self) -> list[Entry]:
        # The client's process has to be there before anything is timed.
        self.client.submit(time.time).result()
        depth, peak = self._peak()
        overload = self._overload(peak["acknowledged_per_second"])
        after = self._after(depth, peak["acknowledged_per_second"])
        for entry in (peak, overload, after):
            entry["goodput_ratio"] = round(entry["acknowledged_per_second"] / peak["acknowledged_per_second"], 3)
            self.say(f"{entry['phase']}: {entry['acknowledged_per_second']:,.0f} messages/s")
        return [peak, overload, after]

    # --------------------------------------------------------------------------------------------- phases

    def _peak(self) -> tuple[int, Entry]:
        entries = {}
        for depth in DEPTHS:
            self.say(f"peak: {depth} in flight")
            entries[depth] = self._closed_loop("peak", depth, WARM_UP_S, self.plan.seconds)
        best = max(entries, key=lambda depth: entries[depth]["acknowledged_per_second"])
        return best, entries[best]

    def _closed_loop(self, phase: str, depth: int, warm_up_s: float, seconds: float) -> Entry:
        offer = self._offer(warm_up_s, seconds)
        watched = self.client.submit(flood.keep_in_flight, offer, depth)
        used = asyncio.run(self._watch(watched, offer))
        outcome = watched.result()
        return entry_of(phase, offer, outcome, outcome.acknowledged, outcome.latencies, used)

    def _overload(self, peak_per_second: float) -> Entry:
        self.say(f"overload: {TIMES_THE_PEAK} times as much")
        offer = self._offer(WARM_UP_S, self.plan.seconds)
        watched = self.client.submit(flood.offer_at_rate, offer, TIMES_THE_PEAK * peak_per_second)
        polite = Meter()
        used = asyncio.run(self._watch_beside_polite_clients(watched, offer, polite))
        outcome = watched.result()
        acknowledged = outcome.acknowledged + polite.count
        entry = entry_of("overload", offer, outcome, acknowledged, polite.latencies, used)
        entry["polite_per_second"] = round(polite.count / offer.seconds, 1)
        entry["polite_failed"] = polite.failed
        entry["flood_p50_ms"], entry["flood_p99_ms"] = percentiles_ms(outcome.latencies)
        return entry

    def _after(self, depth: int, peak_per_second: float) -> Entry:
        begun = time.time()
        while True:
            entry = self._closed_loop("after", depth, RECOVERY_WARM_UP_S, RECOVERY_LOOK_S)
            elapsed_s = time.time() - begun
            is_recovered = entry["acknowledged_per_second"] >= RECOVERED_RATIO * peak_per_second
            if is_recovered or elapsed_s > RECOVERY_S_MAX:
                entry["recovered_after_s"] = round(elapsed_s, 1) if is_recovered else None
                return entry

    def _offer(self, warm_up_s: float, seconds: float) -> flood.Offer:
        counted_from = time.time() + warm_up_s
        return flood.Offer(
            self.servers.addresses, self.groups, self.plan.size, counted_from, counted_from + seconds
        )

    # ------------------------------------------------------------------------------------- meanwhile, here

    async def _watch(self, watched: "Future[flood.FloodOutcome]", offer: flood.Offer) -> PhaseUse:
        used = PhaseUse()
        before_s = None
        while not watched.done():
            used.rss_anon_mb_max = max(used.rss_anon_mb_max, *map(rss_anon_mb, self.servers.pids))
            if offer.counted_from <= time.time() < offer.counted_until:
                now_s = sum(map(cpu_s, self.servers.pids))
                before_s = now_s if before_s is None else before_s
                used.cpu_s = now_s - before_s
            await asyncio.sleep(LOOK_S)
        return used

    async def _watch_beside_polite_clients(
        self, watched: "Future[flood.FloodOutcome]", offer: flood.Offer, meter: Meter
    ) -> PhaseUse:
        stop = asyncio.Event()
        clients = [
            asyncio.create_task(
                produce_alone(
                    from_gateway(self.servers, number), self.plan, [self.groups], POLITE_IN_FLIGHT, meter, stop
                )
            )
            for number in range(len(self.servers.addresses))
        ]
        loop = asyncio.get_running_loop()
        loop.call_later(offer.counted_from - time.time(), setattr, meter, "is_on", True)
        loop.call_later(offer.counted_until - time.time(), setattr, meter, "is_on", False)
        used = await self._watch(watched, offer)
        stop.set()
        await asyncio.gather(*clients)
        return used


def entry_of(
    phase: str,
    offer: flood.Offer,
    outcome: flood.FloodOutcome,
    acknowledged: int,
    latencies: Sequence[float],
    used: PhaseUse,
) -> Entry:
    seconds = offer.seconds
    p50_ms, p99_ms = percentiles_ms(latencies)
    return {
        "phase": phase,
        "offered_per_second": round(outcome.offered / seconds, 1),
        "acknowledged_per_second": round(acknowledged / seconds, 1),
        "refused_per_second": round(outcome.refused / seconds, 1),
        "refused_with_retry_info": round(outcome.refused_with_retry_info / outcome.refused, 3)
        if outcome.refused
        else None,
        "p50_ms": p50_ms,
        "p99_ms": p99_ms,
        "recovered_after_s": None,
        "rss_anon_mb_max": round(used.rss_anon_mb_max, 1),
        "server_cpu_s_per_10k": round(used.cpu_s / max(acknowledged, 1) * 10_000, 3),
    }


def percentiles_ms(latencies: Sequence[float]) -> tuple[float, float]:
    """The 50th and the 99th."""
    return round(percentile_ms(latencies, 0.50), 1), round(percentile_ms(latencies, 0.99), 1)
