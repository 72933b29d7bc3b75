"""Where requests get to disk: one thread, one write and one sync for all that piled up meanwhile.

A request is answered when it is synced. What waits is bounded in bytes, and beyond that refused, as is everything
while the disk is as good as full. The thread also closes the active segment when it is large or old enough, and
begins the next one.

A write that finds no room is taken back. Any other failure is the end: after a failed sync nobody knows what is on
the disk.
"""

import asyncio
import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from ordercast.runtime.storage.private_files import FILE_MODE
from ordercast.telemetry.spool.frames import HEADER_BYTES, header
from ordercast.telemetry.spool.layout import open_path, sync_directory

LOOK_S = 0.25
#: How often the room on the disk is looked at.
ROOM_S = 1.0
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: Buffers that the system takes in one write.
BUFFERS_MAX = 1024


class BusyError(Exception):
    """More waits for the disk than may wait."""

    def __init__(self, waiting_bytes: int, bytes_per_s: float) -> None:
        super().__init__(f"{waiting_bytes} bytes wait to be written")
        self.retry_after_s = min(5.0, max(0.1, waiting_bytes / max(bytes_per_s, 1.0)))


class FullError(Exception):
    """There is no room on the disk."""


class Closed(NamedTuple):
    """A segment that nothing is added to any more."""

    first: int
    end: int
    bytes: int
    path: Path


@dataclass(slots=True)
class WaitingExport:
    signal: str
    payload: bytes
    count: int
    received_ns: int
    answer: asyncio.Future[None]


class Watches(Protocol):
    """Hears what the thread has done, in the thread of the event loop."""

    def synced(self, end: int, duration_s: float) -> None: ...

    def closed(self, segment: Closed) -> None: ...

    def room_changed(self, free_bytes: int, is_full: bool) -> None: ...

    def failed(self, error: BaseException) -> None: ...


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    segment_bytes: int
    seal_s: float
    queue_bytes_max: int
    reserve_bytes: int


