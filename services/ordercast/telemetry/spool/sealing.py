"""What the sealer does: Arrow of requests, and few segments of many.

Either may be cut off at any point and done again. A sealed segment is whole when it has its name, and what it was
made of goes only after that.
"""

import contextlib
import mmap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.telemetry.flatten.requests import add
from ordercast.telemetry.flatten.rows import POISON, Rows
from ordercast.telemetry.schema import names
from ordercast.telemetry.spool.frames import Damage, Frame, scan
from ordercast.telemetry.spool.lately import Taken, kept_since_ns, mark_of, still_kept
from ordercast.telemetry.spool.layout import remove, write_whole
from ordercast.telemetry.spool.sealed import DamagedError, SealedFile, Segment, write_sealed
from ordercast.telemetry.tables import BATCH_ROWS_MAX, SCHEMA

#: A batch is also full when so many bytes of requests are in it.
BATCH_BYTES_MAX = 4 << 20


@dataclass(slots=True)
class Sealed:
    segments: list[Segment] = field(default_factory=list)
    #: Places of the segment that could not be read.
    damages: int = 0
    #: Rows that are poison, by reason.
    poison: Counter[str] = field(default_factory=Counter)


def seal(path: Path, salt: int) -> Sealed:
    """Makes sealed segments of one with requests, and removes it. What cannot be read of it is set aside."""
    done = Sealed()
    if path.stat().st_size:
        with content_of(path) as data:
            for frames in _runs(path, data, salt, done):
                batches = _batches(data, frames, done)
                done.segments.append(write_sealed(path.parent, batches, taken_lately(data, frames)))
    remove(path)
    return done


def taken_lately(data: memoryview, frames: Sequence[Frame]) -> list[Taken]:
    since = kept_since_ns()
    return [(f.received_ns, mark_of(f.signal, data[f.begin : f.end])) for f in frames if f.received_ns >= since]


@contextlib.contextmanager
def content_of(path: Path) -> Iterator[memoryview]:
    """Of a file that is not empty, without reading all of it at once."""
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as data,
    ):
        yield data


def _runs(path: Path, data: memoryview, salt: int, done: Sealed) -> Iterator[list[Frame]]:
    """Frames whose offsets follow on each other: behind damage a new segment begins."""
    run: list[Frame] = []
    for found in scan(data, salt):
        if isinstance(found, Damage):
            done.damages += 1
            aside = path.with_name(f"{path.name}.{found.begin}.damaged")
            write_whole(aside, bytes(data[found.begin : found.end]))
            continue
        if run and found.first != run[-1].next:
            yield run
            run = []
        run.append(found)
    if run:
        yield run


def _batches(data: memoryview, frames: Sequence[Frame], done: Sealed) -> Iterator[pa.RecordBatch]:
    rows, size = Rows(), 0
    for frame in frames:
        payload = bytes(data[frame.begin : frame.end])
        add(rows, frame.signal, payload, frame.first, frame.records, frame.received_ns)
        size += len(payload)
        if rows.size >= BATCH_ROWS_MAX or size >= BATCH_BYTES_MAX:
            yield from _finished(rows, done)
            rows, size = Rows(), 0
    yield from _finished(rows, done)


def _finished(rows: Rows, done: Sealed) -> Iterator[pa.RecordBatch]:
    if not rows.size:
        return
    batch = rows.finished()
    bad = pc.equal(batch.column(names.COLUMN_KIND), POISON)
    if pc.any(bad).as_py():
        done.poison.update(batch.column(names.COLUMN_REASON).filter(bad).to_pylist())
    # One request may have more rows than a batch should.
    for begin in range(0, batch.num_rows, BATCH_ROWS_MAX):
        yield batch.slice(begin, BATCH_ROWS_MAX)


def merge(paths: Sequence[Path]) -> Segment:
    """One segment of several that follow on each other, which stay. DamagedError if one cannot be read."""
    requests: list[Taken] = []
    for path in paths:
        with SealedFile(path) as file:
            requests += file.index.requests
    return write_sealed(paths[0].parent, _joined(paths), still_kept(requests))


def _joined(paths: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    """Batches of the usual size of smaller ones."""
    waiting: list[pa.RecordBatch] = []
    rows, size = 0, 0
    for path in paths:
        with SealedFile(path) as file:
            for piece in file.index.pieces:
                batch = file.batch(piece)
                if batch.schema != SCHEMA:
                    raise DamagedError("it has the columns of another version")
                if waiting and (rows + batch.num_rows > BATCH_ROWS_MAX or size + batch.nbytes > BATCH_BYTES_MAX):
                    yield pa.concat_batches(waiting)
                    waiting, rows, size = [], 0, 0
                waiting.append(batch)
                rows += batch.num_rows
                size += batch.nbytes
    yield pa.concat_batches(waiting)
