"""`ordercast papers`: a paper's published figures beside ours."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as Printed

from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.output import Json, out, print_json
from ordercast.cli.protocol_choice import protocol_names
from ordercast.protocols.catalogue import protocols
from ordercast.sim import trials
from ordercast.sim.paper import NoPaper, Paper, Table, paper_of

SECONDS = 2.0

Cluster = Annotated[
    bool,
    typer.Option(
        "--cluster",
        help="Measure what takes a cluster of real nodes, and nothing else, if the paper has such figures; takes "
        "four minutes.",
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
    protocol: Annotated[str, typer.Argument(help=f"Of which protocol: {protocol_names()}.")],
    cluster: Cluster = False,
    seconds: Seconds = None,
    save: Save = None,
    json: Json = False,
) -> None:
    """Put the figures that a protocol's paper publishes beside what our machines do in the paper's setting.

    With --json, a list of rows: what a figure is of, what is published, and what is measured. Either may be null.
    """
    paper = _paper_of(protocol)
    if cluster and paper.measured is None:
        measured = [name for name in protocols() if _paper_of(name).measured is not None]
        raise typer.BadParameter(f"--cluster is for {' or '.join(measured)}")
    if not cluster and (seconds is not None or save is not None):
        raise typer.BadParameter("--seconds and --save are for --cluster")
    tables = _measure(paper, SECONDS if seconds is None else seconds, save) if cluster else paper.tables()
    if json:
        print_json([asdict(row) for table in tables for row in table.rows])
    else:
        for table in tables:
            _print(table)


def _paper_of(protocol: str) -> Paper:
    if protocol not in (*protocols(), *trials.names()):
        raise typer.BadParameter(f"there is no protocol {protocol!r}: there are {protocol_names()}")
    try:
        return paper_of(protocol)
    except NoPaper as missing:
        raise typer.BadParameter(str(missing)) from None


def _measure(paper: Paper, seconds: float, save: Path | None) -> Sequence[Table]:
    from ordercast.bench.servers import BenchError
    from ordercast.cli.bench.measuring import check_installed, timed_say
    from ordercast.local.cluster import ClusterError

    assert paper.measured is not None
    check_installed([], is_plotted=save is not None)
    try:
        return paper.measured(seconds, save, timed_say())
    except (BenchError, ClusterError) as error:
        fail(ExitCode.UNAVAILABLE, str(error))


def _print(table: Table) -> None:
    printed = Printed(title=table.title, title_justify="left")
    printed.add_column("what")
    for name in ("published", "measured"):
        printed.add_column(name, justify="right")
    for row in table.rows:
        figures = (row.published, row.measured)
        printed.add_row(row.what, *("" if figure is None else str(figure) for figure in figures))
    out.print(printed)