class SpoolIntake:
    """To be made and used in the event loop's thread."""

    def __init__(self, directory: Path, salt: int, first: int, limits: IntakeLimits, watches: Watches) -> None:
        self._directory = directory
        self._salt = salt
        self._limits = limits
        self._watches = watches
        self._loop = asyncio.get_running_loop()

        # Both threads; guarded by the condition.
        self._work = threading.Condition(threading.Lock())
        self._waiting: list[WaitingExport] = []
        self._waiting_bytes = 0
        self._is_stopping = False

        # Written by the intake's thread, read by the loop's.
        self._is_full = False
        self._bytes_per_s = 1e6

        # The intake's thread alone.
        self._next = first
        self._begin(first)
        self._room_at = 0.0
        self._look_for_room()
        self._thread = threading.Thread(target=self._run, name="spool-intake", daemon=True)
        self._thread.start()

    # --- The loop's thread

    def submit(self, signal: str, payload: bytes, count: int) -> asyncio.Future[None]:
        """Done when it is on disk. BusyError or FullError if it is not taken."""
        if self._is_full:
            raise FullError("there is no room on the disk")
        answer: asyncio.Future[None] = self._loop.create_future()
        size = HEADER_BYTES + len(payload)
        with self._work:
            if self._waiting_bytes + size > self._limits.queue_bytes_max:
                raise BusyError(self._waiting_bytes, self._bytes_per_s)
            self._waiting_bytes += size
            self._waiting.append(WaitingExport(signal, payload, count, time.time_ns(), answer))
            self._work.notify()
        return answer

    def stop(self) -> None:
        """Writes what waits, and ends the thread. The active segment is sealed at the next start."""
        with self._work:
            self._is_stopping = True
            self._work.notify()
        self._thread.join()
        os.close(self._descriptor)

    # --- The intake's thread

    def _run(self) -> None:
        try:
            while (batch := self._take()) is not None:
                if batch:
                    self._write(batch)
                self._roll_if_due()
                if time.monotonic() - self._room_at > ROOM_S:
                    self._look_for_room()
        except BaseException as error:
            self._tell(self._watches.failed, error)

    def _take(self) -> list[WaitingExport] | None:
        """What waits, up to about a segment of it. Empty if it is time to look around, None at the end."""
        with self._work:
            if not self._waiting and not self._is_stopping:
                self._work.wait(min(LOOK_S, self._limits.seal_s / 4))
            if not self._waiting:
                return None if self._is_stopping else []
            size = 0
            for count, one in enumerate(self._waiting, 1):
                size += HEADER_BYTES + len(one.payload)
                if size >= self._limits.segment_bytes or 2 * count >= BUFFERS_MAX:
                    break
            batch, self._waiting = self._waiting[:count], self._waiting[count:]
            return batch

    def _write(self, batch: list[WaitingExport]) -> None:
        began = time.monotonic()
        parts: list[bytes] = []
        offset = self._next
        for one in batch:
            parts += header(one.signal, offset, one.count, one.received_ns, one.payload, self._salt), one.payload
            offset += one.count
        size = sum(map(len, parts))
        try:
            self._write_all(parts, size)
            os.fdatasync(self._descriptor)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            # What is there of it is cut off at once: the next frame is to follow on the last whole one.
            os.ftruncate(self._descriptor, self._size)
            self._settle(size)
            self._look_for_room(is_full=True)
            self._tell(self._refuse, batch)
            return
        duration_s = time.monotonic() - began
        self._size += size
        self._next = offset
        self._bytes_per_s = 0.8 * self._bytes_per_s + 0.2 * size / max(duration_s, 1e-6)
        self._settle(size)
        self._tell(self._acknowledge, batch, offset, duration_s)

    def _write_all(self, parts: list[bytes], size: int) -> None:
        written = os.writev(self._descriptor, parts)
        if written < size:
            # Cut short, as the last write on a full disk is: the rest says why.
            rest = memoryview(b"".join(parts))[written:]
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def _settle(self, size: int) -> None:
        with self._work:
            self._waiting_bytes -= size

    def _roll_if_due(self) -> None:
        if not self._size:
            self._began = time.monotonic()
            return
        is_old = time.monotonic() - self._began >= self._limits.seal_s
        if self._size < self._limits.segment_bytes and not is_old:
            return
        closed = Closed(self._first, self._next, self._size, open_path(self._directory, self._first))
        descriptor = self._descriptor
        try:
            self._begin(self._next)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self._look_for_room(is_full=True)
            return
        os.close(descriptor)
        self._tell(self._watches.closed, closed)

    def _begin(self, first: int) -> None:
        """A new segment, whose name is on disk before anything is in it."""
        path = open_path(self._directory, first)
        self._descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, FILE_MODE
        )
        sync_directory(self._directory)
        self._first = first
        self._size = 0
        self._began = time.monotonic()

    def _look_for_room(self, is_full: bool = False) -> None:
        self._room_at = time.monotonic()
        found = os.statvfs(self._directory)
        free_bytes = found.f_bavail * found.f_frsize
        self._is_full = is_full or free_bytes < self._limits.reserve_bytes
        self._tell(self._watches.room_changed, free_bytes, self._is_full)

    def _tell(self, callback: Callable[..., None], *arguments: object) -> None:
        # Once the loop is closed there is nobody left to tell.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *arguments)

    # --- The loop's thread again: being told

    def _acknowledge(self, batch: list[WaitingExport], end: int, duration_s: float) -> None:
        self._watches.synced(end, duration_s)
        for one in batch:
            # Whoever asked may have gone.
            if not one.answer.done():
                one.answer.set_result(None)

    def _refuse(self, batch: list[WaitingExport]) -> None:
        for one in batch:
            if not one.answer.done():
                one.answer.set_exception(FullError("there was no room on the disk"))
