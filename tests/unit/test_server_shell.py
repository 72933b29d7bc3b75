"""The server around the services: health, reflection, how calls fail, bad bytes, stopping, and logs."""

import asyncio
import contextlib
import gc
import io
import json
import logging
import socket
import struct
import weakref

import grpc
import pytest
import structlog
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status
from structlog.testing import capture_logs

from ordercast.core.limits import Limits
from ordercast.runtime import logs, status
from ordercast.runtime.server import GrpcServer, ListenError
from ordercast.runtime.settings import LogSettings
from ordercast.runtime.status import Refused
from ordercast.v1 import faults_pb2, membership_pb2
from ordercast.v1.membership_pb2_grpc import (
    MembershipServiceServicer,
    MembershipServiceStub,
    add_MembershipServiceServicer_to_server,
)

SERVICE = membership_pb2.DESCRIPTOR.services_by_name["MembershipService"]
CALL_S = 20
SECRET = "the payload of a client"


class Moody(MembershipServiceServicer):
    """Does what the test says: `mood` is called in each call, and may raise."""

    def __init__(self):
        self.mood = lambda context: None
        self.entered = asyncio.Event()
        self.left = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def _react(self, context):
        outcome = self.mood(context)
        if outcome is not None:
            await outcome

    async def Heartbeat(self, request, context):  # noqa: N802 (a method of the service)
        self.entered.set()
        await self.go_on.wait()
        await self._react(context)
        return membership_pb2.HeartbeatResponse(incarnation=request.incarnation)

    async def Watch(self, request, context):  # noqa: N802 (a method of the service)
        try:
            yield membership_pb2.WatchResponse(revision=1)
            await self._react(context)
            self.entered.set()
            await asyncio.Event().wait()
        finally:
            self.left.set()


class Writing(MembershipServiceServicer):
    """Answers a stream by writing to the context, as gRPC's own health service does."""

    async def Watch(self, request, context):  # noqa: N802 (a method of the service)
        await context.write(membership_pb2.WatchResponse(revision=1))
        raise ValueError(SECRET)


class Blocking(MembershipServiceServicer):
    def Heartbeat(self, request, context):  # noqa: N802 (a method of the service)
        return membership_pb2.HeartbeatResponse()


@contextlib.asynccontextmanager
async def serving(servicer=None, **limits):
    """(server, servicer, channel, port)"""
    servicer = servicer or Moody()
    server = GrpcServer(**limits)
    server.add(SERVICE, add_MembershipServiceServicer_to_server, servicer)
    port = await server.start("127.0.0.1:0")
    try:
        async with dialled(port) as channel:
            yield server, servicer, channel, port
    finally:
        await server.stop(0)


def dialled(port):
    return grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)])


async def beat(channel):
    request = membership_pb2.HeartbeatRequest(incarnation=7)
    return (await MembershipServiceStub(channel).Heartbeat(request, timeout=CALL_S)).incarnation


async def failure(call):
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    return failed.value


def details(error, *kinds):
    """The details of these kinds, in this order."""
    found = rpc_status.from_call(error).details
    unpacked = []
    for kind, packed in zip(kinds, found, strict=True):
        unpacked.append(kind())
        assert packed.Unpack(unpacked[-1])
    return unpacked


def raising(error):
    def mood(context):
        raise error

    return mood


# --- Health and reflection


async def health(channel, service=""):
    request = health_pb2.HealthCheckRequest(service=service)
    return (await health_pb2_grpc.HealthStub(channel).Check(request, timeout=CALL_S)).status


def test_nothing_is_healthy_before_it_is_said_to_be():
    async def run():
        async with serving() as (server, _, channel, _):
            serves, does_not = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
            assert [await health(channel), await health(channel, SERVICE.full_name)] == [does_not, does_not]
            await server.set_serving(True)
            assert [await health(channel), await health(channel, SERVICE.full_name)] == [serves, serves]
            await server.set_serving(False, SERVICE)
            assert [await health(channel), await health(channel, SERVICE.full_name)] == [serves, does_not]
            error = await failure(health(channel, "no.such.Service"))
            assert error.code() == grpc.StatusCode.NOT_FOUND

    asyncio.run(run())


