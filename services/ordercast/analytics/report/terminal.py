"""A report as tables on a terminal."""

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table

from ordercast.analytics.report.summary import Summary
from ordercast.analytics.report.words import duration, moment, number, remarks, verdict

#: The one column whose words may be broken into lines.
STAGES = "in"


def show(summary: Summary, console: Console) -> None:
    console.print(f"{moment(summary.since)} to {moment(summary.until)} UTC", style="bold", highlight=False)
    lags = [
        (
            lag.domain,
            lag.group,
            number(lag.deliveries),
            *map(duration, (lag.p50, lag.p95, lag.p99, lag.max, lag.spread_p95)),
        )
        for lag in summary.lags
    ]
    headings: tuple[str, ...] = ("domain", "group", "deliveries", "p50", "p95", "p99", "max", "spread")
    _table(console, "Order lag: publish to delivery; spread: first to last replica", headings, lags, words=2)
    stages = [
        (
            stage.protocol,
            stage.stage,
            number(stage.count),
            duration(stage.p50),
            duration(stage.p95),
            duration(stage.max),
        )
        for stage in summary.stages
    ]
    _table(console, "Stages", ("protocol", "stage", "spans", "p50", "p95", "max"), stages, words=2)
    blockers = [
        (b.name, b.stages, number(b.waits), number(b.envelopes), duration(b.wait_sum), duration(b.wait_max))
        for b in summary.blockers
    ]
    headings = ("blocker", STAGES, "waits", "envelopes", "all together", "longest")
    _table(console, "What others waited for (sampled)", headings, blockers, words=2)
    replicas = [
        (r.node, *map(duration, (r.behind_p50, r.behind_p95, r.lag_p95, r.clock, r.commit_p95, r.commit_max)))
        for r in summary.replicas
    ]
    headings = ("replica", "behind p50", "behind p95", "lag p95", "clock ahead", "commit p95", "commit max")
    _table(console, "Replicas", headings, replicas, words=1)
    sessions = [
        (
            s["domain"] or "-",
            s["group"] or "-",
            moment(s["start_time"]),
            duration(s["duration_us"] / 1e6),
            *_counts(s),
        )
        for s in summary.sessions
    ]
    headings = ("domain", "group", "from", "for", "refused", "failed")
    _table(console, "Unavailable", headings, sessions, words=3)
    letters = [(reason, number(count)) for reason, count in summary.dead_letters.items()]
    _table(console, "Dead letters", ("reason", "records"), letters, words=1)
    _audit(summary, console)


def _audit(summary: Summary, console: Console) -> None:
    audit = summary.audit
    for finding in audit.findings:
        where = f"{finding['group']} {finding['position']}"
        traces = f"traces {finding['trace'] or '-'} and {finding['other_trace'] or '-'}"
        text = f"{finding['violation'] or finding['severity']}: {where}: {finding['detail']}; {traces}"
        console.print(
            text, style="red" if audit.violations else "yellow", markup=False, highlight=False, soft_wrap=True
        )
    for remark in remarks(audit):
        console.print(remark, style="yellow", highlight=False)
    style = "bold red" if audit.violations else "bold green" if audit.deliveries else "bold yellow"
    console.print(verdict(audit), style=style, highlight=False)


def _table(
    console: Console, title: str, headings: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, words: int
) -> None:
    """The first columns are words, the others numbers. Without rows there is no table."""
    rows = list(rows)
    if not rows:
        return
    # As narrow as can be: it shall fit into 80 columns, and names stay whole.
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="left" if at < words else "right", no_wrap=heading != STAGES)
    for row in rows:
        table.add_row(*row)
    console.print(table, markup=False, highlight=False)


def _counts(session: dict[str, int]) -> tuple[str, str]:
    return number(session["refused"]), number(session["failed"])
