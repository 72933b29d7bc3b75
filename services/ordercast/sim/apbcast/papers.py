"""The figures of *Atomic Probabilistic Broadcast* (Eugster) beside ours: Figure 7, and the analysis of section
8.

The paper's curves are pictures without values, so what is put beside a figure of ours is what the analysis says
there: the closed form of 8.5, the sum of 8.4, and the formulas of 8.2 and 8.3. It is no bound: it leaves out
that a part of a subgroup may have no representative that is up.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ordercast.protocols.apbcast.settings import Rounds
from ordercast.protocols.apbcast.views import Views
from ordercast.sim.apbcast.audience import (
    FANOUT,
    PARTS,
    REPRESENTATIVES,
    Measured,
    Point,
    Subdivision,
    known_of,
    measure,
    messages_of,
    reach_of,
    rounds_of,
)
from ordercast.sim.paper import Paper, PaperRow, Table
from ordercast.v1.apbcast_pb2 import Neighbour

RUNS = 8
REDUNDANCY = (1, 2, 3, 4, 5)
FANOUTS = (1, 2, 3, 4, 5, 6)
SIZES = (11, 14, 17, 20, 22)
KINDS = (Rounds.FIGURE, Rounds.BOUNDED)

Curve = dict[Rounds, list[Measured]]


def curve(points: Iterable[tuple[int, int, int]], runs: int, say: Callable[[], None]) -> Curve:
    """Of (R, F, A), in both ways to count rounds."""
    chosen = list(points)
    return {kind: [measure(Point(a, r, f, kind), runs, say=say) for r, f, a in chosen] for kind in KINDS}


def curves(runs: int = RUNS, say: Callable[[], None] = lambda: None) -> dict[str, Curve]:
    """Figure 7: (a), (b), and (c) with (d), which have the same points."""
    return {
        "R": curve(((r, FANOUT, PARTS) for r in REDUNDANCY), runs, say),
        "F": curve(((REPRESENTATIVES, f, PARTS) for f in FANOUTS), runs, say),
        "A": curve(((REPRESENTATIVES, FANOUT, a) for a in SIZES), runs, say),
    }


def broadcasts(runs: int = RUNS) -> int:
    """How many `curves` measures, for a progress bar."""
    return runs * len(KINDS) * (len(REDUNDANCY) + len(FANOUTS) + len(SIZES))


def value_of(name: str, point: Point) -> int:
    return {"R": point.representatives, "F": point.fanout, "A": point.parts}[name]


def known_by_one(point: Point) -> int:
    """How many processes a real view keeps when it has heard of everybody."""
    addresses = Subdivision(point).addresses
    views = Views("p", addresses[-1], point.representatives)
    views.merge([Neighbour(process="q", address=a, incarnation=1, counter=1) for a in addresses], 0.0)
    return views.known()


def reach_rows(name: str, found: Curve) -> list[PaperRow]:
    return [
        PaperRow(
            f"part reached, {name} = {value_of(name, each.point)}, rounds {kind} (published: 8.5)",
            round(reach_of(each.point), 4),
            f"{each.reached:.4f} ± {each.within:.4f}",
        )
        for kind, measured in found.items()
        for each in measured
    ]


def message_rows(found: Curve) -> list[PaperRow]:
    return [
        PaperRow(
            f"messages for one broadcast, n = {each.point.processes}, rounds {kind} (published: the sum of 8.4)",
            round(messages_of(each.point)),
            round(each.messages),
        )
        for kind, measured in found.items()
        for each in measured
    ]


def round_rows(found: Curve) -> list[PaperRow]:
    return [
        PaperRow(
            f"rounds until the last one has it, A = {each.point.parts}, rounds {kind} (published: 8.3)",
            round(rounds_of(each.point), 1),
            round(each.rounds_to_last, 1),
        )
        for kind, measured in found.items()
        for each in measured
    ]


def known_rows(sizes: Sequence[int] = SIZES) -> list[PaperRow]:
    points = [Point(parts=a) for a in sizes]
    return [
        PaperRow(
            f"processes that one knows, A = {point.parts} (published: 8.2)", known_of(point), known_by_one(point)
        )
        for point in points
    ]


def tables(runs: int = RUNS, say: Callable[[], None] = lambda: None) -> list[Table]:
    found = curves(runs, say)
    where = "L = 3, a tenth of the processes down, a tenth of the messages lost"
    return [
        Table(f"Figure 7 (a): redundancy; {where}", reach_rows("R", found["R"])),
        Table(f"Figure 7 (b): fanout; {where}", reach_rows("F", found["F"])),
        Table(f"Figure 7 (c): size; {where}", reach_rows("A", found["A"])),
        Table(f"Figure 7 (d): messages; {where}", message_rows(found["A"])),
        Table("8.2: membership", known_rows()),
        Table("8.3: rounds", round_rows(found["A"])),
    ]


def draw(path: Path, runs: int = RUNS, say: Callable[[], None] = lambda: None) -> None:
    """Figure 7 as a picture. The same figures give the same file."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    found = curves(runs, say)
    colours = {Rounds.FIGURE: "#c2410c", Rounds.BOUNDED: "#1d4ed8"}
    with rc_context({"svg.hashsalt": "ordercast", "font.size": 9, "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(11.0, 7.6), facecolor="white", layout="constrained")
        panels = figure.subplots(2, 2).flat
        names = (("R", "(a) representatives, R"), ("F", "(b) fanout, F"), ("A", "(c) parts of a subgroup, A"))
        for axes, (name, title) in zip(panels, names, strict=False):
            for kind, measured in found[name].items():
                values = [value_of(name, each.point) for each in measured]
                reached = [each.reached for each in measured]
                within = [each.within for each in measured]
                axes.errorbar(values, reached, within, color=colours[kind], marker="o", label=f"rounds: {kind}")
            points = [each.point for each in found[name][Rounds.FIGURE]]
            axes.plot(
                values, [reach_of(p) for p in points], color="#1f2937", linestyle="--", label="analysis, 8.5"
            )
            axes.set(title=title, ylabel="part of the processes reached")
            axes.legend()
        axes = figure.axes[3]
        for kind, measured in found["A"].items():
            sizes = [each.point.processes for each in measured]
            axes.plot(
                sizes, [m.messages for m in measured], color=colours[kind], marker="o", label=f"rounds: {kind}"
            )
        sums = [messages_of(each.point) for each in found["A"][Rounds.FIGURE]]
        axes.plot(sizes, sums, color="#1f2937", linestyle="--", label="analysis, the sum of 8.4")
        axes.set(title="(d) processes, n", ylabel="messages for one broadcast")
        axes.legend()
        figure.savefig(path, metadata={"Date": None})


PAPER = Paper(tables=tables, draw=draw)
