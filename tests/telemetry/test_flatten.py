"""Rows of requests: every record is one, with the columns of the schema, and what is wrong with one harms no
other."""

from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    ExponentialHistogram,
    ExponentialHistogramDataPoint,
    Metric,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
    Summary,
    SummaryDataPoint,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from ordercast.core.tracing import trace_id
from ordercast.telemetry.flatten.requests import LOGS, METRICS, TRACES, add, count, parse
from ordercast.telemetry.flatten.rows import Rows
from ordercast.telemetry.flatten.values import sort
from ordercast.telemetry.schema import names
from ordercast.telemetry.tables import SCHEMA
from ordercast.v1.telemetry_pb2 import Delivery, DeliveryBatch
from tests.telemetry import traffic

RECEIVED_NS = 1_800_000_000_000_000_000


def rows_of(*requests: tuple[str, bytes]) -> list[dict[str, Any]]:
    rows = Rows()
    first = 100
    for signal, payload in requests:
        expected = count(signal, parse(signal, payload))
        add(rows, signal, payload, first, expected, RECEIVED_NS)
        first += expected
    batch = rows.finished()
    batch.validate(full=True)
    assert batch.schema == SCHEMA
    found = batch.to_pylist()
    assert [row["offset"] for row in found] == list(range(100, first))
    return [{**row, "attributes": dict(row["attributes"] or ())} for row in found]


def test_a_span_has_its_attributes_in_their_columns():
    row = rows_of((TRACES, traffic.traces([7])))[0]
    envelope = traffic.envelope(1)
    assert row["kind"] == "span"
    assert row["name"] == names.SPAN_DELIVER
    assert row["time_ns"] - row["start_ns"] == 150_000
    assert row["received_ns"] == RECEIVED_NS
    assert row["trace_id"] == trace_id(traffic.CLUSTER, "default", envelope)
    assert row["parent_span_id"] == row["trace_id"][:8]
    assert (row["service"], row["node"], row["incarnation"], row["schema_version"]) == ("ordercast", "n1", 3, 1)
    assert (row["domain"], row["group"], row["envelope"], row["position"]) == ("default", "b", envelope, 1)
    assert (row["messages"], row["first_offset"], row["blocked_on"]) == (8, 8, "replica:n2")
    assert row["status"] is None
    assert row["attributes"] == {names.ATTRIBUTE_CLUSTER: traffic.CLUSTER.hex()}


def test_what_has_no_column_is_kept_as_text():
    nested = AnyValue(
        kvlist_value=KeyValueList(values=[KeyValue(key="a", value=AnyValue(array_value=ArrayValue()))])
    )
    span = Span(
        name="foreign",
        kind=Span.SPAN_KIND_CLIENT,
        attributes=[
            traffic.attribute("text", "t"),
            traffic.attribute("truth", True),
            traffic.attribute("number", 7),
            traffic.attribute("fraction", 0.5),
            traffic.attribute("bytes", b"\x01\xff"),
            KeyValue(key="nested", value=nested),
            KeyValue(key="nothing"),
        ],
        links=[Span.Link(trace_id=b"x" * 16), Span.Link(trace_id=b"y" * 16)],
        events=[Span.Event(name="exception", time_unix_nano=5, attributes=[traffic.attribute("n", 1)])],
        status=Status(code=Status.STATUS_CODE_ERROR, message="no luck"),
    )
    scope = ScopeSpans(spans=[span])
    scope.scope.name = "library"
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[scope])])
    row = rows_of((TRACES, request.SerializeToString()))[0]
    assert (row["kind"], row["status"], row["linked_trace_id"]) == ("span", "error", b"x" * 16)
    assert row["attributes"] == {
        "text": "t",
        "truth": "true",
        "number": "7",
        "fraction": "0.5",
        "bytes": "01ff",
        "nested": '{"a": []}',
        "links": "79" * 16,
        "events": '[{"name": "exception", "time_ns": 5, "attributes": {"n": 1}}]',
        "otel.status_description": "no luck",
        "otel.scope.name": "library",
        "span.kind": "client",
    }