def test_who_watches_health_hears_of_the_stop():
    async def run():
        async with serving() as (server, servicer, channel, _):
            await server.set_serving(True)
            watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
            servicer.go_on.clear()
            open_call = asyncio.ensure_future(beat(channel))
            await servicer.entered.wait()
            stopping = asyncio.ensure_future(server.stop(CALL_S))
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
            watch.cancel()
            servicer.go_on.set()
            assert await open_call == 7
            await stopping

    asyncio.run(run())


def test_reflection_lists_the_services():
    async def run():
        async with serving() as (_, _, channel, _):
            ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
            await ask.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            listed = [service.name for service in (await ask.read()).list_services_response.service]
            await ask.write(reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE.full_name))
            assert (await ask.read()).file_descriptor_response.file_descriptor_proto
            ask.cancel()
            assert sorted(listed) == [
                "grpc.health.v1.Health",
                "grpc.reflection.v1alpha.ServerReflection",
                "ordercast.v1.MembershipService",
            ]

    asyncio.run(run())


# --- Listening and stopping


def test_two_servers_cannot_listen_at_one_address():
    async def run():
        async with serving() as (_, _, _, port):
            with pytest.raises(ListenError, match=str(port)):
                await GrpcServer().start(f"127.0.0.1:{port}")

    asyncio.run(run())


def test_a_call_that_is_open_may_end_while_the_server_stops():
    async def run():
        async with serving() as (server, servicer, channel, port):
            servicer.go_on.clear()
            open_call = asyncio.ensure_future(beat(channel))
            await servicer.entered.wait()
            stopping = asyncio.ensure_future(server.stop(CALL_S))
            async with dialled(port) as late:
                assert (await failure(beat(late))).code() == grpc.StatusCode.UNAVAILABLE
            servicer.go_on.set()
            assert await open_call == 7
            await stopping

    asyncio.run(run())


def test_a_call_that_outlasts_the_grace_period_is_cut_off():
    async def run():
        async with serving() as (server, servicer, channel, _):
            watch = MembershipServiceStub(channel).Watch(membership_pb2.WatchRequest())
            await watch.read()
            await servicer.entered.wait()
            await server.stop(0.05)
            await asyncio.wait_for(servicer.left.wait(), CALL_S)
            assert (await failure(watch.read())).code() == grpc.StatusCode.UNAVAILABLE

    asyncio.run(run())


def test_connections_beyond_the_limit_are_refused_until_one_is_closed():
    async def run():
        async with serving(connections_max=2) as (_, _, first, port):
            assert await beat(first) == 7
            async with dialled(port) as second:
                assert await beat(second) == 7
                async with dialled(port) as third:
                    assert (await failure(beat(third))).code() == grpc.StatusCode.UNAVAILABLE
            assert await beat(first) == 7
            async with dialled(port) as fourth:
                request = membership_pb2.HeartbeatRequest()
                await MembershipServiceStub(fourth).Heartbeat(request, timeout=CALL_S, wait_for_ready=True)

    asyncio.run(run())


# --- How calls fail


def test_a_refusal_reaches_the_caller_with_its_reason():
    async def run():
        async with serving() as (_, servicer, channel, _):
            servicer.mood = raising(
                Refused(
                    grpc.StatusCode.FAILED_PRECONDITION,
                    "ask the leader",
                    "NOT_LEADER",
                    metadata={"leader": "m2"},
                    retry_after_s=1.5,
                    details=[membership_pb2.NotLeader(leader="m2")],
                )
            )
            with capture_logs() as logged:
                error = await failure(beat(channel))
            assert (error.code(), error.details()) == (grpc.StatusCode.FAILED_PRECONDITION, "ask the leader")
            info, retry, leader = details(error, ErrorInfo, RetryInfo, membership_pb2.NotLeader)
            assert (info.domain, info.reason, dict(info.metadata)) == ("ordercast", "NOT_LEADER", {"leader": "m2"})
            assert retry.retry_delay.ToNanoseconds() == 1_500_000_000
            assert leader.leader == "m2"
            assert logged == []

    asyncio.run(run())


