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
from ordercast.cli.merged import DomainOption, Groups, PatternOption, UntilNow, merged_form, subscription
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


GroupsArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[GROUP,...]", help="The group, or several of one domain.", autocompletion=completion.groups
    ),
]
LastOption = Annotated[
    int | None, typer.Option(min=1, help="Begin so many messages before the end, instead of --from.")
]
CursorOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Go on where this cursor stands.", autocompletion=completion.cursors),
]
PayloadOnly = Annotated[
    bool, typer.Option("--payload-only", help="Print payloads as they are, each with a line end.")
]
Print0 = Annotated[bool, typer.Option("--print0", help="End each message with a zero byte instead of a line end.")]
LiveOption = Annotated[
    bool,
    typer.Option(
        "--live",
        help="What one replica delivers, in causal order, before the log shows it, if the protocol has that.",
    ),
]


@connected
def subscribe(
    connection: Connection,
    group: GroupsArgument = None,
    start: StartOption = None,
    last: LastOption = None,
    cursor: CursorOption = None,
    ack: Annotated[bool, typer.Option("--ack", help="Move the cursor behind what was printed.")] = False,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at the end of the log.")] = False,
    until_now: UntilNow = False,
    domain: DomainOption = None,
    pattern: PatternOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many messages.")] = None,
    payload_only: PayloadOnly = False,
    form: FormOption = None,
    print0: Print0 = False,
    live: LiveOption = False,
    json: JsonLines = False,
) -> None:
    """Print the messages of groups in their order, and wait for more until Ctrl-C.

    If a gateway or a replica fails, another one goes on: no message is left out, and none comes twice. Several
    groups come as one stream in their domain's order, with one cursor, and each message once.

    Examples: `ordercast subscribe a --from earliest` · `ordercast subscribe a --from 10m --until-end` ·
    `ordercast subscribe a --until-end --json | jq .payload` · `ordercast subscribe a --last 20 --format
    '{stored_at} {payload}'` · `ordercast subscribe a --cursor billing --ack --from earliest` ·
    `ordercast subscribe room --live` · `ordercast subscribe a,b,c --from earliest --until-now` ·
    `ordercast subscribe --domain ledger --groups 'shard-*' --cursor balances --ack`
    """
    groups = Groups(group, domain, pattern)
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
    if groups.are_several and (live or last is not None or form is not None):
        raise typer.BadParameter("--live, --last and --format are for one group")
    ends = until_end or until_now
    chosen = _form(form, payload_only=payload_only, json=json, live=live)
    if groups.are_several and not payload_only:
        chosen = merged_form(is_json=json)
    try:
        with connection.client() as client:
            if groups.are_several:
                reading: Any = subscription(client, groups, start, cursor, ends=ends)
            elif live:
                reading = client.subscribe_live(groups.only)
            else:
                place = _place(start, ends) if last is None else None
                reading = client.subscribe(groups.only, start=place, last=last, cursor=cursor, stop_at_end=ends)
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
