"""A group's log as its readers go through it, whether it has its cell to itself or shares it with others.

Readers remember a *place*, of which the log says what it is: they come back with it for more.
"""

from typing import Protocol

from ordercast.core.cells import cell_of
from ordercast.core.entries import order_key_in
from ordercast.runtime.storage.group_index import GroupIndex
from ordercast.runtime.storage.layout import LogBounds, StoredEntry
from ordercast.runtime.storage.store import Storage


class Pages(Protocol):
    def bounds(self) -> LogBounds: ...

    def offset_stored_at(self, wall_ms: int) -> int: ...

    def offset_of_key(self, order_key: bytes) -> int:
        """Of the first message with this order key or a higher one, or the next if there is none."""
        ...

    def place_of(self, offset: int) -> int: ...

    def begin(self, bounds: LogBounds) -> int: ...

    def end(self, bounds: LogBounds) -> int: ...

    def read(self, place: int, count_max: int, bytes_max: int) -> list[StoredEntry]: ...

    def behind(self, entry: StoredEntry) -> int: ...


class OwnPages:
    """Of a group that has a cell to itself: the place is the position of an entry."""

    def __init__(self, storage: Storage, group: str) -> None:
        self.storage = storage
        self.group = group

    def bounds(self) -> LogBounds:
        return self.storage.bounds(self.group)

    def offset_stored_at(self, wall_ms: int) -> int:
        return self.storage.offset_stored_at(self.group, wall_ms)

    def offset_of_key(self, order_key: bytes) -> int:
        found = self.storage.read(self.group, _position_of_key(self.storage, self.group, order_key), 1, 0)
        return found[0].first_offset if found else self.bounds().next_offset

    def place_of(self, offset: int) -> int:
        return self.storage.position_of(self.group, offset)

    def begin(self, bounds: LogBounds) -> int:
        return bounds.begins

    def end(self, bounds: LogBounds) -> int:
        return bounds.ends

    def read(self, place: int, count_max: int, bytes_max: int) -> list[StoredEntry]:
        return self.storage.read(self.group, place, count_max, bytes_max)

    def behind(self, entry: StoredEntry) -> int:
        return entry.position + 1


class SharedPages:
    """Of a group that shares its cell: the place is an offset."""

    def __init__(self, index: GroupIndex, group: str) -> None:
        self.index = index
        self.group = group

    def bounds(self) -> LogBounds:
        return self.index.bounds(self.group)

    def offset_stored_at(self, wall_ms: int) -> int:
        return self.index.offset_stored_at(self.group, wall_ms)

    def offset_of_key(self, order_key: bytes) -> int:
        position = _position_of_key(self.index.storage, cell_of(self.group), order_key)
        return self.index.offset_at(self.group, position)

    def place_of(self, offset: int) -> int:
        return offset

    def begin(self, bounds: LogBounds) -> int:
        return bounds.first_offset

    def end(self, bounds: LogBounds) -> int:
        return bounds.next_offset

    def read(self, place: int, count_max: int, bytes_max: int) -> list[StoredEntry]:
        return self.index.read(self.group, place, count_max, bytes_max)

    def behind(self, entry: StoredEntry) -> int:
        return entry.next_offset


def _position_of_key(storage: Storage, cell: str, order_key: bytes) -> int:
    """Of the first entry of the cell's log with this order key or a higher one, or behind the last."""
    bounds = storage.bounds(cell)
    low, high = bounds.begins, bounds.ends
    while low < high:
        middle = (low + high) // 2
        stored = storage.read(cell, middle, 1, 0)
        if stored and order_key_in(stored[0].data) < order_key:
            low = middle + 1
        else:
            high = middle
    return low
