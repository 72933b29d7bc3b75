"""Where the connections for frames come in: whoever shows a ticket is who the call that it got it from said."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

import structlog

from ordercast.runtime.server import ListenError
from ordercast.runtime.tls import Credentials
from ordercast.runtime.wire import Wire
from ordercast.v1.frame_pb2 import Channel

log = structlog.get_logger("frames")

TICKET_BYTES = 16
#: Whoever connects and does not get on with it is cut off; so long, too, a ticket is good.
TICKET_S_MAX = 5.0
#: Connections that have not shown a ticket yet.
STRANGERS_MAX = 256
ACCEPT_AGAIN_S = 0.1

Welcome: TypeAlias = Callable[[Wire], Awaitable[None]]
#: In which channel, and which process.
Caller: TypeAlias = tuple[Channel, str]


class Ticket(NamedTuple):
    secret: bytes
    good_until: float
    welcome: Welcome


class FrameListener:
    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._socket: socket.socket | None = None
        #: The latest of each caller. Whoever calls is known by then, so there are as many as processes at most.
        self._tickets: dict[Caller, Ticket] = {}
        self._strangers = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    def start(self, host: str, port: int) -> int:
        """Listens, and returns the port, which the system chooses if it is 0."""
        is_v6 = ":" in host
        family = socket.AF_INET6 if is_v6 else socket.AF_INET
        # As gRPC does: `::` is for everybody.
        both = is_v6 and socket.has_dualstack_ipv6()
        try:
            self._socket = socket.create_server(
                (host, port), family=family, backlog=STRANGERS_MAX, dualstack_ipv6=both
            )
        except OSError as error:
            raise ListenError(f"cannot listen at {host}:{port}: {error}") from error
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]
        self._spawn(self._accept_all(self._socket))
        return self.port

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._socket is not None:
            self._socket.close()

    def ticket(self, caller: Caller, welcome: Welcome) -> bytes:
        """What opens one connection, which is then given to `welcome`. An earlier one of this caller is void."""
        good_until = asyncio.get_running_loop().time() + TICKET_S_MAX
        ticket = self._tickets[caller] = Ticket(os.urandom(TICKET_BYTES), good_until, welcome)
        return ticket.secret

    def _redeem(self, secret: bytes) -> Welcome | None:
        for caller, ticket in self._tickets.items():
            if ticket.secret == secret:
                del self._tickets[caller]
                return ticket.welcome if asyncio.get_running_loop().time() < ticket.good_until else None
        return None

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept_all(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError as error:  # There may be no file descriptor left, for now.
                log.warning("cannot take a connection", why=str(error))
                await asyncio.sleep(ACCEPT_AGAIN_S)
                continue
            if self._strangers < STRANGERS_MAX:
                self._strangers += 1
                self._spawn(self._serve(connection))
            else:
                connection.close()
            # While others wait to be taken, the above does not wait, and nothing else here would get a turn.
            await asyncio.sleep(0)

    async def _serve(self, connection: socket.socket) -> None:
        wire = Wire()
        try:
            welcome = await self._admit(connection, wire)
            if welcome is not None:
                await welcome(wire)
        except Exception as error:  # Nobody else would hear of it.
            log.warning("connection of peer failed", why=repr(error))
        finally:
            wire.abort()

    async def _admit(self, connection: socket.socket, wire: Wire) -> Welcome | None:
        """For whom it is, if it shows a ticket in time."""
        try:
            async with asyncio.timeout(TICKET_S_MAX):
                await self._open(connection, wire)
                welcome = self._redeem(await wire.first())
        except (OSError, EOFError) as error:  # A failed handshake and the end of the time are such errors, too.
            log.debug("connection without a ticket", why=repr(error))
            return None
        finally:
            self._strangers -= 1
        if welcome is None:
            log.debug("connection without a ticket that is good")
        return welcome

    async def _open(self, connection: socket.socket, wire: Wire) -> None:
        """With the certificate of now."""
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: wire, connection, ssl=self._credentials.accepting())
