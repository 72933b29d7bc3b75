"""Asking a cluster, past the SDK: raw calls, what its logs hold, and whether its replicas agree."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status

import ordercast
from ordercast.local.verify import Report, Verifier
from ordercast.v1.gateway_pb2 import (
    DescribeGroupRequest,
    DescribeGroupResponse,
    SubscribeRequest,
    SubscribeStart,
)
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub
from ordercast.v1.sequencer_pb2 import StartAt

#: Nothing takes that long, unless it never ends.
CALL_S_MAX = 30.0
#: Who is late with an answer, on a busy machine, is asked again for so long.
AGAIN_S_MAX = 90.0
AGAIN_S = 0.2

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


def described_whole(address: str, group: str) -> DescribeGroupResponse:
    """As soon as every replica says where it is: on a busy machine one may be late with its answer."""
    deadline = time.monotonic() + AGAIN_S_MAX
    with raw(address) as stub:
        while True:
            described = stub.DescribeGroup(DescribeGroupRequest(name=group), timeout=CALL_S_MAX)
            errors = [replica.error for replica in described.replicas if replica.error]
            if not errors:
                return described
            assert time.monotonic() < deadline, errors
            time.sleep(AGAIN_S)


def status_of(call: Callable[[], object]) -> grpc.RpcError:
    """With which a call fails that is bound to. UNAVAILABLE says that nobody could tell, and it is asked again."""
    deadline = time.monotonic() + AGAIN_S_MAX
    while True:
        try:
            call()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                return error
        else:
            raise AssertionError("it did not fail")
        time.sleep(AGAIN_S)


def verify(address: str) -> Report:
    """As soon as every replica could be read. What is wrong is wrong at once."""
    deadline = time.monotonic() + AGAIN_S_MAX
    with grpc.insecure_channel(address) as channel:
        while True:
            report = Verifier(channel).run()
            if report.is_complete or not report.is_ok or time.monotonic() > deadline:
                return report
            time.sleep(AGAIN_S)


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
