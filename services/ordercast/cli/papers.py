"""`ordercast papers`: a paper's published figures beside ours."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.output import Json, out, print_json
from ordercast.sim.papers import isis, scalatom


class Paper(StrEnum):
    SCALATOM = "scalatom"
    ISIS = "isis"


SECONDS = 2.0
#: More do not fit between lines.
COLUMNS_MAX = 8

Cluster = Annotated[
    bool,
    typer.Option(
        "--cluster",
        help="isis: measure Tables II and III, and nothing else, on a cluster of real nodes; takes four minutes.",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(min=0.1, help="With --cluster: how long each point is measured.", show_default=f"{SECONDS:g}"),
]
Save = Annotated[
    Path | None,
    typer.Option(
        help="With --cluster: write the figures and a picture to this directory.",
        file_okay=False,
        show_default=False,
    ),
]


def papers(
    paper: Annotated[Paper, typer.Argument(help="The paper.")],
    cluster: Cluster = False,
    seconds: Seconds = None,
    save: Save = None,
    json: Json = False,
) -> None:
    """Put the figures that a paper publishes beside what our machines do in the paper's setting.

    Example: `ordercast papers scalatom`

    `ordercast papers isis --cluster --save figures`
    """
    if cluster and paper != Paper.ISIS:
        raise typer.BadParameter(f"--cluster is for {Paper.ISIS.value}")
    if not cluster and (seconds is not None or save is not None):
        raise typer.BadParameter("--seconds and --save are for --cluster")
    if cluster:
        _measure(SECONDS if seconds is None else seconds, save, json)
    else:
        {Paper.SCALATOM: _scalatom, Paper.ISIS: _isis}[paper](json)


def _scalatom(json: bool) -> None:
    rows = [asdict(row) for row in scalatom.rows()]
    if json:
        print_json(rows)
    else:
        _print("SCALATOM, Table 2", rows)


def _isis(json: bool) -> None:
    _show(isis.sections(), json)


def _measure(seconds: float, save: Path | None, json: bool) -> None:
    from ordercast.bench import curves
    from ordercast.bench.saving import save_curves
    from ordercast.bench.servers import BenchError
    from ordercast.cli.bench import check_installed, timed_say
    from ordercast.local.cluster import ClusterError

    check_installed([], is_plotted=save is not None)
    try:
        found = curves.run(seconds, timed_say())
    except (BenchError, ClusterError) as error:
        fail(ExitCode.UNAVAILABLE, str(error))
    if save is not None:
        cbcast, abcast = isis.published_curve(isis.CBCAST), isis.published_curve(isis.ABCAST)
        save_curves(found, {curves.CBCAST: cbcast, curves.ABCAST: abcast}, save)
    _show(isis.tables(found.cbcast, found.abcast), json)


def _show(sections: Mapping[str, isis.Section], json: bool) -> None:
    if json:
        print_json({name: asdict(section) for name, section in sections.items()})
        return
    for section in sections.values():
        _print(f"ISIS: {section.title}", section.rows)


def _print(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """The columns are what the rows have. Many of them stand close together, to fit on a screen."""
    table = Table(title=title, title_justify="left")
    is_wide = len(rows[0]) > COLUMNS_MAX
    if is_wide:
        table.box, table.show_edge, table.padding = SIMPLE_HEAD, False, (0, 0, 0, 1)
    for name in rows[0]:
        heading = name.replace("_", "\n" if is_wide else " ")
        table.add_column(heading, justify="left" if name == "what" else "right")
    for row in rows:
        table.add_row(*("" if figure is None else str(figure) for figure in row.values()))
    out.print(table)
