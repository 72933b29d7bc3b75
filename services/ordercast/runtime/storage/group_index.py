"""Where the messages of each group are in the log of the cell that it shares with others.

A cell's log has an entry for each envelope, with the messages of all its groups. For each group that has new
messages in an entry there is a row: from the group's first offset there to the entry's position. Rows are written
in the transaction of their entry, so the two never disagree after a crash. A row counts as long as the log has its
entry: what a cut or a new beginning left behind points to nothing, and nobody sees it.

Readers get entries that hold the messages of one group alone (core/projection.py).
"""

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ordercast.core.cells import SLASH, cell_of
from ordercast.core.ids import unpack_u64
from ordercast.core.projection import projected
from ordercast.runtime.storage.layout import (
    INDEX,
    U64,
    CorruptRecord,
    Extent,
    LogBounds,
    StoredEntry,
    log_prefix,
    name_bytes,
    seal,
    unseal,
    without_frames,
)
from ordercast.v1.sequencer_pb2 import LogEntry

if TYPE_CHECKING:
    from ordercast.runtime.storage.store import Reading, Storage

_ROW = struct.Struct(">QQ")


class IndexRow(NamedTuple):
    """The messages of a group in one entry of its cell's log."""

    first_offset: int
    next_offset: int
    position: int


def index_prefix(group: str) -> bytes:
    return name_bytes(group) + b"\0"


def cell_prefix(cell: str) -> bytes:
    """What the keys of all groups of the cell begin with."""
    return name_bytes(cell + SLASH)


def sealed_row(group: str, row: IndexRow) -> tuple[bytes, bytes]:
    """Key and value, as they are stored."""
    key = index_prefix(group) + U64.pack(row.first_offset)
    return key, seal(key, (_ROW.pack(row.next_offset, row.position),))


class GroupIndex:
    def __init__(self, storage: "Storage", end_of: Callable[[str], int]) -> None:
        """`end_of`: where a group ends for the protocol's machine, as it is on disk; 0 without any message."""
        self.storage = storage
        self.end_of = end_of

    @without_frames
    def bounds(self, group: str) -> LogBounds:
        """Positions and bytes are those of the cell's log."""
        # First the end on disk: if the first message comes in between, its row is found.
        end = self.end_of(group)
        with self.storage.reading() as txn:
            extent = self._extent(txn, group)
            if extent is None:
                return LogBounds(first_offset=end, next_offset=end)
            first = next(self._rows(txn, group, 0, extent), None)
            last = self._last(txn, group, extent)
        cell = extent.bounds()
        if first is None or last is None:
            return LogBounds(cell.begins, cell.ends, end, end, cell.bytes)
        return LogBounds(cell.begins, cell.ends, first.first_offset, last.next_offset, cell.bytes)

    @without_frames
    def read(self, group: str, offset: int, count_max: int, bytes_max: int) -> list[StoredEntry]:
        """Entries from the one with this offset on, with the group's messages alone; as Storage.read."""
        cell = cell_of(group)
        found: list[StoredEntry] = []
        with self.storage.reading() as txn:
            extent = self._extent(txn, group)
            rows = [] if extent is None else self._rows(txn, group, offset, extent)
            for row in rows:
                header, data = self.storage.entry_in(txn, log_prefix(cell), row.position)
                whole = LogEntry.FromString(bytes(data))
                entry = projected(cell, group, whole).SerializeToString()
                bytes_max -= len(entry)
                if found and bytes_max < 0:
                    break
                found.append(StoredEntry(row.position, row.first_offset, row.next_offset, entry, header.wall_ms))
                if len(found) >= count_max:
                    break
        return found

    @without_frames
    def offset_stored_at(self, group: str, wall_ms: int) -> int:
        """As Storage.offset_stored_at."""
        end = self.end_of(group)
        with self.storage.reading() as txn:
            extent = self._extent(txn, group)
            last = None if extent is None else self._last(txn, group, extent)
            if extent is None or last is None:
                return end
            position = self.storage.first_stored_at(txn, log_prefix(cell_of(group)), extent, wall_ms)
            return self._offset_at(txn, group, position, extent, last)

    @without_frames
    def offset_at(self, group: str, position: int) -> int:
        """Of the group's first message at this position of the cell's log or behind it; the next if there is
        none.
        """
        end = self.end_of(group)
        with self.storage.reading() as txn:
            extent = self._extent(txn, group)
            last = None if extent is None else self._last(txn, group, extent)
            if extent is None or last is None:
                return end
            return self._offset_at(txn, group, position, extent, last)

    def _offset_at(self, txn: "Reading", group: str, position: int, extent: Extent, last: IndexRow) -> int:
        low, high = 0, last.next_offset
        while low < high:
            middle = (low + high) // 2
            row = next(self._rows(txn, group, middle, extent), None)
            if row is None or row.position >= position:
                high = middle
            else:
                low = row.next_offset
        row = next(self._rows(txn, group, low, extent), None)
        return last.next_offset if row is None else row.first_offset

    # -------------------------------------------------------------------------------------- inside a transaction

    def _extent(self, txn: "Reading", group: str) -> Extent | None:
        return self.storage.extent_in(txn, log_prefix(cell_of(group)))

    def _rows(self, txn: "Reading", group: str, offset: int, extent: Extent) -> Iterator[IndexRow]:
        """From the one with this offset on, or else the next."""
        prefix = index_prefix(group)
        with txn.cursor(db=self.storage.index) as cursor:
            there = cursor.set_range(prefix + U64.pack(offset))
            before = cursor.prev() if there else cursor.last()
            if before and bytes(cursor.key()).startswith(prefix):
                row = _row(prefix, bytes(cursor.key()), cursor.value())
                if row.next_offset > offset and _is_there(row, extent):
                    yield row
            there = cursor.set_range(prefix + U64.pack(offset))
            while there and (key := bytes(cursor.key())).startswith(prefix):
                row = _row(prefix, key, cursor.value())
                if _is_there(row, extent):
                    yield row
                there = cursor.next()

    def _last(self, txn: "Reading", group: str, extent: Extent) -> IndexRow | None:
        prefix = index_prefix(group)
        with txn.cursor(db=self.storage.index) as cursor:
            there = cursor.prev() if cursor.set_range(prefix + b"\xff" * (U64.size + 1)) else cursor.last()
            while there and (key := bytes(cursor.key())).startswith(prefix):
                row = _row(prefix, key, cursor.value())
                if _is_there(row, extent):
                    return row
                there = cursor.prev()
        return None


def _is_there(row: IndexRow, extent: Extent) -> bool:
    return extent.begin.position <= row.position < extent.end.position


def _row(prefix: bytes, key: bytes, value: memoryview) -> IndexRow:
    content = unseal(INDEX, key, value)
    if len(content) != _ROW.size or len(key) != len(prefix) + U64.size:
        raise CorruptRecord(INDEX, key, "wrong size")
    next_offset, position = _ROW.unpack(content)
    return IndexRow(unpack_u64(key[-U64.size :]), next_offset, position)
