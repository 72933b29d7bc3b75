"""The connections of one channel between this process and its peers.

One for each pair: the process with the lower name dials, the other accepts. A gRPC call says who is who and where
to connect, and gives a ticket; frames then go over a connection of their own (wire.py). Machines see what they
were simulated with: what one sends to another arrives in order, or a reset says that some of it may be lost. A
reset comes with every new connection, before anything is received on it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import grpc
import structlog

from ordercast.runtime.process.settings import MESSAGE_BYTES_MAX, split_address
from ordercast.runtime.transport.link import Link
from ordercast.runtime.transport.tls import Credentials
from ordercast.runtime.transport.wire import Wire
from ordercast.v1.frame_pb2 import Channel, ConnectRequest, ConnectResponse, Frame, Hello
from ordercast.v1.frame_pb2_grpc import PeerServiceStub

log = structlog.get_logger("mesh")

WIRE_VERSION = 2
#: Which way a frame went.
SENT, RECEIVED = "sent", "received"
REDIAL_S = 0.1
REDIAL_S_MAX = 1.0
HELLO_S_MAX = 5.0
#: How a ticket is answered.
WELCOME = b""

CHANNEL_OPTIONS = [
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    # Each link has a connection of its own: one that hangs must not take others with it.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]


class Unwelcome(Exception):  # noqa: N818 (it names what happened, not a kind of error)
    """The other side's hello was refused; it may try again."""


@dataclass(slots=True)
class Events:
    """What a mesh tells its owner."""

    opened: Callable[[str, int], None]
    received: Callable[[str, int, Frame], None]
    #: Raises Unwelcome. May wait, for instance until something is on disk.
    check: Callable[[Hello], Awaitable[None]]
    #: While it is not set, nothing more is taken: what was received has to be dealt with first.
    room: asyncio.Event


