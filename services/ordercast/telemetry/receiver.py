"""The OTLP side: takes requests of the three signals, and answers when they are safe.

Requests come as bytes and go on as they came; they are parsed once, to count their records and to refuse what
cannot be parsed. Whether a record makes sense is judged when rows are made of it, so that one that does not costs
no other.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from ordercast.runtime.transport.server import GrpcServer
from ordercast.runtime.transport.status import Context, Refused
from ordercast.telemetry import meters as reasons
from ordercast.telemetry.flatten.requests import LOGS, METRICS, TRACES, count, parse
from ordercast.telemetry.meters import Meters

SERVICES: dict[str, tuple[ServiceDescriptor, Message]] = {
    TRACES: (
        trace_service_pb2.DESCRIPTOR.services_by_name["TraceService"],
        trace_service_pb2.ExportTraceServiceResponse(),
    ),
    METRICS: (
        metrics_service_pb2.DESCRIPTOR.services_by_name["MetricsService"],
        metrics_service_pb2.ExportMetricsServiceResponse(),
    ),
    LOGS: (
        logs_service_pb2.DESCRIPTOR.services_by_name["LogsService"],
        logs_service_pb2.ExportLogsServiceResponse(),
    ),
}


class UnusableError(Exception):
    """The process cannot start like this."""


class Sink(Protocol):
    """Where records go."""

    def start(self) -> None: ...

    async def stop(self) -> None:
        """What was taken is safe."""

    async def take(self, signal: str, payload: bytes, count: int) -> bool:
        """Returns when they are safe, and whether they are new. NotTaken if the sender should come back."""


class NotTaken(Exception):  # noqa: N818 (it names what happened, not a kind of error)
    """For now."""

    def __init__(self, code: grpc.StatusCode, message: str, reason: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.retry_after_s = retry_after_s


class Receiver:
    def __init__(self, sink: Sink, meters: Meters, bytes_max: int, records_max: int) -> None:
        self._sink = sink
        self._meters = meters
        self._bytes_max = bytes_max
        self._records_max = records_max

    def serve(self, server: GrpcServer) -> None:
        for signal, (service, taken) in SERVICES.items():
            server.add(service, _register, (service, self._export(signal, taken)), is_raw=True)

    def _export(self, signal: str, taken: Message) -> Callable[[bytes, Context], Awaitable[bytes]]:
        # Nothing of a request is ever rejected alone: it is taken as a whole, or not. So there is one answer.
        answer = taken.SerializeToString()

        async def export(payload: bytes, _: Context) -> bytes:
            records = self._counted(signal, payload)
            if records:
                try:
                    is_new = await self._sink.take(signal, payload, records)
                except NotTaken as error:
                    self._meters.refused(error.reason)
                    raise Refused(
                        error.code, str(error), error.reason.upper(), retry_after_s=error.retry_after_s
                    ) from error
                if is_new:
                    self._meters.received(signal, records)
            return answer

        return export

    def _counted(self, signal: str, payload: bytes) -> int:
        """How many records there are. What repeating does not help is refused without a time to come back."""
        if len(payload) > self._bytes_max:
            self._meters.refused(reasons.OVERSIZE)
            text = f"a request of {len(payload)} bytes; at most {self._bytes_max} are taken"
            # gRPC's own answer to what is far too large is RESOURCE_EXHAUSTED, which some senders repeat in vain.
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, text, reasons.OVERSIZE.upper())
        try:
            records = count(signal, parse(signal, payload))
        except DecodeError as error:
            self._meters.refused(reasons.MALFORMED)
            text = f"the request is no {REQUEST_NAMES[signal]}"
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, text, reasons.MALFORMED.upper()) from error
        if records > self._records_max:
            self._meters.refused(reasons.OVERSIZE)
            text = f"a request of {records} records; at most {self._records_max} are taken"
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, text, reasons.OVERSIZE.upper())
        return records


REQUEST_NAMES = {
    signal: service.methods_by_name["Export"].input_type.name for signal, (service, _) in SERVICES.items()
}


def _register(servicer: tuple[ServiceDescriptor, Any], server: grpc.aio.Server) -> None:
    """Without anybody parsing or serialising before us."""
    service, export = servicer
    handlers: dict[str, Any] = {"Export": grpc.unary_unary_rpc_method_handler(export)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
