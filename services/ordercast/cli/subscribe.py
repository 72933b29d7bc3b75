"""`ordercast subscribe`: read a group's messages in their order."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli import completion
from ordercast.cli.connection import Connection, connected
from ordercast.cli.delivery_forms import (
    Form,
    json_form,
    line_form,
    live_json_form,
    live_line_form,
    parse_form,
    payload_form,
)
from ordercast.cli.places import METAVAR, parse_start

if TYPE_CHECKING:
    from datetime import datetime, timedelta

StartOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar=METAVAR,
        help="Where to begin; with --cursor, only if that does not exist yet. An age is 45s, 10m, 2h or 7d; "
        "a time is 2026-11-17T10:00, local unless it names a zone.  "
        "[default: latest; earliest with --until-end]",
    ),
]
FormOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORM",
        help="Print each message like this, such as '{offset} {payload}': {group}, {offset}, {payload}, "
        "{key}, {headers}, {headers[NAME]}, {message_id}, {producer}, {sequence}, {order_key}, {stored_at}.",
    ),
]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line for each message.")]


@connected
def subscribe(
    connection: Connection,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group.", autocompletion=completion.groups)],
    start: StartOption = None,
    last: Annotated[
        int | None, typer.Option(min=1, help="Begin so many messages before the end, instead of --from.")
    ] = None,
    cursor: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Go on where this cursor stands.", autocompletion=completion.cursors),
    ] = None,
    ack: Annotated[bool, typer.Option("--ack", help="Move the cursor behind what was printed.")] = False,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at the end of the log.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many messages.")] = None,
    payload_only: Annotated[
        bool, typer.Option("--payload-only", help="Print payloads as they are, each with a line end.")
    ] = False,
    form: FormOption = None,
    print0: Annotated[
        bool, typer.Option("--print0", help="End each message with a zero byte instead of a line end.")
    ] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="What one replica delivers, in causal order, before the log shows it, if the protocol has that.",
        ),
    ] = False,
    json: JsonLines = False,
) -> None:
    """Print the messages of a group in their order, and wait for more until Ctrl-C.

    If a gateway or a replica fails, another one goes on: no message is left out, and none comes twice.

    Examples: `ordercast subscribe a --from earliest` · `ordercast subscribe a --from 10m --until-end` ·
    `ordercast subscribe a --until-end --json | jq .payload` · `ordercast subscribe a --last 20 --format
    '{stored_at} {payload}'` · `ordercast subscribe a --cursor billing --ack --from earliest` ·
    `ordercast subscribe room --live`
    """
    _check_one_group(group)
    if ack and cursor is None:
        raise typer.BadParameter("--ack moves a cursor: name it with --cursor")
    if payload_only + json + (form is not None) > 1:
        raise typer.BadParameter("--payload-only, --json and --format are several forms: choose one")
    if start is not None and last is not None:
        raise typer.BadParameter("--from and --last are two places to begin at: choose one")
    if live and (start is not None or last is not None or cursor is not None or until_end):
        raise typer.BadParameter(
            "--live begins now, and has no place in the log: no --from, --last, --cursor or --until-end"
        )
    chosen = _form(form, payload_only=payload_only, json=json, live=live)
    place = None if live or last is not None else _place(start, until_end)
    try:
        with connection.client() as client:
            if live:
                reading: Any = client.subscribe_live(group)
            else:
                reading = client.subscribe(group, start=place, last=last, cursor=cursor, stop_at_end=until_end)
            with reading as deliveries:
                _print(deliveries, chosen, b"\0" if print0 else b"\n", limit, ack)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _print(deliveries: Iterable[Any], form: Form, end: bytes, limit: int | None, ack: bool) -> None:
    """Each at once: the reader may be waiting for it."""
    for count, delivery in enumerate(deliveries, start=1):
        sys.stdout.buffer.write(form(delivery) + end)
        sys.stdout.buffer.flush()
        if ack:
            delivery.ack()
        if count == limit:
            return


def _check_one_group(group: str) -> None:
    if "," in group:
        first, *_ = names = [name.strip() for name in group.split(",")]
        raise typer.BadParameter(
            f"a subscription reads one group, not {len(names)}: run a command for each, such as "
            f"`ordercast subscribe {first}`. A message that was sent to several groups is in each of them, with "
            "the same message_id and order_key. Where the domain's protocol is causal (`ordercast domain "
            "protocols`), the SDK's subscribe_causal reads several as one"
        )


def _form(text: str | None, *, payload_only: bool, json: bool, live: bool) -> Form:
    if text is not None:
        return parse_form(text, is_live=live)
    if payload_only:
        return payload_form
    if json:
        return live_json_form if live else json_form
    return live_line_form if live else line_form


def _place(start: str | None, until_end: bool) -> "str | int | datetime | timedelta":
    if start is not None:
        return parse_start(start)
    return "earliest" if until_end else "latest"
