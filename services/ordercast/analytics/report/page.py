"""A report as one HTML file: no script, nothing loaded from elsewhere; looks right on light and dark screens."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from ordercast.analytics.report.charts import bars, lines
from ordercast.analytics.report.summary import Audit, Summary
from ordercast.analytics.report.words import duration, moment, number, remarks, verdict

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5d6b7e; --paper: #f6f7f9; --card: #fff; --rule: #dfe4ea;
  --good: #14794a; --bad: #b3261e; --warn: #8a6100; --bar: #3b6fd4;
  --c0: #3b6fd4; --c1: #d4663b; --c2: #1d9a78; --c3: #a14fc1; --c4: #b3901a; --c5: #c73a6d; --c6: #4a8f2a; --c7: #6b7686; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #98a5b8; --paper: #12161c; --card: #1a2029;
  --rule: #2c3541; --good: #4cc38a; --bad: #ff7b72; --warn: #e3b341; --bar: #6b9bff;
  --c0: #6b9bff; --c1: #ff9566; --c2: #4fd1a9; --c3: #cf8bea; --c4: #e3c04f; --c5: #ff7aa8; --c6: #8fd06a; --c7: #a3afbf; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 960px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 26px; margin: 0; } h2 { font-size: 18px; margin: 0 0 4px; }
header p, .about { color: var(--soft); margin: 2px 0 16px; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 20px; margin-top: 20px; }
.verdict { border-left: 6px solid var(--good); } .verdict.bad { border-left-color: var(--bad); }
.verdict.nothing { border-left-color: var(--warn); } .verdict h2 { color: var(--good); font-size: 20px; }
.verdict.bad h2 { color: var(--bad); } .verdict.nothing h2 { color: var(--warn); } .remark { color: var(--warn); margin: 4px 0; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--soft); font-weight: 600; font-size: 13px; }
th, td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--rule); white-space: nowrap; vertical-align: top; }
td.n, th.n { text-align: right; } td.wide { white-space: normal; min-width: 260px; }
tr:last-child td { border-bottom: 0; } code { font: 12px ui-monospace, monospace; color: var(--soft); }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
.grid { stroke: var(--rule); } .line { fill: none; stroke-width: 2; stroke-linejoin: round; } .bar { fill: var(--bar); }
.keys { display: flex; flex-wrap: wrap; gap: 6px 18px; font-size: 13px; margin: 8px 0 4px; }
.key::before { content: ""; display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px;
  vertical-align: -1px; background: currentColor; } .more, .none { color: var(--soft); }
"""
STYLE += "".join(
    f".line.c{n} {{ stroke: var(--c{n}); }} .dot.c{n} {{ fill: var(--c{n}); }} .key.c{n}::before {{ color: var(--c{n}); }}\n"
    for n in range(8)
)


def page(summary: Summary) -> str:
    title = f"Ordercast, {moment(summary.since)} to {moment(summary.until)} UTC"
    body = "".join(
        (
            f"<header><h1>How Ordercast ordered</h1><p>{moment(summary.since)} to {moment(summary.until)} UTC</p></header>",
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
        "Every delivery of every replica was compared with those of the others: the same envelopes at the same positions, "
        "with the same keys and offsets, nothing left out and nothing twice."
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
    chart = bars([(b.name, b.wait_sum, f"{duration(b.wait_sum)}, {number(b.waits)} waits") for b in summary.blockers])
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
    about = "What envelopes waited for, over all of them that were sampled. Who waited for a message is put down to what held that up."
    return _section("What others waited for", about, chart + _table(headings, rows, numbers=range(2, 7)))


def _replicas(summary: Summary) -> str:
    rows = [
        (escape(r.node), *map(duration, (r.behind_p50, r.behind_p95, r.lag_p95, r.clock, r.commit_p95, r.commit_max)))
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
    return _section("Dead letters", "Records that could not be used.", _table(("reason", "records"), rows, numbers=(1,)))


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
    lines_ = ("<tr>" + "".join(f"<td{of(at)}>{cell}</td>" for at, cell in enumerate(row)) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines_)}</tbody></table></div>'
