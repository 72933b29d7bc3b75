"""Log records: events, and the deliveries that one of them may carry.

A record with the name ordercast.deliveries has a DeliveryBatch as its body, and becomes as many rows as there are
deliveries in it.
"""

from google.protobuf.message import DecodeError
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from ordercast.core.tracing import trace_id
from ordercast.telemetry.flatten.rows import REASON_ATTRIBUTE, REASON_DELIVERIES, Rows
from ordercast.telemetry.flatten.values import Sorted, decode, sort, text
from ordercast.telemetry.schema import names
from ordercast.v1.telemetry_pb2 import DeliveryBatch

#: Where senders put the name of an event that cannot put it where it belongs.
NAME_ATTRIBUTE = "event.name"


def name_of(record: LogRecord) -> str:
    if record.event_name:
        return record.event_name
    for attribute in record.attributes:
        if attribute.key == NAME_ATTRIBUTE:
            return attribute.value.string_value
    return ""


def deliveries_of(record: LogRecord) -> DeliveryBatch | None:
    """None if it carries none that could be understood."""
    if name_of(record) != names.EVENT_DELIVERIES or record.body.WhichOneof("value") != "bytes_value":
        return None
    try:
        return DeliveryBatch.FromString(record.body.bytes_value)
    except DecodeError:
        return None


def add_event(rows: Rows, record: LogRecord) -> None:
    """Into the block of one row that has begun."""
    row = rows.base
    name = name_of(record)
    rows.put(names.COLUMN_NAME, row, name or None)
    rows.put(names.COLUMN_TIME_NS, row, record.time_unix_nano or record.observed_time_unix_nano)
    rows.put(names.COLUMN_TRACE_ID, row, record.trace_id or None)
    rows.put(names.COLUMN_SPAN_ID, row, record.span_id or None)
    rows.attributes(row, (decode(one) for one in record.attributes if one.key != NAME_ATTRIBUTE))
    if record.severity_text or record.severity_number:
        rows.note(row, "severity", record.severity_text or str(record.severity_number))
    if record.body.WhichOneof("value") is not None:
        rows.note(row, "body", text(record.body))
    if name == names.EVENT_DELIVERIES:
        rows.poison(row, REASON_DELIVERIES, "the body is no DeliveryBatch")


def add_deliveries(rows: Rows, record: LogRecord, batch: DeliveryBatch, cluster: bytes | None) -> None:
    """Into the block that has begun, which has a row for each of them."""
    deliveries = list(batch.deliveries)
    attributes = sort(one for one in record.attributes if one.key != NAME_ATTRIBUTE)
    for column, value in attributes.columns.items():
        rows.repeat(column, value)
    rows.repeat(names.COLUMN_NAME, names.EVENT_DELIVERIES)
    rows.fill(names.COLUMN_TIME_NS, [one.delivered_ns for one in deliveries])
    rows.fill(names.COLUMN_ENVELOPE, [one.envelope_id or None for one in deliveries])
    rows.fill(names.COLUMN_ORDER_KEY, [one.order_key or None for one in deliveries])
    rows.fill(names.COLUMN_FIRST_OFFSET, [one.first_offset for one in deliveries])
    rows.fill(names.COLUMN_MESSAGES, [one.messages for one in deliveries])
    rows.fill(names.COLUMN_PUBLISHED_NS, [one.published_ns or None for one in deliveries])
    domain = attributes.columns.get(names.COLUMN_DOMAIN)
    if cluster is not None and domain is not None:
        rows.fill(names.COLUMN_TRACE_ID, [trace_id(cluster, domain, one.envelope_id) for one in deliveries])
    _number(rows, batch)
    for row, one in enumerate(deliveries, rows.base):
        if one.begins:
            rows.note(row, names.ATTRIBUTE_BEGINS, "true")
        if not one.envelope_id:
            rows.poison(row, REASON_DELIVERIES, "a delivery without an envelope")
    _note_rest(rows, attributes)


def _number(rows: Rows, batch: DeliveryBatch) -> None:
    """A delivery that does not say its position is the one behind that before it."""
    positions: list[int | None] = []
    position: int | None = None
    for row, one in enumerate(batch.deliveries, rows.base):
        if one.HasField("position"):
            position = one.position
        elif position is not None:
            position += 1
        else:
            rows.poison(row, REASON_DELIVERIES, "the first delivery does not say its position")
        positions.append(position)
    rows.fill(names.COLUMN_POSITION, positions)


def _note_rest(rows: Rows, attributes: Sorted) -> None:
    for row in range(rows.base, rows.size):
        for name, value in attributes.others.items():
            rows.note(row, name, value)
        if attributes.wrong:
            rows.poison(row, REASON_ATTRIBUTE, attributes.wrong)
