"""The streams between processes, over real connections: order, resets, who is refused, overflow, injected cuts."""

import asyncio
import contextlib
from types import SimpleNamespace

import grpc
import pytest

from ordercast.runtime import mesh as mesh_module
from ordercast.runtime import peer_service
from ordercast.runtime.mesh import EXCHANGE, WIRE_VERSION, Events, Mesh, Unwelcome
from ordercast.runtime.peer_service import serve_peers
from ordercast.runtime.server import GrpcServer
from ordercast.runtime.settings import TlsSettings
from ordercast.runtime.tls import Credentials
from ordercast.v1.frame_pb2 import CHANNEL_DOMAINS, CHANNEL_MEMBERSHIP, DESCRIPTOR, Frame, Hello

QUEUE_BYTES_MAX = 1 << 20


@pytest.fixture(autouse=True)
def _quick_redials(monkeypatch):
    monkeypatch.setattr(mesh_module, "REDIAL_S", 0.01)
    monkeypatch.setattr(mesh_module, "REDIAL_S_MAX", 0.05)


class Process:
    """A mesh with a server, and what it was told: (reset, peer, incarnation) or (packet, peer, incarnation)."""

    def __init__(self, name, incarnation=1):
        self.name = name
        self.incarnation = incarnation
        self.told = []
        self.news = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()
        self.on_check = lambda hello: None
        self.mesh = Mesh(
            CHANNEL_DOMAINS,
            self.hello,
            Events(self._opened, self._received, self._check, self.room.wait),
            Credentials(TlsSettings()),
            QUEUE_BYTES_MAX,
        )
        self.server = GrpcServer()
        self.address = ""

    def hello(self):
        return Hello(
            version=WIRE_VERSION, channel=CHANNEL_DOMAINS, process=self.name, incarnation=self.incarnation
        )

    async def start(self, port=0):
        serve_peers(SimpleNamespace(mesh=self.mesh, system_mesh=None, peer_server=self.server))
        self.address = f"127.0.0.1:{await self.server.start(f'127.0.0.1:{port}')}"
        return self

    async def stop(self):
        await self.mesh.stop()
        await self.server.stop(None)

    def _opened(self, peer, incarnation):
        self._tell(("reset", peer, incarnation))

    def _received(self, peer, incarnation, frame):
        for section in frame.sections:
            for packet in section.packets:
                self._tell((packet, peer, incarnation))

    async def _check(self, hello):
        self.on_check(hello)

    def _tell(self, what):
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


def run(story, names="ab"):
    async def told():
        async with asyncio.timeout(30):
            processes = [await Process(name).start() for name in names]
            try:
                await story(*processes)
            finally:
                for process in processes:
                    await process.stop()

    asyncio.run(told())


async def connected(*processes):
    addresses = {process.name: process.address for process in processes}
    for process in processes:
        process.mesh.follow({name: a for name, a in addresses.items() if name != process.name})
    for process in processes:
        await process.has_resets(len(processes) - 1)


async def dial(process, hello):
    """A stream that the test speaks on."""
    channel = grpc.aio.insecure_channel(process.address)
    call = channel.stream_stream(EXCHANGE)()
    await call.write(Frame(hello=hello).SerializeToString() if isinstance(hello, Hello) else hello)
    return channel, call


async def outcome(process, hello):
    """How a stream that begins with this hello ends, after whatever is said on it."""
    channel, call = await dial(process, hello)
    with contextlib.suppress(grpc.aio.AioRpcError):
        while await call.read() is not grpc.aio.EOF:
            pass
    code = await call.code()
    await channel.close()
    return code


def packet(number):
    return str(number).encode()


def frame(data):
    made = Frame()
    made.sections.add(domain="d", packets=[data])
    return made.SerializeToString()


# ---------------------------------------------------------------------------------------------- order and resets


