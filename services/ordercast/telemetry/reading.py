"""TelemetryService: the spool for those who read it."""

import contextlib
from collections.abc import AsyncGenerator

import grpc

from ordercast.runtime.transport.server import GrpcServer
from ordercast.runtime.transport.status import Context, Refused
from ordercast.telemetry.schema import names
from ordercast.telemetry.spool.pieces import LossError, OutOfRangeError
from ordercast.telemetry.spool.spool import Spool
from ordercast.v1.telemetry_pb2 import (
    DESCRIPTOR,
    DescribeSpoolRequest,
    DescribeSpoolResponse,
    ReadSpoolRequest,
    ReadSpoolResponse,
)
from ordercast.v1.telemetry_pb2_grpc import TelemetryServiceServicer, add_TelemetryServiceServicer_to_server

SEGMENTS_MAX = 4096
RETRY_S = 0.5


class SpoolReading(TelemetryServiceServicer):
    def __init__(self, spool: Spool, reads_max: int) -> None:
        self._spool = spool
        self._reads_max = reads_max
        self._reads = 0

    def serve(self, server: GrpcServer) -> None:
        service = DESCRIPTOR.services_by_name["TelemetryService"]
        server.add(service, add_TelemetryServiceServicer_to_server, self)

    async def DescribeSpool(self, request: DescribeSpoolRequest, context: Context) -> DescribeSpoolResponse:  # noqa: N802
        state = self._spool.state
        return DescribeSpoolResponse(
            begin=state.begin,
            end=state.end,
            taken=state.taken,
            schema_version=names.VERSION,
            segments=self._spool.catalogue.firsts(request.begin, SEGMENTS_MAX),
            spool_id=self._spool.spool_id,
        )

    async def ReadSpool(  # noqa: N802
        self, request: ReadSpoolRequest, context: Context
    ) -> AsyncGenerator[ReadSpoolResponse, None]:
        if request.begin > request.end:
            text = f"from {request.begin} to {request.end} is no range"
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, text, "BAD_RANGE")
        if self._reads >= self._reads_max:
            code = grpc.StatusCode.UNAVAILABLE
            raise Refused(code, f"{self._reads} others read", "BUSY", retry_after_s=RETRY_S)
        self._reads += 1
        try:
            async with contextlib.aclosing(self._spool.read(request.begin, request.end)) as found:
                async for arrow in found:
                    yield ReadSpoolResponse(arrow=arrow)
        except OutOfRangeError as error:
            metadata = {"begin": str(error.begin), "end": str(error.end)}
            raise Refused(grpc.StatusCode.OUT_OF_RANGE, str(error), "OUT_OF_RANGE", metadata) from error
        except LossError as error:
            metadata = {"begin": str(error.begin), "end": str(error.end)}
            raise Refused(grpc.StatusCode.DATA_LOSS, str(error), "DATA_LOSS", metadata) from error
        finally:
            self._reads -= 1