def test_attributes_of_spans_mean_the_same_as_those_of_others():
    """They are read in another way, because they are so many."""
    long = "n" * 200
    attributes = [
        *(
            traffic.attribute(name, b"x" * size)
            for size in (0, 1, 16, 123, 124, 125, 126, 200)
            for name in BYTES_NAMES
        ),
        *(traffic.attribute(name, value) for value in ("text", 7, -1, 1 << 40, 0.5, True) for name in BYTES_NAMES),
        traffic.attribute(names.ATTRIBUTE_POSITION, 1 << 40),
        traffic.attribute(names.ATTRIBUTE_DOMAIN, "d" * 300),
        traffic.attribute(long, b"bytes"),
        traffic.attribute("", "no name"),
        KeyValue(key=names.ATTRIBUTE_ENVELOPE_ID),
        KeyValue(),
    ]
    for attribute in attributes * 2:
        span = Span(name="s", attributes=[attribute])
        request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[span])])])
        record = traffic.event("s")
        record.attributes.append(attribute)
        as_span = rows_of((TRACES, request.SerializeToString()))[0]
        as_event = rows_of((LOGS, ExportLogsServiceRequest(resource_logs=[logs_of(record)]).SerializeToString()))[
            0
        ]
        for row in (as_span, as_event):
            row["attributes"].pop(names.ATTRIBUTE_POISON_KIND, None)
            for column in ("kind", "time_ns", "start_ns"):
                row[column] = row["kind"] == "poison" if column == "kind" else None
        assert as_span == as_event


BYTES_NAMES = (names.ATTRIBUTE_ENVELOPE_ID, names.ATTRIBUTE_ORDER_KEY)


def logs_of(record: LogRecord) -> ResourceLogs:
    return ResourceLogs(scope_logs=[ScopeLogs(log_records=[record])])


def test_each_delivery_of_a_batch_is_a_row_and_positions_are_counted_on():
    batch = DeliveryBatch(deliveries=[traffic.delivery(5, says=True), traffic.delivery(6), traffic.delivery(7)])
    batch.deliveries.add().CopyFrom(traffic.delivery(20, says=True))
    batch.deliveries[3].begins = True
    batch.deliveries.add().CopyFrom(traffic.delivery(21))
    record = traffic.event(names.EVENT_DELIVERIES, batch.SerializeToString(), domain="d", group="a", group_id="a7")
    rows = rows_of((LOGS, traffic.logs([record, traffic.event(names.EVENT_STARTED)])))
    assert [row["kind"] for row in rows] == ["delivery"] * 5 + ["event"]
    assert [row["position"] for row in rows] == [5, 6, 7, 20, 21, None]
    assert [row["attributes"].get(names.ATTRIBUTE_BEGINS) for row in rows[:5]] == [None, None, None, "true", None]
    row = rows[1]
    assert row["name"] == names.EVENT_DELIVERIES
    assert row["trace_id"] == trace_id(traffic.CLUSTER, "d", traffic.envelope(6))
    assert (row["domain"], row["group"], row["group_id"], row["node"]) == ("d", "a", "a7", "n1")
    assert (row["first_offset"], row["messages"]) == (48, 8)
    assert row["time_ns"] - row["published_ns"] == 3_000_000


def test_a_sender_that_cannot_name_events_names_them_in_an_attribute():
    record = traffic.delivered(0, 2)
    record.event_name = ""
    record.attributes.append(traffic.attribute("event.name", names.EVENT_DELIVERIES))
    assert [row["kind"] for row in rows_of((LOGS, traffic.logs([record])))] == ["delivery"] * 2


def test_an_event_keeps_what_it_says():
    record = traffic.event(names.EVENT_REFUSED, domain="d", reason="busy", count=7)
    record.severity_text = "WARN"
    record.body.string_value = "told"
    row = rows_of((LOGS, traffic.logs([record])))[0]
    assert (row["kind"], row["name"], row["reason"], row["count"]) == ("event", names.EVENT_REFUSED, "busy", 7)
    assert (row["attributes"]["severity"], row["attributes"]["body"]) == ("WARN", "told")


def test_points_of_gauges_and_histograms_have_their_numbers():
    gauge, histogram = rows_of((METRICS, traffic.metrics()))
    assert (gauge["kind"], gauge["name"], gauge["value"]) == ("point", names.METRIC_ORDER_WAITING, 0.0)
    assert (histogram["value"], histogram["value_max"], histogram["count"]) == (1.5, 0.75, 6)
    assert (histogram["bounds"], histogram["buckets"]) == ([0.1, 0.5], [1, 2, 3])
    assert histogram["start_ns"] == histogram["time_ns"] - 10


