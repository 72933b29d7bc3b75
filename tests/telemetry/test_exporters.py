"""What others send with: the exporters of OpenTelemetry's own SDK, unchanged."""

from pathlib import Path
from typing import Any

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Link, Status, StatusCode

from tests.telemetry.process import TelemetryProcess, running

RESOURCE = Resource.create({"service.name": "somebody", "service.instance.id": "s1"})


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with running(tmp_path_factory.mktemp("exporters") / "s", "--seal-s", "0.1", "--reserve-bytes", "0") as process:
        yield process


def rows_of(service: TelemetryProcess, begin: int) -> list[dict[str, Any]]:
    """From this offset on."""
    with service.client() as client:
        end = client.describe().taken
        service.wait_until_readable(end)
        rows = [row for batch in client.read(begin, end) for row in batch.to_pylist()]
    return [{**row, "attributes": dict(row["attributes"] or ())} for row in rows]


def taken(service: TelemetryProcess) -> int:
    with service.client() as client:
        return client.describe().taken


def test_spans_of_the_sdk_are_rows(service: TelemetryProcess):
    begin = taken(service)
    provider = TracerProvider(resource=RESOURCE)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"http://{service.address}")))
    tracer = provider.get_tracer("library", "1.2")
    with tracer.start_as_current_span("outer", attributes={"shop": "here"}) as outer:
        inner = tracer.start_span("inner", links=[Link(outer.get_span_context())])
        inner.set_status(Status(StatusCode.ERROR, "no luck"))
        inner.end()
    provider.shutdown()
    inner_row, outer_row = rows_of(service, begin)
    assert [inner_row["name"], outer_row["name"]] == ["inner", "outer"]
    assert inner_row["parent_span_id"] == outer_row["span_id"]
    assert inner_row["linked_trace_id"] == outer_row["trace_id"]
    assert (inner_row["status"], inner_row["attributes"]["otel.status_description"]) == ("error", "no luck")
    assert (outer_row["service"], outer_row["node"], outer_row["kind"]) == ("somebody", "s1", "span")
    assert outer_row["attributes"]["shop"] == "here"
    assert outer_row["attributes"]["otel.scope.name"] == "library"
    assert outer_row["attributes"]["telemetry.sdk.language"] == "python"


def test_metrics_of_the_sdk_are_rows(service: TelemetryProcess):
    begin = taken(service)
    reader = PeriodicExportingMetricReader(
        OTLPMetricExporter(endpoint=f"http://{service.address}"), export_interval_millis=1e6
    )
    provider = MeterProvider(resource=RESOURCE, metric_readers=[reader])
    meter = provider.get_meter("library")
    meter.create_counter("sold", unit="{apple}").add(3, {"kind": "red"})
    meter.create_histogram("weight", unit="g").record(120.0)
    provider.shutdown()
    rows = {row["name"]: row for row in rows_of(service, begin)}
    assert (rows["sold"]["kind"], rows["sold"]["value"], rows["sold"]["attributes"]["kind"]) == (
        "point",
        3.0,
        "red",
    )
    assert rows["sold"]["attributes"]["temporality"] == "cumulative"
    assert (rows["weight"]["value"], rows["weight"]["count"], rows["weight"]["value_max"]) == (120.0, 1, 120.0)
    assert sum(rows["weight"]["buckets"]) == 1


def test_logs_of_the_sdk_are_rows(service: TelemetryProcess):
    begin = taken(service)
    provider = LoggerProvider(resource=RESOURCE)
    provider.add_log_record_processor(
        SimpleLogRecordProcessor(OTLPLogExporter(endpoint=f"http://{service.address}"))
    )
    told = LogRecord(timestamp=7, severity_text="WARN", body="out of apples", event_name="shop.empty")
    provider.get_logger("a shop").emit(told)
    provider.shutdown()
    (row,) = rows_of(service, begin)
    assert (row["name"], row["time_ns"]) == ("shop.empty", 7)
    assert (row["kind"], row["attributes"]["body"], row["attributes"]["severity"]) == (
        "event",
        "out of apples",
        "WARN",
    )


def test_an_exporter_hears_that_it_is_refused(tmp_path: Path):
    with running(tmp_path / "s", "--request-bytes-max", "1024", "--queue-bytes-max", "2048") as service:
        exporter = OTLPSpanExporter(endpoint=f"http://{service.address}")
        provider = TracerProvider(resource=RESOURCE)
        span = provider.get_tracer("library").start_span("large", attributes={"text": "x" * 1500})
        span.end()
        assert exporter.export([span]) is SpanExportResult.FAILURE
        assert taken(service) == 0
        exporter.shutdown()
