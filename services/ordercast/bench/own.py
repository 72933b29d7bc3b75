"""Our own system: a cluster of real processes, with durable settings as in production."""

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import grpc

import ordercast
from ordercast.bench.meter import Meter
from ordercast.bench.plan import DEFAULT, BenchPlan, Groups, Pattern
from ordercast.bench.servers import Servers
from ordercast.local.cluster import LocalCluster
from ordercast.local.setup import create_domain, create_groups
from ordercast.v1.gateway_pb2 import DescribeGroupRequest
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub

CALL_S_MAX = 20.0
#: For protocols that need a domain of their own; there is one from the beginning, with the first of them.
DOMAIN = "bench"


@contextmanager
def running_cluster(
    directory: Path, plan: BenchPlan, pattern: Pattern, options: Sequence[str] = ()
) -> Iterator[LocalCluster]:
    with LocalCluster(directory, nodes=plan.nodes, options=options) as cluster:
        cluster.start()
        cluster.wait_healthy()
        create_all(cluster, plan, pattern)
        yield cluster
        cluster.stop()


def create_all(cluster: LocalCluster, plan: BenchPlan, pattern: Pattern) -> None:
    """The groups, in a domain with the plan's protocol."""
    groups = pattern.groups
    domain = ""
    if plan.protocol != DEFAULT:
        domain = DOMAIN
        create_domain(cluster.gateways, domain, plan.protocol, plan.settings)
    shared = groups if plan.shared or pattern.cells else ()
    create_groups(cluster.gateways, groups, plan.replicas, domain, shared=shared, cells=pattern.cells or 1)


@contextmanager
def running(directory: Path, plan: BenchPlan, pattern: Pattern) -> Iterator[Servers]:
    with running_cluster(directory, plan, pattern) as cluster:
        yield servers_of(cluster)


def servers_of(cluster: LocalCluster) -> Servers:
    pids = [member.process.pid for member in cluster.members.values() if member.process is not None]
    return Servers(tuple(cluster.gateways), tuple(pids))


async def produce(
    servers: Servers, plan: BenchPlan, pattern: Pattern, in_flight: int, meter: Meter, stop: asyncio.Event
) -> None:
    """All producers of the pattern, or as many as there may be messages in flight."""
    sets = pattern.sets[:in_flight]
    await asyncio.gather(
        *(
            produce_over(
                from_gateway(servers, place),
                plan,
                [sets[number] for number in numbers],
                in_flight // len(sets),
                meter,
                stop,
            )
            for place, numbers in enumerate(pattern.by_connection(len(sets)))
        )
    )


def from_gateway(servers: Servers, number: int) -> Sequence[str]:
    """Connections begin with different gateways."""
    first = number % len(servers.addresses)
    return servers.addresses[first:] + servers.addresses[:first]


async def produce_over(
    gateways: Sequence[str],
    plan: BenchPlan,
    sets_by_producer: Sequence[Sequence[Groups]],
    in_flight: int,
    meter: Meter,
    stop: asyncio.Event,
) -> None:
    """Several producers over one connection. The first one is the connection itself."""
    async with (
        ordercast.connect(*gateways, in_flight_max=in_flight) as connection,
        AsyncExitStack() as stack,
    ):
        producers: list[ordercast.Producer] = [connection]
        for _ in sets_by_producer[1:]:
            producers.append(await stack.enter_async_context(connection.producer(in_flight_max=in_flight)))
        await asyncio.gather(
            *(
                publish_in_turn(producer, plan, sets, in_flight, meter, stop)
                for producer, sets in zip(producers, sets_by_producer, strict=True)
            )
        )


async def produce_alone(
    gateways: Sequence[str],
    plan: BenchPlan,
    sets: Sequence[Groups],
    in_flight: int,
    meter: Meter,
    stop: asyncio.Event,
    count: int | None = None,
) -> None:
    """Until it is told to stop, or so many; then until everything is answered."""
    async with ordercast.connect(*gateways, in_flight_max=in_flight) as connection:
        await publish_in_turn(connection, plan, sets, in_flight, meter, stop, count)


async def publish_in_turn(
    producer: ordercast.Producer,
    plan: BenchPlan,
    sets: Sequence[Groups],
    in_flight: int,
    meter: Meter,
    stop: asyncio.Event,
    count: int | None = None,
) -> None:
    payload = os.urandom(plan.size)
    room = asyncio.Semaphore(in_flight)
    sent = 0
    while not stop.is_set() and sent != count:
        # The wait for room is not the message's.
        await room.acquire()
        begun = time.perf_counter()
        soon = await producer.publish_soon(payload, to=sets[sent % len(sets)])
        soon.add_done_callback(partial(meter.settle, begun, room))
        sent += 1


async def read_all(servers: Servers, group: str) -> tuple[int, float]:
    """How many messages one subscriber reads from the beginning, and how many seconds it takes."""
    async with ordercast.connect(*servers.addresses) as connection:
        count = 0
        begun = time.perf_counter()
        async with connection.subscribe(group, start="earliest", stop_at_end=True) as deliveries:
            async for _ in deliveries:
                count += 1
        return count, time.perf_counter() - begun


@dataclass(frozen=True, slots=True)
class LogEnds:
    """In the logs of all groups together: what went to two groups is there twice."""

    messages: int
    envelopes: int


async def log_ends(servers: Servers, pattern: Pattern) -> LogEnds:
    """Of each group, that replica counts which has most."""
    async with grpc.aio.insecure_channel(servers.addresses[0]) as channel:
        stub = GatewayServiceStub(channel)
        described = await asyncio.gather(
            *(stub.DescribeGroup(DescribeGroupRequest(name=name), timeout=CALL_S_MAX) for name in pattern.groups)
        )
    logs = {
        group.group.name: max((r.log for r in group.replicas), key=lambda log: log.position) for group in described
    }
    # Groups that share a cell have its envelopes in common.
    envelopes = {group.group.cell or group.group.id: logs[group.group.name].position for group in described}
    return LogEnds(sum(log.next_offset for log in logs.values()), sum(envelopes.values()))