def metric_rows(*metrics: Metric) -> list[dict[str, Any]]:
    sender = ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=metrics)])
    return rows_of((METRICS, ExportMetricsServiceRequest(resource_metrics=[sender]).SerializeToString()))


def test_other_kinds_of_points_keep_sum_and_count_and_the_rest_as_text():
    exponential = ExponentialHistogramDataPoint(count=3, sum=2.5, scale=2, zero_count=1, min=0.0, max=2.0)
    exponential.positive.offset = -1
    exponential.positive.bucket_counts.extend([1, 1])
    summary = SummaryDataPoint(count=4, sum=8.0)
    summary.quantile_values.add(quantile=0.5, value=1.5)
    total = NumberDataPoint(as_int=5)
    total.exemplars.add(trace_id=b"t" * 16)
    rows = metric_rows(
        Metric(name="e", exponential_histogram=ExponentialHistogram(data_points=[exponential])),
        Metric(name="s", summary=Summary(data_points=[summary])),
        Metric(name="empty"),
        Metric(
            name="t",
            unit="s",
            sum=Sum(data_points=[total], aggregation_temporality=AGGREGATION_TEMPORALITY_CUMULATIVE),
        ),
    )
    assert [(row["name"], row["value"], row["count"]) for row in rows] == [
        ("e", 2.5, 3),
        ("s", 8.0, 4),
        ("t", 5.0, None),
    ]
    assert rows[0]["value_max"] == 2.0
    assert rows[0]["attributes"] == {
        "min": "0.0",
        "scale": "2",
        "zero_count": "1",
        "positive": '{"offset": -1, "counts": [1, 1]}',
    }
    assert rows[1]["attributes"] == {"quantile.0.5": "1.5"}
    assert rows[2]["trace_id"] == b"t" * 16
    assert rows[2]["attributes"] == {"unit": "s", "temporality": "cumulative"}


def test_blocks_of_several_senders_and_signals_do_not_mix():
    rows = rows_of(
        (TRACES, traffic.traces(range(3), "n1")),
        (LOGS, traffic.deliveries(0, 2, "n2")),
        (METRICS, traffic.metrics(2, "n3")),
        (TRACES, traffic.traces([3], "n4", zone="z")),
    )
    assert [row["node"] for row in rows] == ["n1"] * 3 + ["n2"] * 2 + ["n3"] * 3 + ["n4"]
    assert [row["position"] for row in rows] == [None, None, None, 0, 1, None, None, None, 0]
    assert [names.ATTRIBUTE_ZONE in row["attributes"] for row in rows] == [False] * 8 + [True]


def test_a_batch_of_deliveries_that_cannot_be_parsed_is_poison_and_its_neighbours_are_not():
    broken = traffic.event(names.EVENT_DELIVERIES, b"\xff\xff\xff", group="a")
    text = traffic.event(names.EVENT_DELIVERIES)
    text.body.string_value = "not bytes"
    rows = rows_of((LOGS, traffic.logs([traffic.delivered(0, 2), broken, text, traffic.delivered(2, 1)])))
    assert [row["kind"] for row in rows] == ["delivery", "delivery", "poison", "poison", "delivery"]
    for row in rows[2:4]:
        assert (row["name"], row["reason"]) == (names.EVENT_DELIVERIES, "malformed_deliveries")
        assert row["attributes"][names.ATTRIBUTE_POISON_KIND] == "event"
    assert rows[2]["group"] == "a"
    assert rows[2]["attributes"]["body"] == "ffffff"


def test_deliveries_without_envelope_or_position_are_poison():
    batch = DeliveryBatch(deliveries=[traffic.delivery(3), Delivery(position=9), traffic.delivery(10)])
    record = traffic.event(names.EVENT_DELIVERIES, batch.SerializeToString())
    rows = rows_of((LOGS, traffic.logs([record])))
    assert [(row["kind"], row["position"]) for row in rows] == [("poison", None), ("poison", 9), ("delivery", 10)]


