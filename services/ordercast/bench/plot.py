"""The picture of a comparison: throughput and latency against the number of messages in flight."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordercast.bench.comparison import Result
from ordercast.bench.plan import SAME
from ordercast.bench.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Apart for people who see fewer colours too: they differ in lightness.
COLOURS = {"ordercast": "#c2410c", "etcd": "#1d4ed8", "nats": "#15803d"}
LABELS = {"ordercast": "Ordercast", "etcd": "etcd", "nats": "NATS"}
INK = "#1f2937"
#: As a part of the height, which is logarithmic.
LABELS_APART = 0.05
#: The same figures give the same file, byte by byte.
SETTINGS: dict[str, Any] = {"svg.hashsalt": "ordercast", "font.size": 9, "font.family": "DejaVu Sans"}


def draw(result: Result, path: Path) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = sorted((row for row in result.rows if row.pattern == SAME), key=lambda row: row.in_flight)
    systems = {system: [row for row in rows if row.system == system] for system in LABELS}
    drawn = {system: of_system for system, of_system in systems.items() if of_system}
    with rc_context(SETTINGS):
        # White also on a dark page: the ink is dark.
        figure = Figure(figsize=(9.6, 4.4), facecolor="white", layout="constrained")
        throughput, latency = figure.subplots(1, 2)
        dress(throughput, "messages per second", rows)
        dress(latency, "latency, ms: p50, and p99 dashed", rows)
        for system, of_system in drawn.items():
            draw_throughput(throughput, COLOURS[system], of_system)
            draw_latency(latency, COLOURS[system], of_system)
        label(throughput, {system: of_system[-1].messages_per_second for system, of_system in drawn.items()}, rows)
        label(latency, {system: of_system[-1].p50_ms for system, of_system in drawn.items()}, rows)
        figure.supxlabel(caption(result), fontsize=7, color=INK)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def draw_throughput(axes: "Axes", colour: str, rows: Sequence[Row]) -> None:
    depths = [row.in_flight for row in rows]
    lowest, highest = [r.messages_per_second_min for r in rows], [r.messages_per_second_max for r in rows]
    axes.fill_between(depths, lowest, highest, color=colour, alpha=0.15, linewidth=0)
    axes.plot(depths, [row.messages_per_second for row in rows], color=colour, marker="o", markersize=4)


def draw_latency(axes: "Axes", colour: str, rows: Sequence[Row]) -> None:
    depths = [row.in_flight for row in rows]
    axes.plot(depths, [row.p50_ms for row in rows], color=colour, marker="o", markersize=4)
    axes.plot(depths, [row.p99_ms for row in rows], color=colour, linewidth=0.9, linestyle="--")


def label(axes: "Axes", ends: Mapping[str, float], rows: Sequence[Row]) -> None:
    """At the lines' ends, so that nobody has to look things up in a legend; apart, where lines end together."""
    bottom, top = axes.get_ylim()
    apart = (top / bottom) ** LABELS_APART
    lowest = 0.0
    for system, end in sorted(ends.items(), key=lambda item: item[1]):
        height = max(end, lowest)
        lowest = height * apart
        axes.annotate(
            LABELS[system],
            (rows[-1].in_flight, height),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=COLOURS[system],
            fontweight="bold",
        )


def dress(axes: "Axes", title: str, rows: Sequence[Row]) -> None:
    depths = sorted({row.in_flight for row in rows})
    axes.set_title(title, loc="left", color=INK)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(depths, [f"{depth:,}" for depth in depths])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    # Room for the names.
    axes.margins(x=0.02)
    axes.set_xlim(right=depths[-1] * 4)
    axes.set_xlabel("messages in flight", color=INK)
    axes.grid(visible=True, which="major", color="#e5e7eb", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, which="both")


def caption(result: Result) -> str:
    facts, plan = result.machine, result.agenda.plan
    versions: dict[str, Any] = facts["versions"]
    names = [f"{LABELS.get(name, name)} {version}" for name, version in versions.items() if version]
    measured = f"{plan.seconds:g} s" if plan.messages is None else f"{plan.messages:,} messages"
    return (
        f"{plan.size} bytes to {plan.groups} groups (NATS: one stream), {plan.replicas} replicas, "
        f"synced at a majority; median of {result.agenda.repetitions} x {measured}, band from lowest to highest\n"
        f"{', '.join(names)}; {facts['cpus']} x {facts['model']}, Linux {facts['kernel']}, "
        f"Python {facts['python']}; {facts['date']}"
    )
