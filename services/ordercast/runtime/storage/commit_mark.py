"""The number of the last commit, kept beside the database: how a lost write is noticed.

A database whose device dropped a write after it said that it was synced looks sound: LMDB opens the last state
that is whole, which is an older one. A replica that then goes on has forgotten stamps and votes that others rest
on. So after every commit its number, LMDB's own transaction id, is written into a small file, and a start compares
the two. The file is written after the database was synced and never before: if the file is ahead, writes are lost.
There is no other way to get there, so there is no false alarm.

The file itself is not synced with each commit, for that would be a second sync on everybody's way. It is synced
when there was nothing to write for a while, and at the end; otherwise the system writes it back within half a
minute. So:

* the process is killed, or the machine stays up: the file is exact, and whatever the database lost is noticed;
* the machine loses power: what the database lost is noticed if it is older than the file's last write-back;
* somebody puts an old `data.mdb` back: noticed;
* the device loses the latest of both files, or somebody puts an old copy of the whole directory back: not noticed.
  Nothing on that disk could tell;
* a page of the database is lost and the one that makes the commit valid is not: the number is right. Checksums,
  holes in logs and positions behind a log's end tell of most of that (damage.py).

Two places are written in turns, each in a sector of its own: a write that was cut short leaves the one before.
"""

import errno
import os
import struct
import zlib
from pathlib import Path

from ordercast.runtime.storage.layout import CHECKSUM
from ordercast.runtime.storage.private_files import FILE_MODE

MARK_FILE = "commits"
#: The disk's id and the number; behind them is the checksum of both.
CONTENT = struct.Struct(">16sQ")
SLOT_BYTES = CONTENT.size + CHECKSUM.size
SLOT_GAP = 4096
SLOTS = 2
FOR_WANT_OF_ROOM = (errno.ENOSPC, errno.EDQUOT)


class CommitMark:
    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / MARK_FILE, os.O_RDWR | os.O_CREAT, FILE_MODE)
        self._is_synced = True

    def read(self, node_id: bytes) -> int | None:
        """None if there is no number, none that can be read, or only another disk's."""
        return highest(self._file, node_id)

    def is_empty(self) -> bool:
        return os.fstat(self._file).st_size == 0

    def clear(self) -> None:
        """The numbers are of a state that is gone: those that come now are lower."""
        os.ftruncate(self._file, 0)
        self._is_synced = False

    def write(self, node_id: bytes, number: int) -> None:
        """Without room, the number before stays: less is noticed, and nothing wrongly."""
        content = CONTENT.pack(node_id, number)
        slot = content + CHECKSUM.pack(zlib.crc32(content))
        try:
            os.pwrite(self._file, slot, number % SLOTS * SLOT_GAP)
        except OSError as error:
            if error.errno not in FOR_WANT_OF_ROOM:
                raise
        self._is_synced = False

    def sync(self) -> None:
        if not self._is_synced:
            self._is_synced = True
            try:
                os.fdatasync(self._file)
            except OSError as error:
                if error.errno not in FOR_WANT_OF_ROOM:
                    raise

    def close(self) -> None:
        os.close(self._file)


def read_mark(directory: Path, node_id: bytes) -> int | None:
    """Of a directory that is only looked at."""
    try:
        file = os.open(directory / MARK_FILE, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return highest(file, node_id)
    finally:
        os.close(file)


def highest(file: int, node_id: bytes) -> int | None:
    slots = [os.pread(file, SLOT_BYTES, index * SLOT_GAP) for index in range(SLOTS)]
    return max((number for slot in slots if (number := number_in(slot, node_id)) is not None), default=None)


def number_in(slot: bytes, node_id: bytes) -> int | None:
    if len(slot) != SLOT_BYTES:
        return None
    content, checksum = slot[: CONTENT.size], CHECKSUM.unpack_from(slot, CONTENT.size)[0]
    owner, number = CONTENT.unpack(content)
    return number if owner == node_id and checksum == zlib.crc32(content) else None
