"""What commands of `ordercast bench` print for people."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ordercast.bench import table
from ordercast.bench.rows import Replay
from ordercast.cli.output import out
from ordercast.protocols.catalogue import DEFAULT

if TYPE_CHECKING:
    from ordercast.bench import during as changes
    from ordercast.bench.comparison import ComparisonResult
    from ordercast.bench.report import BenchReport

Entries = Any


def show_rows(result: "ComparisonResult") -> None:
    plan = result.agenda.plan
    protocol = "" if plan.protocol == DEFAULT.name else plan.protocol_text
    for rows in table.rows_tables(result.rows, protocol):
        out.print(rows)
    out.print(table.envelopes_table(result.rows))
    # Without peers, most goals are about what was not measured.
    goals = [goal for goal in result.goals if result.agenda.peers or goal.met is not None]
    if result.agenda.peers or (protocol and goals):
        out.print(table.goals_table(goals))


def show_report(report: "BenchReport") -> None:
    for shown in SHOWN[report.name](report.entries):
        out.print(shown, highlight=False)
    if report.goals:
        out.print(table.goals_table(report.goals))


def _replays(entries: Entries) -> Iterator[str]:
    return (table.replay_line(Replay(**entry)) for entry in entries)


def _profile(entries: Entries) -> Iterator[str]:
    for stage in entries:
        yield f"{stage['stage']:>14} {stage['cpu_s']:8.2f} s  {stage['share']:6.1%}  {stage['events']:,} events"


#: By what a report is called.
SHOWN: dict[str, Callable[[Entries], Any]] = {
    "overload": lambda entries: [table.overload_table(entries)],
    "replay": _replays,
    "stages": lambda entries: [table.stages_table(entries)],
    "profile": _profile,
    "telemetry": lambda entries: [table.telemetry_table(entries)],
}


def show_changes(result: "changes.DuringResult") -> None:
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
