"""`ordercast cell`: the sets of replicas that groups share."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli import completion
from ordercast.cli.changes import replica_document, stage_of, under_way
from ordercast.cli.connection import Connection, connected
from ordercast.cli.domain import settings_text
from ordercast.cli.group import group_document, print_replicas, state_lines
from ordercast.cli.output import Json, print_json, print_table, say
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
    if json:
        print_json([cell_document(cell) for cell in cells])
        return
    rows = [
        (one.cell.name, one.cell.domain, ", ".join(one.cell.replicas), stage_of(one.cell) or "-", str(one.groups))
        for one in cells
    ]
    print_table(("cell", "domain", "replicas", "under way", "groups"), rows, ("groups",))


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
    logs = [replica_document(replica) for replica in answer.replicas]
    copies = [replica_document(learner) for learner in answer.learners]
    if json:
        print_json(cell_document(found.cell) | {"names": list(found.groups), "logs": logs, "copies": copies})
        return
    say(f"cell           {cell.name} ({cell.id})")
    say(f"domain         {cell.domain}")
    say(f"groups         {groups_text(found)}")
    for line in state_lines(answer):
        say(line)
    if cell.settings:
        say(f"settings       {settings_text(cell.settings)}")
    say(f"under way      {under_way(answer) or '-'}")
    if cell.lost:
        say(f"lost           {', '.join(cell.lost)}")
    print_replicas(logs, copies)


def cell_document(found: "Cell") -> dict[str, Any]:
    """Like a group's, without what a cell has not."""
    document = group_document(found.cell)
    for key in ("retention", "cell"):
        del document[key]
    return document | {"groups": found.groups}
