"""What an attack is aimed at, and how it goes on: many attempts, so many at a time, until it was enough."""

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import grpc
import grpc.aio

from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub

#: An attempt without an answer is given up: the attacker has more to do.
CALL_S_MAX = 20.0
#: An attack ends after so long, however little of it got through.
ATTACK_S_MAX = 120.0


@dataclass(frozen=True, slots=True)
class Target:
    """One node of a cluster: its ports for clients, frames and metrics, and a group that exists."""

    clients: str
    frames: str
    metrics: str
    group: str
    #: An attack is over after so many attempts and so long, whichever comes later.
    attempts: int
    seconds: float


@dataclass(slots=True)
class AttemptTally:
    """What came of the attempts."""

    attempts: int = 0
    #: By the code that they were refused with; what was taken has none.
    refused: dict[str, int] = field(default_factory=dict)

    def refuse(self, code: str) -> None:
        self.refused[code] = self.refused.get(code, 0) + 1


Attempt = Callable[[GatewayServiceStub], Awaitable[object]]


async def repeat(
    target: Target, attempt: Attempt, at_once: int = 8, compression: grpc.Compression | None = None
) -> AttemptTally:
    """The attempt again and again, over one connection."""
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(target.clients, options=options, compression=compression) as channel:
        stub = GatewayServiceStub(channel)
        return await repeat_call(target, lambda: attempt(stub), at_once)


async def repeat_call(target: Target, call: Callable[[], Awaitable[object]], at_once: int) -> AttemptTally:
    tally = AttemptTally()
    begun = time.monotonic()

    def is_over() -> bool:
        elapsed = time.monotonic() - begun
        return elapsed > ATTACK_S_MAX or (tally.attempts >= target.attempts and elapsed >= target.seconds)

    async def attack() -> None:
        while not is_over():
            tally.attempts += 1
            try:
                async with asyncio.timeout(CALL_S_MAX):
                    await call()
            except grpc.aio.AioRpcError as error:
                tally.refuse(error.code().name)
            except (OSError, asyncio.IncompleteReadError) as error:  # Time-outs are such errors, too.
                tally.refuse(type(error).__name__)

    await asyncio.gather(*(attack() for _ in range(at_once)))
    return tally


def allow_many_connections() -> None:
    """As many open files as the system lets this process have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def hold_connections(target: Target, address: str, count: int) -> AttemptTally:
    """Connections that say nothing, and come again as soon as they are closed."""
    allow_many_connections()
    host, _, port = address.rpartition(":")

    async def connect_and_wait() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            await asyncio.wait_for(reader.read(), target.seconds)
            # Whoever is thrown out waits a moment: the other end has work with every connection that it refuses.
            await asyncio.sleep(0.1)
        finally:
            writer.transport.abort()

    return await repeat_call(target, connect_and_wait, at_once=count)
