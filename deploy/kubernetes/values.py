"""What values.yaml says of each value, in the comments above it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

#: A line of dashes and a title begins a part, and describes no value.
TITLE = re.compile(r"# --- (.+)")
KEY = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z][A-Za-z0-9]*):(?: (?P<inline>\S.*))?")


@dataclass(frozen=True, slots=True)
class Value:
    path: str
    #: As YAML on one line; None for a map whose values are described one by one.
    default: str | None
    meaning: str


def values_of(text: str) -> Iterator[Value]:
    """Every value, in order, and each map before what is in it."""
    values = yaml.safe_load(text)
    above: list[tuple[int, str]] = []
    comment: list[str] = []
    #: How far in the value stands whose lines go on; what is further in belongs to it.
    inside: int | None = None
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if inside is not None and (not line or indent > inside):
            continue
        inside = None
        if TITLE.fullmatch(line) or not line:
            comment = []
        elif line.lstrip().startswith("#"):
            comment.append(line.lstrip().removeprefix("#").removeprefix(" "))
        elif found := KEY.fullmatch(line):
            above = [(depth, key) for depth, key in above if depth < indent]
            keys = [*(key for _, key in above), found["key"]]
            there = at(values, keys)
            # Requests and limits belong together.
            if found["inline"] or isinstance(there, list) or found["key"] == "resources":
                yield Value(".".join(keys), on_one_line(there), _joined(comment))
                inside = indent
            else:
                yield Value(".".join(keys), None, _joined(comment))
                above.append((indent, found["key"]))
            comment = []


def at(values: Any, keys: list[str]) -> Any:
    for key in keys:
        values = values[key]
    return values


def on_one_line(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)
    return text.removesuffix("\n...\n").strip()


def _joined(comment: list[str]) -> str:
    """Lines that are indented are examples and stay apart."""
    text = ""
    for line in comment:
        text += (("; " if line.startswith("  ") else " ") if text else "") + line.strip()
    return text
