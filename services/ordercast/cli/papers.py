"""`ordercast papers`: a paper's published figures beside ours."""

from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer
from rich.table import Table

from ordercast.cli.output import Json, out, print_json
from ordercast.sim.papers import scalatom


class Paper(StrEnum):
    SCALATOM = "scalatom"


def papers(
    paper: Annotated[Paper, typer.Argument(help="The paper.")],
    json: Json = False,
) -> None:
    """Put the figures that a paper publishes beside what our machines do in the paper's setting.

    Example: `ordercast papers scalatom`
    """
    rows = {Paper.SCALATOM: scalatom.rows}[paper]()
    if json:
        print_json([asdict(row) for row in rows])
        return
    table = Table(title="SCALATOM, Table 2", title_justify="left")
    table.add_column("what")
    table.add_column("published", justify="right")
    table.add_column("measured", justify="right")
    for row in rows:
        table.add_row(row.what, str(row.published), str(row.measured))
    out.print(table)
