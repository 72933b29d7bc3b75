"""What one commit changes, and how it is put into a transaction of the database.

The operations are made on the event loop's thread (storage_overlay.py), complete and in order; the writer's thread
only performs them. Performing them again after an aborted transaction is the same as performing them once.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

import lmdb

from ordercast.core.cells import shares_cell
from ordercast.core.ids import unpack_u64
from ordercast.runtime.storage.group_index import (
    GroupBegin,
    IndexRow,
    begin_or_none,
    cell_prefix,
    index_prefix,
    sealed_begin,
    sealed_row,
)
from ordercast.runtime.storage.layout import (
    HEADER,
    MARK,
    U64,
    EntryHeader,
    Mark,
    StoredEntry,
    log_key,
    log_prefix,
    seal,
)
from ordercast.runtime.storage.store import Storage, behind, dropped_key, is_of

#: Entries removed per transaction, so that retention never makes others wait long for theirs.
TRIM_COUNT_MAX = 250

Writing: TypeAlias = "lmdb.Transaction[memoryview]"


@dataclass(slots=True, frozen=True)
class PutEntry:
    """An entry at the end of its log, or in the place of a damaged one."""

    group: str
    position: int
    header: EntryHeader
    data: bytes
    #: By group: where its messages are, if the log is of a cell that groups share.
    rows: tuple[tuple[str, IndexRow], ...] = ()
    #: Groups that begin behind it, for they have dropped what they had there.
    begins: tuple[tuple[str, GroupBegin], ...] = ()

    def stored(self) -> StoredEntry:
        header = self.header
        return StoredEntry(self.position, header.first_offset, header.next_offset, self.data, header.wall_ms)

    def end(self) -> Mark:
        return Mark(self.position + 1, self.header.next_offset, self.header.bytes_before + len(self.data))


@dataclass(slots=True, frozen=True)
class BeginLog:
    """The log begins here. What is before it goes; what is behind it too if the log is a new one."""

    group: str
    begin: Mark
    is_new: bool


@dataclass(slots=True, frozen=True)
class DropLog:
    group: str


@dataclass(slots=True, frozen=True)
class BeginGroup:
    """A group that shares its cell begins there, or later."""

    group: str
    begin: GroupBegin


@dataclass(slots=True, frozen=True)
class DropGroup:
    """Nothing is left of a group that shared its cell."""

    group: str


@dataclass(slots=True, frozen=True)
class MendIndex:
    """Rows of a group as the log has them, in the place of what is damaged or missing."""

    group: str
    spoilt: tuple[bytes, ...]
    rows: tuple[IndexRow, ...]


Operation = PutEntry | BeginLog | DropLog | BeginGroup | DropGroup | MendIndex


@dataclass(slots=True)
class Batch:
    ticket: int
    #: By database key; None deletes. The last word on a key is the only one that reaches the disk.
    records: dict[bytes, bytes | None] = field(default_factory=dict)
    log: list[Operation] = field(default_factory=list)
    #: Somebody holds its ticket, even if it changes nothing.
    is_awaited: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.is_awaited or self.log or self.records)


def perform(storage: Storage, txn: Writing, batch: Batch) -> list[str]:
    """Put the batch into the transaction. Returns the groups that now have something to be trimmed."""
    _write_records(storage, txn, batch.records)
    to_trim: dict[str, None] = {}
    entries: list[tuple[bytes, bytes]] = []
    rows: list[tuple[bytes, bytes]] = []
    begins: dict[str, GroupBegin] = {}
    for operation in batch.log:
        match operation:
            case PutEntry():
                key = log_key(log_prefix(operation.group), operation.position)
                entries.append((key, seal(key, (HEADER.pack(*operation.header), operation.data))))
                rows += [sealed_row(group, row) for group, row in operation.rows]
                begins |= operation.begins
            case BeginGroup():
                begins[operation.group] = operation.begin
            case MendIndex():
                for key in operation.spoilt:
                    txn.delete(key, db=storage.index)
                rows += [sealed_row(operation.group, row) for row in operation.rows]
            case DropGroup():
                _put_all(txn, storage.index, rows)
                rows = []
                begins.pop(operation.group, None)
                to_trim[operation.group] = None
                _note_dropped(storage, txn, log_prefix(operation.group))
            case DropLog() | BeginLog():
                _put_all(txn, storage.log_values, entries)
                entries = []
                to_trim[operation.group] = None
                _change_log(storage, txn, operation)
    _put_all(txn, storage.log_values, entries)
    _put_all(txn, storage.index, rows)
    _put_begins(storage, txn, begins)
    return [*to_trim, *begins]


def _change_log(storage: Storage, txn: Writing, operation: BeginLog | DropLog) -> None:
    prefix = log_prefix(operation.group)
    if isinstance(operation, DropLog):
        txn.delete(prefix[:-1], db=storage.log_begins)
        _note_dropped(storage, txn, prefix)
        return
    begin = operation.begin
    if operation.is_new:
        _delete_from(storage, txn, prefix, begin.position)
    txn.put(prefix[:-1], seal(prefix[:-1], (MARK.pack(*begin),)), db=storage.log_begins)


def _note_dropped(storage: Storage, txn: Writing, prefix: bytes) -> None:
    txn.put(dropped_key(prefix), seal(dropped_key(prefix), ()), db=storage.meta)


def _put_begins(storage: Storage, txn: Writing, begins: dict[str, GroupBegin]) -> None:
    """A beginning never goes back."""
    for group, begin in begins.items():
        known = begin_or_none(storage, txn, group)
        if known is None or known.offset < begin.offset:
            _put_all(txn, storage.index, [sealed_begin(group, begin)])


def trim(storage: Storage, txn: Writing, group: str, count_max: int) -> int:
    """Remove entries that no reader sees any more; returns how many. Fewer than count_max: no more are left."""
    prefix = log_prefix(group)
    if shares_cell(group):
        return _trim_rows(storage, txn, group, count_max)
    begin = storage.begin_in(txn, prefix)
    stop = behind(prefix) if begin is None else log_key(prefix, begin.position)
    count = 0
    with txn.cursor(db=storage.log_values) as cursor:
        cursor.set_range(prefix)
        while count < count_max and is_of(prefix, key := bytes(cursor.key())) and key < stop:
            cursor.delete()
            count += 1
    if begin is None:
        # Of a log that is only cut, rows that point before its beginning stay: nobody sees them.
        rows = cell_prefix(group)
        with txn.cursor(db=storage.index) as cursor:
            cursor.set_range(rows)
            while count < count_max and bytes(cursor.key()).startswith(rows):
                cursor.delete()
                count += 1
    if count < count_max:
        txn.delete(dropped_key(prefix), db=storage.meta)
    return count


def _trim_rows(storage: Storage, txn: Writing, group: str, count_max: int) -> int:
    """Those before the group's beginning, or all that there is of a group that was dropped."""
    prefix, mark = index_prefix(group), dropped_key(log_prefix(group))
    is_dropped = txn.get(mark, db=storage.meta) is not None
    begin = None if is_dropped else begin_or_none(storage, txn, group)
    count = 0
    with txn.cursor(db=storage.index) as cursor:
        there = cursor.set_range(prefix if is_dropped else prefix + bytes(U64.size))
        while there and count < count_max and (key := bytes(cursor.key())).startswith(prefix):
            if not is_dropped and (begin is None or unpack_u64(key[-U64.size :]) >= begin.offset):
                break
            there = cursor.delete()
            count += 1
    if is_dropped and count < count_max:
        txn.delete(mark, db=storage.meta)
    return count


def _write_records(storage: Storage, txn: Writing, records: dict[bytes, bytes | None]) -> None:
    values = []
    for key, value in records.items():
        if value is None:
            txn.delete(key, db=storage.record_values)
        else:
            values.append((key, seal(key, (value,))))
    _put_all(txn, storage.record_values, values)


def _put_all(txn: Writing, db: lmdb._Database, items: list[tuple[bytes, bytes]]) -> None:
    """In one call: each call lets other threads run, and may wait for its turn to go on."""
    if items:
        with txn.cursor(db=db) as cursor:
            cursor.putmulti(items)


def _delete_from(storage: Storage, txn: Writing, prefix: bytes, position: int) -> None:
    """Entries of an older log in the place of the new one would look like its own: they go at once."""
    with txn.cursor(db=storage.log_values) as cursor:
        cursor.set_range(log_key(prefix, position))
        while is_of(prefix, bytes(cursor.key())):
            cursor.delete()
