"""Sealed segments: Arrow IPC files, with an index of ours in front of Arrow's own.

Any tool that reads Arrow files reads them. Between the last batch and Arrow's footer lies an index: where each
batch is, which offsets it has, and its checksum. With it a batch is checked and sent without being decoded, and
one that is damaged takes no other with it.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.telemetry.schema import names
from ordercast.telemetry.spool.lately import Taken
from ordercast.telemetry.spool.layout import sealed_path, write_whole
from ordercast.telemetry.tables import SCHEMA, write_options

ARROW_HEAD = b"ARROW1\0\0"
ARROW_TAIL = b"ARROW1"
#: Where an Arrow stream ends.
STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"
FOOTER_LENGTH = struct.Struct("<i")
#: Bytes and checksum of the index, and a word by which it is known.
INDEX_TAIL = struct.Struct("<II8s")
INDEX_MAGIC = b"OCTINDEX"
ALIGNMENT = 8
INDEX_BYTES_MAX = 64 << 20


class DamagedError(Exception):
    """The segment, or this part of it, is not what was written."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A batch: its offsets, and where it lies in the file."""

    first: int
    rows: int
    position: int
    length: int
    checksum: int

    @property
    def end(self) -> int:
        return self.first + self.rows


@dataclass(frozen=True, slots=True)
class Index:
    schema: Piece
    pieces: tuple[Piece, ...]
    received_ns_max: int
    #: Requests of which it was made, if they came not long before that.
    requests: tuple[Taken, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """What is known of one without reading it."""

    first: int
    end: int
    bytes: int
    received_ns_max: int
    path: Path


# --- Write


def write_sealed(directory: Path, batches: Iterable[pa.RecordBatch], requests: Sequence[Taken] = ()) -> Segment:
    """Of batches whose offsets follow on each other. It is on disk when this returns."""
    sink = pa.BufferOutputStream()
    pieces: list[Piece] = []
    received_ns_max = 0
    with pa.ipc.new_file(sink, SCHEMA, options=write_options()) as writer:
        at = len(ARROW_HEAD) + len(SCHEMA.serialize())
        for batch in batches:
            writer.write_batch(batch)
            first = batch.column(names.COLUMN_OFFSET)[0].as_py()
            received_ns_max = max(received_ns_max, pc.max(batch.column(names.COLUMN_RECEIVED_NS)).as_py())
            pieces.append(Piece(first, batch.num_rows, at, sink.tell() - at, 0))
            at = sink.tell()
    content = memoryview(sink.getvalue())
    schema = Piece(0, 0, len(ARROW_HEAD), len(SCHEMA.serialize()), 0)
    index = _index(content, schema, pieces, received_ns_max, requests)
    (footer_length,) = FOOTER_LENGTH.unpack(content[-10:-6])
    footer = len(content) - 10 - footer_length
    path = sealed_path(directory, pieces[0].first, pieces[-1].end)
    whole = b"".join((content[:footer], index, content[footer:]))
    write_whole(path, whole)
    return Segment(pieces[0].first, pieces[-1].end, len(whole), received_ns_max, path)


def _index(
    content: memoryview, schema: Piece, pieces: list[Piece], received_ns_max: int, requests: Sequence[Taken]
) -> bytes:
    told = {
        "schema": [schema.position, schema.length, zlib.crc32(_part(content, schema))],
        "batches": [[p.first, p.rows, p.position, p.length, zlib.crc32(_part(content, p))] for p in pieces],
        "received_ns_max": received_ns_max,
        "requests": [[received_ns, mark.hex()] for received_ns, mark in requests],
    }
    text = json.dumps(told, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + INDEX_TAIL.size) % ALIGNMENT)
    return text + INDEX_TAIL.pack(len(text), zlib.crc32(text), INDEX_MAGIC)


def _part(content: memoryview, piece: Piece) -> memoryview:
    return content[piece.position : piece.position + piece.length]


# --- Read


class SealedFile:
    """An open one. It can be read to its end also when it is removed meanwhile. `with` closes it."""

    def __init__(self, path: Path) -> None:
        """FileNotFoundError if it is gone, DamagedError if its index cannot be read."""
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.size = os.fstat(self._descriptor).st_size
            self.index = self._read_index()
            self.schema = self.read(self.index.schema)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "SealedFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._descriptor)

    def read(self, piece: Piece) -> bytes:
        """DamagedError if it is not what was written."""
        found = self._bytes(piece.position, piece.length)
        if len(found) != piece.length or zlib.crc32(found) != piece.checksum:
            raise DamagedError("a batch does not have its checksum")
        return found

    def batch(self, piece: Piece) -> pa.RecordBatch:
        stream = self.schema + self.read(piece) + STREAM_END
        return pa.ipc.open_stream(stream).read_next_batch()

    def _bytes(self, position: int, length: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, position)
        except OSError as error:
            raise DamagedError(f"the disk does not give it back: {error.strerror}") from error

    def _read_index(self) -> Index:
        tail = self._bytes(self.size - 10, 10) if self.size > 10 else b""
        if tail[4:] != ARROW_TAIL:
            raise DamagedError("it does not end as an Arrow file does")
        (footer_length,) = FOOTER_LENGTH.unpack(tail[:4])
        end = self.size - 10 - footer_length - INDEX_TAIL.size
        if footer_length < 0 or end < 0:
            raise DamagedError("its footer is damaged")
        length, checksum, magic = INDEX_TAIL.unpack(self._bytes(end, INDEX_TAIL.size))
        if magic != INDEX_MAGIC or not 0 < length <= min(end, INDEX_BYTES_MAX):
            raise DamagedError("there is no index where it should be")
        text = self._bytes(end - length, length)
        if zlib.crc32(text) != checksum:
            raise DamagedError("the index does not have its checksum")
        told = json.loads(text)
        schema = Piece(0, 0, *told["schema"])
        return Index(
            schema,
            tuple(Piece(*each) for each in told["batches"]),
            told["received_ns_max"],
            tuple((received_ns, bytes.fromhex(mark)) for received_ns, mark in told["requests"]),
        )