def test_a_service_can_end_a_call_by_itself():
    async def run():
        async with serving() as (_, servicer, channel, _):
            code = grpc.StatusCode.RESOURCE_EXHAUSTED
            servicer.mood = lambda context: context.abort(code, "later")
            with capture_logs() as logged:
                error = await failure(beat(channel))
            assert (error.code(), error.details()) == (code, "later")
            assert logged == []

    asyncio.run(run())


class Held:
    """Stands for what a call keeps in memory, its request above all."""


async def _fail(error):
    raise error


class Holding(MembershipServiceServicer):
    """Fails while it holds something, in the ways in which services fail."""

    def __init__(self, way):
        self.way = way
        self.held = []

    async def _end(self, context):
        held = Held()
        self.held.append(weakref.ref(held))
        refusal = Refused(grpc.StatusCode.INVALID_ARGUMENT, "no", "NO")
        if self.way == "aborts":
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no")
        if self.way == "a task fails":
            task = asyncio.create_task(_fail(refusal))
            await asyncio.wait([task])
            task.result()
        try:
            raise ValueError("no")
        except ValueError as error:
            raise refusal from error

    async def Heartbeat(self, request, context):  # noqa: N802 (a method of the service)
        await self._end(context)

    async def Watch(self, request, context):  # noqa: N802 (a method of the service)
        yield membership_pb2.WatchResponse(revision=1)
        await self._end(context)


@pytest.mark.parametrize("way", ["refuses", "aborts", "a task fails"])
@pytest.mark.parametrize("method", ["Heartbeat", "Watch"])
def test_a_refused_call_is_freed_at_once_and_not_when_the_collector_comes(way, method):
    async def run():
        async with serving(Holding(way)) as (_, servicer, channel, _):
            call = channel.unary_stream(f"/{SERVICE.full_name}/{method}")(b"", timeout=CALL_S)
            with pytest.raises(grpc.aio.AioRpcError, match="no"):
                async for _ in call:
                    pass
            async with asyncio.timeout(CALL_S):
                while servicer.held[0]() is not None:
                    await asyncio.sleep(0.01)

    gc.disable()
    try:
        asyncio.run(run())
    finally:
        gc.enable()


def test_a_refusal_with_long_texts_still_arrives():
    async def run():
        async with serving() as (_, servicer, channel, _):
            long = {f"key{n}": "v" * 10_000 for n in range(100)}
            servicer.mood = raising(Refused(grpc.StatusCode.NOT_FOUND, "m" * 100_000, "LONG", metadata=long))
            error = await failure(beat(channel))
            assert error.code() == grpc.StatusCode.NOT_FOUND
            (info,) = details(error, ErrorInfo)
            assert info.reason == "LONG"

    asyncio.run(run())


def test_a_mistake_of_ours_is_logged_and_not_told():
    async def run():
        async with serving() as (_, servicer, channel, _):
            servicer.mood = raising(ValueError(SECRET))
            with capture_logs() as logged:
                error = await failure(beat(channel))
            assert error.code() == grpc.StatusCode.INTERNAL
            assert SECRET not in str(error)
            (info,) = details(error, ErrorInfo)
            assert info.reason == "INTERNAL"
            (entry,) = logged
            assert entry["method"] == "/ordercast.v1.MembershipService/Heartbeat"
            assert isinstance(entry["exc_info"], ValueError)
            servicer.mood = lambda context: None
            assert await beat(channel) == 7

    asyncio.run(run())


@pytest.mark.parametrize("error", [ValueError(SECRET), Refused(grpc.StatusCode.INTERNAL, "no", "INTERNAL")])
def test_a_stream_that_fails_in_the_middle_says_so(error):
    async def run():
        async with serving() as (_, servicer, channel, _):
            servicer.mood = raising(error)
            watch = MembershipServiceStub(channel).Watch(membership_pb2.WatchRequest())
            assert (await watch.read()).revision == 1
            failed = await failure(watch.read())
            assert failed.code() == grpc.StatusCode.INTERNAL
            assert SECRET not in str(failed)
            assert servicer.left.is_set()

    asyncio.run(run())


