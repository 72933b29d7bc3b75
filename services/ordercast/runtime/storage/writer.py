"""The writing side of the storage: one thread, one transaction at a time for all that piled up meanwhile.

The event loop's thread adds to the open batch and kicks; the writer's thread takes the batch, commits it and tells
the loop, which never waits for it. Tickets are the numbers of batches. They become durable in their order.

A full disk or map is no error: the transaction is made again until there is room, and what is behind it waits.
Any other failure is the end. After a failed sync nobody knows what is on the disk, least of all the page cache.

After each commit its number is written beside the database, without a sync, so that a device that loses it is
found out: see commit_mark.py.
"""

import asyncio
import contextlib
import errno
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import lmdb

from ordercast.runtime.storage.batch import (
    TRIM_COUNT_MAX,
    Batch,
    BeginGroup,
    DropGroup,
    MendIndex,
    Writing,
    perform,
    trim,
)
from ordercast.runtime.storage.group_index import GroupBegin, IndexRow
from ordercast.runtime.storage.layout import (
    LogBounds,
    StorageError,
    StoredEntry,
    checked_key,
    log_prefix,
    records_prefix,
)
from ordercast.runtime.storage.overlay import OwnLogs
from ordercast.runtime.storage.store import Storage
from ordercast.v1.sequencer_pb2 import LogEntry

RETRY_S = 0.5
RESERVE_CHECK_S = 1.0
#: While something is written it is looked at more often: a reserve is soon used up.
RESERVE_GAP_S = 0.01
RESERVE_BYTES_DEFAULT = 64 << 20
#: Less than this is a full disk, when LMDB cannot say why a write was cut short.
NOTHING_FREE_BYTES = 1 << 20
EXIT_STATUS_FATAL = 70


class WriterStoppedError(StorageError):
    """The writer takes nothing any more: it was stopped, or it failed."""


@dataclass(slots=True)
class DiskFaults:
    """What to do wrong, for tests of what stands on this."""

    #: Wait before each commit.
    delay_s: float = 0.0
    #: The next commit fails, as if the device had failed to sync.
    fsync_fails: bool = False
    #: Say that it is durable, and commit so much later: a disk that lies, if the process is killed in between.
    answer_before_sync_s: float = 0.0


def end_process(error: BaseException) -> None:
    """At once: nothing that is only in memory may leave any more."""
    traceback.print_exception(error, file=sys.stderr)
    print("ordercast: the disk failed; what is on it is not known any more", file=sys.stderr, flush=True)
    os._exit(EXIT_STATUS_FATAL)


