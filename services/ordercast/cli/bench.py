"""`ordercast bench`: how fast a local cluster is."""

from typing import Annotated

import typer
from rich.table import Table

from ordercast.cli.output import Json, err, out, print_json

PATTERNS = ("same", "random")


def bench(
    groups: Annotated[int, typer.Option(min=1, help="Groups that each message goes to.")] = 2,
    replicas: Annotated[int, typer.Option(min=1, help="Replicas of each group.")] = 3,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the cluster.")] = 3,
    in_flight: Annotated[
        str, typer.Option(help="Messages without a receipt; several, with commas.")
    ] = "1,64,1024",
    size: Annotated[int, typer.Option(min=0, help="Bytes of a payload.")] = 256,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long each row is measured.")] = 10.0,
    messages: Annotated[
        int | None, typer.Option(min=1, help="So many messages in each row, however long.")
    ] = None,
    patterns: Annotated[str, typer.Option(help="`same`, `random`, or both.")] = "same,random",
    profile: Annotated[bool, typer.Option("--profile", help="Also say where the servers' time goes.")] = False,
    json: Json = False,
) -> None:
    """Measure a cluster of real processes on this machine, with durable settings.

    `ordercast bench --in-flight 1,1024 --patterns same --seconds 5`
    """
    from ordercast.local.bench import Bench, Plan, Row, document

    chosen = patterns.split(",")
    unknown = [pattern for pattern in chosen if pattern not in PATTERNS]
    depths = in_flight.split(",")
    if unknown or not all(depth.isdigit() and int(depth) for depth in depths):
        raise typer.BadParameter("patterns are `same` and `random`; --in-flight takes numbers above 0")
    if replicas > nodes:
        raise typer.BadParameter(f"{nodes} nodes cannot hold {replicas} replicas")
    runner = Bench(Plan(nodes, groups, replicas, size, seconds, messages))
    rows: list[Row] = []
    for pattern in chosen:
        for depth in depths:
            with err.status(f"{pattern}, {depth} in flight"):
                rows.append(runner.run(pattern, int(depth)))
    stages = runner.profile(max(map(int, depths))) if profile else []
    result = document(rows, runner, stages)
    if json:
        print_json(result)
        return
    out.print(table(rows))
    for replay in runner.replays:
        out.print(
            f"replay after {replay['pattern']} {replay['in_flight']}: {replay['messages']:,} messages, "
            f"{replay['messages_per_second']:,.0f}/s"
        )
    for stage in stages:
        out.print(
            f"{stage['stage']:>14} {stage['cpu_s']:8.2f} s  {stage['share']:6.1%}  {stage['events']:,} events"
        )


def table(rows: list) -> Table:  # type: ignore[type-arg]
    found = Table(title="messages to several groups, durable")
    for column in (
        "pattern",
        "in flight",
        "messages/s",
        "p50 ms",
        "p99 ms",
        "server CPU s/10k",
        "client",
        "RssAnon MB",
    ):
        found.add_column(column, justify="left" if column == "pattern" else "right")
    for row in rows:
        found.add_row(
            row.pattern,
            f"{row.in_flight:,}",
            f"{row.messages_per_second:,.0f}",
            f"{row.p50_ms:.2f}",
            f"{row.p99_ms:.2f}",
            f"{row.server_cpu_s_per_10k:.2f}",
            f"{row.client_cpu_s_per_10k:.2f}",
            f"{row.rss_anon_mb_max:.0f}",
        )
    return found