def test_a_stream_that_is_written_to_the_context_is_guarded_too():
    async def run():
        async with serving(Writing()) as (_, _, channel, _):
            watch = MembershipServiceStub(channel).Watch(membership_pb2.WatchRequest())
            assert (await watch.read()).revision == 1
            failed = await failure(watch.read())
            assert failed.code() == grpc.StatusCode.INTERNAL
            assert SECRET not in str(failed)

    asyncio.run(run())


def test_a_stream_that_the_caller_leaves_is_cleaned_up_and_not_logged():
    async def run():
        async with serving() as (_, servicer, channel, _):
            with capture_logs() as logged:
                watch = MembershipServiceStub(channel).Watch(membership_pb2.WatchRequest())
                await watch.read()
                await servicer.entered.wait()
                watch.cancel()
                await asyncio.wait_for(servicer.left.wait(), CALL_S)
                assert await beat(channel) == 7
            assert logged == []

    asyncio.run(run())


@pytest.mark.parametrize("method", ["Heartbeat", "Watch"])
def test_a_request_that_cannot_be_parsed_is_the_callers_mistake(method):
    async def run():
        async with serving() as (_, _, channel, _):
            with capture_logs() as logged:
                call = channel.unary_stream(f"/{SERVICE.full_name}/{method}")(b"\xff\xff", timeout=CALL_S)
                error = await failure(call.read())
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
            (info,) = details(error, ErrorInfo)
            assert info.reason == "MALFORMED_REQUEST"
            assert logged == []

    asyncio.run(run())


def test_a_request_with_too_much_of_something_does_not_reach_the_service():
    async def run():
        async with serving() as (_, servicer, channel, _):
            request = membership_pb2.HeartbeatRequest(name="n" * 129)
            error = await failure(MembershipServiceStub(channel).Heartbeat(request, timeout=CALL_S))
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert error.details() == "name of HeartbeatRequest has a length of 129; at most 128"
            (info,) = details(error, ErrorInfo)
            assert info.reason == "LIMIT_EXCEEDED"
            assert not servicer.entered.is_set()

    asyncio.run(run())


def test_a_request_that_is_too_long_is_not_even_parsed():
    async def run():
        async with serving() as (_, _, channel, _):
            call = channel.unary_unary(f"/{SERVICE.full_name}/Watch")(b"\xff" * 5000, timeout=CALL_S)
            assert (await failure(call)).details() == "WatchRequest has 5000 bytes; at most 4120"

    asyncio.run(run())


def test_what_grpc_takes_in_follows_from_the_limits():
    async def run():
        async with serving() as (_, _, channel, _):
            largest = Limits().receive_bytes_max(method.input_type for method in SERVICE.methods)
            call = channel.unary_unary(f"/{SERVICE.full_name}/Watch")(bytes(largest + 1), timeout=CALL_S)
            assert (await failure(call)).code() == grpc.StatusCode.RESOURCE_EXHAUSTED

    asyncio.run(run())


def test_what_a_service_leaves_out_is_unimplemented_and_fills_no_log(caplog):
    async def run():
        async with serving() as (_, _, channel, _):
            call = channel.unary_unary("/grpc.health.v1.Health/List")
            with capture_logs() as logged:
                for _ in range(3):
                    assert (await failure(call(b"", timeout=CALL_S))).code() == grpc.StatusCode.UNIMPLEMENTED
            assert len(logged) <= 1

    asyncio.run(run())
    assert caplog.records == []


class WritingOn(MembershipServiceServicer):
    """Writes in a task of its own, until that fails."""

    def __init__(self):
        self.failed = asyncio.Event()

    async def Watch(self, request, context):  # noqa: N802 (a method of the service)
        async def write():
            try:
                while True:
                    await context.write(membership_pb2.WatchResponse(revision=1))
            finally:
                self.failed.set()

        # The cancellation comes to the method, and not to its task: it meets what the transport says.
        await asyncio.shield(asyncio.create_task(write()))


class Leaving(WritingOn):
    async def Watch(self, request, context):  # noqa: N802 (a method of the service)
        await context.write(membership_pb2.WatchResponse(revision=1))
        self.failed.set()
        raise status.GONE[0]("the caller has left")


