"""A run, for people."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ordercast.bench.goals import Goal
from ordercast.bench.plan import GROUPS_PREFIX
from ordercast.bench.rows import BenchRow, Replay
from ordercast.bench.systems import OWN

MARKS = {True: "[green]✓[/green]", False: "[red]✗[/red]", None: "-"}


def rows_tables(rows: Sequence[BenchRow], protocol: str = "") -> list[Table]:
    """For each pattern, systems side by side with as many messages in flight; `ordercast` with that protocol.

    One group against many is in the other table: there it is the envelopes that tell why.
    """
    patterns = dict.fromkeys(row.pattern for row in rows if not row.pattern.startswith(GROUPS_PREFIX))
    named = f", {OWN} with {protocol}" if protocol else ""
    return [_rows_table(pattern + named, [row for row in rows if row.pattern == pattern]) for pattern in patterns]


def _rows_table(title: str, rows: Sequence[BenchRow]) -> Table:
    found = _table(
        f"{title}: synced at a majority before the answer",
        ("in flight", "system"),
        ("messages per s", "spread", "p50 ms", "p99 ms", "server CPU s/10k", "client", "RssAnon MB"),
    )
    for in_flight, group in groupby(sorted(rows, key=lambda row: row.in_flight), key=lambda row: row.in_flight):
        for number, row in enumerate(group):
            found.add_row(
                "" if number else f"{in_flight:,}",
                f"{row.system}, {row.failed:,} failed" if row.failed else row.system,
                f"{row.messages_per_second:,.0f}",
                f"{spread(row):.0%}",
                figure(row.p50_ms),
                figure(row.p99_ms),
                figure(row.server_cpu_s_per_10k),
                figure(row.client_cpu_s_per_10k),
                f"{row.rss_anon_mb_max:.0f}",
            )
        found.add_section()
    return found


def spread(row: BenchRow) -> float:
    """How far repetitions lie apart, as a part of their median."""
    return (row.messages_per_second_max - row.messages_per_second_min) / row.messages_per_second


def envelopes_table(rows: Sequence[BenchRow]) -> Table:
    found = _table(
        "envelopes that carried them",
        ("pattern", "in flight"),
        ("messages per s", "envelopes", "messages each", "server CPU ms each"),
    )
    for row in rows:
        if row.envelopes is not None:
            found.add_row(
                row.pattern,
                f"{row.in_flight:,}",
                f"{row.messages_per_second:,.0f}",
                f"{row.envelopes:,}",
                f"{row.messages_per_envelope:,.1f}",
                f"{row.server_cpu_ms_per_envelope:.2f}",
            )
    return found


def stages_table(stages: Sequence[dict[str, Any]]) -> Table:
    found = _table(
        "where a message's time goes",
        ("in flight", "stage"),
        ("p50 ms", "p99 ms", "share", "envelopes"),
    )
    for in_flight, entries in groupby(stages, key=lambda entry: entry["in_flight"]):
        for number, entry in enumerate(entries):
            found.add_row(
                "" if number else f"{in_flight:,}",
                stage_name(entry),
                figure(entry["p50_ms"]),
                figure(entry["p99_ms"]),
                f"{entry['share']:.0%}",
                f"{entry['envelopes']:,}",
            )
        found.add_section()
    return found


def overload_table(phases: Sequence[dict[str, Any]]) -> Table:
    found = _table(
        "ten times more than the cluster can order",
        ("phase",),
        (
            "offered per s",
            "answered per s",
            "of the peak",
            "refused per s",
            "p99 ms",
            "RssAnon MB",
            "back after s",
        ),
    )
    for phase in phases:
        back = phase.get("recovered_after_s")
        found.add_row(
            phase["phase"],
            figure(phase["offered_per_second"]),
            figure(phase["acknowledged_per_second"]),
            f"{phase['goodput_ratio']:.0%}",
            figure(phase["refused_per_second"]),
            figure(phase["p99_ms"]),
            figure(phase["rss_anon_mb_max"]),
            "" if back is None else figure(back),
        )
    return found


def telemetry_table(entries: Sequence[dict[str, Any]]) -> Table:
    found = _table(
        "what telemetry costs the servers, in turns",
        ("in flight", "telemetry"),
        ("turns", "server CPU s/10k", "quartiles", "of off", "quartiles"),
    )
    for entry in entries:
        found.add_row(
            f"{entry['in_flight']:,}",
            entry["telemetry"],
            str(entry["turns"]),
            figure(entry["server_cpu_s_per_10k"]),
            " to ".join(figure(value) for value in entry["server_cpu_s_per_10k_quartiles"]),
            f"{entry['ratio']:.3f}",
            " to ".join(f"{value:.3f}" for value in entry["ratio_quartiles"]),
        )
    return found


def change_table(change: dict[str, Any]) -> Table:
    whose = ", which has the client's gateway," if change["is_gateways"] else ""
    found = _table(
        f"{change['replaced']}{whose} is replaced by {change['by']}",
        ("phase",),
        ("seconds", "messages per s", "of before", "p50 ms", "p99 ms", "longest gap s", "server CPU s/10k"),
    )
    before = change["phases"][0]["messages_per_second"]
    for phase in change["phases"]:
        rate = phase["messages_per_second"]
        found.add_row(
            f"{phase['phase']}, {phase['failed']:,} failed" if phase["failed"] else phase["phase"],
            figure(phase["seconds"]),
            figure(rate),
            f"{rate / before:.0%}" if before else "",
            figure(phase["p50_ms"]),
            figure(phase["p99_ms"]),
            figure(phase["gap_s_max"]),
            figure(phase["server_cpu_s_per_10k"]),
        )
    return found


def change_line(change: dict[str, Any]) -> str:
    return (
        f"{change['by']} copied {change['copied_messages']:,} messages, {change['copied_bytes'] / 1e6:,.0f} MB, "
        f"in {change['copying_s']:.1f} s; switching took {change['switching_s']:.1f} s, "
        f"{change['switching_gap_s_max']:.2f} s of them without a receipt"
    )


def stage_name(entry: dict[str, Any]) -> str:
    implied = entry.get("implied_share")
    return entry["stage"] if implied is None else f"{entry['stage']} (implied by the stamps: {implied:.0%})"


def goals_table(goals: Sequence[Goal]) -> Table:
    found = _table("goals", ("", "goal"), ("target", "reached", "ratio"))
    for goal in goals:
        found.add_row(
            MARKS[goal.met],
            f"[dim]further: {goal.goal}[/dim]" if goal.is_stretch else goal.goal,
            *(figure(value) for value in (goal.target, goal.reached, goal.ratio)),
        )
    return found


def replay_line(replay: Replay) -> str:
    memory = ", ".join(f"{node:.0f}" for node in replay.rss_anon_mb)
    return f"replay: {replay.messages:,} messages, {replay.messages_per_second:,.0f}/s; nodes have {memory} MB"


def figure(value: float | None) -> str:
    """Three digits, or all that stand before the point."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _table(title: str, left: Sequence[str], right: Sequence[str]) -> Table:
    # A line for each word of a heading: so narrow that all of it stands in 80 columns.
    found = Table(title=title, box=SIMPLE_HEAD, show_edge=False, padding=(0, 0, 0, 1))
    for column in left:
        found.add_column(column.replace(" ", "\n"))
    for column in right:
        found.add_column(column.replace(" ", "\n"), justify="right")
    return found
