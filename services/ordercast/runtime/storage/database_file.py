"""Looks at LMDB's file before LMDB does: whether something was cut off at its end, or its first pages are damaged.

LMDB maps the file, and reading a page behind its end kills the process with a signal, without a word, at every
start. The layout is that of LMDB 0.9 on machines with 64 bits. Two pages at the beginning describe a state each;
the one with the higher transaction number counts, and the other is the state of the transaction before. Pages that
were taken and given back within one transaction are never written: so the file may end before the last page, if
all that are missing are in the list of free ones.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lmdb

from ordercast.runtime.storage.damage_advice import DISK
from ordercast.runtime.storage.layout import StorageError

DATA_FILE = "data.mdb"
MAGIC = 0xBEEFC0DE
PAGE_HEADER_BYTES = 16
BRANCH, LEAF, META = 0x01, 0x02, 0x08
BIG_DATA = 0x01
DEPTH_MAX = 32
NO_PAGE = (1 << 64) - 1
#: Those that describe the others.
FIRST_PAGES = 2
ADVICE = f"Nothing was changed. {DISK}"
DAMAGE_ERRORS = (lmdb.InvalidError, lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.VersionMismatchError)

#: Magic, version, address, map size, and of the free list: page size, flags, depth, three counts, entries, root.
HEAD = struct.Struct("<IIQQ" + "IHHQQQQQ")
#: Of the main table the same; then the last page and the number of the transaction.
REST = struct.Struct("<IHHQQQQQ" + "QQ")
PAGE_HEADER = struct.Struct("<QHHHH")
NODE = struct.Struct("<HHHH")


class CutFileError(StorageError):
    """A part of the database's file is missing."""


class DamagedFileError(StorageError):
    """The first pages, which describe the others, are not what was written."""


@dataclass(slots=True, frozen=True)
class FileState:
    page_bytes: int
    map_bytes: int
    free_root: int
    main_root: int
    pages: int
    transaction: int

    @property
    def is_possible(self) -> bool:
        """LMDB never writes another."""
        roots = (self.free_root, self.main_root)
        return self.pages * self.page_bytes <= self.map_bytes and all(
            root == NO_PAGE or FIRST_PAGES <= root < self.pages for root in roots
        )


def check_file(directory: Path, *, was_used: bool) -> None:
    """Raises if pages are damaged that describe the others, or missing that are, or may be, in use.

    `was_used`: there was a database here before.
    """
    path = directory / DATA_FILE
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        size = 0
    if size == 0:
        if was_used:
            raise CutFileError(f"{path} is missing or empty, and was not. {ADVICE}")
        return
    with path.open("rb", buffering=0) as file:
        states = _states(file.fileno())
        if not states:
            return  # LMDB says what else is wrong with it.
        state = states[0]
        if not state.is_possible or _transactions_apart(states) > 1:
            raise DamagedFileError(
                f"{path} is damaged: the first pages, which describe the others, say what cannot be. {ADVICE}"
            )
        there = size // state.page_bytes
        if there < state.pages and not _all_free(file.fileno(), state, there):
            needed = state.pages * state.page_bytes
            # Only the latest state has more than there is: what describes it may be wrong just as well.
            is_sure = states[-1].pages > there
            what = "it was cut off" if is_sure else "it was cut off, or the page that says so is damaged"
            raise CutFileError(f"{path} has {size} bytes and should have about {needed}: {what}. {ADVICE}")


def of_lmdb(directory: Path, error: lmdb.Error) -> StorageError:
    """What LMDB found, with what to do about it if it is damage."""
    text = f"{directory}: {error}"
    return StorageError(f"{text}. The file is damaged. {DISK}" if isinstance(error, DAMAGE_ERRORS) else text)


def latest_state(file: int) -> FileState | None:
    """None if neither of the first pages describes one."""
    return next(iter(_states(file)), None)


def _transactions_apart(states: list[FileState]) -> int:
    return states[0].transaction - states[-1].transaction


def _states(file: int) -> list[FileState]:
    """Those that the first pages describe, the latest first."""
    found = []
    first = _state(os.pread(file, PAGE_HEADER_BYTES + HEAD.size + REST.size, 0))
    if first is not None:
        found.append(first)
    # The second page tells where it is only by being there: page sizes are powers of two.
    sizes = [first.page_bytes] if first is not None else [1 << bits for bits in range(9, 17)]
    for page_bytes in sizes:
        second = _state(os.pread(file, PAGE_HEADER_BYTES + HEAD.size + REST.size, page_bytes))
        if second is not None and second.page_bytes == page_bytes:
            found.append(second)
    return sorted(found, key=lambda state: state.transaction, reverse=True)


def _state(data: bytes) -> FileState | None:
    if len(data) < PAGE_HEADER_BYTES + HEAD.size + REST.size:
        return None
    head = HEAD.unpack_from(data, PAGE_HEADER_BYTES)
    rest = REST.unpack_from(data, PAGE_HEADER_BYTES + HEAD.size)
    page_bytes = head[4]
    if head[0] != MAGIC or page_bytes not in [1 << bits for bits in range(9, 17)]:
        return None
    return FileState(
        page_bytes=page_bytes,
        map_bytes=head[3],
        free_root=head[-1],
        main_root=rest[-3],
        pages=rest[-2] + 1,
        transaction=rest[-1],
    )


def _all_free(file: int, state: FileState, there: int) -> bool:
    """Whether the list of free pages can be read, and has all that are missing."""
    try:
        free = {page for page in _free_pages(file, state, state.free_root, 0, there) if page >= there}
    except (ValueError, struct.error):
        return False
    return len(free) == state.pages - there


def _free_pages(file: int, state: FileState, number: int, depth: int, there: int) -> Iterator[int]:
    if number == NO_PAGE:
        return
    page = _page(file, state, number, 1, there)
    flags, lower = PAGE_HEADER.unpack_from(page)[2:4]
    if depth > DEPTH_MAX or not flags & (BRANCH | LEAF) or not PAGE_HEADER_BYTES <= lower <= state.page_bytes:
        raise ValueError("no page of a tree")
    for index in range((lower - PAGE_HEADER_BYTES) // 2):
        (at,) = struct.unpack_from("<H", page, PAGE_HEADER_BYTES + 2 * index)
        low, high, node_flags, key_bytes = NODE.unpack_from(page, at)
        if flags & BRANCH:
            yield from _free_pages(file, state, low | high << 16 | node_flags << 32, depth + 1, there)
            continue
        size, begin, data = low | high << 16, at + NODE.size + key_bytes, page
        if node_flags & BIG_DATA:
            (overflow,) = struct.unpack_from("<Q", page, begin)
            count = (PAGE_HEADER_BYTES - 1 + size) // state.page_bytes + 1
            data, begin = _page(file, state, overflow, count, there), PAGE_HEADER_BYTES
        yield from _ids(data[begin : begin + size])


def _ids(data: bytes) -> tuple[int, ...]:
    """How many, and then so many."""
    (count,) = struct.unpack_from("<Q", data)
    return struct.unpack_from(f"<{count}Q", data, 8)


def _page(file: int, state: FileState, number: int, count: int, there: int) -> bytes:
    if number + count > there:
        raise ValueError("it is one of the missing ones")
    return os.pread(file, count * state.page_bytes, number * state.page_bytes)
