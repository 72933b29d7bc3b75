"""Where the connections for frames come in: whoever shows a ticket is who the call that it got it from said.

Until then it is a stranger. When there are too many, the oldest from the address with most of them goes: a member
shows its ticket at once, so whoever waits long is none, and those that do nothing but connect push out each other.
Those from an address at which somebody got a ticket go last.
"""

import asyncio
import hmac
import os
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import structlog

from ordercast.runtime.transport.server import ListenError
from ordercast.runtime.transport.tls import Credentials
from ordercast.runtime.transport.wire import Wire
from ordercast.v1.frame_pb2 import Channel

log = structlog.get_logger("frames")

TICKET_BYTES = 16
#: Whoever connects and does not get on with it is cut off; so long, too, a ticket is good.
TICKET_S_MAX = 5.0
#: Connections that have not shown a ticket yet, together and from one address.
STRANGERS_MAX = 256
STRANGERS_PER_ADDRESS_MAX = 32
ACCEPT_AGAIN_S = 0.1

Welcome: TypeAlias = Callable[[Wire], Awaitable[None]]
#: In which channel, and which process.
Caller: TypeAlias = tuple[Channel, str]


class Ticket(NamedTuple):
    secret: bytes
    good_until: float
    welcome: Welcome
    #: Where the caller called from.
    address: str


class FrameListener:
    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._socket: socket.socket | None = None
        #: The latest of each caller. Whoever calls is known by then, so there are as many as processes at most.
        self._tickets: dict[Caller, Ticket] = {}
        #: Where each is from, the oldest first.
        self._strangers: dict[asyncio.Task[None], str] = {}
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

    def ticket(self, caller: Caller, welcome: Welcome, address: str = "") -> bytes:
        """What opens one connection, which is then given to `welcome`. An earlier one of this caller is void."""
        good_until = asyncio.get_running_loop().time() + TICKET_S_MAX
        ticket = self._tickets[caller] = Ticket(os.urandom(TICKET_BYTES), good_until, welcome, address)
        return ticket.secret

    def _redeem(self, secret: bytes, names: Sequence[str] | None) -> Welcome | None:
        """`names` are in the certificate of who shows it, if there is one: a ticket serves its caller alone."""
        for caller, ticket in self._tickets.items():
            if hmac.compare_digest(ticket.secret, secret):
                if names is not None and caller[1] not in names:
                    log.warning("the ticket of another process", process=caller[1], certificate=names)
                    return None
                del self._tickets[caller]
                return ticket.welcome if asyncio.get_running_loop().time() < ticket.good_until else None
        return None

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _make_room(self, address: str) -> None:
        """For one more stranger from there."""
        from_there = [task for task, other in self._strangers.items() if other == address]
        if len(from_there) >= STRANGERS_PER_ADDRESS_MAX:
            self._send_away(from_there[0])
        elif len(self._strangers) >= STRANGERS_MAX:
            now = asyncio.get_running_loop().time()
            expected = {ticket.address for ticket in self._tickets.values() if now < ticket.good_until}
            count = Counter(self._strangers.values())
            most = max(count, key=lambda other: (other not in expected, count[other]))
            self._send_away(next(task for task, other in self._strangers.items() if other == most))

    def _send_away(self, task: asyncio.Task[None]) -> None:
        del self._strangers[task]
        task.cancel()

    async def _accept_all(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, peer = await loop.sock_accept(listening)
            except OSError as error:  # There may be no file descriptor left, for now.
                log.warning("cannot take a connection", why=str(error))
                await asyncio.sleep(ACCEPT_AGAIN_S)
                continue
            address = str(peer[0]) if peer else ""
            self._make_room(address)
            task = self._spawn(self._serve(connection))
            self._strangers[task] = address
            # Also of one that is sent away before it began.
            task.add_done_callback(partial(self._ended, connection))
            # While others wait to be taken, the above does not wait, and nothing else here would get a turn.
            await asyncio.sleep(0)

    def _ended(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        self._strangers.pop(task, None)
        connection.close()

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
                welcome = self._redeem(await wire.first(), wire.certificate_names())
        except (OSError, EOFError) as error:  # A failed handshake and the end of the time are such errors, too.
            log.debug("connection without a ticket", why=repr(error))
            return None
        if welcome is None:
            log.debug("connection without a ticket that is good")
        else:
            task = asyncio.current_task()
            assert task is not None
            self._strangers.pop(task, None)
        return welcome

    async def _open(self, connection: socket.socket, wire: Wire) -> None:
        """Open the connection with the certificate that is valid at present."""
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: wire, connection, ssl=self._credentials.accepting())
