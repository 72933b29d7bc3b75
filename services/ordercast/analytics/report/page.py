"""A report as one HTML file: no script, nothing loaded from elsewhere; looks right on light and dark screens."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ordercast.analytics.report.charts import bars, lines
from ordercast.analytics.report.summary import Audit, Summary
from ordercast.analytics.report.words import duration, moment, number, remarks, verdict

STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


def page(summary: Summary) -> str:
    between = f"{moment(summary.since)} to {moment(summary.until)}"
    title = f"Ordercast, {between} UTC"
    body = "".join(
        (
            f"<header><h1>How Ordercast ordered</h1><p>{between} UTC</p></header>",
            _verdict(summary.audit),
            _lag(summary),
            _blockers(summary),
            _replicas(summary),
            _unavailable(summary),
            _dead_letters(summary),
        )
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def _verdict(audit: Audit) -> str:
    kind = "bad" if audit.violations else "" if audit.deliveries else "nothing"
    noted = "".join(f'<p class="remark">{escape(remark)}</p>' for remark in remarks(audit))
    about = (
        "Every delivery of every replica was compared with those of the others: the same envelopes at the same "
        "positions, with the same keys and offsets, nothing left out and nothing twice."
    )
    findings = ""
    if audit.findings:
        rows = [_finding(finding) for finding in audit.findings]
        findings = _table(("what", "group", "position", "said", "traces"), rows, numbers=(2,), wide=(3,))
    return (
        f'<section class="verdict {kind}"><h2>{escape(verdict(audit))}</h2>'
        f'<p class="about">{about}</p>{noted}{findings}</section>'
    )


def _finding(finding: dict[str, Any]) -> tuple[str, ...]:
    position, last = finding["position"], finding["position_last"]
    where = number(position) if last == position else f"{number(position)} to {number(last)}"
    traces = "<br>".join(f"<code>{escape(finding[name] or '-')}</code>" for name in ("trace", "other_trace"))
    what = finding["violation"] or finding["severity"]
    return escape(what), escape(finding["group"] or "-"), where, escape(finding["detail"]), traces


def _lag(summary: Summary) -> str:
    rows = [
        (
            escape(lag.domain),
            escape(lag.group),
            number(lag.deliveries),
            *map(duration, (lag.p50, lag.p95, lag.p99, lag.max, lag.spread_p95)),
        )
        for lag in summary.lags
    ]
    stages = [
        (
            escape(stage.protocol),
            escape(stage.stage),
            number(stage.count),
            duration(stage.p50),
            duration(stage.p95),
            duration(stage.max),
        )
        for stage in summary.stages
    ]
    headings = ("domain", "group", "deliveries", "p50", "p95", "p99", "max", "between replicas")
    return _section(
        "Order lag",
        "From the publish of an envelope to its delivery at a replica, at the 95th percentile of a minute.",
        lines(summary.lag_series, "order lag over time")
        + _table(headings, rows, numbers=range(2, 8))
        + "<h2>Where the time goes</h2>"
        + _table(("protocol", "stage", "spans", "p50", "p95", "max"), stages, numbers=range(2, 6)),
    )


def _blockers(summary: Summary) -> str:
    chart = bars(
        [(b.name, b.wait_sum, f"{duration(b.wait_sum)}, {number(b.waits)} waits") for b in summary.blockers]
    )
    rows = [
        (
            escape(b.name),
            escape(b.stages),
            number(b.waits),
            number(b.through_messages),
            number(b.envelopes),
            duration(b.wait_sum),
            duration(b.wait_max),
        )
        for b in summary.blockers
    ]
    headings = ("blocker", "in", "waits", "through messages", "envelopes", "all together", "longest")
    about = (
        "What envelopes waited for, over all of them that were sampled. "
        "Who waited for a message is put down to what held that up."
    )
    return _section("What others waited for", about, chart + _table(headings, rows, numbers=range(2, 7)))


def _replicas(summary: Summary) -> str:
    rows = [
        (
            escape(r.node),
            *map(duration, (r.behind_p50, r.behind_p95, r.lag_p95, r.clock, r.commit_p95, r.commit_max)),
        )
        for r in summary.replicas
    ]
    headings = ("replica", "behind p50", "behind p95", "lag p95", "clock ahead", "commit p95", "commit max")
    about = "How long after the first one each replica delivered, and whether its clock or its disk tell why."
    chart = lines(summary.behind_series, "how far replicas are behind")
    return _section("Replicas", about, chart + _table(headings, rows, numbers=range(1, 7)))


def _unavailable(summary: Summary) -> str:
    rows = [
        (
            escape(s["domain"] or "-"),
            escape(s["group"] or "-"),
            moment(s["start_time"]),
            duration(s["duration_us"] / 1e6),
            number(s["refused"]),
            number(s["failed"]),
        )
        for s in summary.sessions
    ]
    headings = ("domain", "group", "from", "for", "refused", "failed")
    about = "Times in which a group refused publishes because it was not available, or failed them."
    return _section("Unavailability", about, _table(headings, rows, numbers=range(3, 6)))


def _dead_letters(summary: Summary) -> str:
    if not summary.dead_letters:
        return ""
    rows = [(escape(reason), number(count)) for reason, count in summary.dead_letters.items()]
    return _section(
        "Dead letters", "Records that could not be used.", _table(("reason", "records"), rows, numbers=(1,))
    )


def _section(title: str, about: str, inside: str) -> str:
    return f'<section><h2>{title}</h2><p class="about">{escape(about)}</p>{inside}</section>'


def _table(
    headings: Sequence[str], rows: Sequence[tuple[str, ...]], *, numbers: Iterable[int], wide: Iterable[int] = ()
) -> str:
    """Cells are HTML already."""
    if not rows:
        return '<p class="none">none</p>'
    right, broad = list(numbers), list(wide)

    def of(at: int) -> str:
        return ' class="n"' if at in right else ' class="wide"' if at in broad else ""

    head = "".join(f"<th{of(at)}>{escape(text)}</th>" for at, text in enumerate(headings))
    lines_ = (
        "<tr>" + "".join(f"<td{of(at)}>{cell}</td>" for at, cell in enumerate(row)) + "</tr>" for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines_)}</tbody></table></div>'
    )
