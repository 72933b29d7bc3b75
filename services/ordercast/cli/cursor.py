"""`ordercast cursor`: named positions of consumers in a group's log."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli import completion
from ordercast.cli.connection import Connection, connected
from ordercast.cli.output import Json, print_json, print_list, say
from ordercast.cli.places import METAVAR, parse_start

if TYPE_CHECKING:
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
    """List the cursors of a group.

    Examples: `ordercast cursor list a` · `ordercast cursor list a billing`
    """
    with connection.client() as client:
        cursors = client.cursors(group, name)
    headings = ("group", "cursor", "offset")
    print_list(cursors, cursor_document, headings, _row, numbers=("offset",), json=json)


def _row(cursor: "Cursor") -> tuple[str, ...]:
    return cursor.group, cursor.name, str(cursor.offset)


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


def cursor_document(cursor: "Cursor") -> dict[str, Any]:
    return {"group": cursor.group, "name": cursor.name, "offset": cursor.offset}
