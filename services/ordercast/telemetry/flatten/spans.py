"""Spans."""

import json
from collections.abc import Sequence
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from ordercast.telemetry.flatten.rows import Rows
from ordercast.telemetry.flatten.values import plain
from ordercast.telemetry.schema import names

STATUS = {Status.STATUS_CODE_UNSET: None, Status.STATUS_CODE_OK: "ok", Status.STATUS_CODE_ERROR: "error"}
KINDS = {
    Span.SPAN_KIND_SERVER: "server",
    Span.SPAN_KIND_CLIENT: "client",
    Span.SPAN_KIND_PRODUCER: "producer",
    Span.SPAN_KIND_CONSUMER: "consumer",
}


def add_spans(rows: Rows, spans: Sequence[Span]) -> None:
    """Into the block that has begun."""
    rows.fill(names.COLUMN_NAME, [span.name for span in spans])
    rows.fill(names.COLUMN_TIME_NS, [span.end_time_unix_nano for span in spans])
    rows.fill(names.COLUMN_START_NS, [span.start_time_unix_nano for span in spans])
    rows.fill(names.COLUMN_TRACE_ID, [span.trace_id or None for span in spans])
    rows.fill(names.COLUMN_SPAN_ID, [span.span_id or None for span in spans])
    rows.fill(names.COLUMN_PARENT_SPAN_ID, [span.parent_span_id or None for span in spans])
    for row, span in enumerate(spans, rows.base):
        rows.attributes(row, span.attributes)
        if span.links:
            _add_links(rows, row, span)
        if span.events:
            rows.note(row, "events", json.dumps([_event(event) for event in span.events], ensure_ascii=False))
        if span.HasField("status"):
            rows.put(names.COLUMN_STATUS, row, STATUS.get(span.status.code))
            if span.status.message:
                rows.note(row, "otel.status_description", span.status.message)
        kind = KINDS.get(span.kind)
        if kind is not None:
            rows.note(row, "span.kind", kind)


def _add_links(rows: Rows, row: int, span: Span) -> None:
    first, *others = span.links
    rows.put(names.COLUMN_LINKED_TRACE_ID, row, first.trace_id or None)
    if others:
        rows.note(row, "links", ",".join(link.trace_id.hex() for link in others))


def _event(event: Span.Event) -> dict[str, Any]:
    attributes = {attribute.key: plain(attribute.value) for attribute in event.attributes}
    return {"name": event.name, "time_ns": event.time_unix_nano, "attributes": attributes}
