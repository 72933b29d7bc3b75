"""`ordercast abuse`: hostile clients beside an honest one on a local cluster, and what each attack did."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordercast.cli.output import Json, err, out, print_json, print_table

if TYPE_CHECKING:
    from ordercast.local.abuse.trial import AttackRow

#: Of a short run: the part of each attack's attempts, and how long it goes on at least.
SHORT_SCALE, SHORT_S = 0.1, 2.0


def abuse(
    attack: Annotated[
        list[str] | None, typer.Option("--attack", help="Only this one; may be given several times.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.5, help="How long each attack goes on at least.")] = 8.0,
    short: Annotated[bool, typer.Option("--short", help="A tenth of the attempts, and two seconds each.")] = False,
    json: Json = False,
) -> None:
    """Attack a cluster as one hostile client could, and see what an honest client notices.

    Starts three nodes on this machine and plays one attack after the other against the first of them, while an
    honest client publishes there at a modest rate. An attack is held off if the honest client's p99 stays within
    three times what it was, all its messages get receipts, somebody new gets in, and memory comes back.

    Exit code 1 if an attack was not held off.

    `ordercast abuse` · `ordercast abuse --attack huge-tokens --attack idle-connections --json`
    """
    from ordercast.local.abuse.attacks import ATTACKS
    from ordercast.local.abuse.trial import AbuseTrial

    known = [each.name for each in ATTACKS]
    for name in attack or ():
        if name not in known:
            raise typer.BadParameter(f"there is no attack {name!r}; there are {', '.join(known)}")
    chosen = [each for each in ATTACKS if not attack or each.name in attack]
    with tempfile.TemporaryDirectory(prefix="ordercast-abuse-") as directory:
        scale, seconds = (SHORT_SCALE, SHORT_S) if short else (1.0, seconds)
        err.print(f"Starting three nodes in {directory}; {len(chosen)} attacks, one after the other ...")
        rows = AbuseTrial(Path(directory), seconds, scale, _tell).run(chosen)
    if json:
        print_json([row.document() for row in rows])
    else:
        _print(rows)
    if not all(row.ok for row in rows):
        raise typer.Exit(1)


def _tell(row: "AttackRow") -> None:
    err.print(f"{row.attack}: {'held off' if row.ok else 'missed ' + ', '.join(row.missed)}", highlight=False)


def _print(rows: "list[AttackRow]") -> None:
    numbers = ("attempts", "p99 before ms", "during ms", "memory before MB", "after MB")
    print_table(
        ("attack", *numbers, "verdict"),
        [
            (
                row.attack,
                f"{row.attempts:,}",
                f"{row.honest_p99_ms_before:.0f}",
                f"{row.honest_p99_ms_during:.0f}",
                f"{row.rss_mb_before:.0f}",
                f"{row.rss_mb_after:.0f}",
                "ok" if row.ok else f"missed: {', '.join(row.missed)}",
            )
            for row in rows
        ],
        numbers,
    )
    if not all(row.ok for row in rows):
        out.print("A client could harm this cluster.", style="red")