class Mesh:
    def __init__(
        self,
        channel: Channel,
        hello: Callable[[], Hello],
        events: Events,
        credentials: Credentials,
        queue_bytes_max: int,
    ) -> None:
        self.channel = channel
        self.events = events
        #: Injected faults: nothing is taken from these, and nothing leaves for those.
        self.deaf_to: frozenset[str] = frozenset()
        self.mute_to: frozenset[str] = frozenset()
        #: Told which way each frame went, and how long it was.
        self.on_frame: Callable[[str, int], None] = lambda direction, size: None
        #: How often a connection to somebody was not the first one.
        self.resets = 0
        self._known: dict[str, None] = {}
        self._hello = hello
        self._credentials = credentials
        self._queue_bytes_max = queue_bytes_max
        self._links: dict[str, Link] = {}
        self._dials: dict[str, tuple[str, asyncio.Task[None]]] = {}
        #: Waits for room, on behalf of all whose frames are held.
        self._resuming: asyncio.Task[None] | None = None

    @property
    def process(self) -> str:
        return self._hello().process

    def connected(self) -> list[tuple[str, int]]:
        """Peers with an open connection, and their incarnations."""
        return [(link.peer, link.incarnation) for link in self._links.values()]

    def queued(self) -> dict[str, int]:
        """Bytes that wait to be written, by peer."""
        return {link.peer: link.queued_bytes for link in self._links.values()}

    def send(self, peer: str, domain: str, packet: bytes, urgent: bool = True) -> None:
        """To a peer that is not connected, nothing is sent: the reset that comes with the connection says so."""
        link = self._links.get(peer)
        if link is not None and peer not in self.mute_to:
            link.send(domain, packet, urgent)

    def close(self, peer: str) -> None:
        link = self._links.get(peer)
        if link is not None:
            link.close()

    def inject(self, deaf_to: frozenset[str], mute_to: frozenset[str]) -> None:
        """A cut loses what is sent, silently; when it heals, the connection starts anew, as a network's would.

        In either direction: what went the other way was never lost, but one connection has one reset.
        """
        healed = (self.deaf_to - deaf_to) | (self.mute_to - mute_to)
        self.deaf_to, self.mute_to = deaf_to, mute_to
        for peer in sorted(healed):
            self.close(peer)

    # --------------------------------------------------------------------------------------------- dialling

    def follow(self, addresses: dict[str, str]) -> None:
        """Dial those of these peers that are ours to dial; hang up on everyone else."""
        wanted = {peer: address for peer, address in addresses.items() if self.process < peer}
        for peer, (address, task) in list(self._dials.items()):
            if wanted.get(peer) != address:
                task.cancel()
                del self._dials[peer]
        for peer, address in wanted.items():
            if peer not in self._dials:
                self._dials[peer] = (address, asyncio.create_task(self._dial(peer, address)))
        for peer in self._links:
            if peer not in addresses:
                self.close(peer)

    async def stop(self) -> None:
        for link in list(self._links.values()):
            link.close()
        tasks = [task for _, task in self._dials.values()]
        if self._resuming is not None:
            tasks.append(self._resuming)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._dials.clear()

    async def _dial(self, peer: str, address: str) -> None:
        delay = REDIAL_S
        while True:
            begun = asyncio.get_running_loop().time()
            try:
                if peer not in self.mute_to and peer not in self.deaf_to:
                    await self._dial_once(peer, address)
            except grpc.aio.AioRpcError as error:
                log.debug("call to peer failed", peer=peer, code=error.code().name, why=error.details())
            except (Unwelcome, EOFError, OSError) as error:  # TimeoutError is one of the latter.
                log.debug("connection to peer refused", peer=peer, why=str(error))
            except Exception as error:  # gRPC has more ways to fail than it names, and dialling must not end.
                log.warning("connection to peer failed", peer=peer, why=repr(error))
            lasted = asyncio.get_running_loop().time() - begun
            delay = REDIAL_S if lasted > REDIAL_S_MAX else min(delay * 2, REDIAL_S_MAX)
            await asyncio.sleep(delay)

    async def _dial_once(self, peer: str, address: str) -> None:
        """The certificate is read anew each time, so that a rotated one is used."""
        hello = self._hello()
        hello.to = peer
        # Both connections go to one address: the ticket is good nowhere else.
        address = self._credentials.locate(address, peer)
        async with self._credentials.dial_at(address, peer, CHANNEL_OPTIONS) as channel:
            request = ConnectRequest(hello=hello)
            answer: ConnectResponse = await PeerServiceStub(channel).Connect(request, timeout=HELLO_S_MAX)
        if answer.hello.process != peer:
            raise Unwelcome(f"{answer.hello.process!r} answers in the place of {peer!r}")
        self._check_addressed(answer.hello)
        wire = Wire()
        try:
            async with asyncio.timeout(HELLO_S_MAX):
                await self._connect(wire, peer, split_address(address)[0], answer)
                # Not earlier: while that went on, the peer may have come back as another incarnation.
                await self.events.check(answer.hello)
            await self._exchange(answer.hello, wire)
        finally:
            wire.abort()

    async def _connect(self, wire: Wire, peer: str, host: str, answer: ConnectResponse) -> None:
        context = self._credentials.dialling()
        await asyncio.get_running_loop().create_connection(
            lambda: wire, host, answer.port, ssl=context, server_hostname=peer if context else None
        )
        wire.write(answer.ticket)
        if await wire.first() != WELCOME:
            raise Unwelcome("the ticket was answered with something else than a welcome")

    # -------------------------------------------------------------------------------------------- accepting

    async def answer(self, hello: Hello) -> Hello:
        """To a peer that calls; raises Unwelcome."""
        await self._check_caller(hello)
        answer = self._hello()
        answer.to = hello.process
        return answer

    async def accept(self, hello: Hello, wire: Wire) -> None:
        """The connection of a peer that was answered, until it ends."""
        # That took a while: the peer may have come back as another incarnation, and over another connection.
        try:
            async with asyncio.timeout(HELLO_S_MAX):
                await self._check_caller(hello)
        except (Unwelcome, TimeoutError) as why:
            log.debug("connection of peer refused", peer=hello.process, why=str(why))
            return
        wire.write(WELCOME)
        await self._exchange(hello, wire)

    async def _check_caller(self, hello: Hello) -> None:
        self._check_addressed(hello)
        if self.process <= hello.process:
            raise Unwelcome(f"{hello.process} waits to be dialled")
        if hello.process in self.deaf_to or hello.process in self.mute_to:
            raise Unwelcome("cut off")
        await self.events.check(hello)
        earlier = self._links.get(hello.process)
        if earlier is not None and earlier.incarnation > hello.incarnation:
            raise Unwelcome(f"{hello.process!r} has come back as incarnation {earlier.incarnation}")

    # -------------------------------------------------------------------------------------------- exchanging

    def _check_addressed(self, hello: Hello) -> None:
        """Either side may be the newer one, or the wrong one."""
        if hello.version != WIRE_VERSION:
            raise Unwelcome(f"version {hello.version} of the wire is not spoken here, but {WIRE_VERSION}")
        if hello.channel != self.channel:
            raise Unwelcome(f"channel {hello.channel} is not {self.channel}")
        if hello.to != self.process:
            raise Unwelcome(f"this is {self.process!r}, not {hello.to!r}")

    async def _exchange(self, hello: Hello, wire: Wire) -> None:
        """Until the connection ends. If it has already, it takes no other's place."""
        if wire.lost.is_set():
            return
        peer = hello.process
        earlier = self._links.get(peer)
        if earlier is not None:
            earlier.close()
        self.resets += peer in self._known
        self._known[peer] = None
        link = self._links[peer] = Link(
            peer, hello.incarnation, self._queue_bytes_max, wire, partial(self._frame, SENT)
        )
        log.info("connection to peer open", peer=peer, incarnation=hello.incarnation)
        try:
            self.events.opened(peer, hello.incarnation)
            wire.start(partial(self._received, link))
            await wire.lost.wait()
        finally:
            link.close()
            if self._links.get(peer) is link:
                del self._links[peer]
            log.info("connection to peer closed", peer=peer)

    def _frame(self, direction: str, size: int) -> None:
        self.on_frame(direction, size)

    def _received(self, link: Link, data: bytes) -> None:
        if link.is_closed or not data or link.peer in self.deaf_to:
            return
        self._frame(RECEIVED, len(data))
        try:
            self.events.received(link.peer, link.incarnation, Frame.FromString(data))
        except Exception as error:  # Usually it is no frame. Whatever it is, the rest may not follow without this.
            log.warning("a frame of a peer cannot be taken", peer=link.peer, why=repr(error))
            link.close()
        if not self.events.room.is_set():
            link.wire.hold()
            if self._resuming is None:
                self._resuming = asyncio.create_task(self._resume())

    async def _resume(self) -> None:
        """When there is room again; each may hand out one frame at least, so that none waits behind the others."""
        await self.events.room.wait()
        self._resuming = None
        for link in list(self._links.values()):
            link.wire.go_on()
