"""A group's log as its readers go through it, whether it has its cell to itself or shares it with others.

Readers remember a *place*, of which the log says what it is: they come back with it for more.
"""

from typing import Protocol

from ordercast.runtime.storage.group_index import GroupIndex
from ordercast.runtime.storage.layout import LogBounds, StoredEntry
from ordercast.runtime.storage.store import Storage


class Pages(Protocol):
    def bounds(self) -> LogBounds: ...

    def offset_stored_at(self, wall_ms: int) -> int: ...

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
