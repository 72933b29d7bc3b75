"""Messages as people read them, for traces and explanations."""

from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtobufMessage

from ordercast.core.ids import ID_BYTES, KEY_BYTES, short, sn_of
from ordercast.v1.common_pb2 import Batch, Destination, Envelope, Header, Incarnation, ProducerRange
from ordercast.v1.consensus_pb2 import Round
from ordercast.v1.gateway_pb2 import PublishRequest


def describe(value: Any) -> str:
    """One line for any message of ours: ids as incarnation.counter, order keys as sn/id, the rest by field."""
    if isinstance(value, bytes):
        return _bytes(value)
    if isinstance(value, Destination):
        return f"{value.group}@{value.configuration}"
    if isinstance(value, Incarnation):
        return f"{value.process}#{value.number}"
    if isinstance(value, Round):
        return f"({value.number},{value.owner})"
    if isinstance(value, ProducerRange):
        return f"{value.producer.decode(errors='replace')}:{value.first_sequence}+{value.count}"
    if isinstance(value, Envelope):
        return describe(value.header)
    if isinstance(value, Header):
        groups = ",".join(d.group for d in value.destinations)
        ranges = " ".join(describe(r) for r in value.ranges)
        coordinator = describe(value.coordinator)
        return f"{_bytes(value.id)}{{{groups}}} [{ranges}] coordinator {coordinator} done {value.done}"
    if isinstance(value, PublishRequest):
        value = _with_its_messages(value)
    if isinstance(value, ProtobufMessage):
        fields = " ".join(f"{field.name}={_field(field, content)}" for field, content in value.ListFields())
        return f"{type(value).__name__}({fields})"
    return str(value)


def _with_its_messages(request: PublishRequest) -> PublishRequest:
    """A batch is bytes: people read the messages in it."""
    try:
        messages = Batch.FromString(request.batch).messages
    except DecodeError:
        return request
    shown = PublishRequest()
    shown.CopyFrom(request)
    shown.ClearField("batch")
    shown.ClearField("count")
    shown.messages.extend(messages)
    return shown


def _field(field: Any, content: Any) -> str:
    if field.is_repeated:
        return "[" + " ".join(describe(item) for item in content) + "]"
    return describe(content)


def _bytes(value: bytes) -> str:
    if len(value) == ID_BYTES:
        return short(value)
    if len(value) == KEY_BYTES:
        return f"{sn_of(value)}/{short(value[8:])}"
    if len(value) == 8:
        return str(int.from_bytes(value, "big"))
    return value.decode(errors="replace") if len(value) < 40 else f"<{len(value)} bytes>"
