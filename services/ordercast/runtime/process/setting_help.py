"""The page that `--help` of a process prints: its settings in panels, what matters most first.

A setting is a flag, a word for what is given behind it, a line that explains it, and its default in words.
"""

import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ordercast.runtime.process.setting_sources import paths

UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


@dataclass(frozen=True, slots=True)
class Word:
    """In the annotation of a setting: what the help shows behind its flag."""

    text: str


class HelpRow(NamedTuple):
    flag: str
    word: str
    text: str
    #: Empty where there is nothing to say.
    default: str


class Panel(NamedTuple):
    title: str
    #: Settings, or sections, which stand for all that is in them.
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HelpPage:
    model: type[BaseModel]
    usage: str
    #: Lines before all panels.
    about: tuple[str, ...]
    panels: tuple[Panel, ...]
    #: What can be run, if the command did not say.
    services: tuple[tuple[str, str], ...] = ()

    def show(self) -> None:
        from rich.console import Console
        from rich.panel import Panel as Frame
        from rich.table import Table
        from rich.text import Text

        console = Console(highlight=False)
        console.print(Text.assemble(("Usage: ", "bold"), self.usage, "\n"), soft_wrap=True)
        for line in self.about:
            console.print(line, markup=False)
        if self.services:
            table = Table.grid(padding=(0, 2))
            for name, text in self.services:
                table.add_row(Text(name, style="bold cyan"), Text(text))
            console.print(Frame(table, title="Services", title_align="left", border_style="dim"))
        for title, rows in self.rows():
            table = Table.grid(padding=(0, 2))
            for flag, word, text, default in rows:
                said = Text.assemble(text, (f" [{default}]" if default else "", "dim"))
                table.add_row(Text(flag, style="bold cyan", no_wrap=True), Text(word, style="yellow"), said)
            console.print(Frame(table, title=title, title_align="left", border_style="dim"))

    def rows(self) -> Iterator[tuple[str, list[HelpRow]]]:
        """Panel by panel."""
        settings = dict(paths(self.model))
        for title, names in self.panels:
            rows = [
                row_of(path, field)
                for name in names
                for path, field in settings.items()
                if path[0] == name and not _is_section(field)
            ]
            yield title, [*rows, *(OWN if (title, names) == self.panels[0] else ())]


#: Flags that are no settings, behind those of the first panel.
OWN = (
    HelpRow("--config", "FILE", "take settings from this TOML file; flags and variables win over it", ""),
    HelpRow("--print-config", "", "print the settings that result, as such a file, and exit", ""),
    HelpRow("--help", "", "show this page and exit", ""),
)


def row_of(path: tuple[str, ...], field: FieldInfo) -> HelpRow:
    flag = "--" + ".".join(path).replace("_", "-")
    return HelpRow(flag, word_of(path[-1], field), field.description or "", default_of(path[-1], field))


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


# ------------------------------------------------------------------------------------------------------ words


def word_of(name: str, field: FieldInfo) -> str:
    """What is given behind the flag; nothing, behind a switch."""
    marks = [mark for mark in (*field.metadata, *_marks(field.annotation)) if isinstance(mark, Word)]
    if marks:
        return marks[0].text
    kinds = list(_kinds(field.annotation))
    if bool in kinds:
        return ""
    if any(get_origin(kind) is Literal for kind in kinds):
        return "|".join(str(choice) for kind in kinds for choice in get_args(kind))
    if Path in kinds:
        return "FILE"
    if int in kinds or float in kinds:
        return {"bytes": "BYTES", "s": "SECONDS"}.get(_unit(name), "NUMBER")
    return "TEXT"


def _unit(name: str) -> str:
    """Names end in the unit, or in that and `max`.

    >>> _unit("envelope_bytes_max"), _unit("drain_s")
    ('bytes', 's')
    """
    return name.removesuffix("_max").rpartition("_")[2]


def _marks(annotation: Any) -> Iterator[object]:
    if get_origin(annotation) is Annotated:
        yield from annotation.__metadata__
    for inner in get_args(annotation):
        yield from _marks(inner)


def _kinds(annotation: Any) -> Iterator[Any]:
    """Without what only wraps it."""
    if get_origin(annotation) is Annotated:
        yield from _kinds(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        for inner in get_args(annotation):
            yield from _kinds(inner)
    else:
        yield annotation


def default_of(name: str, field: FieldInfo) -> str:
    if isinstance(field.default_factory, types.FunctionType):
        # These are called after the setting that they take: as_peer_listen.
        return "default: " + field.default_factory.__name__.replace("_", " --", 1).replace("_", "-")
    value = field.default
    if value is PydanticUndefined:
        return "has to be set"
    if value is None or value is False or value in ("", (), {}):
        return ""
    return f"default: {_value_text(name, value)}"


def _value_text(name: str, value: object) -> str:
    """
    >>> _value_text("map_bytes", 64 << 30), _value_text("drain_s", 10.0), _value_text("level", "info")
    ('64 GiB', '10 seconds', 'info')
    """
    if isinstance(value, int) and _unit(name) == "bytes":
        unit = next(((size, word) for size, word in UNITS if value and value % size == 0), None)
        return f"{value // unit[0]} {unit[1]}" if unit else f"{value} bytes"
    if isinstance(value, int | float) and value and _unit(name) == "s":
        return f"{value:g} seconds"
    return f"{value:g}" if isinstance(value, float) else str(value)
