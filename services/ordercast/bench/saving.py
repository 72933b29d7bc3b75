"""Where a run is kept: its figures, and their picture."""

import json
from pathlib import Path

from ordercast.bench.comparison import Result
from ordercast.bench.plot import draw

FIGURES = "latest.json"
PICTURE = "comparison.svg"


def save(result: Result, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / FIGURES).write_text(json.dumps(result.document(), indent=2) + "\n")
    draw(result, directory / PICTURE)
