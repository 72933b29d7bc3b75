"""Pictures: random sets; throughput and latency by the messages in flight, and by the destinations of a cast."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordercast.bench.comparison import ComparisonResult
from ordercast.bench.curves import ABCAST, CBCAST, NODES, PIPELINED, WORKERS, Curve, Curves
from ordercast.bench.plan import DEFAULT, FEW_GROUPS_MAX, FIXED_IN_FLIGHT, MANY_GROUPS, RANDOM_SETS, SAME
from ordercast.bench.rows import BenchRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Apart for people who see fewer colours too: they differ in lightness.
COLOURS = {"ordercast": "#c2410c", "etcd": "#1d4ed8", "nats": "#15803d"}
LABELS = {"ordercast": "Ordercast", "etcd": "etcd", "nats": "NATS"}
CAST_COLOURS = {CBCAST: COLOURS["ordercast"], ABCAST: COLOURS["etcd"]}
INK = "#1f2937"
#: As a part of the height, which is logarithmic.
LABELS_APART = 0.05
#: The same figures give the same file, byte by byte.
SETTINGS: dict[str, Any] = {"svg.hashsalt": "ordercast", "font.size": 9, "font.family": "DejaVu Sans"}

#: By the kind of cast, what a paper says: as a Curve of ours.
Published = Mapping[str, Curve]
Panel = Callable[["Axes"], None]


def draw(result: ComparisonResult, path: Path) -> None:
    """Nothing, if there is none of the rows that it shows."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    panels: list[Panel] = []
    randoms = [row for row in result.rows if row.pattern in RANDOM_SETS]
    same = sorted((row for row in result.rows if row.pattern == SAME), key=lambda row: row.in_flight)
    if randoms:
        panels.append(partial(draw_random_sets, rows=randoms))
    if same:
        panels += [partial(draw_throughputs, rows=same), partial(draw_latencies, rows=same)]
    if not panels:
        return
    with rc_context(SETTINGS):
        # White also on a dark page: the ink is dark.
        figure = Figure(figsize=(4.8 * len(panels), 4.4), facecolor="white", layout="constrained")
        for panel, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
            panel(axes)
        figure.supxlabel(caption(result), fontsize=7, color=INK)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def by_system(rows: Sequence[BenchRow]) -> dict[str, list[BenchRow]]:
    """Those systems that there are, in the order of their labels."""
    systems = {system: [row for row in rows if row.system == system] for system in LABELS}
    return {system: of_system for system, of_system in systems.items() if of_system}


def draw_random_sets(axes: "Axes", rows: Sequence[BenchRow]) -> None:
    """Bars from 0, side by side: how much higher one is than the other is what there is to see."""
    patterns = [pattern for pattern in RANDOM_SETS if any(row.pattern == pattern for row in rows)]
    systems = by_system(rows)
    width = 0.8 / len(systems)
    for number, (system, of_system) in enumerate(systems.items()):
        rates = {row.pattern: row for row in of_system}
        shown = [(place, rates[pattern]) for place, pattern in enumerate(patterns) if pattern in rates]
        middles = [place + (number - (len(systems) - 1) / 2) * width for place, _ in shown]
        heights = [row.messages_per_second for _, row in shown]
        lows = [row.messages_per_second - row.messages_per_second_min for _, row in shown]
        highs = [row.messages_per_second_max - row.messages_per_second for _, row in shown]
        bars = axes.bar(middles, heights, width * 0.92, yerr=(lows, highs), color=COLOURS[system], ecolor=INK)
        axes.bar_label(bars, [f"{LABELS[system]}\n{height:,.0f}" for height in heights], fontsize=7, color=INK)
    axes.set_xticks(range(len(patterns)), [random_sets_text(*RANDOM_SETS[pattern]) for pattern in patterns])
    axes.set_title("messages per second, random sets", loc="left", color=INK)
    axes.set_xlabel(
        f"each to 1 to {FEW_GROUPS_MAX} of {MANY_GROUPS} groups, {FIXED_IN_FLIGHT:,} in flight", color=INK
    )
    axes.margins(y=0.15)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)


def random_sets_text(producers: int, connections: int) -> str:
    """
    >>> random_sets_text(64, 8), random_sets_text(1, 1)
    ('64 producers,\\n8 connections', '1 producer,\\n1 connection')
    """

    def counted(count: int, what: str) -> str:
        return f"{count} {what}" if count == 1 else f"{count} {what}s"

    return f"{counted(producers, 'producer')},\n{counted(connections, 'connection')}"


def draw_throughputs(axes: "Axes", rows: Sequence[BenchRow]) -> None:
    dress(axes, "messages per second, one set", rows)
    systems = by_system(rows)
    for system, of_system in systems.items():
        draw_throughput(axes, COLOURS[system], of_system)
    label(axes, {system: of[-1].messages_per_second for system, of in systems.items()}, rows[-1].in_flight)


def draw_latencies(axes: "Axes", rows: Sequence[BenchRow]) -> None:
    dress(axes, "latency, one set, ms: p50, and p99 dashed", rows)
    systems = by_system(rows)
    for system, of_system in systems.items():
        draw_latency(axes, COLOURS[system], of_system)
    label(axes, {system: of[-1].p50_ms for system, of in systems.items()}, rows[-1].in_flight)


def draw_throughput(axes: "Axes", colour: str, rows: Sequence[BenchRow]) -> None:
    depths = [row.in_flight for row in rows]
    lowest, highest = [r.messages_per_second_min for r in rows], [r.messages_per_second_max for r in rows]
    axes.fill_between(depths, lowest, highest, color=colour, alpha=0.15, linewidth=0)
    axes.plot(depths, [row.messages_per_second for row in rows], color=colour, marker="o", markersize=4)