def test_what_is_sent_arrives_in_order_in_both_directions_behind_a_reset():
    async def story(a, b):
        await connected(a, b)
        for number in range(500):
            a.mesh.send("b", "d", packet(number))
            b.mesh.send("a", "d", packet(number))
            if number % 50 == 0:
                await asyncio.sleep(0)
        await a.hears(packet(499))
        await b.hears(packet(499))
        assert a.told == [("reset", "b", 1), *((packet(n), "b", 1) for n in range(500))]
        assert b.told == [("reset", "a", 1), *((packet(n), "a", 1) for n in range(500))]

    run(story)


def test_three_processes_have_one_stream_for_each_pair():
    async def story(a, b, c):
        await connected(a, b, c)
        for process in (a, b, c):
            others = sorted({"a", "b", "c"} - {process.name})
            assert sorted(process.mesh.connected()) == [(other, 1) for other in others]
        a.mesh.send("c", "d", b"to c")
        c.mesh.send("b", "d", b"to b")
        await c.hears(b"to c")
        await b.hears(b"to b")
        assert len(a.resets) == len(b.resets) == len(c.resets) == 2

    run(story, "abc")


def test_after_each_reconnection_a_reset_comes_before_the_first_packet():
    async def story(a, b):
        await connected(a, b)
        for round_ in range(1, 5):
            a.mesh.send("b", "d", packet(round_))
            b.mesh.send("a", "d", packet(round_))
            await a.hears(packet(round_))
            await b.hears(packet(round_))
            (a if round_ % 2 else b).mesh.close("b" if round_ % 2 else "a")
            await a.has_resets(round_ + 1)
            await b.has_resets(round_ + 1)
        for process in (a, b):
            kinds = [what[0] for what in process.told]
            assert kinds == ["reset", b"1", "reset", b"2", "reset", b"3", "reset", b"4", "reset"]

    run(story)


def test_to_a_peer_that_is_not_connected_nothing_is_sent():
    async def story(a, b):
        a.mesh.send("b", "d", b"too early")
        await connected(a, b)
        a.mesh.send("b", "d", b"in time")
        await b.hears(b"in time")
        assert [what[0] for what in b.told] == ["reset", b"in time"]

    run(story)


def test_a_peer_that_comes_back_is_a_new_incarnation():
    async def story(a, b):
        await connected(a, b)
        port = int(b.address.rpartition(":")[2])
        await b.stop()
        again = await Process("b", incarnation=2).start(port)
        try:
            await a.has_resets(2)
            await again.has_resets(1)
            again.mesh.send("a", "d", b"back")
            await a.hears(b"back")
            assert a.told == [("reset", "b", 1), ("reset", "b", 2), (b"back", "b", 2)]
        finally:
            await again.stop()

    run(story)


def test_a_stream_that_is_replaced_delivers_nothing_any_more():
    async def story(b):
        hello = Hello(version=WIRE_VERSION, channel=CHANNEL_DOMAINS, process="a", incarnation=5, to="b")
        first_channel, first = await dial(b, hello)
        await b.has_resets(1)
        second_channel, second = await dial(b, hello)
        await b.has_resets(2)
        await second.write(frame(b"new"))
        await b.hears(b"new")
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            while not first.done():  # It has ended, or is about to.
                await first.write(frame(b"old"))
        assert [what[0] for what in b.told] == ["reset", "reset", b"new"]
        for channel in (first_channel, second_channel):
            await channel.close()

    run(story, "b")


def test_an_older_life_of_a_peer_does_not_replace_the_newer_one():
    async def story(b):
        hello = Hello(version=WIRE_VERSION, channel=CHANNEL_DOMAINS, process="a", incarnation=5, to="b")
        channel, call = await dial(b, hello)
        await b.has_resets(1)
        hello.incarnation = 4
        assert await outcome(b, hello) == grpc.StatusCode.FAILED_PRECONDITION
        await call.write(frame(b"still here"))
        await b.hears(b"still here")
        assert b.resets == [("reset", "a", 5)]
        await channel.close()

    run(story, "b")


