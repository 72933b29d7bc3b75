"""`ordercast subscribe`: read a group's messages in their order."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli.connection import Connection, connected
from ordercast.cli.cursor import parse_start
from ordercast.cli.output import bytes_fields, bytes_text, print_json_line, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from ordercast.client.live import LiveDelivery
    from ordercast.client.types import Delivery

JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line for each message.")]


@connected
def subscribe(
    connection: Connection,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group.")],
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="earliest|latest|OFFSET",
            help="Where to begin; with --cursor, only if that does not exist yet.  "
            "[default: latest; earliest with --until-end]",
        ),
    ] = None,
    cursor: Annotated[str | None, typer.Option(metavar="NAME", help="Go on where this cursor stands.")] = None,
    ack: Annotated[bool, typer.Option("--ack", help="Move the cursor behind what was printed.")] = False,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at the end of the log.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many messages.")] = None,
    payload_only: Annotated[
        bool, typer.Option("--payload-only", help="Print payloads as they are, each with a line end.")
    ] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="What one replica delivers, in causal order, before the log shows it (protocol isis)."
        ),
    ] = False,
    json: JsonLines = False,
) -> None:
    """Print the messages of a group in their order, and wait for more until Ctrl-C.

    If a gateway or a replica fails, another one goes on: no message is left out, and none comes twice.

    Examples: `ordercast subscribe a --from earliest` · `ordercast subscribe a --until-end --json | jq .payload` ·
    `ordercast subscribe a --cursor billing --ack --from earliest` · `ordercast subscribe room --live`
    """
    if ack and cursor is None:
        raise typer.BadParameter("--ack moves a cursor: name it with --cursor")
    if payload_only and json:
        raise typer.BadParameter("--payload-only and --json are two forms: choose one")
    if live and (start is not None or cursor is not None or until_end):
        raise typer.BadParameter(
            "--live begins now, and has no place in the log: no --from, --cursor or --until-end"
        )
    if live:
        _follow(
            connection, group, limit, _show_payload if payload_only else _show_live_json if json else _show_live
        )
        return
    place = _place(start, cursor, until_end)
    show = _show_payload if payload_only else _show_json if json else _show_line
    try:
        with (
            connection.client() as client,
            client.subscribe(group, start=place, cursor=cursor, stop_at_end=until_end) as deliveries,
        ):
            for count, delivery in enumerate(deliveries, start=1):
                show(delivery)
                if ack:
                    delivery.ack()
                if count == limit:
                    break
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _follow(connection: Connection, group: str, limit: int | None, show: "Callable[[LiveDelivery], None]") -> None:
    try:
        with connection.client() as client, client.subscribe_live(group) as deliveries:
            for count, delivery in enumerate(deliveries, start=1):
                show(delivery)
                if count == limit:
                    break
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _place(start: str | None, cursor: str | None, until_end: bool) -> str | int | None:
    """None lets the cursor decide, which then has to exist."""
    if start is not None:
        return parse_start(start)
    if cursor is not None:
        return None
    return "earliest" if until_end else "latest"


def _show_payload(delivery: "Delivery | LiveDelivery") -> None:
    sys.stdout.buffer.write(delivery.payload + b"\n")
    sys.stdout.buffer.flush()


def _show_json(delivery: "Delivery") -> None:
    print_json_line(delivery_document(delivery))


def _show_live(delivery: "LiveDelivery") -> None:
    key = f"  {bytes_text(delivery.key)}:" if delivery.key else ""
    say(f"    live{key}  {bytes_text(delivery.payload)}")


def _show_line(delivery: "Delivery") -> None:
    key = f"  {bytes_text(delivery.key)}:" if delivery.key else ""
    say(f"{delivery.offset:>8}{key}  {bytes_text(delivery.payload)}")


def _show_live_json(delivery: "LiveDelivery") -> None:
    print_json_line({"group": delivery.group, "live": True, **_message_document(delivery)})


def delivery_document(delivery: "Delivery") -> dict[str, Any]:
    place = {"group": delivery.group, "offset": delivery.offset, "order_key": delivery.order_key.hex()}
    return {**place, **_message_document(delivery)}


def _message_document(delivery: "Delivery | LiveDelivery") -> dict[str, Any]:
    headers: dict[str, Any] = {}
    for name, value in delivery.headers.items():
        headers |= bytes_fields(name, value)
    return {
        "message_id": delivery.message_id,
        **bytes_fields("payload", delivery.payload),
        **(bytes_fields("key", delivery.key) if delivery.key else {}),
        **({"headers": headers} if headers else {}),
    }
