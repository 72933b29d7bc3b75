"""The tables that the job writes, as files: where they lie, which files count, and reading them without Spark.

A table is a folder of Parquet files by date. Spark's file sink notes in `_spark_metadata` which files a batch has
put there; files that are not noted are left over from a batch that did not finish, and do not count. That is what
makes the output exactly-once.

What a run with `--once` has not finished lies beside the tables, under `_open`; see `rest.py`.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

EVENTS = "events"
METADATA = "_spark_metadata"
OPEN = "_open"
CHECKPOINTS = "_checkpoints"
COMPACT = ".compact"


@dataclass(frozen=True, slots=True)
class Tables:
    """The output folder of a job."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / name

    def open_path(self, name: str) -> Path:
        return self.folder / OPEN / name

    def files(self, name: str) -> list[Path]:
        return [path for batch in sorted(batches(self.path(name)).items()) for path in batch[1]]

    def read(
        self,
        name: str,
        *,
        since: date | None = None,
        until: date | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table | None:
        """What is finished and what is open, of these dates; None: nothing at all."""
        chosen = [*self.files(name), *sorted(self.open_path(name).rglob("*.parquet"))]
        parts = [
            read_file(path, columns)
            for path in chosen
            if (since is None or _date(path) >= since) and (until is None or _date(path) <= until)
        ]
        return pa.concat_tables(parts, promote_options="permissive") if parts else None


def batches(table: Path) -> dict[int, list[Path]]:
    """The files of each batch that was committed. A compact file stands for all batches up to its own."""
    log = table / METADATA
    if not log.is_dir():
        return {}
    notes = {_number(path): path for path in log.iterdir() if _number(path) is not None}
    compacts = [number for number, path in notes.items() if number is not None and path.name.endswith(COMPACT)]
    since = max(compacts, default=-1)
    return {
        number: files_of(path, table) for number, path in notes.items() if number is not None and number >= since
    }


def batch_files(table: Path, batch: int) -> list[Path]:
    """Of one batch alone; of one that is compacted, nothing is known any more."""
    note = table / METADATA / str(batch)
    return files_of(note, table) if note.is_file() else []


def files_of(note: Path, table: Path) -> list[Path]:
    found: dict[Path, None] = {}
    for line in note.read_text().splitlines()[1:]:
        entry = json.loads(line)
        path = Path(unquote(urlparse(entry["path"]).path))
        # The folder may have been moved since: what counts is the place below it.
        inside = table.joinpath(*_below(path))
        if entry.get("action", "add") == "add" and inside.is_file():
            found[inside] = None
    return list(found)


def read_file(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """With the columns that are only in its folders' names."""
    with pq.ParquetFile(path) as file:
        inside = None if columns is None else [name for name in columns if name in file.schema_arrow.names]
        table = file.read(columns=inside)
    for name, value in _partitions(path):
        if columns is None or name in columns:
            table = table.append_column(name, pa.repeat(pa.scalar(value), table.num_rows))
    return table


def _below(path: Path) -> tuple[str, ...]:
    """date=2026-01-01/kind=span/part-0.parquet, of any path that ends so."""
    parts = path.parts
    first = next((at for at, part in enumerate(parts) if "=" in part), len(parts) - 1)
    return parts[first:]


def _partitions(path: Path) -> Iterator[tuple[str, str]]:
    for part in path.parts:
        if "=" in part:
            name, _, value = part.partition("=")
            yield name, unquote(value)


def _date(path: Path) -> date:
    return date.fromisoformat(dict(_partitions(path))["date"])


def _number(path: Path) -> int | None:
    text = path.name.removesuffix(COMPACT)
    return int(text) if text.isdecimal() else None