def test_a_queue_that_overflows_gives_a_reset_although_the_peer_does_not_read():
    async def story(a, b):
        b.room.clear()
        await connected(a, b)
        while len(a.resets) < 2:
            a.mesh.send("b", "d", bytes(100_000))
            await asyncio.sleep(0)
        b.room.set()
        await b.has_resets(2)
        await b.until(lambda: b.mesh.connected())
        a.mesh.send("b", "d", b"after it")
        await b.hears(b"after it")
        assert b.told[b.told.index(("reset", "a", 1), 1) :][-1] == (b"after it", "a", 1)

    run(story)


def test_a_queue_that_overflows_ends_a_stream_whose_writer_is_stuck():
    async def story(a):
        stuck = asyncio.Event()

        async def never(*_):
            stuck.set()
            await asyncio.Event().wait()

        stream = asyncio.create_task(a.mesh._exchange(Hello(process="b", incarnation=1), never, never))
        await a.has_resets(1)
        a.mesh.send("b", "d", b"it waits for the peer to read")
        await stuck.wait()
        for _ in range(2):
            a.mesh.send("b", "d", bytes(QUEUE_BYTES_MAX))
        await stream
        assert a.mesh.connected() == []

    run(story, "a")


def test_while_there_is_no_room_nothing_more_is_taken():
    async def story(a, b):
        await connected(a, b)
        a.mesh.send("b", "d", b"first")
        await b.hears(b"first")
        b.room.clear()
        # A reader that waits for a frame takes that one; the next it leaves where it is.
        a.mesh.send("b", "d", b"second")
        await b.hears(b"second")
        a.mesh.send("b", "d", b"third")
        b.mesh.send("a", "d", b"the other way")
        await a.hears(b"the other way")
        assert b.told[-1][0] == b"second"
        b.room.set()
        await b.hears(b"third")

    run(story)


def test_who_is_no_longer_followed_is_hung_up_on():
    async def story(a, b, c):
        await connected(a, b, c)
        a.mesh.follow({"c": c.address})
        await b.until_gone("a")
        a.mesh.send("b", "d", b"lost")
        a.mesh.send("c", "d", b"kept")
        await c.hears(b"kept")
        assert a.mesh.connected() == [("c", 1)]
        assert len(c.resets) == 2

    run(story, "abc")


# ------------------------------------------------------------------------------------------------ who is refused


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", WIRE_VERSION + 1),
        ("version", 0),
        ("to", "another"),
        ("to", ""),
        ("channel", CHANNEL_MEMBERSHIP),
        ("channel", 0),
        ("process", "z"),
        ("process", "b"),
        ("process", "refused"),
    ],
)
def test_a_hello_that_is_wrong_is_refused_and_opens_nothing(field, value):
    async def story(b):
        def check(hello):
            if hello.process == "refused":
                raise Unwelcome("not you")

        b.on_check = check
        hello = Hello(version=WIRE_VERSION, channel=CHANNEL_DOMAINS, process="a", incarnation=5, to="b")
        setattr(hello, field, value)
        assert await outcome(b, hello) == grpc.StatusCode.FAILED_PRECONDITION
        assert b.told == []

    run(story, "b")


def test_bytes_that_are_no_frame_are_refused():
    async def story(b):
        assert await outcome(b, b"\xff\xff\xff") == grpc.StatusCode.INVALID_ARGUMENT
        assert await outcome(b, b"") == grpc.StatusCode.FAILED_PRECONDITION
        assert b.told == []

    run(story, "b")


def test_a_caller_that_does_not_say_who_it_is_is_cut_off(monkeypatch):
    monkeypatch.setattr(peer_service, "HELLO_S_MAX", 0.01)

    async def story(b):
        async with grpc.aio.insecure_channel(b.address) as channel:
            call = channel.stream_stream(EXCHANGE)()
            assert await call.code() == grpc.StatusCode.DEADLINE_EXCEEDED

    run(story, "b")


def test_who_was_welcome_and_is_not_any_more_when_the_stream_opens_is_refused():
    async def story(b):
        checks = []

        def check(hello):
            checks.append(hello.incarnation)
            if len(checks) > 1:
                raise Unwelcome("it has come back as another incarnation meanwhile")

        b.on_check = check
        hello = Hello(version=WIRE_VERSION, channel=CHANNEL_DOMAINS, process="a", incarnation=5, to="b")
        assert await outcome(b, hello) == grpc.StatusCode.FAILED_PRECONDITION
        assert b.told == []

    run(story, "b")