def draw_latency(axes: "Axes", colour: str, rows: Sequence[BenchRow]) -> None:
    depths = [row.in_flight for row in rows]
    axes.plot(depths, [row.p50_ms for row in rows], color=colour, marker="o", markersize=4)
    axes.plot(depths, [row.p99_ms for row in rows], color=colour, linewidth=0.9, linestyle="--")


def label(axes: "Axes", ends: Mapping[str, float], at: float) -> None:
    label_ends(axes, [(LABELS[system], end, COLOURS[system]) for system, end in ends.items()], at)


def label_ends(axes: "Axes", ends: Sequence[tuple[str, float, str]], at: float) -> None:
    """At the lines' ends, so that nobody has to look things up in a legend; apart, where lines end together."""
    bottom, top = axes.get_ylim()
    apart = (top / bottom) ** LABELS_APART
    lowest = 0.0
    for text, end, colour in sorted(ends, key=lambda item: item[1]):
        height = max(end, lowest)
        lowest = height * apart
        axes.annotate(
            text,
            (at, height),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontweight="bold",
        )


def dress(axes: "Axes", title: str, rows: Sequence[BenchRow]) -> None:
    depths = sorted({row.in_flight for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_xticks(depths, [f"{depth:,}" for depth in depths])
    # Room for the names.
    axes.margins(x=0.02)
    axes.set_xlim(right=depths[-1] * 4)
    axes.set_xlabel("messages in flight", color=INK)
    dress_plainly(axes, title)


def dress_plainly(axes: "Axes", title: str) -> None:
    axes.set_title(title, loc="left", color=INK)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.grid(visible=True, which="major", color="#e5e7eb", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, which="both")


def caption(result: ComparisonResult) -> str:
    facts, plan = result.machine, result.agenda.plan
    versions: dict[str, Any] = facts["versions"]
    names = [f"{LABELS.get(name, name)} {version}" for name, version in versions.items() if version]
    groups = (
        "1 group" if plan.groups == 1 else f"one set of {plan.groups} groups (NATS: one stream), or random sets"
    )
    if plan.protocol != DEFAULT:
        groups += f" of a domain with {plan.protocol_text}"
    measured = f"{plan.seconds:g} s" if plan.messages is None else f"{plan.messages:,} messages"
    return (
        f"{plan.size} bytes to {groups}, {plan.replicas} replicas, "
        f"synced at a majority; median of {result.agenda.repetitions} x {measured}, band from lowest to highest\n"
        f"{', '.join(names)}; {machine_text(facts)}"
    )


def machine_text(facts: Mapping[str, Any]) -> str:
    return (
        f"{facts['cpus']} x {facts['model']}, Linux {facts['kernel']}, Python {facts['python']}; {facts['date']}"
    )


# ------------------------------------------------------------------------- casts by their destinations


def draw_curves(curves: Curves, published: Published, path: Path) -> None:
    """Null messages and, thin, those of 7 KB; the paper's dashed."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    ours: Published = {CBCAST: curves.cbcast, ABCAST: curves.abcast}
    # Letters as letters, and not as shapes: half of the file would be those.
    with rc_context({**SETTINGS, "svg.fonttype": "none"}):
        figure = Figure(figsize=(9.6, 4.8), facecolor="white", layout="constrained")
        throughput, latency = figure.subplots(1, 2)
        dress_plainly(throughput, f"messages per second, {PIPELINED:,} in flight")
        dress_plainly(latency, "ms for one message, p50")
        for axes, column in ((throughput, "per_s"), (latency, "ms")):
            last = max(published[CBCAST])
            axes.set_xticks(range(1, last + 1))
            axes.set_xlim(0.8, last + 3.6)
            axes.set_xlabel("members besides the sender", color=INK)
            ends = draw_casts(axes, column, ours, is_published=False)
            ends += draw_casts(axes, column, published, is_published=True)
            label_ends(axes, ends, last)
        figure.supxlabel(curves_caption(curves), fontsize=7, color=INK)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def draw_casts(axes: "Axes", column: str, casts: Published, *, is_published: bool) -> list[tuple[str, float, str]]:
    """Where the lines end, and what they are called."""
    ends = []
    for cast, curve in casts.items():
        for size, name in (("null", ""), ("7k", " 7 KB")):
            # 0 is the sender alone: that is another matter.
            destinations = [count for count in curve if count]
            heights = [curve[count][f"{size}_{column}"] for count in destinations]
            axes.plot(
                destinations,
                heights,
                color=CAST_COLOURS[cast],
                marker="" if is_published else "o",
                markersize=4 if size == "null" else 2.5,
                linewidth=1.6 if size == "null" else 0.8,
                linestyle="--" if is_published else "-",
            )
            label_ = f"{cast.upper()}{name}{' [BSS91]' if is_published else ''}"
            ends.append((label_, heights[-1], CAST_COLOURS[cast]))
    return ends


def curves_caption(curves: Curves) -> str:
    return (
        "ours: a receipt, synced at a majority; the sender of ABCASTs does not hold the token; "
        f"{curves.seconds:g} s for each point, {NODES + WORKERS} nodes and the client on one machine\n"
        "[BSS91] Tables II and III: until all have replied, in memory; SUN 4/60 and Ethernet of 10 Mbit/s\n"
        f"{machine_text(curves.machine)}"
    )
