"""SequencerService: reading the logs that are kept here. For gateways, and for replicas that lost an entry."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import grpc

from ordercast.core.ids import CLOCK_MAX
from ordercast.core.silence import ALIVE_MS
from ordercast.runtime.process.node import Node
from ordercast.runtime.storage.store import CorruptRecord
from ordercast.runtime.transport.pauses import with_signs_of_life
from ordercast.runtime.transport.status import Refused
from ordercast.v1.sequencer_pb2 import (
    AdvanceRequest,
    AdvanceResponse,
    DescribeReplicaRequest,
    DescribeReplicaResponse,
    ReadEntryRequest,
    ReadEntryResponse,
    ReadGroupRequest,
    ReadGroupResponse,
    ReadLiveRequest,
    ReadLiveResponse,
)
from ordercast.v1.sequencer_pb2_grpc import SequencerServiceServicer


class SequencerServer(SequencerServiceServicer):
    def __init__(self, node: Node) -> None:
        self.node = node

    async def ReadGroup(self, request: ReadGroupRequest, context: Any) -> AsyncGenerator[ReadGroupResponse, None]:  # noqa: N802
        reading = self.node.logs.read(
            request.group,
            request.start,
            request.stop_at_end,
            watermarks=request.watermarks,
            chunk_bytes=request.chunk_bytes,
        )
        if request.alive:
            reading = with_signs_of_life(reading, ReadGroupResponse(alive_ms=ALIVE_MS))
        async with contextlib.aclosing(reading) as responses:
            async for response in responses:
                yield response

    async def ReadLive(self, request: ReadLiveRequest, context: Any) -> AsyncGenerator[ReadLiveResponse, None]:  # noqa: N802
        reading = self._live(request.group)
        if request.alive:
            reading = with_signs_of_life(reading, ReadLiveResponse(alive_ms=ALIVE_MS))
        async with contextlib.aclosing(reading) as responses:
            async for response in responses:
                yield response

    async def _live(self, group: str) -> AsyncGenerator[ReadLiveResponse, None]:
        self.node.logs.check_served(group)
        async with contextlib.aclosing(self.node.live.read(group)) as deliveries:
            async for entries in deliveries:
                yield ReadLiveResponse(entries=entries)

    async def DescribeReplica(self, request: DescribeReplicaRequest, context: Any) -> DescribeReplicaResponse:  # noqa: N802
        stored_ms = request.stored_ms if request.HasField("stored_ms") else None
        return await self.node.logs.describe(request.group, stored_ms, request.order_key)

    async def Advance(self, request: AdvanceRequest, context: Any) -> AdvanceResponse:  # noqa: N802
        self.node.logs.advance(request.cells, request.order_key)
        return AdvanceResponse()

    async def ReadEntry(self, request: ReadEntryRequest, context: Any) -> ReadEntryResponse:  # noqa: N802
        """A damaged copy is never passed on: reading it checks it."""
        self.node.logs.check_served(request.group)
        if request.position > CLOCK_MAX:
            text = f"no log has a position {request.position}: at most {CLOCK_MAX}"
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, text, "NO_POSITION")
        try:
            stored = self.node.storage.read(request.group, request.position, 1, 0)
        except CorruptRecord as damaged:
            raise Refused(grpc.StatusCode.DATA_LOSS, str(damaged), "DAMAGED") from damaged
        if not stored or stored[0].position != request.position:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"no entry {request.position} here", "NO_ENTRY")
        return ReadEntryResponse(entry=stored[0].data)
