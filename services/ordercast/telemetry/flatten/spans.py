"""Spans.

Most of the work of making rows is their attributes, and most of those are said again and again: the domain, the
stage, the group. So requests are parsed with attributes left as the bytes that they came as, and what bytes mean
is looked up.
"""

import json
from collections.abc import Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from ordercast.telemetry.flatten.rows import Rows
from ordercast.telemetry.flatten.values import TARGETS, Decoded, decode, plain
from ordercast.telemetry.schema import names

STATUS = {Status.STATUS_CODE_UNSET: None, Status.STATUS_CODE_OK: "ok", Status.STATUS_CODE_ERROR: "error"}
KINDS = {
    Span.SPAN_KIND_SERVER: "server",
    Span.SPAN_KIND_CLIENT: "client",
    Span.SPAN_KIND_PRODUCER: "producer",
    Span.SPAN_KIND_CONSUMER: "consumer",
}

#: What is remembered of attributes, and how long one may be for that.
KNOWN_MAX = 16_384
KNOWN_BYTES_MAX = 128
_known: dict[bytes, Decoded] = {}


def _lean_traces() -> Any:
    """The message of a request, with the attributes of spans as bytes. On the wire it is the same."""
    pool = descriptor_pool.DescriptorPool()
    for module in (common_pb2, resource_pb2, trace_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        for message in file.message_type:
            for field in message.field:
                if (message.name, field.name) == ("Span", "attributes"):
                    field.type = field.TYPE_BYTES
                    field.ClearField("type_name")
        pool.Add(file)
    name = trace_pb2.TracesData.DESCRIPTOR.full_name
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


LeanTraces = _lean_traces()


#: Columns of attributes that are bytes, by how such an attribute begins: a tag, the length of its name, and its
#: name.
_BYTES = {
    bytes((0x0A, len(name))) + name.encode(): (name, target.column)
    for name, target in TARGETS.items()
    if target.field == "bytes_value"
}


def _look_up(attribute: bytes) -> tuple[str, str | None, Any, str]:
    """One that is not known yet: as `decode` says it."""
    # Every span has an id that no other has: it is found without a parser. Behind the name come the tags and
    # lengths of the value, and of the bytes in it.
    end = attribute[1] + 2 if len(attribute) > 1 else 0
    known = _BYTES.get(attribute[:end])
    if known is not None:
        rest = attribute[end:]
        size = len(rest)
        if 4 <= size < 128 and rest[:4] == bytes((0x12, size - 2, 0x3A, size - 4)):
            return *known, rest[4:], ""
    found = decode(common_pb2.KeyValue.FromString(attribute))
    # Large numbers, such as times and positions, are rarely said twice.
    is_common = isinstance(found.value, str) or (isinstance(found.value, int) and 0 <= found.value < 1024)
    if is_common and len(attribute) <= KNOWN_BYTES_MAX:
        if len(_known) >= KNOWN_MAX:
            _known.clear()
        _known[attribute] = found
    return found


def add_spans(rows: Rows, spans: Sequence[Any]) -> None:
    """Of LeanTraces, into the block that has begun."""
    rows.fill(names.COLUMN_NAME, [span.name for span in spans])
    rows.fill(names.COLUMN_TIME_NS, [span.end_time_unix_nano for span in spans])
    rows.fill(names.COLUMN_START_NS, [span.start_time_unix_nano for span in spans])
    rows.fill(names.COLUMN_TRACE_ID, [span.trace_id or None for span in spans])
    rows.fill(names.COLUMN_SPAN_ID, [span.span_id or None for span in spans])
    rows.fill(names.COLUMN_PARENT_SPAN_ID, [span.parent_span_id or None for span in spans])
    known = _known.get
    for row, span in enumerate(spans, rows.base):
        rows.attributes(row, [known(attribute) or _look_up(attribute) for attribute in span.attributes])
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


def _add_links(rows: Rows, row: int, span: Any) -> None:
    first, *others = span.links
    rows.put(names.COLUMN_LINKED_TRACE_ID, row, first.trace_id or None)
    if others:
        rows.note(row, "links", ",".join(link.trace_id.hex() for link in others))


def _event(event: Any) -> dict[str, Any]:
    attributes = {attribute.key: plain(attribute.value) for attribute in event.attributes}
    return {"name": event.name, "time_ns": event.time_unix_nano, "attributes": attributes}
