"""How messages are printed: as lines for people, as JSON, as payloads, or in a form that the user gives."""

import json
import re
import string
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from ordercast.cli.output import bytes_fields, bytes_text

if TYPE_CHECKING:
    from ordercast.client.live import LiveDelivery
    from ordercast.client.merged_types import MergedDelivery
    from ordercast.client.types import Delivery

#: A message as it is printed, without what ends it.
Form = Callable[[Any], bytes]

#: What `--format` may name.
FIELDS: Mapping[str, Callable[[Any], str | int]] = {
    "group": lambda delivery: delivery.group,
    "offset": lambda delivery: delivery.offset,
    "payload": lambda delivery: _as_it_is(delivery.payload),
    "key": lambda delivery: _as_it_is(delivery.key),
    "headers": lambda delivery: " ".join(f"{name}={_as_it_is(value)}" for name, value in delivery.headers.items()),
    "message_id": lambda delivery: delivery.message_id,
    "producer": lambda delivery: _producer(delivery),
    "sequence": lambda delivery: delivery.sequence,
    "order_key": lambda delivery: delivery.order_key.hex(),
    "stored_at": lambda delivery: _stored_at(delivery) or "",
}
NUMBERS = ("offset", "sequence")
#: What a message has with its place in the log, and not before.
PLACED = ("offset", "order_key", "stored_at")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
#: How bytes that are no text get through a text.
EXACTLY = "surrogateescape"


def _as_it_is(value: bytes) -> str:
    return value.decode(errors=EXACTLY)


def _producer(delivery: "Delivery | LiveDelivery") -> str:
    from ordercast.client.types import producer_text

    return producer_text(delivery.producer)


def _stored_at(delivery: "Delivery | MergedDelivery") -> str | None:
    at = delivery.stored_at
    return None if at is None else at.isoformat(timespec="milliseconds")


# --------------------------------------------------------------------------------------------------- fixed forms


def payload_form(delivery: "Delivery | LiveDelivery") -> bytes:
    return delivery.payload


def line_form(delivery: "Delivery") -> bytes:
    return f"{delivery.offset:>8}{message_text(delivery)}".encode()


def live_line_form(delivery: "LiveDelivery") -> bytes:
    return f"    live{message_text(delivery)}".encode()


def message_text(delivery: "Delivery | LiveDelivery | MergedDelivery") -> str:
    key = f"  {bytes_text(delivery.key)}:" if delivery.key else ""
    pairs = [f"{bytes_text(name.encode())}={bytes_text(value)}" for name, value in delivery.headers.items()]
    headers = f"  [{', '.join(pairs)}]" if pairs else ""
    return f"{key}  {bytes_text(delivery.payload)}{headers}"


def json_form(delivery: "Delivery") -> bytes:
    return json.dumps(delivery_document(delivery)).encode()


def live_json_form(delivery: "LiveDelivery") -> bytes:
    return json.dumps({"group": delivery.group, "live": True, **message_document(delivery)}).encode()


def delivery_document(delivery: "Delivery") -> dict[str, Any]:
    place = {"group": delivery.group, "offset": delivery.offset, "order_key": delivery.order_key.hex()}
    return {**place, **stored_document(delivery), **message_document(delivery)}


def stored_document(delivery: "Delivery | MergedDelivery") -> dict[str, str]:
    """When it was stored, if that is known."""
    stored_at = _stored_at(delivery)
    return {} if stored_at is None else {"stored_at": stored_at}


def message_document(delivery: "Delivery | LiveDelivery | MergedDelivery") -> dict[str, Any]:
    headers: dict[str, Any] = {}
    for name, value in delivery.headers.items():
        headers |= bytes_fields(name, value)
    return {
        "message_id": delivery.message_id,
        **bytes_fields("payload", delivery.payload),
        **(bytes_fields("key", delivery.key) if delivery.key else {}),
        **({"headers": headers} if headers else {}),
    }


# ------------------------------------------------------------------------------------------------ the user's form


def parse_form(text: str, *, is_live: bool) -> Form:
    """`{offset:>6} {payload}`: fields as Python formats them, and backslashes for what is no letter."""
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError as error:
        raise typer.BadParameter(
            f"--format: {error}. Braces of your own are written twice: {{{{ and }}}}"
        ) from None
    parts: list[str | Callable[[Any], str]] = []
    for literal, field, spec, conversion in pieces:
        parts.append(re.sub(r"\\([ntr0\\])", lambda found: ESCAPES[found[1]], literal))
        if field is not None:
            parts.append(_parse_field(field, spec or "", conversion, is_live))

    def form(delivery: Any) -> bytes:
        return "".join(part if isinstance(part, str) else part(delivery) for part in parts).encode(errors=EXACTLY)

    return form


def _parse_field(field: str, spec: str, conversion: str | None, is_live: bool) -> Callable[[Any], str]:
    header = re.fullmatch(r"headers\[(.+)\]", field)
    if header is None and field not in FIELDS:
        known = ", ".join(f"{{{name}}}" for name in FIELDS)
        raise typer.BadParameter(f"--format: there is no {{{field}}}. There are {known}, and {{headers[NAME]}}")
    if is_live and field in PLACED:
        raise typer.BadParameter(
            f"--format: there is no {{{field}}} with --live, before there is a place in the log"
        )
    try:
        if conversion is not None:
            raise ValueError(f"no conversion: !{conversion}")
        format(0 if field in NUMBERS else "", spec)
    except ValueError as error:
        raise typer.BadParameter(f"--format: {{{field}}} cannot be written like that: {error}") from None
    if header is not None:
        name = header[1]
        return lambda delivery: format(_as_it_is(delivery.headers.get(name, b"")), spec)
    value = FIELDS[field]
    return lambda delivery: format(value(delivery), spec)
