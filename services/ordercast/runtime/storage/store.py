"""The durable storage of a process: one LMDB environment in its data directory.

It holds records by domain, role and key, the groups' logs by position, and a little about itself. This is the
reading side, for the event loop's thread; what comes after start-up is written by writer.py. A commit is synced,
data first and then the page that makes it valid: a crash leaves the last transaction that was reported, or a later
one.

A log begins where its record in `begins` says. Entries before that are gone for every reader, although the writer
removes them later, piece by piece; so dropping a long log never makes a long transaction.

What is on the disk may be damaged or gone. A log entry that cannot be read is a CorruptRecord, and mended from
other replicas. A record that cannot be read damages groups, and is told at the start: see damage.py. Writes that
were lost although they were synced are noticed by the number of the last commit: see commit_mark.py.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeAlias

import lmdb

from ordercast.runtime.storage.commit_mark import CommitMark
from ordercast.runtime.storage.damage import Damage, DamageBook, State, Unsaved
from ordercast.runtime.storage.damage_scan import scan
from ordercast.runtime.storage.database_file import check_file, of_lmdb
from ordercast.runtime.storage.layout import (
    BEGINS,
    CHECKSUM,
    HEADER,
    INDEX,
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
    without_frames,
)
from ordercast.runtime.storage.private_files import FILE_MODE, make_private

#: 2: acceptors keep the view and the configurations that they work in. Earlier versions take any record of theirs
#: that they do not know for the one that says what is retired, and would call open instances closed: so they have
#: to refuse the directory.
FORMAT = b"2"
#: What is taken over: from then on the directory has the present format.
FORMATS_BEFORE = (b"1",)
NODE_ID_BYTES = 16
#: Address space, not disk: the file grows with what is in it.
MAP_BYTES_DEFAULT = 1 << 40
LOCK_FILE = "process.lock"
#: Far more than there are threads: LMDB's default is soon used up by transactions that wait to be collected.
READERS_MAX = 1024
DAMAGE_KEY = b"damage"
DROPPED = b"dropped\0"
OWN_META_KEYS = (b"format", b"node_id", b"boot", b"touched", DAMAGE_KEY)

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
        with contextlib.ExitStack() as undo:
            try:
                self._lock = self._take_lock()
                undo.callback(os.close, self._lock)
                self._mark = CommitMark(directory)
                undo.callback(self._mark.close)
                check_file(directory, was_used=not self._mark.is_empty())
                self.env = self._open()
                undo.callback(self.env.close)
                self.damages = self._begin_life()
                if (self._mark.read(self.node_id) or 0) > self._last_commit():
                    self._mark.clear()
                self.mark_commit()
                self._sync_names()
            except lmdb.Error as error:
                raise of_lmdb(directory, error) from error
            except OSError as error:
                raise StorageError(f"{directory}: {error}") from error
            undo.pop_all()
        self._closed = False

    def close(self) -> None:
        """After the writer has stopped."""
        if not self._closed:
            self._closed = True
            if self.damages.is_unsaved:
                with self.env.begin(write=True, buffers=True) as txn:
                    self.save_damage(txn, self.damages.unsaved)
                self.mark_commit()
            self._mark.sync()
            self._mark.close()
            self.env.close()
            os.close(self._lock)

    # ------------------------------------------------------------------------------------------------ opening

    def _take_lock(self) -> int:
        """LMDB would let two processes write in turns; two lives of one process must not even read together."""
        try:
            make_private(self.directory)
            lock = os.open(self.directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, FILE_MODE)
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
            mode=FILE_MODE,
            sync=True,
            metasync=True,
            map_async=False,
            writemap=False,
            lock=True,
            max_dbs=5,
            max_spare_txns=2,
            max_readers=READERS_MAX,
            # The file's format must not depend on what the environment says is the default.
            lib_version=0,
        )

    def _begin_life(self) -> DamageBook:
        """One transaction: nothing is changed in a directory that is refused."""
        committed = self._last_commit()
        with self.env.begin(write=True, buffers=True) as txn:
            is_new = txn.stat()["entries"] == 0
            self.meta, self.record_values, self.log_values, self.log_begins, self.index = (
                self.env.open_db(name.encode(), txn=txn) for name in (META, RECORDS, LOGS, BEGINS, INDEX)
            )
            if is_new:
                self._put_meta(txn, b"format", FORMAT)
                self._put_meta(txn, b"node_id", os.urandom(NODE_ID_BYTES))
                self._put_meta(txn, b"boot", U64.pack(0))
            found = self._get_meta(txn, b"format")
            if found not in (FORMAT, *FORMATS_BEFORE):
                has = "no format" if found is None else f"the format {found.decode(errors='replace')!r}"
                known = " and ".join(repr(one.decode()) for one in (*FORMATS_BEFORE, FORMAT))
                raise UnknownFormatError(f"{self.directory} has {has}; this version knows {known}")
            if found != FORMAT:
                self._put_meta(txn, b"format", FORMAT)
            self.node_id = self._get_meta(txn, b"node_id") or b""
            boot = self._get_meta(txn, b"boot") or b""
            if len(self.node_id) != NODE_ID_BYTES or len(boot) != U64.size:
                raise CorruptRecord(META, b"node_id, boot", "missing")
            self.boot = U64.unpack(boot)[0] + 1
            self._put_meta(txn, b"boot", U64.pack(self.boot))
            state = self._remembered_damage(txn)
            self._compare_with_mark(state, committed)
            self._put_meta(txn, DAMAGE_KEY, state.to_bytes())
        return DamageBook(state, lambda scopes: scan(self, scopes))

    def _remembered_damage(self, txn: Reading) -> State:
        try:
            data = self._get_meta(txn, DAMAGE_KEY)
            return State() if data is None else State.from_bytes(data)
        except CorruptRecord as damaged:
            return State(lost=f"what was damaged cannot be read any more: {damaged}")

    def _compare_with_mark(self, state: State, committed: int) -> None:
        mark = self._mark.read(self.node_id)
        if mark is not None and mark > committed:
            # Remembered in the transaction in which numbers go on: soon they are as high as they were.
            state.lost = f"commits {committed + 1} to {mark} were durable, and are gone"
            state.named.clear()

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

    @without_frames
    def meta_get(self, key: bytes) -> bytes | None:
        with self.reading() as txn:
            return self._get_meta(txn, checked_key(key))

    def meta_put(self, key: bytes, value: bytes) -> None:
        """Durable when it returns. For start-up: it would wait for a writer's commit."""
        if key in OWN_META_KEYS:
            raise StorageError(f"{key!r} is the storage's own")
        with self.env.begin(write=True, buffers=True) as txn:
            self._put_meta(txn, checked_key(key), value)
        self.mark_commit()

    # ---------------------------------------------------------------------------------------------- lost writes

    def mark_commit(self) -> None:
        """After each commit, by whoever made it."""
        self._mark.write(self.node_id, self._last_commit())

    def _last_commit(self) -> int:
        number: int = self.env.info()["last_txnid"]
        return number

    def sync_mark(self) -> None:
        """When nobody waits for the disk."""
        self._mark.sync()

    # ------------------------------------------------------------------------------------------------ damage

    def damage(self, domain: str) -> Damage:
        """What only a new configuration mends, in groups of this domain."""
        return self.damages.of(domain)

    def damaged_among(self, domain: str, members: Collection[str]) -> frozenset[str]:
        """Of the groups that this process is a member of, those that are damaged.

        If that is everything, it is these, also after restarts, and none that comes later.
        """
        return self.damages.among(domain, members)

    def forget_damage(self, domain: str, group: str) -> None:
        """The group was replaced here, durably. Goes to the disk with the next commit."""
        self.damages.forget(domain, group)

    @property
    def damaged_records(self) -> int:
        """How many there are, as far as their groups were not replaced since."""
        return self.damages.count()

    def save_damage(self, txn: Reading, unsaved: Unsaved) -> None:
        """What is known about damage becomes durable with this transaction; then it is DamageBook.saved."""
        self._put_meta(txn, DAMAGE_KEY, unsaved.state)
        for key in unsaved.delete:
            value = txn.get(key, db=self.record_values)
            try:
                if value is not None:
                    unseal(RECORDS, key, value)
            except CorruptRecord:
                txn.delete(key, db=self.record_values)

    # ------------------------------------------------------------------------------------------------ records

    def records(self, domain: str, role: str) -> list[tuple[bytes, bytes]]:
        """All of them, in the order of their keys. Raises if one is damaged, or may be missing."""
        self.damages.check_nothing_lost(domain)
        found, damaged = self._read_records(domain, role)
        if damaged:
            raise damaged[0][1]
        return found

    @without_frames
    def record(self, domain: str, role: str, key: bytes) -> bytes | None:
        """One of them, if it is there."""
        stored = records_prefix(domain, role) + key
        with self.reading() as txn:
            value = txn.get(stored, db=self.record_values)
            return None if value is None else bytes(unseal(RECORDS, stored, value))

    def sound_records(self, domain: str, role: str) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        """Those that can be read, and the keys of those that cannot. What the latter mean is in `damage`."""
        found, damaged = self._read_records(domain, role)
        return found, [key for key, _ in damaged]

    def _read_records(
        self, domain: str, role: str
    ) -> tuple[list[tuple[bytes, bytes]], list[tuple[bytes, CorruptRecord]]]:
        prefix = records_prefix(domain, role)
        found: list[tuple[bytes, bytes]] = []
        damaged: list[tuple[bytes, CorruptRecord]] = []
        with self.reading() as txn, txn.cursor(db=self.record_values) as cursor:
            cursor.set_range(prefix)
            for view, value in cursor.iternext():
                key = bytes(view)
                if not key.startswith(prefix):
                    break
                try:
                    found.append((key[len(prefix) :], bytes(unseal(RECORDS, key, value))))
                except CorruptRecord as error:
                    damaged.append((key[len(prefix) :], error.with_traceback(None)))
        return found, damaged

    # --------------------------------------------------------------------------------------------------- logs

    def groups(self) -> list[str]:
        """Those that have a log here, even an empty one; sorted."""
        with self.reading() as txn, txn.cursor(db=self.log_begins) as cursor:
            keys = [bytes(key) for key in cursor.iternext(values=False)]
        # What is no name is a damaged one.
        return [key.decode() for key in keys if key.decode(errors="ignore").encode() == key]

    def bounds(self, group: str) -> LogBounds:
        """A group without a log is as one with an empty log that begins at 0."""
        extent = self.extent(group)
        return LogBounds() if extent is None else extent.bounds()

    @without_frames
    def extent(self, group: str) -> Extent | None:
        with self.reading() as txn:
            return self.extent_in(txn, log_prefix(group))

    @without_frames
    def estimated_extent(self, group: str) -> Extent | None:
        """As extent, past damaged entries at the end: then with the least offset there, and about the bytes."""
        with self.reading() as txn:
            return self._estimated_extent(txn, log_prefix(group))

    @without_frames
    def begin_of(self, group: str) -> Mark | None:
        with self.reading() as txn:
            return self.begin_in(txn, log_prefix(group))

    @without_frames
    def positions(self, group: str) -> range:
        """As bounds, for when the last entry itself is damaged and cannot say where offsets end."""
        with self.reading() as txn:
            prefix = log_prefix(group)
            begin = self.begin_in(txn, prefix)
            return range(0) if begin is None else range(begin.position, self.ends_in(txn, prefix, begin))

    @without_frames
    def read(self, group: str, position: int, count_max: int, bytes_max: int) -> list[StoredEntry]:
        """Entries from `position` on: at least one if there is one, more while they fit into bytes_max.

        None if the log begins behind the position: a reader must notice what retention took.
        """
        found: list[StoredEntry] = []
        prefix = log_prefix(group)
        with self.reading() as txn, txn.cursor(db=self.log_values) as cursor:
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
                found.append(
                    StoredEntry(position, header.first_offset, header.next_offset, bytes(data), header.wall_ms)
                )
                position += 1
        return found

    @without_frames
    def header(self, group: str, position: int) -> EntryHeader:
        with self.reading() as txn:
            return self._header(txn, log_prefix(group), position)[0]

    @without_frames
    def mark_before(self, group: str, position: int) -> Mark:
        """The place before this entry, past damaged ones: then with the least offset, and about the bytes."""
        with self.reading() as txn:
            prefix = log_prefix(group)
            begin = self.begin_in(txn, prefix)
            return Mark(position, 0, 0) if begin is None else self._mark_before(txn, prefix, begin, position)

    @without_frames
    def position_of(self, group: str, offset: int) -> int:
        """The entry with the message at this offset, or else the first one behind it, or else the log's end."""
        with self.reading() as txn:
            prefix = log_prefix(group)
            extent = self.extent_in(txn, prefix)
            if extent is None:
                return 0
            return self._first(txn, prefix, extent, lambda header: header.next_offset > offset)

    @without_frames
    def offset_stored_at(self, group: str, wall_ms: int) -> int:
        """The offset of the first message that was stored at this time or later, or else the next offset.

        It is found by bisection. If the clock was set back, there are several places where an entry from before
        that time is followed by one that is not, and this is one of them.
        """
        with self.reading() as txn:
            prefix = log_prefix(group)
            extent = self.extent_in(txn, prefix)
            if extent is None:
                return 0
            position = self.first_stored_at(txn, prefix, extent, wall_ms)
            if position == extent.end.position:
                return extent.end.offset
            return self._header(txn, prefix, position)[0].first_offset

    @without_frames
    def floor(self, group: str, keep_bytes: int, keep_after_wall_ms: int) -> int:
        """Retention may drop what is before this position: too much, or too old. A limit of 0 is none.

        A clock that jumped makes the limit by age imprecise, for entries near the jump. So does a damaged entry,
        but nothing is dropped for it that would otherwise stay.
        """
        floor = 0
        with self.reading() as txn:
            prefix = log_prefix(group)
            extent = self._estimated_extent(txn, prefix)
            if extent is None:
                return floor
            floor = extent.begin.position
            droppable = extent.end.bytes - keep_bytes
            if keep_bytes > 0 and droppable > extent.begin.bytes:
                floor = self._floor(txn, prefix, extent, lambda header: header.bytes_before >= droppable)
            if keep_after_wall_ms > 0:
                young = self._floor(txn, prefix, extent, lambda header: header.wall_ms >= keep_after_wall_ms)
                floor = max(floor, young)
        return floor

    def leftovers(self) -> list[str]:
        """Groups with entries, or rows, that no reader sees any more, and that a crash kept from being removed.

        A log whose beginning is damaged or gone is none of them: it was not dropped.
        """
        found: dict[str, None] = {}
        with self.reading() as txn, txn.cursor(db=self.meta) as cursor:
            # Of these nothing but rows of the index may be left.
            there = cursor.set_range(DROPPED)
            while there and (key := bytes(cursor.key())).startswith(DROPPED):
                found[key[len(DROPPED) :].decode()] = None
                there = cursor.next()
        with self.reading() as txn, txn.cursor(db=self.log_values) as cursor:
            there = cursor.first()
            while there:
                key = bytes(cursor.key())
                prefix = key[: -U64.size]
                with contextlib.suppress(CorruptRecord):
                    begin = self.begin_in(txn, prefix)
                    is_dropped = txn.get(dropped_key(prefix), db=self.meta) is not None
                    if is_dropped if begin is None else position_in(key) < begin.position:
                        found[prefix[:-1].decode()] = None
                there = cursor.set_range(behind(prefix))
        return list(found)

    # ------------------------------------------------------------------------------------------- what is free

    def free_bytes(self) -> int:
        """What the file system has for us."""
        stat = os.statvfs(self.directory)
        return stat.f_bavail * stat.f_frsize

    def map_room_bytes(self) -> int:
        """What the map has for us: pages never used, and those that were freed."""
        with self.reading() as txn:
            tables = (self.meta, self.record_values, self.log_values, self.log_begins, self.index)
            stats = [txn.stat(db) for db in tables]
            page_bytes = stats[0]["psize"]
        used = sum(s["branch_pages"] + s["leaf_pages"] + s["overflow_pages"] for s in stats)
        return self.map_bytes - used * page_bytes

    def free_share(self) -> float:
        """Of the file system, or of the map: whichever has less of itself left."""
        stat = os.statvfs(self.directory)
        # What root keeps for itself is not there for us.
        there = stat.f_blocks - stat.f_bfree + stat.f_bavail
        return min(stat.f_bavail / there if there else 0.0, self.map_room_bytes() / self.map_bytes)

    # -------------------------------------------------------------------------------------- inside a transaction

    def reading(self) -> Reading:
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

    def damaged_begins(self, txn: Reading) -> list[tuple[str, CorruptRecord]]:
        """Groups, and what is wrong. The name of the group may be what is damaged."""
        found = []
        with txn.cursor(db=self.log_begins) as cursor:
            for key in cursor.iternext(values=False):
                try:
                    self.begin_in(txn, bytes(key) + b"\0")
                except CorruptRecord as error:
                    found.append((bytes(key).decode(errors="replace"), error.with_traceback(None)))
        return found

    def ends_in(self, txn: Reading, prefix: bytes, begin: Mark) -> int:
        with txn.cursor(db=self.log_values) as cursor:
            there = cursor.prev() if cursor.set_range(behind(prefix)) else cursor.last()
            key = bytes(cursor.key()) if there else b""
        # What is before the beginning waits to be removed.
        return max(position_in(key) + 1, begin.position) if is_of(prefix, key) else begin.position

    def extent_in(self, txn: Reading, prefix: bytes) -> Extent | None:
        begin = self.begin_in(txn, prefix)
        if begin is None:
            return None
        ends = self.ends_in(txn, prefix, begin)
        if ends == begin.position:
            return Extent(begin, begin)
        header, size = self._header(txn, prefix, ends - 1)
        return Extent(begin, Mark(ends, header.next_offset, header.bytes_before + size))

    def _estimated_extent(self, txn: Reading, prefix: bytes) -> Extent | None:
        """As extent_in, if the last entry is damaged as well."""
        begin = self.begin_in(txn, prefix)
        if begin is None:
            return None
        return Extent(begin, self._mark_before(txn, prefix, begin, self.ends_in(txn, prefix, begin)))

    def _mark_before(self, txn: Reading, prefix: bytes, begin: Mark, position: int) -> Mark:
        """From one entry to the one before: a damaged key may make a hole that is longer than any log."""
        size = 0
        with txn.cursor(db=self.log_values) as cursor:
            there = cursor.prev() if cursor.set_range(log_key(prefix, position)) else cursor.last()
            while there and is_of(prefix, key := bytes(cursor.key())) and position_in(key) >= begin.position:
                try:
                    header, data = opened(key, key, cursor.value())
                    return Mark(position, header.next_offset, header.bytes_before + len(data) + size)
                except CorruptRecord:
                    size += max(0, len(cursor.value()) - CHECKSUM.size - HEADER.size)
                there = cursor.prev()
        return Mark(position, begin.offset, begin.bytes + size)

    def _floor(self, txn: Reading, prefix: bytes, extent: Extent, is_kept: Callable[[EntryHeader], bool]) -> int:
        """As _first. A damaged entry goes with the next one that is not, and stays if there is none."""
        low, high = extent.begin.position, extent.end.position
        with txn.cursor(db=self.log_values) as cursor:
            while low < high:
                middle = (low + high) // 2
                header, behind_it = self._sound_from(cursor, prefix, middle)
                if header is None or is_kept(header):
                    high = middle
                else:
                    low = min(behind_it, high)
        return low

    def _sound_from(
        self, cursor: "lmdb.Cursor[memoryview]", prefix: bytes, position: int
    ) -> tuple[EntryHeader | None, int]:
        """The first header from there on that is not damaged, and the position behind it."""
        there = cursor.set_range(log_key(prefix, position))
        while there and is_of(prefix, key := bytes(cursor.key())):
            with contextlib.suppress(CorruptRecord):
                return opened(key, key, cursor.value())[0], position_in(key) + 1
            there = cursor.next()
        return None, position

    def entry_in(self, txn: Reading, prefix: bytes, position: int) -> tuple[EntryHeader, memoryview]:
        key = log_key(prefix, position)
        return opened(key, key, txn.get(key, db=self.log_values))

    def first_stored_at(self, txn: Reading, prefix: bytes, extent: Extent, wall_ms: int) -> int:
        """The first entry that was stored at this time or later, or the end of the log."""
        return self._first(txn, prefix, extent, lambda header: header.wall_ms >= wall_ms)

    def _header(self, txn: Reading, prefix: bytes, position: int) -> tuple[EntryHeader, int]:
        """With the size of the entry behind it."""
        header, data = self.entry_in(txn, prefix, position)
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


def dropped_key(prefix: bytes) -> bytes:
    """In `meta` while entries of a log are removed that was dropped: one that lost its beginning was not."""
    return DROPPED + prefix[:-1]


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
