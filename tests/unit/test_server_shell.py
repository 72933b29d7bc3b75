"""The server around the services: health, reflection, listening and stopping."""

import asyncio

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from ordercast.runtime.transport.server import GrpcServer, ListenError
from ordercast.v1 import membership_pb2
from ordercast.v1.membership_pb2_grpc import (
    MembershipServiceStub,
)
from tests.unit.grpc_serving import (
    CALL_S,
    SERVICE,
    beat,
    dialled,
    failure,
    health,
    serving,
)


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
