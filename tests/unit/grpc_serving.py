"""A server with one service that does what the test says, and how it is called."""

import asyncio
import contextlib

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from ordercast.runtime.transport.server import GrpcServer
from ordercast.v1 import membership_pb2
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


async def health(channel, service=""):
    request = health_pb2.HealthCheckRequest(service=service)
    return (await health_pb2_grpc.HealthStub(channel).Check(request, timeout=CALL_S)).status
