"""What commands print: one JSON document or tables on stdout, everything else on stderr."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

out = Console()
err = Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON document on stdout.")]


def print_json(document: Any) -> None:
    print(json.dumps(document, indent=2))


def progress_bar() -> Progress:
    """Shown on a terminal only."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=err,
        disable=not err.is_terminal,
    )
