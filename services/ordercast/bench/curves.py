"""What a cast costs, by the number of its destinations: CBCAST and ABCAST on a real cluster.

[BSS91] Birman, Schiper, Stephenson 1991, section 8, Tables II and III: time per message with null, 1 KB and
7 KB messages to 1..7 other sites, and what can be sent without waiting. Ours differ in what is waited for: the
paper's sender waits until all destinations have replied, ours for a receipt, which says that a majority has the
message on disk, with its place in the log.

As in the paper, the sender of ABCASTs does not hold the token. Nobody can choose from outside who holds it, but
the domain of this run lets it rest where it is, and the client publishes through a member that does not have it.
In the domain of the CBCASTs it goes, as ever, to whoever casts most.

All processes and the client share one machine: more destinations are more work for the same processors.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import grpc

from ordercast.bench import environment, own
from ordercast.bench.client import DRAIN_S_MAX, LOOK_S, drain, in_process_of_its_own
from ordercast.bench.meter import Meter
from ordercast.bench.plan import CAUSAL, TOTAL, BenchPlan
from ordercast.bench.servers import BenchError
from ordercast.bench.systems import OWN
from ordercast.bench.trial import Say, empty_directory
from ordercast.local.cluster import HOST, LocalCluster
from ordercast.local.setup import create_domain, create_groups
from ordercast.membership.settings import REPLICAS_MAX
from ordercast.v1.gateway_pb2 import DescribeGroupRequest, DescribeGroupResponse
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub

#: Members of a group besides the sender: as many as the paper has, or as a group can have.
DESTINATIONS = range(1, min(7, REPLICAS_MAX - 1) + 1)
NODES = 3
WORKERS = DESTINATIONS[-1] + 1 - NODES
SIZES = {"null": 0, "1k": 1 << 10, "7k": 7 << 10}
#: Messages under way, where it is throughput that is measured.
PIPELINED = 1024
WARM_UP_S = 0.3
SECONDS = 2.0
CALL_S_MAX = 20.0

CBCAST, ABCAST = "cbcast", "abcast"
#: Far more casts than there are in a run: the token does not move.
RESTS = {"token_window": "65536"}
SETTINGS = {CBCAST: {"ordering": CAUSAL}, ABCAST: {"ordering": TOTAL, **RESTS}}

#: By the number of destinations, figures by their column.
Curve = dict[int, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Curves:
    protocol: str
    cbcast: Curve
    abcast: Curve
    seconds: float
    machine: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "pipelined": PIPELINED,
            "nodes": NODES + WORKERS,
            "settings": SETTINGS,
        }


def run(protocol: str, seconds: float, say: Say) -> Curves:
    """Of a protocol that lets a domain choose between both orderings.

    ABCAST comes right after CBCAST with as many destinations: that is what it is compared with.
    """
    found: dict[str, Curve] = {CBCAST: {}, ABCAST: {}}
    with empty_directory(OWN) as directory, LocalCluster(directory, nodes=NODES, workers=WORKERS) as cluster:
        say(f"{NODES + WORKERS} nodes start")
        cluster.start()
        cluster.wait_healthy()
        for cast, settings in SETTINGS.items():
            create_domain(cluster.gateways, cast, protocol, settings)
            for destinations in DESTINATIONS:
                create_groups(cluster.gateways, [name_of(cast, destinations)], destinations + 1, domain=cast)
        for destinations in DESTINATIONS:
            for cast in SETTINGS:
                say(f"{cast.upper()}, {destinations} of {DESTINATIONS[-1]} destinations")
                group = name_of(cast, destinations)
                sender = sender_for(group, describe(cluster.gateways[0], group), is_total=cast == ABCAST)
                gateway = f"{HOST}:{cluster.members[sender].client_port}"
                figures = in_process_of_its_own(measure, gateway, group, seconds)
                found[cast][destinations] = figures
                if cast == ABCAST and sender in holders_of(describe(cluster.gateways[0], group)):
                    say("a view has changed, and the token has come to the sender: measure again")
        cluster.stop()
    return Curves(protocol, found[CBCAST], found[ABCAST], seconds, environment.facts())


def name_of(cast: str, destinations: int) -> str:
    return f"{cast}-{destinations}"


def describe(gateway: str, group: str) -> DescribeGroupResponse:
    with grpc.insecure_channel(gateway) as channel:
        request = DescribeGroupRequest(name=group)
        described: DescribeGroupResponse = GatewayServiceStub(channel).DescribeGroup(request, timeout=CALL_S_MAX)
    return described


def holders_of(described: DescribeGroupResponse) -> list[str]:
    """Whom replicas take for the token's holder: mostly all the same one."""
    return [replica.log.orderer for replica in described.replicas]


def sender_for(group: str, described: DescribeGroupResponse, *, is_total: bool) -> str:
    """A member, so that nothing else is between client and group; of ABCASTs one without the token."""
    holders = holders_of(described) if is_total else ()
    others = [name for name in described.group.replicas if name not in holders]
    if not others:
        raise BenchError(f"no member of {group} that does not hold the token")
    return others[0]


# ------------------------------------------------------------------------------------- the client's process


def measure(gateway: str, group: str, seconds: float) -> dict[str, float]:
    return asyncio.run(_measure(gateway, group, seconds))


async def _measure(gateway: str, group: str, seconds: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, size in SIZES.items():
        plan = BenchPlan(size=size, seconds=seconds)
        alone, _ = await _run(gateway, plan, group, 1)
        found[f"{name}_ms"] = round(alone.percentile_ms(0.50), 3)
        many, elapsed_s = await _run(gateway, plan, group, PIPELINED)
        found[f"{name}_per_s"] = round(many.count / elapsed_s, 1)
    found["7k_kb_per_s"] = round(found["7k_per_s"] * SIZES["7k"] / 1024, 1)
    return found


async def _run(gateway: str, plan: BenchPlan, group: str, in_flight: int) -> tuple[Meter, float]:
    """So long, or until the first receipt; and how long that was."""
    meter, stop = Meter(), asyncio.Event()
    sets = ((group,),)
    producing = asyncio.create_task(own.produce_alone([gateway], plan, sets, in_flight, meter, stop))
    await asyncio.sleep(WARM_UP_S)
    begun = time.perf_counter()
    meter.is_on = True
    while not producing.done() and not _is_over(plan, meter, time.perf_counter() - begun):
        await asyncio.sleep(LOOK_S)
    meter.is_on = False
    elapsed_s = time.perf_counter() - begun
    stop.set()
    await drain(producing, OWN, in_flight)
    if not meter.count or meter.failed:
        raise BenchError(f"{group} with {in_flight} in flight: {meter.failed} failed, {meter.last_error!r}")
    return meter, elapsed_s


def _is_over(plan: BenchPlan, meter: Meter, elapsed_s: float) -> bool:
    return elapsed_s >= (plan.seconds if meter.count else DRAIN_S_MAX)
