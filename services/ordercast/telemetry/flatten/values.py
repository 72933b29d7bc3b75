"""Attribute values of OTLP: as what a column holds, and as text for all that has no column."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from ordercast.telemetry.schema.model import load

#: Which field of a value holds what the schema calls a type.
FIELD_OF_TYPE = {"string": "string_value", "int": "int_value", "bytes": "bytes_value"}
#: Characters of one text that many rows share, and of all those without a column together.
SHARED_MAX = 512
SHARED_TOTAL_MAX = 4096


class Target(NamedTuple):
    column: str
    #: The field that a value for this column has to be in.
    field: str


#: Where attributes go, by name; others have no column.
TARGETS = {
    attribute.name: Target(attribute.column, FIELD_OF_TYPE[attribute.type])
    for attribute in load().attributes.values()
    if attribute.column
}


class Decoded(NamedTuple):
    name: str
    #: None: it has no column, or is of the wrong type for it, and its value is text.
    column: str | None
    #: None: there is none.
    value: Any
    #: What is wrong with it, if something is.
    wrong: str


def decode(attribute: KeyValue) -> Decoded:
    name = attribute.key
    value = attribute.value
    field = value.WhichOneof("value")
    if field is None:
        return Decoded(name, None, None, "")
    target = TARGETS.get(name)
    if target is None:
        return Decoded(name, None, text(value), "")
    if field == target.field:
        return Decoded(name, target.column, getattr(value, field), "")
    wrong = f"{name} is of the type {_type(field)}, not {_type(target.field)}"
    return Decoded(name, None, text(value), wrong)


def _type(field: str) -> str:
    return field.removesuffix("_value")


class Sorted(NamedTuple):
    """Attributes that many rows share."""

    columns: dict[str, Any]
    #: Those without a column, as text.
    others: dict[str, str]
    #: What is wrong with them, if something is.
    wrong: str


NOTHING = Sorted({}, {}, "")


def sort(attributes: Iterable[KeyValue]) -> Sorted:
    """Texts that many rows share are kept short: a few bytes of a request could fill all memory otherwise."""
    columns: dict[str, Any] = {}
    others: dict[str, str] = {}
    wrong = ""
    left = SHARED_TOTAL_MAX
    for one in map(decode, attributes):
        if one.column is not None:
            columns[one.column] = shortened(one.value)
        elif one.value is not None:
            value = shortened(one.value)
            left -= len(one.name) + len(value)
            if left >= 0:
                others[one.name] = value
            wrong = one.wrong or wrong
    return Sorted(columns, others, wrong)


def shortened(value: Any) -> Any:
    return value[:SHARED_MAX] if isinstance(value, str | bytes) else value


def text(value: AnyValue) -> str:
    """Numbers and booleans as text, bytes in hexadecimal digits, and what is nested as JSON."""
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "bool_value":
            return "true" if value.bool_value else "false"
        case "bytes_value":
            return value.bytes_value.hex()
        case "int_value":
            return str(value.int_value)
        case "double_value":
            return repr(value.double_value)
        case None:
            return ""
        case _:
            return json.dumps(plain(value), ensure_ascii=False)


def plain(value: AnyValue) -> Any:
    """For JSON."""
    match value.WhichOneof("value"):
        case "array_value":
            return [plain(item) for item in value.array_value.values]
        case "kvlist_value":
            return {item.key: plain(item.value) for item in value.kvlist_value.values}
        case "bool_value":
            return value.bool_value
        case "int_value":
            return value.int_value
        case None:
            return None
        case _:
            # JSON has no word for bytes, nor for the numbers that are none.
            return text(value)
