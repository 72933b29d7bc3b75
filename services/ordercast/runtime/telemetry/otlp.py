"""What a process has to say, as OTLP requests.

Counters and histograms leave as what they rose by since they last left (delta): whoever reads them has no need to
know the process's past, and a request that was lost is a gap and no error.
"""

from collections.abc import Iterable, Iterator, Mapping

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from ordercast.core.tracing import TRACE_BYTES
from ordercast.runtime.telemetry import meters
from ordercast.runtime.telemetry.meters import Labels, Meter
from ordercast.runtime.telemetry.tracing import SpanRecord, Value
from ordercast.telemetry.schema import names

SCOPE = InstrumentationScope(name="ordercast", version=str(names.VERSION))
DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
#: W3C: this one is sampled.
SAMPLED = 0x01

KIND = {
    names.SPAN_PUBLISH: Span.SPAN_KIND_PRODUCER,
    names.SPAN_DELIVER: Span.SPAN_KIND_CONSUMER,
}


def attributes_of(values: Mapping[str, Value]) -> list[KeyValue]:
    return [KeyValue(key=name, value=any_value(value)) for name, value in values.items()]


def any_value(value: Value) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    return AnyValue(bytes_value=value)


# ------------------------------------------------------------------------------------------------------- traces


def traces(resource: Resource, records: Iterable[SpanRecord], epoch_s: float) -> ExportTraceServiceRequest:
    """`epoch_s` is what has to be added to monotonic times."""
    spans = [_span(record, epoch_s) for record in records]
    scope = ScopeSpans(scope=SCOPE, spans=spans)
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=resource, scope_spans=[scope])])


def _span(record: SpanRecord, epoch_s: float) -> Span:
    span = Span(
        trace_id=record.trace,
        span_id=record.id,
        parent_span_id=record.parent,
        name=record.name,
        kind=KIND.get(record.name, Span.SPAN_KIND_INTERNAL),
        start_time_unix_nano=nanoseconds(record.begun + epoch_s),
        end_time_unix_nano=nanoseconds(record.ended + epoch_s),
        attributes=attributes_of(record.attributes),
        flags=SAMPLED,
    )
    if record.failed:
        span.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR))
    if record.link:
        span.links.add(trace_id=record.link[:TRACE_BYTES], span_id=record.link[TRACE_BYTES:])
    return span


def nanoseconds(seconds: float) -> int:
    return max(int(seconds * 1e9), 0)


# --------------------------------------------------------------------------------------------------------- logs


def event(name: str, wall_ns: int, attributes: Mapping[str, Value], body: bytes = b"") -> LogRecord:
    record = LogRecord(time_unix_nano=wall_ns, event_name=name, attributes=attributes_of(attributes))
    if body:
        record.body.bytes_value = body
    return record


def logs(resource: Resource, records: Iterable[LogRecord]) -> ExportLogsServiceRequest:
    scope = ScopeLogs(scope=SCOPE, log_records=records)
    return ExportLogsServiceRequest(resource_logs=[ResourceLogs(resource=resource, scope_logs=[scope])])


# ------------------------------------------------------------------------------------------------------ metrics


class Deltas:
    """What meters rose by since they were last looked at."""

    def __init__(self, wall_ns: int) -> None:
        self._since = wall_ns
        self._counted: dict[str, dict[Labels, float]] = {}
        self._series: dict[str, dict[Labels, tuple[list[int], float]]] = {}

    def request(
        self, resource: Resource, by_name: Mapping[str, Meter], wall_ns: int
    ) -> ExportMetricsServiceRequest:
        """Since the last one. What did not move is left out, but for gauges."""
        found = [metric for meter in by_name.values() if (metric := self._metric(meter, wall_ns)) is not None]
        self._since = wall_ns
        scope = ScopeMetrics(scope=SCOPE, metrics=found)
        return ExportMetricsServiceRequest(
            resource_metrics=[ResourceMetrics(resource=resource, scope_metrics=[scope])]
        )

    def _metric(self, meter: Meter, wall_ns: int) -> Metric | None:
        schema = meter.metric
        metric = Metric(name=schema.name, unit=schema.unit, description=schema.meaning)
        if isinstance(meter, meters.Counter):
            points = list(self._sums(meter, wall_ns))
            metric.sum.CopyFrom(Sum(data_points=points, aggregation_temporality=DELTA, is_monotonic=True))
        elif isinstance(meter, meters.Gauge):
            points = [
                NumberDataPoint(
                    attributes=_labels(schema.attributes, labels), time_unix_nano=wall_ns, as_double=value
                )
                for labels, value in meter.values.items()
            ]
            metric.gauge.CopyFrom(Gauge(data_points=points))
        else:
            histograms = list(self._histograms(meter, wall_ns))
            metric.histogram.CopyFrom(Histogram(data_points=histograms, aggregation_temporality=DELTA))
            return metric if histograms else None
        return metric if points else None

    def _sums(self, counter: meters.Counter, wall_ns: int) -> Iterator[NumberDataPoint]:
        before = self._counted.setdefault(counter.metric.name, {})
        for labels, value in counter.values.items():
            rose = value - before.get(labels, 0)
            if rose:
                before[labels] = value
                yield NumberDataPoint(
                    attributes=_labels(counter.metric.attributes, labels),
                    start_time_unix_nano=self._since,
                    time_unix_nano=wall_ns,
                    as_double=rose,
                )

    def _histograms(self, histogram: meters.Histogram, wall_ns: int) -> Iterator[HistogramDataPoint]:
        before = self._series.setdefault(histogram.metric.name, {})
        for labels, series in histogram.series.items():
            counts, total = before.get(labels, ([0] * len(series.counts), 0.0))
            rose = [now - then for now, then in zip(series.counts, counts, strict=True)]
            if any(rose):
                before[labels] = (list(series.counts), series.total)
                # The largest is since it was last told, so that one slow moment is not told for ever.
                largest, series.largest = series.largest, 0.0
                yield HistogramDataPoint(
                    attributes=_labels(histogram.metric.attributes, labels),
                    start_time_unix_nano=self._since,
                    time_unix_nano=wall_ns,
                    count=sum(rose),
                    sum=series.total - total,
                    max=largest,
                    bucket_counts=rose,
                    explicit_bounds=histogram.bounds,
                )


def _labels(attributes: Iterable[str], labels: Labels) -> list[KeyValue]:
    return [
        KeyValue(key=name, value=AnyValue(string_value=value))
        for name, value in zip(attributes, labels, strict=True)
    ]
