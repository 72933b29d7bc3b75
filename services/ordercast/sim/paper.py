"""What a paper publishes beside what our machines do: one form for all protocols.

A protocol's figures are in `sim/<protocol>/papers.py`, which has a `PAPER`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

Figure = float | str | None


@dataclass(frozen=True, slots=True)
class PaperRow:
    what: str
    #: None if the paper has no such figure; and if nobody has measured it here.
    published: Figure
    measured: Figure


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    rows: Sequence[PaperRow]


Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Paper:
    #: By the real machines, in the simulator.
    tables: Callable[[], Sequence[Table]]
    #: On a cluster of real nodes: how many seconds for each point, where to write figures and a picture, and who
    #: wants to hear how far it is. None if nothing in the paper takes a cluster.
    measured: Callable[[float, Path | None, Say], Sequence[Table]] | None = None


class NoPaper(LookupError):  # noqa: N818 (it names what is missing)
    pass


def paper_of(protocol: str) -> Paper:
    """Raises NoPaper if a protocol's figures are not here."""
    name = f"ordercast.sim.{protocol}.papers"
    try:
        paper: Paper = import_module(name).PAPER
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{name}.".startswith(f"{missing.name}."):
            raise
        raise NoPaper(f"no figures of a paper are kept for the protocol {protocol}") from None
    return paper


def rows_from(
    name: str,
    rows: Sequence[Mapping[str, Figure]],
    *,
    keys: Sequence[str],
    beside: Mapping[str, str],
    left_out: Sequence[str] = (),
) -> list[PaperRow]:
    """Of rows with several columns, one row for each figure.

    `keys` are columns that say what a row is about. `beside` are columns with what was measured, each with the
    column of what was published about the same; of other columns nothing is published.
    """
    found = []
    for row in rows:
        about = ", ".join(str(row[key]) if key == "what" else f"{key} = {row[key]}" for key in keys)
        measured = [*beside, *(column for column in row if column not in beside)]
        for column in measured:
            if column in (*keys, *beside.values(), *left_out):
                continue
            words = column.removeprefix("ours_").replace("_", " ")
            what = f"{name}, {about}" if words == "measured" else f"{name}, {about}: {words}"
            found.append(PaperRow(what, row[beside[column]] if column in beside else None, row.get(column)))
    return found
