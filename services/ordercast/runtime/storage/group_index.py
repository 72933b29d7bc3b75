"""Where the messages of each group are in the log of the cell that it shares with others.

A cell's log has an entry for each envelope, with the messages of all its groups. For each group that has new
messages in an entry there is a row: from the group's first offset there to the entry's position. Rows are written
in the transaction of their entry, so the two never disagree after a crash. A row counts as long as the log has its
entry: what a cut or a new beginning left behind points to nothing, and nobody sees it.

Readers get entries that hold the messages of one group alone (core/projection.py).

Retention moves the beginning of each group by itself. The beginning is a record in front of the group's rows, and
those before it count for nothing; they are removed later, piece by piece. Where it begins and where it ends, and
that each row goes on where the one before ends, tells whether rows are lost: then the index is made anew from the
log (sequencer/reindexing.py).
"""

import contextlib
import struct
from collections.abc import Callable, Iterator
from itertools import islice
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

_ROW = struct.Struct(">QQQ")
_BEGIN = struct.Struct(">QQ")
#: Behind what each row of a group begins with.
_AFTER_ALL = b"\xff" * (U64.size + 1)


class IndexRow(NamedTuple):
    """The messages of a group in one entry of its cell's log."""

    first_offset: int
    next_offset: int
    position: int
    #: Their share of the entry's bytes: as if all its messages were of one size.
    bytes: int


class GroupBegin(NamedTuple):
    """Where a group begins that has dropped messages; no entry before that position has one that it kept."""

    offset: int
    position: int


class DamagedRow(CorruptRecord):
    """A row with this offset, or behind it, is damaged or missing. Without an offset: the group's beginning is."""

    def __init__(self, key: bytes, reason: str, address: str, offset: int | None) -> None:
        super().__init__(INDEX, key, reason)
        self.address = address
        self.offset = offset


def index_prefix(group: str) -> bytes:
    return name_bytes(group) + b"\0"


def cell_prefix(cell: str) -> bytes:
    """What the keys of all groups of the cell begin with."""
    return name_bytes(cell + SLASH)


def sealed_row(group: str, row: IndexRow) -> tuple[bytes, bytes]:
    """Key and value, as they are stored."""
    key = index_prefix(group) + U64.pack(row.first_offset)
    return key, seal(key, (_ROW.pack(row.next_offset, row.position, row.bytes),))


def sealed_begin(group: str, begin: GroupBegin) -> tuple[bytes, bytes]:
    """Key and value, as they are stored."""
    key = index_prefix(group)
    return key, seal(key, (_BEGIN.pack(*begin),))


def can_be_mended(damaged: CorruptRecord) -> bool:
    """While the process runs: an entry is fetched from another replica, rows are made anew from the log."""
    return isinstance(damaged, DamagedRow) or (damaged.group is not None and damaged.position is not None)


