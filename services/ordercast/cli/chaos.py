"""`ordercast chaos`: faults on a local cluster while clients work, and whether anything went wrong."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordercast.cli.output import Json, err, out, print_json
from ordercast.cli.protocol_choice import checked_ordering, checked_protocol, ordering_help, protocol_names
from ordercast.core.protocol import Orders
from ordercast.protocols.catalogue import DEFAULT

if TYPE_CHECKING:
    from ordercast.local.chaos import Action, ChaosReport

MUTANTS = ("answers-before-fsync", "forgetful-gateway")

Protocol = Annotated[str, typer.Option(help=f"What orders the messages: {protocol_names()}.")]
Ordering = Annotated[
    str | None,
    typer.Option(help=f"The order within a group, {ordering_help()}.", show_default="the protocol's"),
]
Mutant = Annotated[str | None, typer.Option(help=f"Break something that must be noticed: {', '.join(MUTANTS)}.")]

Shared = Annotated[
    bool, typer.Option("--shared", help="Two of the three groups share a cell, instead of having one each.")
]


def chaos(
    seconds: Annotated[float, typer.Option(min=1, help="How long faults are injected.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Which faults; when they strike depends on the machine too.")] = 1,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the cluster.")] = 3,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Nodes besides, without membership: 2 with --reconfigure, else none.",
            show_default=False,
        ),
    ] = None,
    separate: Annotated[bool, typer.Option("--separate", help="A process for each service.")] = False,
    reconfigure: Annotated[
        bool,
        typer.Option(
            "--reconfigure", help="Also replace, add and remove replicas, drain nodes, and lose disks of workers."
        ),
    ] = False,
    shared: Shared = False,
    protocol: Protocol = DEFAULT.name,
    ordering: Ordering = None,
    mutant: Mutant = None,
    json: Json = False,
) -> None:
    """Kill, pause and partition processes at random while clients publish and subscribe, then check everything.

    Exit code 1 if an acknowledged message was lost, or one was delivered twice or out of order, or if a change of
    replicas does not come to its end when the faults are over.

    With a protocol that orders each group by itself, messages to several groups have no order among each other,
    but are in all of their groups or in none, and come behind what their producers had seen. With --ordering total
    every message goes to one group.

    `ordercast chaos --seconds 120 --json` · `ordercast chaos --reconfigure --seconds 120 --json`
    """
    from ordercast.local.chaos import Chaos
    from ordercast.local.reconfiguring import WORKERS, ReconfiguringChaos

    if mutant is not None and mutant not in MUTANTS:
        raise typer.BadParameter(f"there are {', '.join(MUTANTS)}")
    chosen = checked_protocol(protocol)
    chosen_ordering = checked_ordering(chosen, ordering)
    if mutant == "forgetful-gateway" and chosen.traits.orders != Orders.ACROSS:
        raise typer.BadParameter("what a forgetful gateway does is known where there is one order across groups")
    if workers is None:
        workers = WORKERS if reconfigure else 0
    if reconfigure:
        _check_reconfigurable(nodes, workers, mutant)
    with tempfile.TemporaryDirectory(prefix="ordercast-chaos-", dir=Path.cwd()) as directory:
        run = (ReconfiguringChaos if reconfigure else Chaos)(
            Path(directory),
            seconds=seconds,
            seed=seed,
            nodes=nodes,
            workers=workers,
            separate=separate,
            mutant=mutant,
            protocol=protocol,
            ordering=chosen_ordering,
            shared=shared,
            on_action=_tell,
        )
        report = run.run()
    if json:
        print_json(report.document())
    else:
        _print(report)
    if not report.is_clean:
        raise typer.Exit(1)


def _check_reconfigurable(nodes: int, workers: int, mutant: str | None) -> None:
    from ordercast.local.reconfiguring import REPLICAS_MIN

    if mutant is not None:
        raise typer.BadParameter("processes that are broken on purpose keep their replicas: not both")
    if workers < 1 or nodes + workers <= REPLICAS_MIN:
        raise typer.BadParameter(
            f"replicas need somewhere to go: at least one worker, and more than {REPLICAS_MIN} nodes together"
        )


def _tell(action: "Action") -> None:
    err.print(f"{action.at_s:7.1f} s  {action.what} {', '.join(action.who)}")


def _print(report: "ChaosReport") -> None:
    verdict, counts = report.verdict, report.reconfigured
    out.print(
        f"{len(report.actions)} faults, {verdict.acknowledged:,} of {report.sent:,} messages acknowledged: "
        f"{verdict.lost} lost, {verdict.duplicated} duplicated, {verdict.order_violations} order violations; "
        f"unavailable for at most {report.unavailable_ms_max / 1000:.1f} s"
    )
    stalls = report.stalls
    for longest, when in ((stalls.any, ""), (stalls.with_majorities, ", with majorities of all groups")):
        if longest.s_max:
            out.print(f"  waited {longest.s_max:.1f} s{when}: {'; '.join(longest.waited_for)}", markup=False)
    if counts:
        out.print(
            f"{counts['changes_done']} changes of replicas done, {counts['changes_cancelled']} cancelled, "
            f"{counts['changes_refused']} refused, {counts['changes_unfinished']} unfinished; "
            f"{counts['drains']} nodes drained, {counts['disk_losses']} disks lost"
        )
    for finding in verdict.findings:
        out.print(f"  {finding}", markup=False)
