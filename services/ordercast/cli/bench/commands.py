"""The commands of `ordercast bench`: one for each kind of figures, with the options that mean something in it."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordercast.cli.bench.measuring import check_installed, exit_codes, report, timed_say
from ordercast.cli.bench.options import (
    InFlight,
    Messages,
    Repetitions,
    Save,
    SaveWithPicture,
    Seconds,
    checked_depths,
    lasting,
    on_cluster,
)
from ordercast.cli.exit_codes import ExitCode
from ordercast.cli.output import Json, err, print_json

if TYPE_CHECKING:
    from ordercast.bench.agenda import Agenda
    from ordercast.bench.plan import BenchPlan

app = typer.Typer(
    help="Measure a cluster of real processes on this machine, with durable settings.", no_args_is_help=True
)
during_app = typer.Typer(help="What clients notice while something changes.", no_args_is_help=True)
app.add_typer(during_app, name="during")

PEERS = ("etcd", "nats")
PATTERNS_HELP = (
    "With commas: `random-64`, `random-8`, `random-1`, `cells-N` and `groups-N`, with 1,024 in flight; `same`, "
    "`random`."
)
ROWS_OF_OWN = "same,random"
ROWS_BESIDE_PEERS = "random-64,random-8,random-1,cells-6,same,random,groups-1,groups-64"

# ---------------------------------------------------------------------------------------------------------- rows


@app.command("run", short_help="Our own cluster: throughput, latency, processor time.")
@on_cluster
def run(
    plan: "BenchPlan",
    patterns: Annotated[str, typer.Option(help=PATTERNS_HELP)] = ROWS_OF_OWN,
    in_flight: InFlight = "1,64,1024",
    seconds: Seconds = 10.0,
    messages: Messages = None,
    repetitions: Repetitions = 1,
    save: SaveWithPicture = None,
    json: Json = False,
) -> None:
    """Measure our own cluster: throughput, latency and processor time, by pattern and messages in flight.

    Another protocol than the first also takes turns with that, in one cluster.

    Example: `ordercast bench run --in-flight 1,1024 --patterns same --seconds 5`
    """
    from ordercast.bench.agenda import Agenda

    timed = lasting(plan, seconds, messages)
    chosen = checked_patterns(patterns, plan, ROWS_OF_OWN)
    measure_rows(Agenda(timed, chosen, checked_depths(in_flight), repetitions=repetitions), save, json)


@app.command("compare", short_help="The same beside etcd and NATS, in turns, with goals.")
@on_cluster
def compare(
    plan: "BenchPlan",
    against: Annotated[str, typer.Option(help="Other systems, with commas: `etcd`, `nats`.")] = ",".join(PEERS),
    patterns: Annotated[
        str, typer.Option(help=f"{PATTERNS_HELP} In some of them only our own is measured.")
    ] = ROWS_BESIDE_PEERS,
    in_flight: InFlight = "1,8,64,256,1024",
    seconds: Seconds = 4.0,
    messages: Messages = None,
    # Curves need more points, and medians more repetitions; a quarter of an hour has to do.
    repetitions: Repetitions = 3,
    save: SaveWithPicture = None,
    json: Json = False,
) -> None:
    """Measure our own cluster beside etcd and NATS, in turns, and say which goals are reached.

    Example: `ordercast bench compare --against etcd --patterns same --in-flight 64 --seconds 1 --repetitions 1`
    """
    from ordercast.bench.agenda import Agenda

    peers = checked_peers(against)
    timed = lasting(plan, seconds, messages)
    chosen = checked_patterns(patterns, plan, ROWS_BESIDE_PEERS)
    check_comparable(chosen, peers)
    measure_rows(Agenda(timed, chosen, checked_depths(in_flight), peers, repetitions), save, json)


def measure_rows(agenda: "Agenda", save: Path | None, json: bool) -> None:
    from ordercast.bench.comparison import run
    from ordercast.bench.saving import save as save_result
    from ordercast.cli.bench.showing import show_rows

    check_installed(agenda.peers, is_plotted=save is not None)
    if not agenda.plan.has_several:
        err.print("A domain with total order has no messages to several groups: all rows are to one.")
    with exit_codes():
        result = run(agenda, timed_say())
    if save is not None:
        save_result(result, save)
    if json:
        print_json(result.document())
    else:
        show_rows(result)


def checked_peers(text: str) -> tuple[str, ...]:
    peers = tuple(dict.fromkeys(text.split(",")))
    if not set(peers) <= set(PEERS):
        raise typer.BadParameter(f"--against takes {' and '.join(PEERS)}, with commas")
    return peers


def checked_patterns(text: str, plan: "BenchPlan", default: str = "") -> tuple[str, ...]:
    """Check the patterns that were asked for. Without any, take those of the default that the domain can have."""
    from ordercast.bench.plan import RANDOM_SETS, is_pattern

    patterns = tuple(dict.fromkeys(text.split(",")))
    impossible = () if plan.has_several else tuple(pattern for pattern in patterns if pattern in RANDOM_SETS)
    for pattern in patterns:
        if not is_pattern(pattern):
            raise typer.BadParameter(f"there is no pattern {pattern!r}. {PATTERNS_HELP}")
    if impossible and text != default:
        raise typer.BadParameter(
            f"with --ordering {plan.ordering} a message goes to one group: no {impossible[0]}"
        )
    return tuple(pattern for pattern in patterns if pattern not in impossible)


def check_comparable(patterns: Sequence[str], peers: Sequence[str]) -> None:
    from ordercast.bench.systems import PEERS as SYSTEMS

    for peer in peers:
        if not set(patterns) & set(SYSTEMS[peer].patterns):
            raise typer.BadParameter(f"{peer} can be compared in {', '.join(SYSTEMS[peer].patterns)} only")


# ---------------------------------------------------------------------------------------------- of our own alone


@app.command("overload", short_help="Ten times more than the cluster can order.")
@on_cluster
def overload(plan: "BenchPlan", seconds: Seconds = 4.0, save: Save = None, json: Json = False) -> None:
    """Offer ten times what the cluster can order, and see what is left, and how soon all is as before.

    Example: `ordercast bench overload --seconds 2`
    """
    from ordercast.bench import overload as measured
    from ordercast.bench.report import BenchReport

    timed = lasting(plan, seconds)
    report(lambda say: BenchReport("overload", measured.measure(timed, say), timed), save, json)


@app.command("replay", short_help="How fast a long log is read from its beginning.")
@on_cluster
def replay(
    plan: "BenchPlan",
    messages: Annotated[int, typer.Option(min=2, help="So long is the log in the end.")] = 1_000_000,
    save: Save = None,
    json: Json = False,
) -> None:
    """Fill a log, and measure how fast it is read from its beginning, and the nodes' memory, at half and at all.

    Example: `ordercast bench replay --messages 100000`
    """
    from ordercast.bench import long_replay
    from ordercast.bench.goals import of_replays
    from ordercast.bench.report import BenchReport
    from ordercast.bench.trial import Say

    def measure(say: Say) -> BenchReport:
        replays = long_replay.run(plan, messages, say)
        return BenchReport("replay", [asdict(each) for each in replays], plan, of_replays(replays))

    report(measure, save, json)


@app.command("stages", short_help="Where a message's time goes.")
@on_cluster
def stages(
    plan: "BenchPlan",
    in_flight: InFlight = "1,64,1024",
    # Processes remember a few thousand envelopes.
    seconds: Annotated[float, typer.Option(min=0.1, max=5.0, help="How long each row is measured.")] = 4.0,
    save: Save = None,
    json: Json = False,
) -> None:
    """Follow envelopes through the running cluster, and say where a message's time goes.

    Example: `ordercast bench stages --in-flight 1,64`
    """
    from ordercast.bench import stages as measured
    from ordercast.bench.report import BenchReport

    timed, depths = lasting(plan, seconds), checked_depths(in_flight)
    report(lambda say: BenchReport("stages", measured.measure(timed, depths, say), timed), save, json)


@app.command("profile", short_help="Where the servers' processor time goes.")
@on_cluster
def profile(
    plan: "BenchPlan",
    pattern: Annotated[str, typer.Option(help="As in `bench run`.")] = "same",
    in_flight: Annotated[int, typer.Option(min=1, help="Messages without a receipt.")] = 1024,
    seconds: Seconds = 10.0,
    save: Save = None,
    json: Json = False,
) -> None:
    """Say where the servers' processor time goes: by the kind of event that machines step, and the runtime's.

    Example: `ordercast bench profile --in-flight 64 --seconds 5`
    """
    from ordercast.bench import cpu_profile
    from ordercast.bench.report import BenchReport

    timed = lasting(plan, seconds)
    if len(checked_patterns(pattern, plan)) > 1:
        raise typer.BadParameter("--pattern takes one")
    report(lambda say: BenchReport("profile", cpu_profile.run(timed, pattern, in_flight, say), timed), save, json)


@app.command("telemetry", short_help="What telemetry costs the servers.")
@on_cluster
def telemetry(
    plan: "BenchPlan",
    in_flight: InFlight = "1,64,1024",
    seconds: Annotated[
        float, typer.Option(min=12.0, help="How long each cluster is measured, in turns of a second.")
    ] = 12.0,
    save: Save = None,
    json: Json = False,
) -> None:
    """Measure what telemetry costs the servers: clusters without it, with 1 % of traces and with all, in turns.

    Example: `ordercast bench telemetry --in-flight 64`
    """
    from ordercast.bench import telemetry_cost
    from ordercast.bench.goals import of_telemetry
    from ordercast.bench.report import BenchReport
    from ordercast.bench.trial import Say

    timed, depths = lasting(plan, seconds), checked_depths(in_flight)

    def measure(say: Say) -> BenchReport:
        entries = telemetry_cost.measure(timed, depths, say)
        return BenchReport("telemetry", entries, timed, of_telemetry(entries))

    report(measure, save, json)


# --------------------------------------------------------------------------------------------- while it changes


@during_app.callback()
def during() -> None:
    """One kind of change at present, which has a name of its own all the same."""


@during_app.command("replace", short_help="Replicas of a group are replaced under load.")
def replace(
    messages: Annotated[int, typer.Option(min=1, help="In the log before.")] = 1_000_000,
    size: Annotated[int, typer.Option(min=0, help="Bytes of a payload.")] = 100,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long the times before and after are.")] = 10.0,
    json: Json = False,
) -> None:
    """Replace two replicas of a group under load, one after the other: how much is left, and for how long.

    Exit code 1 if the replicas do not agree afterwards, or an acknowledged message is missing.

    Example: `ordercast bench during replace --messages 100000 --seconds 5`
    """
    from ordercast.bench.during import plan_of, run
    from ordercast.cli.bench.showing import show_changes

    with exit_codes():
        result = run(plan_of(messages, size, seconds), timed_say())
    if json:
        print_json(result.document())
    else:
        show_changes(result)
    # Goals are told, and missing one is no failure, as everywhere in the bench. A broken promise is.
    if not result.verified.is_ok:
        raise typer.Exit(ExitCode.NO)