class GroupIndex:
    def __init__(self, storage: "Storage", end_of: Callable[[str], int]) -> None:
        """`end_of`: where a group ends for the protocol's machine, as it is on disk; 0 without any message."""
        self.storage = storage
        self.end_of = end_of

    @without_frames
    def bounds(self, group: str) -> LogBounds:
        """Positions and bytes are those of the cell's log, as it was written."""
        # First the end on disk: if the first message comes in between, its row is found.
        end = self.end_of(group)
        with self.storage.reading() as txn:
            extent = self._extent(txn, group)
            if extent is None:
                return LogBounds(first_offset=end, next_offset=end)
            begin = self._known_begin(txn, group, extent)
            first = next(self._rows(txn, group, begin or 0, extent), None)
            last = self._last(txn, group, extent) if first is not None else None
        begins = end if first is None else first.first_offset
        ends = end if last is None else last.next_offset
        if begin is not None and begins > begin:
            raise _missing(group, begin)
        if last is not None and ends < end:
            raise _missing(group, ends)
        cell = extent.bounds()
        return LogBounds(cell.begins, cell.ends, begins, ends, cell.bytes)

    @without_frames
    def read(self, group: str, offset: int, count_max: int, bytes_max: int) -> list[StoredEntry]:
        """Entries from the one with this offset on, with the group's messages alone; as Storage.read."""
        cell = cell_of(group)
        found: list[StoredEntry] = []
        with self.storage.reading() as txn:
            extent = self._extent(txn, group)
            begin = None if extent is None else self._known_begin(txn, group, extent)
            if extent is None or (begin is not None and offset < begin):
                return found
            next_offset = offset
            for row in self._rows(txn, group, offset, extent):
                if row.first_offset > next_offset:
                    if not found and (begin is not None or self._has_before(txn, group, offset, extent)):
                        raise _missing(group, offset)
                    break
                header, data = self.storage.entry_in(txn, log_prefix(cell), row.position)
                whole = LogEntry.FromString(bytes(data))
                entry = projected(cell, group, whole).SerializeToString()
                bytes_max -= len(entry)
                if found and bytes_max < 0:
                    break
                found.append(StoredEntry(row.position, row.first_offset, row.next_offset, entry, header.wall_ms))
                next_offset = row.next_offset
                if len(found) >= count_max:
                    break
        return found

    @without_frames
    def rows_from(self, group: str, offset: int, count_max: int) -> list[IndexRow]:
        """Of the group's messages from this offset on."""
        with self.storage.reading() as txn:
            extent = self._extent(txn, group)
            if extent is None:
                return []
            return list(islice(self._rows(txn, group, offset, extent), count_max))

    @without_frames
    def begin_of(self, group: str) -> GroupBegin | None:
        """As it is stored, if the group has dropped messages here."""
        with self.storage.reading() as txn:
            return begin_in(self.storage, txn, group)

    def addresses(self, cell: str, behind: str, count_max: int) -> list[str]:
        """Of groups of the cell that have rows or a beginning here, whatever became of them: the next ones."""
        found: list[str] = []
        prefix = cell_prefix(cell)
        with self.storage.reading() as txn, txn.cursor(db=self.storage.index) as cursor:
            there = cursor.set_range(index_prefix(behind) + _AFTER_ALL if behind else prefix)
            while there and (key := bytes(cursor.key())).startswith(prefix) and len(found) < count_max:
                address, _, _ = key.partition(b"\0")
                found.append(address.decode(errors="replace"))
                there = cursor.set_range(address + b"\0" + _AFTER_ALL)
        return found

    def spoilt(self, group: str, low: int, high: int) -> list[bytes]:
        """Keys of the group's rows between these offsets that say nothing, and of a beginning that does not."""
        prefix = index_prefix(group)
        found = []
        with self.storage.reading() as txn, txn.cursor(db=self.storage.index) as cursor:
            there = cursor.set_range(prefix)
            if there and bytes(cursor.key()) == prefix and not _is_sound(bytes(cursor.key()), cursor.value()):
                found.append(prefix)
            there = cursor.set_range(prefix + U64.pack(low))
            while there and (key := bytes(cursor.key())).startswith(prefix):
                if len(key) == len(prefix) + U64.size and unpack_u64(key[-U64.size :]) >= high:
                    break
                if not _is_sound(key, cursor.value()):
                    found.append(key)
                there = cursor.next()
        return found

    @without_frames
    def sound_around(self, group: str, offset: int) -> tuple[IndexRow | None, IndexRow | None]:
        """The last row that is sound before the offset, and the first one that is behind it."""
        prefix = index_prefix(group)
        before = after = None
        with self.storage.reading() as txn, txn.cursor(db=self.storage.index) as cursor:
            there = cursor.prev() if cursor.set_range(prefix + U64.pack(offset)) else cursor.last()
            while there and before is None and bytes(cursor.key()).startswith(prefix):
                with contextlib.suppress(DamagedRow):
                    before = _row(prefix, bytes(cursor.key()), cursor.value())
                there = cursor.prev()
            there = cursor.set_range(prefix + U64.pack(offset + 1))
            while there and after is None and bytes(cursor.key()).startswith(prefix):
                with contextlib.suppress(DamagedRow):
                    after = _row(prefix, bytes(cursor.key()), cursor.value())
                there = cursor.next()
        return before, after

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
            return self._offset_at(txn, group, position, extent, last, end)

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
            return self._offset_at(txn, group, position, extent, last, end)

    def _offset_at(
        self, txn: "Reading", group: str, position: int, extent: Extent, last: IndexRow, end: int
    ) -> int:
        low, high = self._known_begin(txn, group, extent) or 0, last.next_offset
        if low >= high:
            return end
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

    def _known_begin(self, txn: "Reading", group: str, extent: Extent) -> int | None:
        """The offset that the group begins with. None: wherever its first row does, as in a log that was copied
        from its middle on.
        """
        begin = begin_in(self.storage, txn, group)
        if begin is not None and begin.position >= extent.begin.position:
            return begin.offset
        return 0 if begin is None and extent.begin.position == 0 else None

    def _has_before(self, txn: "Reading", group: str, offset: int, extent: Extent) -> bool:
        """Whether there is a row before this offset: then one that has the offset must be there, too."""
        prefix = index_prefix(group)
        with txn.cursor(db=self.storage.index) as cursor:
            there = cursor.prev() if cursor.set_range(prefix + U64.pack(offset)) else cursor.last()
            if not there or not _is_row(prefix, bytes(cursor.key())):
                return False
            return _is_there(_row(prefix, bytes(cursor.key()), cursor.value()), extent)

    def _rows(self, txn: "Reading", group: str, offset: int, extent: Extent) -> Iterator[IndexRow]:
        """From the one with this offset on, or else the next."""
        prefix = index_prefix(group)
        with txn.cursor(db=self.storage.index) as cursor:
            there = cursor.set_range(prefix + U64.pack(offset))
            before = cursor.prev() if there else cursor.last()
            if before and _is_row(prefix, bytes(cursor.key())):
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
            there = cursor.prev() if cursor.set_range(prefix + _AFTER_ALL) else cursor.last()
            while there and _is_row(prefix, key := bytes(cursor.key())):
                row = _row(prefix, key, cursor.value())
                if _is_there(row, extent):
                    return row
                there = cursor.prev()
        return None


