"""Serves records from memory as the telemetry service serves its spool: for the bench, and for tests
with faults.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pyarrow as pa
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from grpc_status import rpc_status  # type: ignore[import-untyped]

from ordercast.analytics.spool_client import MESSAGE_BYTES_MAX
from ordercast.analytics.synthetic import segments
from ordercast.telemetry.schema.names import COLUMN_OFFSET, VERSION
from ordercast.v1.telemetry_pb2 import (
    DescribeSpoolRequest,
    DescribeSpoolResponse,
    ReadSpoolRequest,
    ReadSpoolResponse,
)
from ordercast.v1.telemetry_pb2_grpc import TelemetryServiceServicer, add_TelemetryServiceServicer_to_server

SEGMENT_ROWS = 25_000


class MemorySpool(TelemetryServiceServicer):
    """Segments as a whole, all of them sealed."""

    def __init__(self, table: pa.Table, segment_rows: int = SEGMENT_ROWS) -> None:
        self.segment_rows = segment_rows
        #: What is below is deleted, as retention deletes it.
        self.begin = 0
        self.end = 0
        #: The ranges that were asked for.
        self.requests: list[tuple[int, int]] = []
        self._segments: list[tuple[int, int, bytes]] = []
        self.append(table)

    def append(self, table: pa.Table) -> None:
        """The offsets of what is added have to follow on."""
        for segment in segments(table, self.segment_rows):
            first, self.end = self.end, segment.column(COLUMN_OFFSET)[-1].as_py() + 1
            self._segments.append((first, self.end, _stream(segment)))

    def DescribeSpool(  # noqa: N802
        self, request: DescribeSpoolRequest, context: grpc.ServicerContext
    ) -> DescribeSpoolResponse:
        begins = [first for first, end, _ in self._segments if end > self.begin]
        return DescribeSpoolResponse(
            begin=self.begin,
            end=self.end,
            taken=self.end,
            schema_version=VERSION,
            segments=begins,
            spool_id="memory",
        )

    def ReadSpool(  # noqa: N802
        self, request: ReadSpoolRequest, context: grpc.ServicerContext
    ) -> Iterator[ReadSpoolResponse]:
        self.requests.append((request.begin, request.end))
        if request.begin < self.begin:
            context.abort_with_status(rpc_status.to_status(self._out_of_range()))
        for first, end, arrow in self._segments:
            if end > request.begin and first < request.end:
                yield ReadSpoolResponse(arrow=arrow)

    def _out_of_range(self) -> Status:
        status = Status(code=grpc.StatusCode.OUT_OF_RANGE.value[0], message=f"the spool begins at {self.begin}")
        info = ErrorInfo(reason="OUT_OF_RANGE", metadata={"begin": str(self.begin), "end": str(self.end)})
        status.details.add().Pack(info)
        return status


def _stream(segment: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, segment.schema) as stream:
        stream.write_table(segment)
    return bytes(sink.getvalue().to_pybytes())


@contextmanager
def served(spool: MemorySpool) -> Iterator[str]:
    """Its address, as long as it is served."""
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", MESSAGE_BYTES_MAX)])
    add_TelemetryServiceServicer_to_server(spool, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()
