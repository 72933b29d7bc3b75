"""How things lie in the database of a process: keys, checksums, headers, and what is raised when they are wrong.

Every value is four bytes of checksum, over key and content, and the content. The key is part of it, so that a
value under a key that is not its own is found out too. A log value's content begins with an EntryHeader.
"""

import functools
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, ParamSpec, TypeVar

from ordercast.v1.sequencer_pb2 import LogEntry

#: LMDB's limit.
KEY_BYTES_MAX = 511
POSITION_MAX = (1 << 64) - 2

META = "meta"
RECORDS = "records"
LOGS = "logs"
#: Where each log begins. A log is there if, and only if, it has a record here.
BEGINS = "begins"
#: Where the messages of each group are in the log of a cell that it shares: see group_index.py.
INDEX = "index"

CHECKSUM = struct.Struct(">I")
U64 = struct.Struct(">Q")
HEADER = struct.Struct(">QQQQ")
MARK = struct.Struct(">QQQ")


class StorageError(Exception):
    """The data directory cannot be used as asked."""


class StorageInUseError(StorageError):
    """Another process, or this one, has the data directory open."""


class UnknownFormatError(StorageError):
    """The data directory was written by another version, or by something else."""


class BadNameError(StorageError, ValueError):
    """A domain, role, group or key that cannot be part of a database key."""


class BadEntryError(StorageError, ValueError):
    """What was given to mend a log entry is not that entry."""


class LostWritesError(StorageError):
    """What was durable is not there any more."""


class CorruptRecord(StorageError):  # noqa: N818 (it names what was found)
    """What was read is not what was written. `group` and `position` say where, for logs."""

    def __init__(
        self, database: str, key: bytes, reason: str, group: str | None = None, position: int | None = None
    ) -> None:
        self.database = database
        self.key = readable(database, key)
        self.reason = reason
        self.group = group
        self.position = position
        super().__init__(f"{database}: {self.key}: {reason}")


P = ParamSpec("P")
R = TypeVar("R")


def without_frames(method: Callable[P, R]) -> Callable[P, R]:
    """What is raised about damage leaves without the frames that it was raised in, for it may be kept for long.

    They hold a transaction, and each one takes the place of a reader until nobody holds it any more. A damaged
    entry that is asked for again and again would use up all places, and end the process.
    """

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except CorruptRecord as damaged:
            raise damaged.with_traceback(None) from None

    return call


@dataclass(slots=True, frozen=True)
class LogBounds:
    """The entries of a log are at positions begins <= p < ends; `bytes` is what they take."""

    begins: int = 0
    ends: int = 0
    first_offset: int = 0
    next_offset: int = 0
    bytes: int = 0


class StoredEntry(NamedTuple):
    """An entry as it is stored: `data` is a serialised LogEntry. It may have no new messages."""

    position: int
    first_offset: int
    next_offset: int
    data: bytes
    #: See EntryHeader.
    wall_ms: int


class EntryHeader(NamedTuple):
    first_offset: int
    next_offset: int
    #: When it was appended, by a clock that may jump.
    wall_ms: int
    #: What all entries before it took, including those that retention dropped.
    bytes_before: int


class Mark(NamedTuple):
    """A place between two entries: how many positions, messages and bytes came before."""

    position: int
    offset: int
    bytes: int


class Extent(NamedTuple):
    begin: Mark
    end: Mark

    def bounds(self) -> LogBounds:
        begin, end = self
        return LogBounds(begin.position, end.position, begin.offset, end.offset, end.bytes - begin.bytes)


# ------------------------------------------------------------------------------------------------------- keys


def name_bytes(name: str) -> bytes:
    """A name in front of a NUL; a name with one would be mistaken for another."""
    data = name.encode()
    if not data or b"\0" in data:
        raise BadNameError(f"neither empty nor with a NUL may it be: {name!r}")
    return data


def records_prefix(domain: str, role: str) -> bytes:
    return b"%b\0%b\0" % (name_bytes(domain), name_bytes(role))


def checked_key(key: bytes) -> bytes:
    if not 0 < len(key) <= KEY_BYTES_MAX:
        raise BadNameError(f"a key of {len(key)} bytes; 1 to {KEY_BYTES_MAX} are possible: {key[:40]!r}")
    return key


def log_prefix(group: str) -> bytes:
    prefix = name_bytes(group) + b"\0"
    # A position comes behind it, or as much before it: see storage.dropped_key.
    checked_key(prefix + bytes(U64.size))
    return prefix


def log_key(prefix: bytes, position: int) -> bytes:
    if not 0 <= position <= POSITION_MAX:
        raise BadNameError(f"no position: {position}")
    return prefix + U64.pack(position)


def position_in(key: bytes) -> int:
    position: int = U64.unpack_from(key, len(key) - U64.size)[0]
    return position


def readable(database: str, key: bytes) -> str:
    """For people who have to find out what is damaged."""
    if database == LOGS and len(key) > U64.size:
        return f"{key[: -U64.size - 1].decode(errors='replace')} at position {position_in(key)}"
    if database == RECORDS:
        domain, role, rest = (*key.split(b"\0", 2), b"", b"")[:3]
        return f"{domain.decode(errors='replace')} {role.decode(errors='replace')} {rest!r}"
    if database == INDEX and len(key) > U64.size:
        return f"{key[: -U64.size - 1].decode(errors='replace')} from offset {position_in(key)}"
    return key.decode(errors="replace")


# ----------------------------------------------------------------------------------------------------- values


def seal(key: bytes, parts: Iterable[bytes]) -> bytes:
    """The value to store: its parts are copied once."""
    parts = tuple(parts)
    checksum = zlib.crc32(key)
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join((CHECKSUM.pack(checksum), *parts))


def unseal(database: str, key: bytes, value: memoryview) -> memoryview:
    """The content, not copied; raises if it is not what was sealed under that key."""
    size = CHECKSUM.size
    if len(value) < size or CHECKSUM.unpack_from(value)[0] != zlib.crc32(value[size:], zlib.crc32(key)):
        if database == LOGS and len(key) > U64.size:
            group = key[: -U64.size - 1].decode(errors="replace")
            raise CorruptRecord(database, key, "wrong checksum", group, position_in(key))
        group_only = key.decode(errors="replace") if database == BEGINS else None
        raise CorruptRecord(database, key, "wrong checksum", group_only)
    return value[size:]


def next_offset_of(entry: LogEntry) -> int:
    """Duplicates have the offsets they were first delivered with, and take none here."""
    spans = (span for outcome in entry.outcomes for span in outcome.spans)
    return entry.first_offset + sum(span.count for span in spans if not span.duplicate)
