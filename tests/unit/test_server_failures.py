"""How calls to a server fail: refusals, mistakes of ours, callers that leave."""

import asyncio
import gc
import weakref

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from structlog.testing import capture_logs

from ordercast.runtime.transport import status
from ordercast.runtime.transport.status import Refused
from ordercast.v1 import membership_pb2
from ordercast.v1.membership_pb2_grpc import (
    MembershipServiceServicer,
    MembershipServiceStub,
)
from tests.unit.grpc_serving import (
    CALL_S,
    SECRET,
    SERVICE,
    beat,
    details,
    failure,
    health,
    raising,
    serving,
)


class Writing(MembershipServiceServicer):
    """Answers a stream by writing to the context, as gRPC's own health service does."""

    async def Watch(self, request, context):  # noqa: N802 (a method of the service)
        await context.write(membership_pb2.WatchResponse(revision=1))
        raise ValueError(SECRET)


class Blocking(MembershipServiceServicer):
    def Heartbeat(self, request, context):  # noqa: N802 (a method of the service)
        return membership_pb2.HeartbeatResponse()


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
