"""Where a run is kept: its figures, and their picture."""

import json
from pathlib import Path

from ordercast.bench.comparison import ComparisonResult
from ordercast.bench.curves import Curves
from ordercast.bench.plan import DEFAULT, BenchPlan
from ordercast.bench.plot import Published, draw, draw_curves
from ordercast.bench.report import BenchReport

FIGURES = "latest.json"
PICTURE = "comparison.svg"
#: Of casts by their destinations, behind the protocol's name.
CURVES_FIGURES = "-tables.json"
CURVES_PICTURE = "-tables.svg"


def save(result: ComparisonResult, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    prefix = prefix_of(result.agenda.plan)
    (directory / f"{prefix}{FIGURES}").write_text(json.dumps(result.document(), indent=2) + "\n")
    draw(result, directory / f"{prefix}{PICTURE}")


def save_report(report: BenchReport, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{prefix_of(report.plan)}{report.name}.json"
    path.write_text(json.dumps(report.document(), indent=2) + "\n")


def save_curves(curves: Curves, published: Published, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{curves.protocol}{CURVES_FIGURES}").write_text(json.dumps(curves.document(), indent=2) + "\n")
    draw_curves(curves, published, directory / f"{curves.protocol}{CURVES_PICTURE}")


def prefix_of(plan: BenchPlan) -> str:
    """Files of other protocols stand beside those of the first."""
    return "" if plan.protocol == DEFAULT else f"{plan.protocol_text.replace(' ', '-')}-"
