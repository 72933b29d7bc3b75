"""The durable storage of a process: one LMDB environment in its data directory.

It holds records by domain, role and key, the groups' logs by position, and a little about itself. This is the
reading side, for the event loop's thread; what comes after start-up is written by writer.py. A commit is synced,
data first and then the page that makes it valid: a crash leaves the last transaction that was reported, or a later
one.

A log begins where its record in `begins` says. Entries before that are gone for every reader, although the writer
removes them later, piece by piece; so dropping a long log never makes a long transaction.
"""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import lmdb

from ordercast.runtime.storage_format import (
    BEGINS,
    HEADER,
    LOGS,
    MARK,
    META,
    POSITION_MAX,
    RECORDS,
    U64,
    CorruptRecord,
    EntryHeader,
    Extent,
    LogBounds,
    Mark,
    StorageError,
    StorageInUseError,
    StoredEntry,
    UnknownFormatError,
    checked_key,
    log_key,
    log_prefix,
    position_in,
    records_prefix,
    seal,
    unseal,
)

FORMAT = b"1"
NODE_ID_BYTES = 16
#: Address space, not disk: the file grows with what is in it.
MAP_BYTES_DEFAULT = 1 << 40
LOCK_FILE = "process.lock"
OWN_META_KEYS = (b"format", b"node_id", b"boot", b"touched")

Reading: TypeAlias = "lmdb.Transaction[memoryview]"


