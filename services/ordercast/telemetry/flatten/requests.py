"""Requests of the three signals: how many records are in one, and its rows.

Offsets are given to records when a request is taken, long before rows are made of it. So both count alike; and if
they ever do not, because another version of this code took the request, the rows say so, and offsets stay as they
were given.
"""

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope

from ordercast.telemetry.flatten.events import add_deliveries, add_event, deliveries_of
from ordercast.telemetry.flatten.points import add_points, points_of
from ordercast.telemetry.flatten.rows import DELIVERY, EVENT, POINT, REASON_UNREADABLE, SPAN, Rows
from ordercast.telemetry.flatten.spans import LeanTraces, add_spans
from ordercast.telemetry.flatten.values import NOTHING, Sorted, shortened, sort
from ordercast.telemetry.schema import names

TRACES = "traces"
METRICS = "metrics"
LOGS = "logs"
REQUESTS: dict[str, type[Message]] = {
    TRACES: ExportTraceServiceRequest,
    METRICS: ExportMetricsServiceRequest,
    LOGS: ExportLogsServiceRequest,
}
#: Our own, which need not be told.
OWN_SCOPE = "ordercast"


def parse(signal: str, payload: bytes) -> Any:
    """DecodeError if it is none."""
    return REQUESTS[signal].FromString(payload)


def count(signal: str, request: Any) -> int:
    """How many records."""
    if signal == TRACES:
        return sum(len(scope.spans) for sender in request.resource_spans for scope in sender.scope_spans)
    if signal == METRICS:
        return sum(
            len(points_of(metric))
            for sender in request.resource_metrics
            for scope in sender.scope_metrics
            for metric in scope.metrics
        )
    batches = (
        deliveries_of(record)
        for sender in request.resource_logs
        for scope in sender.scope_logs
        for record in scope.log_records
    )
    return sum(1 if batch is None else len(batch.deliveries) for batch in batches)


def add(rows: Rows, signal: str, payload: bytes, first: int | None, expected: int, received_ns: int) -> None:
    """The rows of one request, with offsets from `first` on if they have any."""
    before = rows.size
    try:
        request = LeanTraces.FromString(payload) if signal == TRACES else parse(signal, payload)
        if count(signal, request) != expected:
            raise ValueError("it has another number of records than it had")
        ADD[signal](rows, request, received_ns)
    except Exception as error:
        # Whatever is wrong with one request, or with this code: the others are not to suffer from it.
        rows.cut(before)
        _add_unreadable(rows, signal, expected, received_ns, f"{type(error).__name__}: {error}")
    if first is not None:
        # The column is set for all rows or for none.
        rows.lists[names.COLUMN_OFFSET] += range(first, first + rows.size - before)


def _add_unreadable(rows: Rows, signal: str, expected: int, received_ns: int, why: str) -> None:
    rows.begin(EVENT, expected, received_ns, NOTHING)
    rows.repeat(names.COLUMN_NAME, signal)
    rows.repeat(names.COLUMN_TIME_NS, received_ns)
    for row in range(rows.base, rows.size):
        rows.poison(row, REASON_UNREADABLE, why)


def _add_traces(rows: Rows, request: Any, received_ns: int) -> None:
    for sender in request.resource_spans:
        resource = sort(sender.resource.attributes)
        for scope in sender.scope_spans:
            known = _with_scope(resource, scope.scope)
            spans = list(scope.spans)
            rows.begin(SPAN, len(spans), received_ns, known)
            add_spans(rows, spans)
            rows.end(known)


def _add_metrics(rows: Rows, request: ExportMetricsServiceRequest, received_ns: int) -> None:
    for sender in request.resource_metrics:
        resource = sort(sender.resource.attributes)
        for scope in sender.scope_metrics:
            known = _with_scope(resource, scope.scope)
            for metric in scope.metrics:
                points = points_of(metric)
                if points:
                    rows.begin(POINT, len(points), received_ns, known)
                    add_points(rows, metric, points)
                    rows.end(known)


def _add_logs(rows: Rows, request: ExportLogsServiceRequest, received_ns: int) -> None:
    for sender in request.resource_logs:
        resource = sort(sender.resource.attributes)
        cluster = _cluster(resource)
        for scope in sender.scope_logs:
            known = _with_scope(resource, scope.scope)
            for record in scope.log_records:
                batch = deliveries_of(record)
                if batch is None:
                    rows.begin(EVENT, 1, received_ns, known)
                    add_event(rows, record)
                else:
                    rows.begin(DELIVERY, len(batch.deliveries), received_ns, known)
                    add_deliveries(rows, record, batch, cluster)
                rows.end(known)


ADD: dict[str, Any] = {TRACES: _add_traces, METRICS: _add_metrics, LOGS: _add_logs}


def _cluster(resource: Sorted) -> bytes | None:
    try:
        return bytes.fromhex(resource.others[names.ATTRIBUTE_CLUSTER])
    except (KeyError, ValueError):
        return None


def _with_scope(resource: Sorted, scope: InstrumentationScope) -> Sorted:
    if scope.name in ("", OWN_SCOPE) and not scope.attributes:
        return resource
    own = dict(_told(scope))
    return resource._replace(others={**resource.others, **own})


def _told(scope: InstrumentationScope) -> Iterator[tuple[str, str]]:
    if scope.name:
        yield "otel.scope.name", shortened(scope.name)
    if scope.version:
        yield "otel.scope.version", shortened(scope.version)
    yield from sort(scope.attributes).others.items()
