"""What commands print: one JSON document or tables on stdout, everything else on stderr.

A command that fails prints on stdout at most what it did before; what is wrong is on stderr, and the exit code
says of which kind it is.

`out` and `err`, the consoles, are loaded when they are first asked for: commands that print lines as they are
start without rich.
"""

import base64
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    out: Console
    err: Console

#: What a cell holds that has nothing to say.
NOTHING = "-"

T = TypeVar("T")

Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON document on stdout.")]


def __getattr__(name: str) -> Any:
    if name not in ("out", "err"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ordercast.cli import consoles

    return getattr(consoles, name)


def print_json(document: Any) -> None:
    print(json.dumps(document, indent=2))


def print_json_line(document: Any) -> None:
    """One object in one line, and at once: the reader may be waiting for it."""
    print(json.dumps(document), flush=True)


class JsonList:
    """One document, a list, that is printed item by item: it may be longer than memory."""

    def __init__(self) -> None:
        self._before = "["

    def add(self, document: Any) -> None:
        print(f"{self._before}\n  {json.dumps(document)}", end="", flush=True)
        self._before = ","

    def close(self) -> None:
        print("[]" if self._before == "[" else "\n]", flush=True)


def say(text: str) -> None:
    """A line as it is, however long, and at once. A reader that went away is the caller's to handle."""
    print(text, flush=True)


def print_table(headings: Iterable[str], rows: Iterable[Iterable[str]], numbers: Iterable[str] = ()) -> None:
    """Columns whose headings are among `numbers` stand to the right. The first has names, and is never cut."""
    from rich.table import Table

    from ordercast.cli.consoles import out

    right = list(numbers)
    table = Table()
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if heading in right else "left", no_wrap=place == 0)
    for row in rows:
        table.add_row(*row)
    out.print(table, markup=False, highlight=False)


def print_list(
    items: Iterable[T],
    document: Callable[[T], dict[str, Any]],
    headings: Iterable[str],
    row: Callable[[T], Iterable[str]],
    *,
    numbers: Iterable[str] = (),
    json: bool,
) -> None:
    """What `list` commands print: one JSON document with all items, or a table with a row for each."""
    if json:
        print_json([document(item) for item in items])
    else:
        print_table(headings, map(row, items), numbers)


def print_columns(rows: list[dict[str, str]], numbers: tuple[str, ...]) -> None:
    """Without columns in which there is nothing to see: terminals are narrow."""
    if not rows:
        return
    headings = [heading for heading in rows[0] if any(row[heading] != NOTHING for row in rows)]
    print_table(headings, [[row[heading] for heading in headings] for row in rows], numbers)


def print_verdict(troubles: list[str]) -> None:
    """The last lines of the command: what is wrong, or that nothing is."""
    from ordercast.cli.consoles import out

    for trouble in troubles:
        out.print(trouble, style="red", markup=False, highlight=False, soft_wrap=True)
    if not troubles:
        out.print("healthy", style="bold green")


def duration_text(seconds: float) -> str:
    """In one or two units that a person grasps.

    >>> duration_text(0.25), duration_text(12.34), duration_text(75), duration_text(7300), duration_text(200_000)
    ('0.25 s', '12.3 s', '1 min 15 s', '2 h 1 min', '2 d 7 h')
    """
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    for unit, size, smaller, smaller_size in (
        ("d", 86400, "h", 3600),
        ("h", 3600, "min", 60),
        ("min", 60, "s", 1),
    ):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} {int(seconds % size // smaller_size)} {smaller}"
    raise AssertionError(seconds)


def bytes_fields(name: str, value: bytes) -> dict[str, str]:
    """Bytes in a JSON document: as text if they are text, else in base64 under another name.

    >>> bytes_fields("key", b"a"), bytes_fields("key", b"\\xff")
    ({'key': 'a'}, {'key_base64': '/w=='})
    """
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def bytes_text(value: bytes) -> str:
    """Bytes in a line for people: one line, and nothing that a terminal would act upon."""
    text = value.decode(errors="backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def progress_bar() -> "Progress":
    """Shown on a terminal only."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ordercast.cli.consoles import err

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=err,
        disable=not err.is_terminal,
    )