def test_an_attribute_of_the_wrong_type_makes_its_row_poison():
    request = ExportTraceServiceRequest.FromString(traffic.traces(range(3)))
    spans = request.resource_spans[0].scope_spans[0].spans
    spans[1].attributes.append(traffic.attribute(names.ATTRIBUTE_POSITION, "first"))
    spans[1].attributes.append(traffic.attribute(names.ATTRIBUTE_REASON, "its own"))
    rows = rows_of((TRACES, request.SerializeToString()))
    assert [row["kind"] for row in rows] == ["span", "poison", "span"]
    poison = rows[1]
    assert (poison["name"], poison["reason"], poison["domain"]) == (
        names.SPAN_DECIDE,
        "attribute_type",
        "default",
    )
    assert poison["attributes"][names.ATTRIBUTE_POSITION] == "first"
    assert (
        poison["attributes"][names.ATTRIBUTE_POISON_DETAIL] == "ordercast.position is of the type string, not int"
    )


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"schema": names.VERSION + 1}, "schema_version"),
        ({"schema": 0}, "schema_version"),
        ({"schema": "two"}, "attribute_type"),
        ({"incarnation": "third"}, "attribute_type"),
    ],
)
def test_a_sender_that_cannot_be_understood_makes_all_it_sends_poison(more: dict[str, Any], reason: str):
    rows = rows_of(
        (TRACES, traffic.traces(range(2), **more)),
        (METRICS, traffic.metrics(1, **more)),
        (LOGS, traffic.logs([traffic.delivered(0, 2)], **more)),
        (TRACES, traffic.traces(range(1))),
    )
    assert [(row["kind"], row["reason"]) for row in rows] == [("poison", reason)] * 6 + [("span", None)]
    assert {row["attributes"][names.ATTRIBUTE_POISON_KIND] for row in rows[:6]} == {"span", "point", "delivery"}


def test_a_number_that_does_not_fit_makes_its_row_poison():
    request = ExportTraceServiceRequest.FromString(traffic.traces(range(3)))
    request.resource_spans[0].scope_spans[0].spans[2].end_time_unix_nano = 1 << 63
    rows = rows_of((TRACES, request.SerializeToString()))
    assert [row["kind"] for row in rows] == ["span", "span", "poison"]
    assert (rows[2]["reason"], rows[2]["time_ns"]) == ("out_of_range", None)
    assert rows[2]["attributes"]["time_ns"] == str(1 << 63)


def test_a_request_that_was_counted_otherwise_keeps_its_offsets():
    rows = Rows()
    add(rows, TRACES, traffic.traces(range(2)), 10, 2, RECEIVED_NS)
    add(rows, TRACES, traffic.traces(range(5)), 12, 3, RECEIVED_NS)
    add(rows, LOGS, b"\xff", 15, 1, RECEIVED_NS)
    add(rows, TRACES, traffic.traces(range(2)), 16, 2, RECEIVED_NS)
    found = rows.finished().to_pylist()
    assert [row["offset"] for row in found] == list(range(10, 18))
    assert [row["kind"] for row in found] == ["span"] * 2 + ["poison"] * 4 + ["span"] * 2
    assert {row["reason"] for row in found[2:6]} == {"unreadable"}
    assert [row["node"] for row in found[2:]] == [None] * 4 + ["n1"] * 2


def test_a_few_long_words_of_a_sender_do_not_fill_the_memory():
    long = "x" * 100_000
    many = {f"attribute{i}": "y" * 400 for i in range(1000)}
    request = ExportTraceServiceRequest.FromString(traffic.traces(range(500), zone=long, **many))
    request.resource_spans[0].resource.attributes.append(traffic.attribute(names.ATTRIBUTE_SERVICE_NAME, long))
    request.resource_spans[0].scope_spans[0].scope.name = long
    rows = rows_of(
        (TRACES, request.SerializeToString()),
        (LOGS, traffic.logs([traffic.delivered(0, 100, group=long)])),
    )
    assert max(len(str(row)) for row in rows) < 10_000
    assert {row["kind"] for row in rows} == {"span", "delivery"}


def test_rows_that_are_taken_back_leave_nothing_behind():
    rows = Rows()
    add(rows, TRACES, traffic.traces(range(3), zone="z"), 0, 3, RECEIVED_NS)
    before = rows.size
    rows.begin("span", 2, RECEIVED_NS, sort([traffic.attribute("left", "over")]))
    rows.put("domain", 4, "gone")
    rows.note(4, "gone", "gone")
    rows.cut(before)
    add(rows, LOGS, traffic.logs([traffic.event("e")]), 3, 1, RECEIVED_NS)
    found = rows.finished().to_pylist()
    assert (found[3]["domain"], dict(found[3]["attributes"])) == (
        None,
        {names.ATTRIBUTE_CLUSTER: traffic.CLUSTER.hex()},
    )
