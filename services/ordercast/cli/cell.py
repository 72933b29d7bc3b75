"""`ordercast cell`: the sets of replicas that groups share."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli import completion
from ordercast.cli.changes import stage_of
from ordercast.cli.connection import Connection, connected
from ordercast.cli.group import group_document, logs_document, print_rest, state_lines
from ordercast.cli.output import Json, print_json, print_list, say
from ordercast.cli.placed import as_group, groups_text

if TYPE_CHECKING:
    from ordercast.v1.gateway_pb2 import Cell

app = typer.Typer(help="Cells: the sets of replicas that groups share.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="CELL", help="The cell.", autocompletion=completion.cells)]


@app.command("list")
@connected
def list_(
    connection: Connection,
    domain: Annotated[
        str, typer.Option(help="Only cells of this domain.", autocompletion=completion.domains)
    ] = "",
    json: Json = False,
) -> None:
    """List the cells that groups share. A group that has a cell to itself is among the groups alone.

    Example: `ordercast cell list --domain default`
    """
    with connection.client() as client:
        cells = client.cells(domain)
    headings = ("cell", "domain", "replicas", "under way", "groups")
    print_list(cells, cell_document, headings, _row, numbers=("groups",), json=json)


def _row(found: "Cell") -> tuple[str, ...]:
    cell = found.cell
    return cell.name, cell.domain, ", ".join(cell.replicas), stage_of(cell) or "-", str(found.groups)


@app.command("describe")
@connected
def describe(connection: Connection, name: Name, json: Json = False) -> None:
    """Show one cell: its replicas, how far each of them is, what changes, and which groups live there.

    Example: `ordercast cell describe cell-1`
    """
    with connection.client() as client:
        found = client.describe_cell(name)
    answer = as_group(found)
    cell = answer.group
    if json:
        print_json(cell_document(found.cell) | {"names": list(found.groups)} | logs_document(answer))
        return
    say(f"cell           {cell.name} ({cell.id})")
    say(f"domain         {cell.domain}")
    say(f"groups         {groups_text(found)}")
    for line in state_lines(answer):
        say(line)
    print_rest(answer)


def cell_document(found: "Cell") -> dict[str, Any]:
    """Like a group's, without what a cell has not."""
    document = group_document(found.cell)
    for key in ("retention", "cell"):
        del document[key]
    return document | {"groups": found.groups}