@pytest.mark.parametrize("servicer", [WritingOn, Leaving])
def test_a_caller_that_leaves_while_it_is_written_to_is_no_mistake_of_ours(servicer, caplog):
    async def run():
        async with serving(servicer()) as (_, made, channel, _):
            with capture_logs() as logged:
                watch = MembershipServiceStub(channel).Watch(membership_pb2.WatchRequest())
                await watch.read()
                watch.cancel()
                await asyncio.wait_for(made.failed.wait(), CALL_S)
                await health(channel)
            assert logged == []

    asyncio.run(run())
    assert [record for record in caplog.records if record.name.startswith("grpc")] == []


def test_a_blocking_service_does_not_serve():
    async def run():
        async with serving(Blocking()) as (_, _, channel, _):
            assert (await failure(beat(channel))).code() == grpc.StatusCode.UNIMPLEMENTED

    asyncio.run(run())


# --- Compressed requests


async def send_compressed(channel, method, compression, size):
    call = channel.unary_unary(f"/{SERVICE.full_name}/{method}")
    return await failure(call(bytes(size), compression=compression, timeout=CALL_S))


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_a_compressed_request_is_refused_before_it_is_inflated(compression):
    async def run():
        async with serving() as (_, servicer, channel, _):
            error = await send_compressed(channel, "Heartbeat", compression, 1 << 20)
            assert error.code() == grpc.StatusCode.UNIMPLEMENTED
            assert "is disabled" in error.details()
            assert not servicer.entered.is_set()
            assert await beat(channel) == 7

    asyncio.run(run())


def test_where_compressed_requests_are_taken_what_they_inflate_to_has_a_limit():
    async def run():
        async with serving(takes_compressed=True, receive_bytes_max=1 << 20) as (_, servicer, channel, _):
            gzip = grpc.Compression.Gzip
            error = await send_compressed(channel, "Heartbeat", gzip, (1 << 20) + 1)
            assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert not servicer.entered.is_set()
            request = membership_pb2.HeartbeatRequest(incarnation=7)
            answer = await MembershipServiceStub(channel).Heartbeat(request, timeout=CALL_S, compression=gzip)
            assert answer.incarnation == 7

    asyncio.run(run())


# --- Bad bytes

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def h2_frame(kind, flags, stream, payload, length=None):
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header that is in no table."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


SETTINGS = h2_frame(4, 0, 0, b"")
CALL = h2_frame(
    1,
    4,
    1,
    literal(b":method", b"POST")
    + literal(b":scheme", b"http")
    + literal(b":path", f"/{SERVICE.full_name}/Heartbeat".encode())
    + literal(b":authority", b"here")
    + literal(b"te", b"trailers")
    + literal(b"content-type", b"application/grpc"),
)

BAD_BYTES = {
    "nothing": b"",
    "zeros": b"\0" * 4096,
    "noise": bytes(range(256)) * 64,
    "http1": b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    "tls": bytes.fromhex("16030100050100000100") + b"\0" * 64,
    "half_a_preface": PREFACE[:10],
    "noise_after_the_preface": PREFACE + b"\xff" * 1024,
    "huge_frame": PREFACE + SETTINGS + h2_frame(0, 0, 1, b"x" * 100, length=0xFFFFFF),
    "bad_headers": PREFACE + SETTINGS + h2_frame(1, 4, 1, b"\xff" * 50),
    "data_without_a_call": PREFACE + SETTINGS + h2_frame(0, 0, 99, b"x" * 10),
    "huge_message": PREFACE + SETTINGS + CALL + h2_frame(0, 0, 1, b"\0\xff\xff\xff\xff" + b"x" * 10),
    "bad_message": PREFACE + SETTINGS + CALL + h2_frame(0, 1, 1, b"\0\0\0\0\x02\xff\xff"),
    "half_a_message": PREFACE + SETTINGS + CALL + h2_frame(0, 1, 1, b"\0\0\0\0\x10ab"),
}


