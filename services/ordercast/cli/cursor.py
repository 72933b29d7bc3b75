"""`ordercast cursor`: named positions of consumers in a group's log."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli import completion
from ordercast.cli.connection import Connection, connected
from ordercast.cli.output import NOTHING, Json, duration_text, print_json, print_list, say
from ordercast.cli.places import METAVAR, parse_start

if TYPE_CHECKING:
    from ordercast.v1.gateway_pb2 import CursorLag
    from ordercast.v1.membership_pb2 import Cursor

app = typer.Typer(help="Cursors: where named consumers go on reading.", no_args_is_help=True)

GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="The group.", autocompletion=completion.groups)]
Name = Annotated[str, typer.Argument(help="The cursor.", autocompletion=completion.cursors)]


@app.command("list")
@connected
def list_(
    connection: Connection,
    group: GroupName,
    name: Annotated[str, typer.Argument(help="Only this cursor.", autocompletion=completion.cursors)] = "",
    json: Json = False,
) -> None:
    """List the cursors of a group, and how far their consumers are behind.

    `behind` counts messages that are not acknowledged, and `oldest` is how long ago the first of them was stored.

    Examples: `ordercast cursor list a` · `ordercast cursor list a billing`
    """
    with connection.client() as client:
        cursors = client.describe_cursors(group, name)
    headings = ("group", "cursor", "offset", "behind", "oldest")
    print_list(cursors, _document, headings, _row, numbers=("offset", "behind", "oldest"), json=json)


def _document(found: "tuple[Cursor, CursorLag | None]") -> dict[str, Any]:
    cursor, lag = found
    return cursor_document(cursor) | lag_document(lag)


def _row(found: "tuple[Cursor, CursorLag | None]") -> tuple[str, ...]:
    cursor, lag = found
    behind = str(lag.messages) if lag else NOTHING
    return cursor.group, cursor.name, str(cursor.offset), behind, oldest(lag)


@app.command("set")
@connected
def set_(
    connection: Connection,
    group: GroupName,
    name: Name,
    where: Annotated[str, typer.Argument(metavar=METAVAR, help="What it reads next.")],
    json: Json = False,
) -> None:
    """Move a cursor, or make it. Whoever subscribes with it goes on from there.

    Examples: `ordercast cursor set a billing earliest` · `ordercast cursor set a billing 1200` ·
    `ordercast cursor set a billing 10m`
    """
    start = parse_start(where)
    with connection.client() as client:
        cursor = client.set_cursor(group, name, start)
    if json:
        print_json(cursor_document(cursor))
    else:
        say(f"cursor {cursor.name} of {cursor.group} is at offset {cursor.offset}")


@app.command("delete")
@connected
def delete(connection: Connection, group: GroupName, name: Name, json: Json = False) -> None:
    """Delete a cursor.

    Example: `ordercast cursor delete a billing`
    """
    with connection.client() as client:
        client.delete_cursor(group, name)
    if json:
        print_json({"group": group, "name": name, "deleted": True})
    else:
        say(f"cursor {name} of {group} is deleted")


def oldest(lag: "CursorLag | None") -> str:
    if lag is None or not lag.messages or not lag.HasField("age_ms"):
        return NOTHING
    return duration_text(lag.age_ms / 1e3)


def lag_document(lag: "CursorLag | None") -> dict[str, Any]:
    """null is what nobody could say."""
    if lag is None:
        return {"behind": None, "oldest_s": None}
    return {"behind": lag.messages, "oldest_s": lag.age_ms / 1e3 if lag.HasField("age_ms") else None}


def cursor_document(cursor: "Cursor") -> dict[str, Any]:
    return {"group": cursor.group, "name": cursor.name, "offset": cursor.offset}