class Writer:
    def __init__(
        self,
        storage: Storage,
        loop: asyncio.AbstractEventLoop,
        *,
        on_durable: Callable[[int], None],
        on_full: Callable[[bool], None],
        wall_ms: Callable[[], int],
        on_fatal: Callable[[BaseException], None] = end_process,
        reserve_bytes: int = RESERVE_BYTES_DEFAULT,
    ) -> None:
        if not 0 <= reserve_bytes < storage.map_bytes:
            raise StorageError(f"a reserve of {reserve_bytes} bytes in a map of {storage.map_bytes}")
        self.storage = storage
        self.faults = DiskFaults()
        #: Told how long each commit took, in the writer's thread.
        self.on_committed: Callable[[float], None] = lambda seconds: None
        #: This ticket and all before it were reported.
        self.durable = 0
        self._loop = loop
        self._on_durable = on_durable
        self._on_full = on_full
        self._on_fatal = on_fatal
        self._reserve_bytes = reserve_bytes
        self._own = OwnLogs(storage, wall_ms)
        #: Nothing is added any more, and after a failure nothing reported.
        self._is_over = False
        self._has_failed = False

        # Both threads; guarded by the condition, which the writer's thread holds only to look and to take.
        self._work = threading.Condition(threading.Lock())
        self._open = Batch(1)
        self._is_kicked = False
        self._to_trim = dict.fromkeys(storage.leftovers())
        self._is_busy = bool(self._to_trim)

        # Written by the writer's thread, read by the loop's.
        self._committed = 0
        self._answered = 0

        # The writer's thread alone, as is _to_trim.
        self._is_failing = False
        self._is_low = False
        self._said_full = False
        self._checked_at = -RESERVE_CHECK_S
        self._is_quiet = False

        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="storage-writer", daemon=True)
        self._thread.start()

    # ---------------------------------------------------------------------------------- the loop's thread: writing

    def add(
        self,
        domain: str,
        role: str,
        records: Sequence[tuple[bytes, bytes | None]],
        log: Sequence[tuple[str, int, LogEntry | None]],
    ) -> int:
        """One atomic change, with the ticket of the transaction it will be in.

        A log tuple without an entry begins the group's log anew at that position.
        """
        prefix = records_prefix(domain, role)
        changes = [(checked_key(prefix + key), value) for key, value in records]
        for group, _, _ in log:
            log_prefix(group)
        with self._adding() as batch:
            for group, position, entry in log:
                batch.log += self._own.write(batch.ticket, group, position, entry)
            batch.records.update(changes)
            batch.is_awaited = True
            return batch.ticket

    def truncate(self, group: str, position: int) -> None:
        """Retention: the log begins at the position, unless it does not reach there."""
        with self._adding() as batch:
            batch.log += self._own.truncate(batch.ticket, group, position)

    def repair(self, group: str, position: int, data: bytes) -> int:
        """Replace a damaged entry, unless it is gone meanwhile."""
        with self._adding() as batch:
            batch.log += self._own.repair(batch.ticket, group, position, data)
            batch.is_awaited = True
            return batch.ticket

    def drop_group(self, group: str) -> None:
        """The group's log goes. Group ids are unique in all domains; the domain's records are its machines'."""
        with self._adding() as batch:
            batch.log += self._own.drop(batch.ticket, group)

    def rewrite(self, cell: str, entries: Sequence[tuple[int, bytes]]) -> int:
        """Put these in the place of what they were, by position: without what no group of the cell needs."""
        with self._adding() as batch:
            for position, data in entries:
                batch.log += self._own.rewrite(cell, position, data)
            batch.is_awaited = True
            return batch.ticket

    def begin_group(self, group: str, begin: GroupBegin) -> None:
        """Retention: a group that shares its cell begins there. Its rows before that go later, piece by piece."""
        with self._adding() as batch:
            batch.log.append(BeginGroup(group, begin))

    def drop_shared(self, group: str) -> None:
        """A group that shared its cell is gone: its rows go, piece by piece."""
        log_prefix(group)
        with self._adding() as batch:
            batch.log.append(DropGroup(group))

    def mend_index(self, group: str, spoilt: Sequence[bytes], rows: Sequence[IndexRow]) -> int:
        """These rows are as the log has them; what is under these keys says nothing."""
        with self._adding() as batch:
            batch.log.append(MendIndex(group, tuple(spoilt), tuple(rows)))
            batch.is_awaited = True
            return batch.ticket

    def kick(self) -> None:
        """Write what piled up, now or when the thread is done with what it writes."""
        with self._work:
            self._is_kicked = True
            self._work.notify()

    @contextlib.contextmanager
    def _adding(self) -> Iterator[Batch]:
        if self._is_over:
            raise WriterStoppedError("the writer has stopped")
        with self._work:
            yield self._open

    @property
    def is_idle(self) -> bool:
        """Nothing is added, being written, waiting to be removed, or not yet reported."""
        with self._work:
            return self._open.is_empty and not self._is_busy and self.durable == self._open.ticket - 1

    def stop(self) -> bool:
        """Commit what is left and end the thread. False if something could not be committed.

        On a full disk it tries once more. Entries that wait to be removed are left to the next start.
        """
        self._is_over = True
        self._stopping.set()
        self.kick()
        self._thread.join()
        self._report()
        return self._open.is_empty and self._committed == self._open.ticket - 1

    # ---------------------------------------------------------------------------------- the loop's thread: reading

    def own_bounds(self, group: str) -> LogBounds:
        """As Storage.bounds, with what is added and not yet durable."""
        return self._own.bounds(group)

    def read_own(self, group: str, position: int, count_max: int, bytes_max: int) -> list[StoredEntry]:
        """As Storage.read, with what is added and not yet durable."""
        return self._own.read(group, position, count_max, bytes_max)

    # ------------------------------------------------------------------------------- the loop's thread: being told

    def _report(self) -> None:
        """Reports that came while the loop was busy are one."""
        committed, answered = self._committed, self._answered
        self._own.release(committed)
        durable = max(committed, answered)
        if durable > self.durable and not self._has_failed:
            self.durable = durable
            self._on_durable(durable)

    def _failed(self, error: BaseException) -> None:
        self._is_over = self._has_failed = True
        self._on_fatal(error)

    # ----------------------------------------------------------------------------------------- the writer's thread

    def _run(self) -> None:
        try:
            self._check_reserve()
            while True:
                batch = self._take()
                if batch is None and self._stopping.is_set():
                    return
                is_due = batch is not None or self._to_trim or self.storage.damages.is_unsaved
                if is_due and not self._commit(batch):
                    return
                self._check_reserve()
                if self._is_quiet:
                    # Nobody waits for the disk now.
                    self._is_quiet = False
                    self.storage.sync_mark()
        except BaseException as error:
            if not self._tell(self._failed, error):
                self._on_fatal(error)

    def _take(self) -> Batch | None:
        """What is to be written; None if it is time to trim, to look at the reserve, or to stop."""
        with self._work:
            while True:
                is_stopping = self._stopping.is_set()
                is_wanted = self._is_kicked or is_stopping
                self._is_kicked = False
                if is_wanted and not self._open.is_empty:
                    batch, self._open = self._open, Batch(self._open.ticket + 1)
                    self._is_busy = True
                    return batch
                if is_stopping or self._to_trim:
                    return None
                self._is_busy = False
                if not self._work.wait(RESERVE_CHECK_S if self._reserve_bytes else None):
                    self._is_quiet = True
                    return None

    def _commit(self, batch: Batch | None) -> bool:
        """Until it works; False if it does not and the writer is to stop. Without a batch, only trim."""
        if batch is not None and self.faults.answer_before_sync_s:
            self._answer_early(batch)
        while not self._attempt(batch):
            self._is_failing = True
            self._say_full()
            if self._stopping.is_set():
                return False
            # LMDB reuses what a transaction freed in the next but one. Attempts that fail do not count: without a
            # small one in between, the batch would never find the room. What is trimmed may be room, too.
            self._attempt(None)
            self._stopping.wait(RETRY_S)
        self._is_failing = False
        self._say_full()
        if batch is not None:
            self._committed = batch.ticket
            self._tell(self._report)
        return True

    def _answer_early(self, batch: Batch) -> None:
        """A disk that lies makes nobody wait: what comes meanwhile is answered too, and joins the batch."""
        until = time.monotonic() + self.faults.answer_before_sync_s
        while True:
            self._answered = batch.ticket
            self._tell(self._report)
            with self._work:
                self._work.wait_for(
                    lambda: self._stopping.is_set() or (self._is_kicked and not self._open.is_empty),
                    max(0.0, until - time.monotonic()),
                )
                if self._stopping.is_set() or time.monotonic() >= until:
                    return
                later, self._open = self._open, Batch(self._open.ticket + 1)
                self._is_kicked = False
            batch.ticket = later.ticket
            batch.records |= later.records
            batch.log += later.log

    def _attempt(self, batch: Batch | None) -> bool:
        """One transaction; false if there was no room for it."""
        faults = self.faults
        begun = time.monotonic()
        if faults.delay_s:
            self._stopping.wait(faults.delay_s)
        txn = self.storage.env.begin(write=True, buffers=True)
        try:
            if batch is None:
                self.storage.touch(txn)
            left = self._trim(txn, [] if batch is None else perform(self.storage, txn, batch))
            damage = self.storage.damages.unsaved
            if damage is not self.storage.damages.saved:
                self.storage.save_damage(txn, damage)
            if faults.fsync_fails:
                faults.fsync_fails = False
                raise OSError(errno.EIO, "the sync fails, as was asked for")
            txn.commit()
        except BaseException as error:
            txn.abort()
            if self._is_for_want_of_room(error):
                return False
            raise
        self.on_committed(time.monotonic() - begun)
        self.storage.mark_commit()
        self.storage.damages.saved = damage
        self._to_trim = left
        return True

    def _trim(self, txn: Writing, groups: list[str]) -> dict[str, None]:
        """Remove a piece of what nobody sees any more, and return the groups that have more of it."""
        left = self._to_trim | dict.fromkeys(groups)
        count_left = TRIM_COUNT_MAX
        for group in list(left):
            count_left -= trim(self.storage, txn, group, count_left)
            if not count_left:
                break
            del left[group]
        return left

    def _is_for_want_of_room(self, error: BaseException) -> bool:
        """Whether to try again.

        LMDB passes on what the system said, but for a write that was cut short, as the last one on a full disk is:
        that is EIO, as a failed sync is. If it was a sync after all, trying again loses nothing: all pages of the
        transaction are written anew, those of earlier ones are synced, and what makes it valid is written last.
        """
        if isinstance(error, lmdb.MapFullError):
            return True
        if not isinstance(error, lmdb.Error):
            return False
        if error.code == errno.EIO:
            return self.storage.free_bytes() < NOTHING_FREE_BYTES
        return error.code in (errno.ENOSPC, errno.EDQUOT)

    def _check_reserve(self) -> None:
        """Say that it is getting full while there still is room for what was let in."""
        now = time.monotonic()
        if self._reserve_bytes and now - self._checked_at >= RESERVE_GAP_S:
            self._checked_at = now
            self._is_low = min(self.storage.free_bytes(), self.storage.map_room_bytes()) < self._reserve_bytes
            self._say_full()

    def _say_full(self) -> None:
        is_full = self._is_failing or self._is_low
        if is_full != self._said_full:
            self._said_full = is_full
            self._tell(self._on_full, is_full)

    def _tell(self, callback: Callable[..., None], *args: object) -> bool:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            # The loop is closed: there is nobody left to tell.
            return False
        return True
