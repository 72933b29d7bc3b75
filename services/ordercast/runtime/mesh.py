"""The streams of one channel between this process and its peers.

One stream for each pair: the process with the lower name dials, the other accepts. Machines see what they were
simulated with: what one sends to another arrives in order, or a reset says that some of it may be lost. A reset
comes with every new stream, before anything is received on it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc
import structlog
from google.protobuf.message import DecodeError

from ordercast.runtime.link import Link
from ordercast.runtime.settings import PEER_MESSAGE_BYTES_MAX
from ordercast.runtime.tls import Credentials
from ordercast.v1.frame_pb2 import Channel, Frame, Hello

log = structlog.get_logger("mesh")

EXCHANGE = "/ordercast.v1.PeerService/Exchange"
WIRE_VERSION = 1
REDIAL_S = 0.1
REDIAL_S_MAX = 1.0
HELLO_S_MAX = 5.0

CHANNEL_OPTIONS = [
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", PEER_MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", PEER_MESSAGE_BYTES_MAX),
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
    #: Waits until what was received is dealt with so far that more may come.
    room: Callable[[], Awaitable[object]]


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
        self._hello = hello
        self._credentials = credentials
        self._queue_bytes_max = queue_bytes_max
        self._links: dict[str, Link] = {}
        self._dials: dict[str, tuple[str, asyncio.Task[None]]] = {}

    @property
    def process(self) -> str:
        return self._hello().process

    def connected(self) -> list[tuple[str, int]]:
        """Peers with an open stream, and their incarnations."""
        return [(link.peer, link.incarnation) for link in self._links.values()]

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
        """A cut loses what is sent, silently; when it heals, the stream starts anew, as a network's would.

        In either direction: what went the other way was never lost, but one stream has one reset.
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
                log.debug("stream to peer ended", peer=peer, code=error.code().name, why=error.details())
            except (Unwelcome, DecodeError, TimeoutError) as error:
                log.debug("stream to peer refused", peer=peer, why=str(error))
            except Exception as error:  # gRPC has more ways to fail than it names, and dialling must not end.
                log.warning("stream to peer failed", peer=peer, why=repr(error))
            lasted = asyncio.get_running_loop().time() - begun
            delay = REDIAL_S if lasted > REDIAL_S_MAX else min(delay * 2, REDIAL_S_MAX)
            await asyncio.sleep(delay)

    async def _dial_once(self, peer: str, address: str) -> None:
        """The certificate is read anew each time, so that a rotated one is used."""
        async with self._credentials.dial(address, peer, CHANNEL_OPTIONS) as channel:
            call: Any = channel.stream_stream(EXCHANGE)()
            try:
                hello = self._hello()
                hello.to = peer
                await asyncio.wait_for(call.write(Frame(hello=hello).SerializeToString()), HELLO_S_MAX)
                first = await asyncio.wait_for(call.read(), HELLO_S_MAX)
                if first is grpc.aio.EOF:
                    raise Unwelcome("the stream ended before the hello")
                await self._run(Frame.FromString(first).hello, peer, call.read, call.write)
            finally:
                call.cancel()

    # -------------------------------------------------------------------------------------------- accepting

    async def serve(self, hello: Hello, context: Any) -> None:
        """The serving side of a stream, after its first frame was read."""
        self._check_addressed(hello)
        if self.process <= hello.process:
            raise Unwelcome(f"{hello.process} waits to be dialled")
        if hello.process in self.deaf_to or hello.process in self.mute_to:
            raise Unwelcome("cut off")
        await self.events.check(hello)
        answer = self._hello()
        answer.to = hello.process
        await context.write(Frame(hello=answer).SerializeToString())
        # That took a while: the peer may have come back as another incarnation, and over another stream.
        await self.events.check(hello)
        await self._exchange(hello, context.read, context.write)

    # -------------------------------------------------------------------------------------------- streaming

    async def _run(self, hello: Hello, peer: str, read: Any, write: Any) -> None:
        if hello.process != peer:
            raise Unwelcome(f"{hello.process!r} answers in the place of {peer!r}")
        self._check_addressed(hello)
        await self.events.check(hello)
        await self._exchange(hello, read, write)

    def _check_addressed(self, hello: Hello) -> None:
        """Either side may be the newer one, or the wrong one."""
        if hello.version != WIRE_VERSION:
            raise Unwelcome(f"version {hello.version} of the wire is not spoken here, but {WIRE_VERSION}")
        if hello.channel != self.channel:
            raise Unwelcome(f"channel {hello.channel} is not {self.channel}")
        if hello.to != self.process:
            raise Unwelcome(f"this is {self.process!r}, not {hello.to!r}")

    async def _exchange(self, hello: Hello, read: Any, write: Any) -> None:
        peer = hello.process
        earlier = self._links.get(peer)
        if earlier is not None:
            if earlier.incarnation > hello.incarnation:
                raise Unwelcome(f"{peer!r} has come back as incarnation {earlier.incarnation}")
            earlier.close()
        link = self._links[peer] = Link(peer, hello.incarnation, self._queue_bytes_max)
        log.info("stream to peer open", peer=peer, incarnation=hello.incarnation)
        self.events.opened(peer, hello.incarnation)
        # A link that was closed ends the stream, although its writer may wait for a peer that does not read.
        tasks = [
            asyncio.create_task(work) for work in (link.write(write), self._read(link, read), link.closed.wait())
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            link.close()
            if self._links.get(peer) is link:
                del self._links[peer]
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            why = [repr(error) for error in outcomes if isinstance(error, Exception)]
            log.info("stream to peer closed", peer=peer, why=why)

    async def _read(self, link: Link, read: Any) -> None:
        while True:
            await self.events.room()
            data = await read()
            if data is grpc.aio.EOF or link.is_closed:
                return
            if link.peer in self.deaf_to:
                continue
            self.events.received(link.peer, link.incarnation, Frame.FromString(data))
