"""`ordercast verify`: read every replica of every group, and check that order and offsets agree. Or one disk."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.table import Table

from ordercast.cli.connection import Connection, connected
from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.output import Json, out, print_json, progress_bar

if TYPE_CHECKING:
    from ordercast.local.verify import GroupReport, Report
    from ordercast.runtime.storage.checking import DirectoryReport


@connected
def verify(
    connection: Connection,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Replicas that cannot be read are no reason for exit code 1.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIRECTORY",
            help="Instead of a cluster, look through the data directory of a process that is stopped.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Read all replicas of all groups and check that they show the same messages in one order.

    Checked: every replica of a group shows the same messages at the same offsets; offsets have no gap; order keys
    rise; a message to several groups is in all of them, once, at one place in the order. The cluster may go on
    meanwhile.

    Where a domain's protocol orders each group by itself, groups have no order among each other. A message to
    several is in all of them; and what an entry comes after, by its stamp, is in its group's log, and before it if
    that is the same one.

    With --data, one disk: the file is whole, no commit is missing, every value has its checksum, no log has a
    hole. Nothing is changed there.

    Exit code 1 if something is wrong, or if a replica could not be read (unless --allow-missing).

    Examples: `ordercast verify` · `ordercast verify --json --allow-missing` · `ordercast verify --data ./n1`
    """
    if data is not None:
        _verify_directory(data, json)
    from ordercast.local.verify import Verifier

    with connection.channel() as channel, progress_bar() as bar:
        task = bar.add_task("entries", total=None, note="")
        report = Verifier(channel, lambda entries: bar.advance(task, entries)).run()
    is_good = report.is_ok and (report.is_complete or allow_missing)
    if json:
        print_json(_document(report, is_good))
    else:
        _print(report, allow_missing)
    raise typer.Exit(ExitCode.OK if is_good else ExitCode.NO)


def _verify_directory(directory: Path, json: bool) -> NoReturn:
    from ordercast.runtime.storage.checking import check_directory
    from ordercast.runtime.storage.layout import StorageError

    try:
        report = check_directory(directory)
    except StorageError as error:
        fail(ExitCode.REFUSED, str(error))
    if json:
        print_json(
            {
                "ok": report.is_ok,
                "directory": str(directory),
                "values": report.values,
                "damaged_records": report.damaged_records,
                "damaged_entries": report.damaged_entries,
                "problem_count": report.problem_count,
                "problems": report.problems,
                "advice": report.advice,
            }
        )
    else:
        _print_directory(report)
    raise typer.Exit(ExitCode.OK if report.is_ok else ExitCode.NO)


def _print_directory(report: "DirectoryReport") -> None:
    _print_problems(report.problems, report.problem_count)
    for advice in report.advice:
        out.print(f"what to do: {advice}", markup=False, highlight=False, soft_wrap=True)
    if report.is_ok:
        values = sum(report.values.values())
        out.print(f"Nothing is wrong in {report.directory}: {values} values.", style="bold green", markup=False)
    else:
        out.print(f"{report.problem_count} problems in {report.directory}.", style="bold red", markup=False)


def _document(report: "Report", is_good: bool) -> dict[str, Any]:
    return {
        "ok": is_good,
        "agrees": report.is_ok,
        "complete": report.is_complete,
        "problem_count": report.problem_count,
        "problems": report.problems,
        "groups": [
            {
                "group": group.group,
                "replicas": group.replicas,
                "unreachable": group.unreachable,
                "first_offset": group.first_offset,
                "messages": group.messages,
                "entries": group.entries,
            }
            for group in report.groups
        ],
    }


def _print(report: "Report", allow_missing: bool) -> None:
    table = Table()
    for heading in ("group", "replicas", "not read"):
        table.add_column(heading)
    for heading in ("first offset", "messages"):
        table.add_column(heading, justify="right")
    for group in sorted(report.groups, key=lambda found: found.group):
        missing = ", ".join(sorted(group.unreachable)) or "-"
        table.add_row(
            group.group, ", ".join(group.replicas), missing, str(group.first_offset), str(group.messages)
        )
    out.print(table)
    for group in report.groups:
        for line in _unread(group):
            out.print(line, markup=False, highlight=False, soft_wrap=True)
    _print_problems(report.problems, report.problem_count)
    _print_verdict(report, allow_missing)


def _print_problems(problems: list[str], count: int) -> None:
    for problem in problems:
        out.print(f"problem: {problem}", style="red", markup=False, highlight=False, soft_wrap=True)
    if count > len(problems):
        out.print(f"... and {count - len(problems)} more problems", style="red")


def _unread(group: "GroupReport") -> list[str]:
    return [f"not read: {group.group} at {node}: {why}" for node, why in sorted(group.unreachable.items())]


def _print_verdict(report: "Report", allow_missing: bool) -> None:
    messages = sum(group.messages for group in report.groups)
    if not report.is_ok:
        out.print(f"The replicas do not agree: {report.problem_count} problems.", style="bold red")
    elif report.is_complete:
        out.print(f"All replicas agree: {len(report.groups)} groups, {messages} messages.", style="bold green")
    else:
        style = "yellow" if allow_missing else "bold red"
        out.print(f"What could be read agrees ({messages} messages), but some replicas could not be.", style=style)
