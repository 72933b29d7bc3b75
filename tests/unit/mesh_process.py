"""A mesh with its ports, for tests of the connections between processes; and a caller that a test speaks as."""

import asyncio
import inspect
import itertools
from types import SimpleNamespace

import grpc

from ordercast.local.cluster import free_ports
from ordercast.runtime.process.settings import TlsSettings
from ordercast.runtime.transport import link, mesh
from ordercast.runtime.transport.frame_listener import FrameListener
from ordercast.runtime.transport.mesh import WELCOME, WIRE_VERSION, Events, Mesh
from ordercast.runtime.transport.peer_service import serve_peers
from ordercast.runtime.transport.server import GrpcServer
from ordercast.runtime.transport.tls import Credentials
from ordercast.runtime.transport.wire import LENGTH
from ordercast.v1.frame_pb2 import CHANNEL_DOMAINS, ConnectRequest, Frame, Hello
from ordercast.v1.frame_pb2_grpc import PeerServiceStub

QUEUE_BYTES_MAX = 1 << 20
NO_TLS = TlsSettings()


def dial_quickly_and_do_not_ping(monkeypatch):
    monkeypatch.setattr(mesh, "REDIAL_S", 0.01)
    monkeypatch.setattr(mesh, "REDIAL_S_MAX", 0.05)
    # A ping looks like a welcome: one that is missing has to be noticed.
    monkeypatch.setattr(link, "PING_S", 3600)


class Process:
    """A mesh with its ports, and what it was told: (reset, peer, incarnation) or (packet, peer, incarnation)."""

    def __init__(self, name, incarnation=1, tls=NO_TLS):
        self.name = name
        self.incarnation = incarnation
        self.told = []
        self.news = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()
        #: May wait, and may raise.
        self.on_check = lambda hello: None
        self.on_told = lambda what: None
        self.credentials = Credentials(tls)
        self.mesh = Mesh(
            CHANNEL_DOMAINS,
            self.hello,
            Events(self._opened, self._received, self._check, self.room),
            self.credentials,
            QUEUE_BYTES_MAX,
        )
        self.server = GrpcServer()
        self.frames = FrameListener(self.credentials)
        self.address = ""

    def hello(self):
        return Hello(
            version=WIRE_VERSION, channel=CHANNEL_DOMAINS, process=self.name, incarnation=self.incarnation
        )

    async def start(self, port=None):
        # Not one that the system chooses: somebody else could be given that while a test has this process down.
        (port,) = free_ports(1) if port is None else (port,)
        serve_peers(SimpleNamespace(mesh=self.mesh, system_mesh=None, peer_server=self.server, frames=self.frames))
        self.frames.start("127.0.0.1", 0)
        self.address = f"127.0.0.1:{port}"
        await self.server.start(self.address, self.credentials.for_peers())
        return self

    async def stop(self):
        await self.mesh.stop()
        await self.frames.stop()
        await self.server.stop(None)

    def _opened(self, peer, incarnation):
        self._tell(("reset", peer, incarnation))

    def _received(self, peer, incarnation, frame):
        for section in frame.sections:
            for packet in section.packets:
                self._tell((packet, peer, incarnation))

    async def _check(self, hello):
        checked = self.on_check(hello)
        if inspect.isawaitable(checked):
            await checked

    def gate_check(self, number):
        """The check of this number waits at a gate; the first of a connection is in the call."""
        gate = SimpleNamespace(reached=asyncio.Event(), open=asyncio.Event())
        numbers = itertools.count(1)

        async def check(hello):
            if next(numbers) == number:
                gate.reached.set()
                await gate.open.wait()

        self.on_check = check
        return gate

    def _tell(self, what):
        self.on_told(what)
        self.told.append(what)
        self.news.set()

    @property
    def resets(self):
        return [what for what in self.told if what[0] == "reset"]

    async def until(self, is_so):
        while not is_so():
            self.news.clear()
            await self.news.wait()

    async def has_resets(self, count):
        await self.until(lambda: len(self.resets) >= count)

    async def until_gone(self, peer):
        while peer in dict(self.mesh.connected()):
            await asyncio.sleep(0)

    async def hears(self, packet):
        await self.until(lambda: packet in [what[0] for what in self.told])


def run(story, names="ab", tls=None):
    async def told():
        async with asyncio.timeout(30):
            processes = [await Process(name, tls=tls[name] if tls else NO_TLS).start() for name in names]
            try:
                await story(*processes)
            finally:
                for process in processes:
                    await process.stop()

    asyncio.run(told())


async def overflow(a, b):
    """a sends to b, which does not read, until it has to begin anew; then b reads."""
    b.room.clear()
    await connected(a, b)
    while len(a.resets) < 2:
        a.mesh.send("b", "d", bytes(100_000))
        await asyncio.sleep(0)
    b.room.set()
    await b.has_resets(2)


async def connected(*processes):
    addresses = {process.name: process.address for process in processes}
    for process in processes:
        process.mesh.follow({name: a for name, a in addresses.items() if name != process.name})
    for process in processes:
        await process.has_resets(len(processes) - 1)


def hello_of_a(**changed):
    """To b, as a test says it."""
    good = {"version": WIRE_VERSION, "channel": CHANNEL_DOMAINS, "process": "a", "incarnation": 5, "to": "b"}
    return Hello(**{**good, **changed})


class Caller:
    """A connection that the test speaks on."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    def write(self, data):
        self.writer.write(LENGTH.pack(len(data)) + data)

    async def read(self):
        """The next frame; None if the connection ends instead."""
        try:
            (length,) = LENGTH.unpack(await self.reader.readexactly(LENGTH.size))
            return await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def close(self):
        self.writer.transport.abort()


async def call(process, hello):
    """What Connect answers, or the code of its refusal."""
    async with grpc.aio.insecure_channel(process.address) as channel:
        try:
            return await PeerServiceStub(channel).Connect(ConnectRequest(hello=hello))
        except grpc.aio.AioRpcError as error:
            return error.code()


async def show(process, ticket):
    """A connection on which this was shown, and not more."""
    caller = Caller(*await asyncio.open_connection("127.0.0.1", process.frames.port))
    caller.write(ticket)
    return caller


async def dial(process, hello):
    caller = await show(process, (await call(process, hello)).ticket)
    assert await caller.read() == WELCOME
    return caller


def packet(number):
    return str(number).encode()


def frame(data):
    made = Frame()
    made.sections.add(domain="d", packets=[data])
    return made.SerializeToString()