class Storage:
    def __init__(self, directory: Path, *, map_bytes: int = MAP_BYTES_DEFAULT) -> None:
        if map_bytes < 1:
            raise StorageError(f"a map of {map_bytes} bytes")
        self.directory = directory
        self.map_bytes = map_bytes
        self.node_id = b""
        #: How often the directory was opened, this time included.
        self.boot = 0
        self._lock = self._take_lock()
        try:
            self.env = self._open()
            try:
                self._begin_life()
                self._sync_names()
            except BaseException:
                self.env.close()
                raise
        except lmdb.Error as error:
            os.close(self._lock)
            raise StorageError(f"{directory}: {error}") from error
        except BaseException:
            os.close(self._lock)
            raise
        self._closed = False

    def close(self) -> None:
        """After the writer has stopped."""
        if not self._closed:
            self._closed = True
            self.env.close()
            os.close(self._lock)

    # ------------------------------------------------------------------------------------------------ opening

    def _take_lock(self) -> int:
        """LMDB would let two processes write in turns; two lives of one process must not even read together."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StorageError(f"{self.directory}: {error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise StorageInUseError(f"{self.directory} is in use by a running process") from error
        return lock

    def _open(self) -> lmdb.Environment:
        return lmdb.Environment(
            str(self.directory),
            map_size=self.map_bytes,
            subdir=True,
            sync=True,
            metasync=True,
            map_async=False,
            writemap=False,
            lock=True,
            max_dbs=4,
            max_spare_txns=2,
            # The file's format must not depend on what the environment says is the default.
            lib_version=0,
        )

    def _begin_life(self) -> None:
        """One transaction: nothing is changed in a directory that is refused."""
        with self.env.begin(write=True, buffers=True) as txn:
            is_new = txn.stat()["entries"] == 0
            self.meta, self.record_values, self.log_values, self.log_begins = (
                self.env.open_db(name.encode(), txn=txn) for name in (META, RECORDS, LOGS, BEGINS)
            )
            if is_new:
                self._put_meta(txn, b"format", FORMAT)
                self._put_meta(txn, b"node_id", os.urandom(NODE_ID_BYTES))
                self._put_meta(txn, b"boot", U64.pack(0))
            found = self._get_meta(txn, b"format")
            if found != FORMAT:
                has = "no format" if found is None else f"the format {found.decode(errors='replace')!r}"
                raise UnknownFormatError(f"{self.directory} has {has}; this version knows {FORMAT.decode()!r}")
            self.node_id = self._get_meta(txn, b"node_id") or b""
            boot = self._get_meta(txn, b"boot") or b""
            if len(self.node_id) != NODE_ID_BYTES or len(boot) != U64.size:
                raise CorruptRecord(META, b"node_id, boot", "missing")
            self.boot = U64.unpack(boot)[0] + 1
            self._put_meta(txn, b"boot", U64.pack(self.boot))

    def _sync_names(self) -> None:
        """LMDB syncs its file; that there is such a file is for its directory to remember."""
        for directory in (self.directory, self.directory.absolute().parent):
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    # --------------------------------------------------------------------------------------------------- meta

    def _get_meta(self, txn: Reading, key: bytes) -> bytes | None:
        value = txn.get(key, db=self.meta)
        return None if value is None else bytes(unseal(META, key, value))

    def _put_meta(self, txn: Reading, key: bytes, value: bytes) -> None:
        txn.put(key, seal(key, [value]), db=self.meta)

    def touch(self, txn: Reading) -> None:
        """Make it a transaction that changes something: LMDB does not count others."""
        self._put_meta(txn, b"touched", b"")

    def meta_get(self, key: bytes) -> bytes | None:
        with self._reading() as txn:
            return self._get_meta(txn, checked_key(key))

    def meta_put(self, key: bytes, value: bytes) -> None:
        """Durable when it returns. For start-up: it would wait for a writer's commit."""
        if key in OWN_META_KEYS:
            raise StorageError(f"{key!r} is the storage's own")
        with self.env.begin(write=True, buffers=True) as txn:
            self._put_meta(txn, checked_key(key), value)

    # ------------------------------------------------------------------------------------------------ records

    def records(self, domain: str, role: str) -> list[tuple[bytes, bytes]]:
        """All of them, in the order of their keys."""
        prefix = records_prefix(domain, role)
        found = []
        with self._reading() as txn, txn.cursor(db=self.record_values) as cursor:
            cursor.set_range(prefix)
            for view, value in cursor.iternext():
                key = bytes(view)
                if not key.startswith(prefix):
                    break
                found.append((key[len(prefix) :], bytes(unseal(RECORDS, key, value))))
        return found

    # --------------------------------------------------------------------------------------------------- logs

    def groups(self) -> list[str]:
        """Those that have a log here, even an empty one; sorted."""
        with self._reading() as txn, txn.cursor(db=self.log_begins) as cursor:
            return [bytes(key).decode() for key in cursor.iternext(values=False)]

    def bounds(self, group: str) -> LogBounds:
        """A group without a log is as one with an empty log that begins at 0."""
        extent = self.extent(group)
        return LogBounds() if extent is None else extent.bounds()

    def extent(self, group: str) -> Extent | None:
        with self._reading() as txn:
            return self._extent(txn, log_prefix(group))

    def begin_of(self, group: str) -> Mark | None:
        with self._reading() as txn:
            return self.begin_in(txn, log_prefix(group))

    def positions(self, group: str) -> range:
        """As bounds, for when the last entry itself is damaged and cannot say where offsets end."""
        with self._reading() as txn:
            prefix = log_prefix(group)
            begin = self.begin_in(txn, prefix)
            return range(0) if begin is None else range(begin.position, self._ends(txn, prefix, begin))

    def read(self, group: str, position: int, count_max: int, bytes_max: int) -> list[StoredEntry]:
        """Entries from `position` on: at least one if there is one, more while they fit into bytes_max.

        None if the log begins behind the position: a reader must notice what retention took.
        """
        found: list[StoredEntry] = []
        prefix = log_prefix(group)
        with self._reading() as txn, txn.cursor(db=self.log_values) as cursor:
            begin = self.begin_in(txn, prefix)
            if begin is None or position < begin.position or not cursor.set_range(log_key(prefix, position)):
                return found
            bytes_left = bytes_max
            for view, value in cursor.iternext():
                key = bytes(view)
                if len(found) >= count_max or not is_of(prefix, key):
                    break
                header, data = opened(log_key(prefix, position), key, value)
                bytes_left -= len(data)
                if found and bytes_left < 0:
                    break
                found.append(StoredEntry(position, header.first_offset, header.next_offset, bytes(data)))
                position += 1
        return found

    def header(self, group: str, position: int) -> EntryHeader:
        with self._reading() as txn:
            return self._header(txn, log_prefix(group), position)[0]

    def end_of(self, group: str, position: int) -> Mark:
        """The mark behind this entry."""
        with self._reading() as txn:
            header, size = self._header(txn, log_prefix(group), position)
            return Mark(position + 1, header.next_offset, header.bytes_before + size)

    def position_of(self, group: str, offset: int) -> int:
        """The entry with the message at this offset, or else the first one behind it, or else the log's end."""
        with self._reading() as txn:
            prefix = log_prefix(group)
            extent = self._extent(txn, prefix)
            if extent is None:
                return 0
            return self._first(txn, prefix, extent, lambda header: header.next_offset > offset)

    def floor(self, group: str, keep_bytes: int, keep_after_wall_ms: int) -> int:
        """Retention may drop what is before this position: too much, or too old. A limit of 0 is none.

        A clock that jumped makes the limit by age imprecise, for entries near the jump.
        """
        floor = 0
        with self._reading() as txn:
            prefix = log_prefix(group)
            extent = self._extent(txn, prefix)
            if extent is None:
                return floor
            floor = extent.begin.position
            droppable = extent.end.bytes - keep_bytes
            if keep_bytes > 0 and droppable > extent.begin.bytes:
                floor = self._first(txn, prefix, extent, lambda header: header.bytes_before >= droppable)
            if keep_after_wall_ms > 0:
                young = self._first(txn, prefix, extent, lambda header: header.wall_ms >= keep_after_wall_ms)
                floor = max(floor, young)
        return floor

    def leftovers(self) -> list[str]:
        """Groups with entries that no reader sees any more, and that a crash kept from being removed."""
        found = []
        with self._reading() as txn, txn.cursor(db=self.log_values) as cursor:
            there = cursor.first()
            while there:
                key = bytes(cursor.key())
                prefix = key[: -U64.size]
                begin = self.begin_in(txn, prefix)
                if begin is None or position_in(key) < begin.position:
                    found.append(prefix[:-1].decode())
                there = cursor.set_range(behind(prefix))
        return found

    # ------------------------------------------------------------------------------------------- what is free

    def free_bytes(self) -> int:
        """What the file system has for us."""
        stat = os.statvfs(self.directory)
        return stat.f_bavail * stat.f_frsize

    def map_room_bytes(self) -> int:
        """What the map has for us: pages never used, and those that were freed."""
        with self._reading() as txn:
            stats = [txn.stat(db) for db in (self.meta, self.record_values, self.log_values, self.log_begins)]
            page_bytes = stats[0]["psize"]
        used = sum(s["branch_pages"] + s["leaf_pages"] + s["overflow_pages"] for s in stats)
        return self.map_bytes - used * page_bytes

    # -------------------------------------------------------------------------------------- inside a transaction

    def _reading(self) -> Reading:
        return self.env.begin(buffers=True)

    def begin_in(self, txn: Reading, prefix: bytes) -> Mark | None:
        """Where the log begins, or None if there is no such log. The writer asks in its own transaction."""
        key = prefix[:-1]
        value = txn.get(key, db=self.log_begins)
        if value is None:
            return None
        content = unseal(BEGINS, key, value)
        if len(content) != MARK.size:
            raise CorruptRecord(BEGINS, key, "wrong size", key.decode(errors="replace"))
        return Mark(*MARK.unpack(content))

    def _ends(self, txn: Reading, prefix: bytes, begin: Mark) -> int:
        with txn.cursor(db=self.log_values) as cursor:
            there = cursor.prev() if cursor.set_range(behind(prefix)) else cursor.last()
            key = bytes(cursor.key()) if there else b""
        # What is before the beginning waits to be removed.
        return max(position_in(key) + 1, begin.position) if is_of(prefix, key) else begin.position

    def _extent(self, txn: Reading, prefix: bytes) -> Extent | None:
        begin = self.begin_in(txn, prefix)
        if begin is None:
            return None
        ends = self._ends(txn, prefix, begin)
        if ends == begin.position:
            return Extent(begin, begin)
        header, size = self._header(txn, prefix, ends - 1)
        return Extent(begin, Mark(ends, header.next_offset, header.bytes_before + size))

    def _header(self, txn: Reading, prefix: bytes, position: int) -> tuple[EntryHeader, int]:
        """With the size of the entry behind it."""
        key = log_key(prefix, position)
        header, data = opened(key, key, txn.get(key, db=self.log_values))
        return header, len(data)

    def _first(self, txn: Reading, prefix: bytes, extent: Extent, is_found: Callable[[EntryHeader], bool]) -> int:
        """The first position whose header is_found, or the end: it must hold for all that follow, too."""
        low, high = extent.begin.position, extent.end.position
        while low < high:
            middle = (low + high) // 2
            if is_found(self._header(txn, prefix, middle)[0]):
                high = middle
            else:
                low = middle + 1
        return low


def is_of(prefix: bytes, key: bytes) -> bool:
    """Whether this key is an entry of that log."""
    return len(key) == len(prefix) + U64.size and key.startswith(prefix)


def behind(prefix: bytes) -> bytes:
    """A key behind every entry of this log, and before every other log that follows."""
    return prefix + U64.pack(POSITION_MAX + 1)


def opened(wanted: bytes, key: bytes, value: memoryview | None) -> tuple[EntryHeader, memoryview]:
    """A log value's header and data, the latter not copied. Another key than the wanted one means a hole."""
    group, position = wanted[: -U64.size - 1].decode(errors="replace"), position_in(wanted)
    if value is None or key != wanted:
        raise CorruptRecord(LOGS, wanted, "missing", group, position)
    content = unseal(LOGS, key, value)
    if len(content) < HEADER.size:
        raise CorruptRecord(LOGS, key, "too short", group, position)
    return EntryHeader(*HEADER.unpack_from(content)), content[HEADER.size :]
