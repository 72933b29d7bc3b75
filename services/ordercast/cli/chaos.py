"""`ordercast chaos`: faults on a local cluster while clients work, and whether anything went wrong."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ordercast.cli.output import Json, err, out, print_json

MUTANTS = ("answers-before-fsync", "forgetful-gateway")


def chaos(
    seconds: Annotated[float, typer.Option(min=1, help="How long faults are injected.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Which faults; when they strike depends on the machine too.")] = 1,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the cluster.")] = 3,
    separate: Annotated[bool, typer.Option("--separate", help="A process for each service.")] = False,
    mutant: Annotated[
        str | None, typer.Option(help=f"Break something that must be noticed: {', '.join(MUTANTS)}.")
    ] = None,
    json: Json = False,
) -> None:
    """Kill, pause and partition processes at random while clients publish and subscribe, then check everything.

    Exit code 1 if an acknowledged message was lost, or one was delivered twice or out of order.

    `ordercast chaos --seconds 120 --json`
    """
    from ordercast.local.chaos import Chaos

    if mutant is not None and mutant not in MUTANTS:
        raise typer.BadParameter(f"there are {', '.join(MUTANTS)}")
    with tempfile.TemporaryDirectory(prefix="ordercast-chaos-", dir=Path.cwd()) as directory:
        run = Chaos(
            Path(directory),
            seconds=seconds,
            seed=seed,
            nodes=nodes,
            separate=separate,
            mutant=mutant,
            on_action=lambda action: err.print(f"{action.at_s:7.1f} s  {action.what} {', '.join(action.who)}"),
        )
        report = run.run()
    if json:
        print_json(report.document())
    else:
        verdict = report.verdict
        out.print(
            f"{len(report.actions)} faults, {verdict.acknowledged:,} of {report.sent:,} messages acknowledged: "
            f"{verdict.lost} lost, {verdict.duplicated} duplicated, {verdict.order_violations} order violations; "
            f"unavailable for at most {report.unavailable_ms_max / 1000:.1f} s"
        )
        for finding in verdict.findings:
            out.print(f"  {finding}", markup=False)
    if not report.verdict.is_clean:
        raise typer.Exit(1)