def throw(port, data):
    """Sends it all, and waits until the server has answered, hung up, or found nothing to say."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=CALL_S)
    with connection, contextlib.suppress(ConnectionError):
        connection.sendall(data)
        # It fails if the server has hung up already, which is a good answer to most of this.
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


@pytest.mark.parametrize("name", BAD_BYTES)
def test_bad_bytes_do_not_hurt_the_server(name):
    async def run():
        async with serving() as (_, _, channel, port):
            watch = MembershipServiceStub(channel).Watch(membership_pb2.WatchRequest())
            await watch.read()
            for _ in range(3):
                await asyncio.to_thread(throw, port, BAD_BYTES[name])
            assert await beat(channel) == 7
            async with dialled(port) as fresh:
                assert await beat(fresh) == 7
            assert not watch.done()
            watch.cancel()

    asyncio.run(run())


def test_a_message_that_claims_to_be_huge_is_refused_by_its_length():
    async def run():
        async with serving() as (_, _, _, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(BAD_BYTES["huge_message"])
            answer = b""
            # Without the rest of the message: the server must not wait for it.
            while b"larger than max" not in answer:
                part = await asyncio.wait_for(reader.read(65536), CALL_S)
                assert part, answer
                answer += part
            writer.close()

    asyncio.run(run())


def test_connections_that_say_nothing_do_not_keep_others_out():
    async def run():
        async with serving() as (_, _, channel, port):
            silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
            assert await beat(channel) == 7
            async with dialled(port) as fresh:
                assert await beat(fresh) == 7
            for connection in silent:
                connection.close()

    asyncio.run(run())


# --- Logs


@pytest.fixture
def written():
    """configure(settings) -> the stream that logs go to; everything is put back afterwards."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()

    def configure(**settings):
        logs.configure("s1", LogSettings(**settings), stream)
        return stream

    yield configure
    root.handlers[:], level = before
    root.setLevel(level)
    for name in ("asyncio", "grpc"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    structlog.reset_defaults()


def test_each_line_is_json_with_the_name_of_the_process(written):
    stream = written()
    structlog.get_logger("mesh").info("a link is up", peer="s2")
    logging.getLogger("grpc").warning("from %s", "grpc")
    logging.getLogger("grpc").info("of no interest", exc_info=False)
    first, second, third = map(json.loads, stream.getvalue().splitlines())
    assert (first["event"], first["peer"], first["level"], first["logger"]) == (
        "a link is up",
        "s2",
        "info",
        "mesh",
    )
    assert (second["event"], second["level"], second["logger"]) == ("from grpc", "warning", "grpc")
    assert {line["process"] for line in (first, second, third)} == {"s1"}
    assert first["timestamp"].endswith("Z")


def test_what_is_below_the_level_is_not_written(written):
    stream = written(level="warning")
    structlog.get_logger("mesh").info("quiet")
    logging.getLogger("grpc").info("quiet")
    structlog.get_logger("mesh").warning("loud")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["loud"]


def test_the_steps_of_grpc_are_not_written_even_for_debugging(written):
    stream = written(level="debug")
    logging.getLogger("grpc._cython").debug("a step")
    structlog.get_logger("mesh").debug("ours")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["ours"]


def test_people_can_read_the_console_format(written):
    stream = written(format="console")
    structlog.get_logger("mesh").info("a link is up", peer="s2")
    assert "a link is up" in stream.getvalue()
    assert "peer=s2" in stream.getvalue()
    assert "process=s1" in stream.getvalue()


@pytest.mark.parametrize("format_", ["json", "console"])
def test_payloads_are_not_logged(written, format_):
    stream = written(format=format_)
    payload = SECRET.encode()
    request = faults_pb2.InjectRequest(deaf_to=[SECRET])
    log = structlog.get_logger("mesh")
    log.info(
        "got", body=payload, request=request, parts=[payload, {"body": memoryview(payload)}], deep=[[[[payload]]]]
    )
    try:
        unused = payload.decode()
        raise ValueError(len(unused))
    except ValueError:
        log.exception("failed")
    assert SECRET not in stream.getvalue()
    assert f"<{len(payload)} bytes>" in stream.getvalue()
    assert "<InjectRequest>" in stream.getvalue()
    assert "ValueError" in stream.getvalue()


def test_a_log_line_is_bounded(written):
    stream = written()
    structlog.get_logger("mesh").info("long", text="x" * 1_000_000, many=list(range(1_000_000)))
    assert len(stream.getvalue()) < 20_000
