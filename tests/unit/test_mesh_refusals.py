"""Who is not let in, and whom a dialler does not trust: before a connection between processes is open."""

import asyncio

import grpc
import pytest

from ordercast.runtime.transport import mesh as mesh_module
from ordercast.runtime.transport.frame_listener import FrameListener
from ordercast.runtime.transport.mesh import WELCOME, WIRE_VERSION, Unwelcome
from ordercast.runtime.transport.server import GrpcServer
from ordercast.runtime.transport.tls import Credentials
from ordercast.v1.frame_pb2 import CHANNEL_DOMAINS, CHANNEL_MEMBERSHIP, DESCRIPTOR, ConnectResponse, Hello
from ordercast.v1.frame_pb2_grpc import PeerServiceServicer, add_PeerServiceServicer_to_server
from tests.unit.mesh_process import (
    NO_TLS,
    Process,
    call,
    connected,
    dial,
    dial_quickly_and_do_not_ping,
    frame,
    hello_of_a,
    run,
    show,
)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    dial_quickly_and_do_not_ping(monkeypatch)


# ------------------------------------------------------------------------------------------------- who calls


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
        assert await call(b, hello_of_a(**{field: value})) == grpc.StatusCode.FAILED_PRECONDITION
        assert b.frames._tickets == {}
        assert b.told == []

    run(story, "b")


def test_a_call_without_a_hello_is_refused():
    async def story(b):
        assert await call(b, None) == grpc.StatusCode.FAILED_PRECONDITION
        assert b.told == []

    run(story, "b")


@pytest.mark.parametrize("data", [b"\xff\xff\xff", b"\x0a\x05\x0a\x03\xff\xfe\xfd"])
def test_bytes_that_are_no_frame_end_the_connection(data):
    async def story(b):
        caller = await dial(b, hello_of_a())
        caller.write(frame(b"good"))
        caller.write(data)
        caller.write(frame(b"behind it"))
        assert await caller.read() is None
        assert [what[0] for what in b.told] == ["reset", b"good"]
        assert b.mesh.connected() == []

    run(story, "b")


def test_who_was_welcome_and_is_not_any_more_when_the_connection_opens_is_refused():
    async def story(b):
        checks = []

        def check(hello):
            checks.append(hello.incarnation)
            if len(checks) > 1:
                raise Unwelcome("it has come back as another incarnation meanwhile")

        b.on_check = check
        caller = await show(b, (await call(b, hello_of_a())).ticket)
        assert await caller.read() is None
        assert b.told == []

    run(story, "b")


def test_who_is_judged_for_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(mesh_module, "HELLO_S_MAX", 0.05)

    async def story(b):
        checks = []

        async def check(hello):
            checks.append(hello)
            if len(checks) > 1:
                await asyncio.Event().wait()

        b.on_check = check
        caller = await show(b, (await call(b, hello_of_a())).ticket)
        assert await caller.read() is None
        assert b.told == []

    run(story, "b")


def test_who_answered_and_has_come_back_meanwhile_is_refused_and_dialled_again():
    """The dialler judges last, too: when the connection is there."""

    async def story(a, b):
        checks, refused = [], []

        def answering(hello):
            checks.append(hello)

        def dialling(hello):
            # The first of these is the answer to the call, and the second comes with the connection.
            if len(checks) == 2:
                refused.append(hello)
                raise Unwelcome("it has come back as another incarnation meanwhile")

        b.on_check, a.on_check = answering, dialling
        await connected(a, b)
        assert len(refused) == 1
        assert a.resets == [("reset", "b", 1)]

    run(story)


# ------------------------------------------------------------------------------------------------ who answers


class Answering(PeerServiceServicer):
    """A b whose first two answers are wrong in one thing."""

    def __init__(self, spoil):
        self.spoil = spoil
        self.count = 0
        self.welcome = WELCOME
        self.frames = FrameListener(Credentials(NO_TLS))

    async def Connect(self, request, context):  # noqa: N802 (a method of the service)
        self.count += 1
        self.welcome = WELCOME
        hello = Hello(version=WIRE_VERSION, channel=CHANNEL_DOMAINS, process="b", incarnation=1, to="a")
        ticket = self.frames.ticket((CHANNEL_DOMAINS, "a"), self._welcome)
        answer = ConnectResponse(hello=hello, port=self.frames.port, ticket=ticket)
        if self.count <= 2:
            self.spoil(self, answer)
        return answer

    async def _welcome(self, wire):
        wire.write(self.welcome)
        await wire.lost.wait()


def refused_answer(spoil):
    """Two answers are refused, with nothing told, and the third is taken."""

    async def told():
        async with asyncio.timeout(30):
            answering = Answering(spoil)
            answering.frames.start("127.0.0.1", 0)
            server = GrpcServer()
            service = DESCRIPTOR.services_by_name["PeerService"]
            server.add(service, add_PeerServiceServicer_to_server, answering)
            port = await server.start("127.0.0.1:0")
            a = Process("a")
            a.mesh.follow({"b": f"127.0.0.1:{port}"})
            await a.has_resets(1)
            assert answering.count == 3
            await a.mesh.stop()
            await answering.frames.stop()
            await server.stop(None)

    asyncio.run(told())


@pytest.mark.parametrize(
    ("field", "value"),
    [("version", 1), ("to", "z"), ("channel", CHANNEL_MEMBERSHIP), ("process", "c"), ("process", "")],
)
def test_an_answer_that_is_wrong_is_refused_and_dialled_again(field, value):
    """The dialler does not trust the one who answers either."""
    refused_answer(lambda _, answer: setattr(answer.hello, field, value))


@pytest.mark.parametrize(
    ("field", "value"), [("port", 0), ("port", 1), ("port", 1 << 20), ("ticket", b""), ("ticket", bytes(1 << 20))]
)
def test_an_answer_that_leads_nowhere_is_dialled_again(field, value):
    refused_answer(lambda _, answer: setattr(answer, field, value))


@pytest.mark.parametrize("welcome", [b"go away", frame(b"too early")])
def test_a_welcome_that_is_none_is_refused_and_dialled_again(welcome):
    refused_answer(lambda answering, _: setattr(answering, "welcome", welcome))


def test_a_welcome_that_does_not_come_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(mesh_module, "HELLO_S_MAX", 1.0)

    async def silence(wire):
        await wire.lost.wait()

    def spoil(answering, answer):
        answer.ticket = answering.frames.ticket((CHANNEL_DOMAINS, "a"), silence)

    refused_answer(spoil)


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
