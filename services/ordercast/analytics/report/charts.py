"""Charts as SVG, in the page itself: nothing is loaded from anywhere. Colours come from the page's style sheet."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from math import ceil, log10

from ordercast.analytics.report.summary import Series
from ordercast.analytics.report.words import duration

WIDTH, HEIGHT = 860, 260
LEFT, RIGHT, TOP, BOTTOM = 70, 16, 14, 30
#: The style sheet has so many colours; the lines beyond are not drawn, and told.
LINES_MAX = 8
TICKS_X = 6


def lines(series: Sequence[Series], label: str) -> str:
    """Durations over time."""
    drawn = [one for one in series if one.points][:LINES_MAX]
    if not drawn:
        return '<p class="none">nothing</p>'
    times = [time for one in drawn for time, _ in one.points]
    first, last = min(times), max(times)
    top = _round_up(max(value for one in drawn for _, value in one.points))
    x = _scale(first, max(last, first + 1), LEFT, WIDTH - RIGHT)
    y = _scale(0.0, top, HEIGHT - BOTTOM, TOP)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">']
    for step in range(5):
        value = top * step / 4
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{duration(value)}</text>')
    for step in range(TICKS_X + 1):
        time = first + (last - first) * step / TICKS_X
        shown = datetime.fromtimestamp(time, UTC).strftime("%H:%M:%S")
        anchor = "end" if step == TICKS_X else "start" if step == 0 else "middle"
        parts.append(f'<text x="{x(time):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{shown}</text>')
    for at, one in enumerate(drawn):
        points = " ".join(f"{x(time):.1f},{y(value):.1f}" for time, value in one.points)
        title = f"<title>{escape(one.name)}</title>"
        if len(one.points) == 1:
            time, value = one.points[0]
            parts.append(
                f'<circle class="dot c{at}" cx="{x(time):.1f}" cy="{y(value):.1f}" r="4">{title}</circle>'
            )
        else:
            parts.append(f'<polyline class="line c{at}" points="{points}">{title}</polyline>')
    parts.append("</svg>")
    keys = "".join(f'<span class="key c{at}">{escape(one.name)}</span>' for at, one in enumerate(drawn))
    more = f'<span class="more">and {len(series) - len(drawn)} more</span>' if len(series) > len(drawn) else ""
    return "".join(parts) + f'<div class="keys">{keys}{more}</div>'


def bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """A name, a value, and how the value is written; the longest bar is the whole width."""
    if not rows:
        return '<p class="none">nothing</p>'
    height, left, right = 30, 270, 190
    longest = max(value for _, value, _ in rows) or 1.0
    parts = [f'<svg viewBox="0 0 {WIDTH} {height * len(rows)}" role="img" aria-label="bars">']
    for at, (name, value, text) in enumerate(rows):
        width = max((WIDTH - left - right) * value / longest, 2.0)
        middle = at * height + 19
        parts.append(f'<text x="{left - 10}" y="{middle}" text-anchor="end">{escape(_short(name))}</text>')
        parts.append(
            f'<rect class="bar" x="{left}" y="{at * height + 5}" width="{width:.1f}" height="20" rx="3"/>'
        )
        parts.append(f'<text x="{left + width + 8:.1f}" y="{middle}">{escape(text)}</text>')
    parts.append("</svg>")
    return "".join(parts)


def _scale(low: float, high: float, begin: float, end: float):  # type: ignore[no-untyped-def]
    return lambda value: begin + (end - begin) * (value - low) / (high - low)


def _round_up(value: float) -> float:
    """To 1, 2, 2.5 or 5 times a power of ten.

    >>> _round_up(0.0123), _round_up(3.0)
    (0.02, 5.0)
    """
    if value <= 0:
        return 0.001
    power = 10.0 ** ceil(log10(value) - 1)
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * 0.999)


def _short(name: str) -> str:
    return name if len(name) <= 34 else name[:33] + "…"