def begin_in(storage: "Storage", txn: "Reading", group: str) -> GroupBegin | None:
    key = index_prefix(group)
    value = txn.get(key, db=storage.index)
    if value is None:
        return None
    content = _content(key, value, group, None)
    if len(content) != _BEGIN.size:
        raise DamagedRow(key, "wrong size", group, None)
    return GroupBegin(*_BEGIN.unpack(content))


def begin_or_none(storage: "Storage", txn: "Reading", group: str) -> GroupBegin | None:
    """A damaged one is as none: the next takes its place."""
    try:
        return begin_in(storage, txn, group)
    except DamagedRow:
        return None


def _is_there(row: IndexRow, extent: Extent) -> bool:
    return extent.begin.position <= row.position < extent.end.position


def _is_row(prefix: bytes, key: bytes) -> bool:
    """And no beginning, nor another group's."""
    return key.startswith(prefix) and len(key) > len(prefix)


def _row(prefix: bytes, key: bytes, value: memoryview) -> IndexRow:
    group = prefix[:-1].decode()
    offset = unpack_u64(key[-U64.size :]) if len(key) == len(prefix) + U64.size else 0
    content = _content(key, value, group, offset)
    if len(content) != _ROW.size or len(key) != len(prefix) + U64.size:
        raise DamagedRow(key, "wrong size", group, offset)
    return IndexRow(offset, *_ROW.unpack(content))


def _content(key: bytes, value: memoryview, group: str, offset: int | None) -> memoryview:
    try:
        return unseal(INDEX, key, value)
    except CorruptRecord:
        raise DamagedRow(key, "wrong checksum", group, offset) from None


def _is_sound(key: bytes, value: memoryview) -> bool:
    try:
        unseal(INDEX, key, value)
    except CorruptRecord:
        return False
    return True


def _missing(group: str, offset: int) -> DamagedRow:
    return DamagedRow(index_prefix(group) + U64.pack(offset), "missing", group, offset)
