"""Requests of OTLP as the services send them, for tests and measurements: made from numbers, always the same."""

from collections.abc import Iterable

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_DELTA,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from ordercast.core.tracing import root_id, span_id, trace_id
from ordercast.telemetry.schema import names
from ordercast.v1.telemetry_pb2 import Delivery, DeliveryBatch

CLUSTER = bytes(range(16))
BASE_NS = 1_700_000_000_000_000_000
STAGES = (names.SPAN_TIMESTAMP, names.SPAN_DECIDE, names.SPAN_PREDECESSORS, names.SPAN_DELIVER)


def attribute(name: str, value: object) -> KeyValue:
    match value:
        case bool():
            return KeyValue(key=name, value=AnyValue(bool_value=value))
        case str():
            return KeyValue(key=name, value=AnyValue(string_value=value))
        case bytes():
            return KeyValue(key=name, value=AnyValue(bytes_value=value))
        case int():
            return KeyValue(key=name, value=AnyValue(int_value=value))
        case _:
            return KeyValue(key=name, value=AnyValue(double_value=value))


def resource(node: str = "n1", **more: object) -> Resource:
    known = {
        names.ATTRIBUTE_SERVICE_NAME: "ordercast",
        names.ATTRIBUTE_SERVICE_INSTANCE_ID: node,
        names.ATTRIBUTE_INCARNATION: 3,
        names.ATTRIBUTE_SCHEMA: names.VERSION,
        names.ATTRIBUTE_CLUSTER: CLUSTER.hex(),
        **{f"ordercast.{name}": value for name, value in more.items()},
    }
    return Resource(attributes=[attribute(name, value) for name, value in known.items()])


def envelope(number: int) -> bytes:
    return (7).to_bytes(8, "big") + number.to_bytes(8, "big")


def span(number: int, node: str = "n1") -> Span:
    """The stages of envelopes in turn."""
    of, stage = divmod(number, len(STAGES))
    name = STAGES[stage]
    trace = trace_id(CLUSTER, "default", envelope(of))
    begin = BASE_NS + of * 1_000_000 + stage * 200_000
    told: dict[str, object] = {
        names.ATTRIBUTE_DOMAIN: "default",
        names.ATTRIBUTE_PROTOCOL: "scalatom",
        names.ATTRIBUTE_ENVELOPE_ID: envelope(of),
        names.ATTRIBUTE_STAGE: name.removeprefix("ordercast."),
    }
    if stage:
        told[names.ATTRIBUTE_BLOCKED_ON] = f"replica:n{of % 3 + 1}"
    if stage > 1:
        told[names.ATTRIBUTE_GROUP] = "ab"[of % 2]
    if name == names.SPAN_DELIVER:
        told |= {
            names.ATTRIBUTE_POSITION: of,
            names.ATTRIBUTE_OFFSET: of * 8,
            names.ATTRIBUTE_PUBLISHED_NS: begin - 2_000_000,
            names.ATTRIBUTE_MESSAGING_BATCH_MESSAGE_COUNT: 8,
        }
    return Span(
        trace_id=trace,
        span_id=span_id(trace, node, name),
        parent_span_id=root_id(trace),
        name=name,
        start_time_unix_nano=begin,
        end_time_unix_nano=begin + 150_000,
        attributes=[attribute(key, value) for key, value in told.items()],
    )


def traces(numbers: Iterable[int], node: str = "n1", **more: object) -> bytes:
    scope = ScopeSpans(spans=[span(number, node) for number in numbers])
    sender = ResourceSpans(resource=resource(node, **more), scope_spans=[scope])
    return ExportTraceServiceRequest(resource_spans=[sender]).SerializeToString()


def delivery(position: int, *, says: bool = False) -> Delivery:
    return Delivery(
        position=position if says else None,
        envelope_id=envelope(position),
        order_key=position.to_bytes(8, "big") + bytes(8),
        first_offset=position * 8,
        messages=8,
        published_ns=BASE_NS + position * 1_000_000,
        delivered_ns=BASE_NS + position * 1_000_000 + 3_000_000,
    )


def event(name: str, body: bytes | None = None, **more: object) -> LogRecord:
    record = LogRecord(event_name=name, time_unix_nano=BASE_NS)
    record.attributes.extend(attribute(f"ordercast.{key.replace('_', '.')}", value) for key, value in more.items())
    if body is not None:
        record.body.bytes_value = body
    return record


def delivered(first: int, count: int, group: str = "a") -> LogRecord:
    batch = DeliveryBatch(deliveries=[delivery(first + i, says=i == 0) for i in range(count)])
    body = batch.SerializeToString()
    return event(
        names.EVENT_DELIVERIES, body, domain="default", protocol="scalatom", group=group, group_id=f"{group}-1"
    )


def logs(records: Iterable[LogRecord], node: str = "n1", **more: object) -> bytes:
    sender = ResourceLogs(resource=resource(node, **more), scope_logs=[ScopeLogs(log_records=records)])
    return ExportLogsServiceRequest(resource_logs=[sender]).SerializeToString()


def deliveries(first: int, count: int, node: str = "n1", group: str = "a") -> bytes:
    return logs([delivered(first, count, group)], node)


def metrics(count: int = 1, node: str = "n1", **more: object) -> bytes:
    """As many points of a gauge, and one histogram."""
    gauge = Metric(name=names.METRIC_ORDER_WAITING, unit="{envelope}", gauge=Gauge())
    for i in range(count):
        told = [attribute(names.ATTRIBUTE_DOMAIN, f"d{i}")]
        gauge.gauge.data_points.append(NumberDataPoint(time_unix_nano=BASE_NS + i, as_int=i, attributes=told))
    point = HistogramDataPoint(
        start_time_unix_nano=BASE_NS - 10,
        time_unix_nano=BASE_NS,
        count=6,
        sum=1.5,
        max=0.75,
        explicit_bounds=[0.1, 0.5],
        bucket_counts=[1, 2, 3],
        attributes=[attribute(names.ATTRIBUTE_DOMAIN, "default"), attribute(names.ATTRIBUTE_GROUP, "a")],
    )
    histogram = Histogram(data_points=[point], aggregation_temporality=AGGREGATION_TEMPORALITY_DELTA)
    both = [gauge, Metric(name=names.METRIC_DELIVERY_LAG, unit="s", histogram=histogram)]
    sender = ResourceMetrics(resource=resource(node, **more), scope_metrics=[ScopeMetrics(metrics=both)])
    return ExportMetricsServiceRequest(resource_metrics=[sender]).SerializeToString()