@pytest.mark.parametrize(
    ("field", "value"),
    [("version", 2), ("to", "z"), ("channel", CHANNEL_MEMBERSHIP), ("process", "c"), ("process", "")],
)
def test_an_answer_that_is_wrong_is_refused_and_dialled_again(field, value):
    """The dialler does not trust the one who answers either."""

    async def told():
        answered = asyncio.Event()
        answers = []

        async def exchange(_, context):
            await context.read()
            hello = Hello(version=WIRE_VERSION, channel=CHANNEL_DOMAINS, process="b", incarnation=1, to="a")
            if len(answers) < 2:
                setattr(hello, field, value)
            answers.append(hello)
            await context.write(Frame(hello=hello).SerializeToString())
            if len(answers) > 2:
                answered.set()
            while await context.read() is not grpc.aio.EOF:
                pass

        def register(servicer, server):
            handler = grpc.stream_stream_rpc_method_handler(exchange)
            service = DESCRIPTOR.services_by_name["PeerService"].full_name
            server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler(service, {"Exchange": handler}),)
            )

        server = GrpcServer()
        server.add(DESCRIPTOR.services_by_name["PeerService"], register, None)
        port = await server.start("127.0.0.1:0")
        a = Process("a")
        a.mesh.follow({"b": f"127.0.0.1:{port}"})
        await a.has_resets(1)
        assert answered.is_set() or len(answers) > 2
        await a.mesh.stop()
        await server.stop(None)

    async def in_time():
        async with asyncio.timeout(30):
            await told()

    asyncio.run(in_time())


def test_a_failure_that_nobody_thought_of_does_not_end_the_dialling():
    async def story(a, b):
        failures = [RuntimeError("a surprise"), asyncio.InvalidStateError("another")]

        def check(hello):
            if failures:
                raise failures.pop()

        a.on_check = check
        await connected(a, b)
        assert failures == []

    run(story)


# ------------------------------------------------------------------------------------------------- injected cuts


def test_a_cut_loses_what_is_sent_and_its_end_is_a_reset():
    async def story(a, b):
        await connected(a, b)
        a.mesh.inject(frozenset(), frozenset({"b"}))
        a.mesh.send("b", "d", b"lost")
        b.mesh.send("a", "d", b"the other way")
        await a.hears(b"the other way")
        a.mesh.inject(frozenset(), frozenset())
        await a.has_resets(2)
        await b.has_resets(2)
        a.mesh.send("b", "d", b"healed")
        await b.hears(b"healed")
        assert [what[0] for what in b.told] == ["reset", "reset", b"healed"]

    run(story)


def test_who_is_deaf_hears_again_only_behind_a_reset():
    async def story(a, b):
        await connected(a, b)
        a.mesh.inject(frozenset({"b"}), frozenset())
        b.mesh.send("a", "d", b"unheard")
        a.mesh.send("b", "d", b"heard")
        await b.hears(b"heard")
        # Now the other way round: what was unheard is still lost, and nothing may follow without a word.
        a.mesh.inject(frozenset(), frozenset({"b"}))
        assert a.mesh.connected() == [] or a.mesh._links["b"].is_closed
        a.mesh.inject(frozenset(), frozenset())
        await a.has_resets(2)
        await b.has_resets(2)
        b.mesh.send("a", "d", b"healed")
        await a.hears(b"healed")
        assert [what[0] for what in a.told] == ["reset", "reset", b"healed"]

    run(story)


def test_nobody_is_dialled_or_let_in_over_a_cut():
    async def story(a, b):
        b.mesh.inject(frozenset({"a"}), frozenset())
        hello = Hello(version=WIRE_VERSION, channel=CHANNEL_DOMAINS, process="a", incarnation=5, to="b")
        assert await outcome(b, hello) == grpc.StatusCode.FAILED_PRECONDITION
        b.mesh.inject(frozenset(), frozenset())
        await connected(a, b)

    run(story)
