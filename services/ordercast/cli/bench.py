"""`ordercast bench`: how fast a local cluster is, alone or beside others."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.output import Json, err, out, print_json
from ordercast.cli.protocol_choice import (
    ORDERING,
    checked_ordering,
    checked_protocol,
    ordering_help,
    protocol_names,
)
from ordercast.core import protocol as core
from ordercast.core.level import LEVEL
from ordercast.protocols.catalogue import DEFAULT

if TYPE_CHECKING:
    from ordercast.bench import during as changes
    from ordercast.bench.agenda import Agenda
    from ordercast.bench.comparison import Result
    from ordercast.bench.trial import Say

PATTERNS = ("same", "random")
PEERS = ("etcd", "nats")
HOW_TO_INSTALL = "pip install 'ordercast[bench]', or `make bench` in a checkout"


@dataclass(frozen=True, slots=True)
class Defaults:
    in_flight: str
    seconds: float
    patterns: str
    repetitions: int
    many_groups: int
    replay_messages: int


ALONE = Defaults("1,64,1024", 10.0, "same,random", 1, 0, 0)
#: Curves need more points, and medians more repetitions; a quarter of an hour has to do.
BESIDE_PEERS = Defaults("1,8,64,256,1024", 4.0, "same,random", 3, 64, 1_000_000)

#: What can be measured while it happens; then nothing else is, and only these options mean something.
REPLACE = "replace"
DURING_OPTIONS = ("during", "messages", "size", "seconds", "json")
DURING_MESSAGES, DURING_SIZE = 1_000_000, 100
SIZE = 256
GROUPS = 2


def default_text(name: str) -> str:
    return f"{getattr(ALONE, name)}; with --against {getattr(BESIDE_PEERS, name)}"


Groups = Annotated[
    int | None,
    typer.Option(
        min=1, help="Groups that each message goes to.", show_default=f"{GROUPS}; with --ordering total 1"
    ),
]
Replicas = Annotated[int, typer.Option(min=1, help="Replicas of each group.")]
Nodes = Annotated[int, typer.Option(min=1, help="Nodes of the cluster.")]
InFlight = Annotated[
    str | None,
    typer.Option(
        help="Messages without a receipt; several, with commas.",
        show_default=default_text("in_flight"),
    ),
]
Size = Annotated[
    int | None,
    typer.Option(min=0, help="Bytes of a payload.", show_default=f"{SIZE}; with --during {DURING_SIZE}"),
]
Seconds = Annotated[
    float | None,
    typer.Option(min=0.1, help="How long each row is measured.", show_default=default_text("seconds")),
]
Messages = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="So many messages in each row, however long; with --during, in the log before.",
        show_default=f"with --during {DURING_MESSAGES}",
    ),
]
Patterns = Annotated[
    str | None,
    typer.Option(help="`same`, `random`, or both.", show_default=default_text("patterns")),
]
Protocol = Annotated[
    str,
    typer.Option(
        help=f"Of the groups' domain: {protocol_names()}. Any but {DEFAULT.name} also takes turns with that."
    ),
]
OrderingOption = Annotated[
    str | None,
    typer.Option("--ordering", help=f"What the domain orders, {ordering_help()}.", show_default="the protocol's"),
]
Against = Annotated[str, typer.Option(help="Also measure these: `etcd`, `nats`, or both.", show_default=False)]
Repetitions = Annotated[
    int | None,
    typer.Option(min=1, help="How often; rows are medians.", show_default=default_text("repetitions")),
]
ManyGroups = Annotated[
    int | None,
    typer.Option(min=0, help="Compare so many groups with one.", show_default=default_text("many_groups")),
]
ReplayMessages = Annotated[
    int | None,
    typer.Option(min=0, help="Replay a log of so many.", show_default=default_text("replay_messages")),
]
Profile = Annotated[bool, typer.Option("--profile", help="Also say where the servers' time goes.")]
Stages = Annotated[bool, typer.Option("--stages", help="Also say where a message's time goes.")]
Overload = Annotated[bool, typer.Option("--overload", help="Also offer ten times what the cluster can order.")]
Telemetry = Annotated[
    bool, typer.Option("--telemetry", help="Also say what telemetry costs: off, at 1 % and at 100 %, in turns.")
]
During = Annotated[
    str | None,
    typer.Option(
        help="Measure only what clients notice of a change: `replace`, of replicas under load.",
        show_default=False,
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(help="Write the figures and a picture to this directory.", file_okay=False, show_default=False),
]


def bench(
    context: typer.Context,
    groups: Groups = None,
    replicas: Replicas = 3,
    nodes: Nodes = 3,
    in_flight: InFlight = None,
    size: Size = None,
    seconds: Seconds = None,
    messages: Messages = None,
    patterns: Patterns = None,
    protocol: Protocol = DEFAULT.name,
    ordering: OrderingOption = None,
    against: Against = "",
    repetitions: Repetitions = None,
    many_groups: ManyGroups = None,
    replay_messages: ReplayMessages = None,
    profile: Profile = False,
    stages: Stages = False,
    overload: Overload = False,
    telemetry: Telemetry = False,
    during: During = None,
    save: Save = None,
    json: Json = False,
) -> None:
    """Measure a cluster of real processes on this machine, with durable settings.

    `ordercast bench --in-flight 1,1024 --patterns same --seconds 5`

    `ordercast bench --against etcd,nats --save figures`

    `ordercast bench --during replace --seconds 10`: exit code 1 if the replicas do not agree afterwards.
    """
    from ordercast.bench.agenda import Agenda
    from ordercast.bench.plan import Plan

    if during is not None:
        check_during(context, during)
        measure_change(messages or DURING_MESSAGES, DURING_SIZE if size is None else size, seconds, json)
        return
    peers = checked_peers(against)
    defaults = BESIDE_PEERS if peers else ALONE
    chosen = checked_protocol(protocol)
    chosen_ordering = checked_ordering(chosen, ordering)
    agenda = Agenda(
        Plan(
            nodes,
            checked_groups(groups, chosen, chosen_ordering),
            replicas,
            SIZE if size is None else size,
            seconds or defaults.seconds,
            messages,
            protocol,
            chosen_ordering,
        ),
        checked_patterns(patterns or defaults.patterns, peers),
        checked_depths(in_flight or defaults.in_flight),
        peers,
        repetitions or defaults.repetitions,
        defaults.many_groups if many_groups is None else many_groups,
        defaults.replay_messages if replay_messages is None else replay_messages,
        is_profiled=profile,
        has_stages=stages,
        has_overload=overload,
        has_telemetry=telemetry,
    )
    if replicas > nodes:
        raise typer.BadParameter(f"{nodes} nodes cannot hold {replicas} replicas")
    measure(agenda, save, json)


def measure(agenda: "Agenda", save: Path | None, json: bool) -> None:
    from ordercast.bench.comparison import run
    from ordercast.bench.saving import save as save_result
    from ordercast.bench.servers import BenchError
    from ordercast.local.cluster import ClusterError

    check_installed(agenda.peers, is_plotted=save is not None)
    if not agenda.plan.has_several:
        err.print("A domain with total order has no messages to several groups: all rows are to one.")
    try:
        result = run(agenda, timed_say())
    except (BenchError, ClusterError) as error:
        fail(ExitCode.UNAVAILABLE, str(error))
    if save is not None:
        save_result(result, save)
    if json:
        print_json(result.document())
    else:
        show(result)


def timed_say() -> "Say":
    begun = time.monotonic()
    return lambda text: err.print(f"{time.monotonic() - begun:7.1f} s  {text}", highlight=False)


def check_during(context: typer.Context, during: str) -> None:
    """The cluster of such a run is as it is: what would be ignored is refused."""
    if during != REPLACE:
        raise typer.BadParameter(f"--during takes `{REPLACE}`")
    given = [
        f"--{name.replace('_', '-')}"
        for name in context.params
        if name not in DURING_OPTIONS and is_given(context, name)
    ]
    if given:
        raise typer.BadParameter(f"with --during, {', '.join(given)} means nothing")


def is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def measure_change(messages: int, size: int, seconds: float | None, json: bool) -> None:
    from ordercast.bench.during import plan_of, run
    from ordercast.bench.servers import BenchError
    from ordercast.errors import OrdercastError
    from ordercast.local.cluster import ClusterError

    try:
        result = run(plan_of(messages, size, seconds or ALONE.seconds), timed_say())
    except (BenchError, ClusterError, OrdercastError) as error:
        fail(ExitCode.UNAVAILABLE, str(error))
    if json:
        print_json(result.document())
    else:
        show_changes(result)
    # Goals are told, and missing one is no failure, as everywhere in the bench. A broken promise is.
    if not result.verified.is_ok:
        raise typer.Exit(ExitCode.NO)


def checked_peers(text: str) -> tuple[str, ...]:
    peers = tuple(dict.fromkeys(text.split(","))) if text else ()
    if not set(peers) <= set(PEERS):
        raise typer.BadParameter(f"--against takes {' and '.join(PEERS)}, with commas")
    return peers


def checked_patterns(text: str, peers: Sequence[str]) -> tuple[str, ...]:
    patterns = tuple(dict.fromkeys(text.split(",")))
    if not set(patterns) <= set(PATTERNS):
        raise typer.BadParameter("patterns are `same` and `random`")
    if peers and "same" not in patterns:
        raise typer.BadParameter("--against compares the pattern `same`")
    return patterns


def checked_groups(groups: int | None, protocol: core.Protocol, ordering: str) -> int:
    is_alone = not protocol.parse({ORDERING: ordering} if ordering else {}, LEVEL).spans_groups
    if is_alone and (groups or 1) > 1:
        raise typer.BadParameter(f"with --ordering {ordering} a message goes to one group: leave --groups out")
    if groups is None:
        return 1 if is_alone else GROUPS
    return groups


def checked_depths(text: str) -> tuple[int, ...]:
    depths = text.split(",")
    if not all(depth.isdecimal() and int(depth) for depth in depths):
        raise typer.BadParameter("--in-flight takes numbers above 0")
    return tuple(sorted({int(depth) for depth in depths}))


def check_installed(peers: Sequence[str], *, is_plotted: bool) -> None:
    from ordercast.bench.peers.installed import missing

    lacking = missing(peers, is_plotted=is_plotted)
    if lacking:
        fail(
            ExitCode.UNAVAILABLE,
            f"not installed: {', '.join(lacking)}. They come with the extra `bench`: {HOW_TO_INSTALL}",
        )


def show(result: "Result") -> None:
    from ordercast.bench import table

    plan = result.agenda.plan
    protocol = "" if plan.protocol == DEFAULT.name else plan.protocol_text
    for rows in table.rows_tables(result.rows, protocol):
        out.print(rows)
    out.print(table.envelopes_table(result.rows))
    for replay in result.replays:
        out.print(table.replay_line(replay), highlight=False)
    for stage in result.profile:
        out.print(
            f"{stage['stage']:>14} {stage['cpu_s']:8.2f} s  {stage['share']:6.1%}  {stage['events']:,} events"
        )
    if result.stages:
        out.print(table.stages_table(result.stages))
    if result.overload:
        out.print(table.overload_table(result.overload))
    if result.telemetry:
        out.print(table.telemetry_table(result.telemetry))
    # Without peers, most goals are about what was not measured.
    goals = [goal for goal in result.goals if result.agenda.peers or goal.met is not None]
    if result.agenda.peers or (protocol and goals):
        out.print(table.goals_table(goals))


def show_changes(result: "changes.Result") -> None:
    from ordercast.bench import table

    for change in result.changes:
        out.print(table.change_table(change))
        out.print(table.change_line(change), highlight=False, soft_wrap=True)
    verified = result.verified
    for problem in verified.problems:
        out.print(f"problem: {problem}", style="red", markup=False, highlight=False, soft_wrap=True)
    if verified.is_ok:
        out.print(f"All replicas agree: {verified.messages:,} messages.", style="bold green")
    else:
        text = f"{verified.problem_count} problems, {verified.lost:,} acknowledged messages are lost."
        out.print(text, style="bold red")
    out.print(table.goals_table(result.goals))
