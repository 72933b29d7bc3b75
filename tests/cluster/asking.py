"""Asking a cluster, past the SDK: raw calls, what its logs hold, and whether its replicas agree."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status

import ordercast
from ordercast.local.verify import Report, Verifier
from ordercast.v1.gateway_pb2 import DescribeGroupRequest, SubscribeRequest, SubscribeStart
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub
from ordercast.v1.sequencer_pb2 import StartAt

#: Nothing takes that long, unless it never ends.
CALL_S_MAX = 30.0

#: By group, or by whatever else is counted.
Offsets = dict[str, int]

T = TypeVar("T")


def in_time(work: Coroutine[Any, Any, T], timeout_s: float = 60.0) -> T:
    """Runs it to its end; a hang is a failure of this test, and not of the whole run."""

    async def bounded() -> T:
        async with asyncio.timeout(timeout_s):
            return await work

    return asyncio.run(bounded())


@contextmanager
def raw(address: str) -> Iterator[GatewayServiceStub]:
    """The calls as they are on the wire."""
    with grpc.insecure_channel(address) as channel:
        yield GatewayServiceStub(channel)


def bounds(address: str, group: str) -> list[tuple[int, int]]:
    """(first, next) offset at each replica that answers."""
    with raw(address) as stub:
        described = stub.DescribeGroup(DescribeGroupRequest(name=group), timeout=CALL_S_MAX)
    return [(r.log.first_offset, r.log.next_offset) for r in described.replicas if not r.error]


def next_offsets(address: str, groups: Sequence[str]) -> Offsets:
    """Where each group's furthest replica ends."""
    return {group: max(following for _, following in bounds(address, group)) for group in groups}


def read_all(
    address: str, group: str, *, start: str | int = "earliest", replica: str | None = None
) -> list[ordercast.SyncDelivery]:
    """What the log holds now, from there to its end."""
    with (
        ordercast.connect_sync(address) as connection,
        connection.subscribe(group, start=start, stop_at_end=True, replica=replica) as deliveries,
    ):
        return list(deliveries)


def payloads(address: str, group: str, **options: Any) -> list[bytes]:
    return [delivery.payload for delivery in read_all(address, group, **options)]


def start_of(group: str, **at: Any) -> SubscribeRequest:
    """`start_of("a", offset=7)`, or `earliest=True`, or nothing."""
    return SubscribeRequest(start=SubscribeStart(group=group, start=StartAt(**at) if at else None))


def verify(address: str) -> Report:
    with grpc.insecure_channel(address) as channel:
        return Verifier(channel).run()


def assert_replicas_agree(address: str) -> Report:
    report = verify(address)
    assert report.is_ok, report.problems
    assert report.is_complete, [(group.group, group.unreachable) for group in report.groups]
    return report


def error_info(error: grpc.RpcError) -> ErrorInfo:
    """What the status of a failed call carries for programs."""
    info = ErrorInfo()
    for detail in rpc_status.from_call(error).details:
        if detail.Unpack(info):
            break
    return info
