"""Requests that a server refuses before its services see them: malformed, too large, compressed."""

import asyncio

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from structlog.testing import capture_logs

from ordercast.core.limits import Limits
from ordercast.v1 import membership_pb2
from ordercast.v1.membership_pb2_grpc import (
    MembershipServiceStub,
)
from tests.unit.grpc_serving import (
    CALL_S,
    SERVICE,
    beat,
    details,
    failure,
    serving,
)


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
            assert (await failure(call)).details().startswith("WatchRequest has 5000 bytes; at most ")

    asyncio.run(run())


def test_what_grpc_takes_in_follows_from_the_limits():
    async def run():
        async with serving() as (_, _, channel, _):
            largest = Limits().receive_bytes_max(method.input_type for method in SERVICE.methods)
            call = channel.unary_unary(f"/{SERVICE.full_name}/Watch")(bytes(largest + 1), timeout=CALL_S)
            assert (await failure(call)).code() == grpc.StatusCode.RESOURCE_EXHAUSTED

    asyncio.run(run())


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
