"""A stream, as a root has it: one broadcaster incarnation's entries, counted from 0.

A root has them without a gap, from `base` on: those before are merged, and that is on its disk. What may be
merged is a function of the stream and its end alone (E4 in README.md): nulls at once; messages and marks when a
majority of the home group has them, which is announced, or which its end implies.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.v1.apbcast_pb2 import StreamEntry


def is_null(entry: StreamEntry) -> bool:
    return entry.WhichOneof("what") is None


@dataclass(slots=True)
class Stream:
    number: int
    base: int = 0
    entries: list[StreamEntry] = field(default_factory=list)
    #: So many are on disks of a majority of the home group, as far as is known here.
    announced: int = 0
    #: Its length once it has ended.
    end: int | None = None
    #: Somebody has spoken of so many.
    spoken_of: int = 0
    #: So many were given to the disk.
    written: int = 0

    @property
    def length(self) -> int:
        return self.base + len(self.entries)

    @property
    def needed(self) -> int:
        """So many are there, somewhere, and are worth asking for."""
        needed = max(self.announced, self.spoken_of)
        return needed if self.end is None else min(max(needed, self.end), self.end)

    def put(self, first: int, entries: Sequence[StreamEntry]) -> bool:
        """Take what follows on what is here; whether anything was new. What lies behind a gap is only noted."""
        self.spoken_of = max(self.spoken_of, first + len(entries))
        if first > self.length:
            return False
        new = entries[self.length - first :]
        self.entries.extend(new)
        return len(new) > 0

    def entry(self, index: int) -> StreamEntry | None:
        """If it is here, and before the end. Nulls that were merged behind the end count nowhere (R7)."""
        if not self.base <= index < self.length or (self.end is not None and index >= self.end):
            return None
        return self.entries[index - self.base]

    def mergeable(self, index: int) -> StreamEntry | None:
        entry = self.entry(index)
        if entry is None or is_null(entry) or self.end is not None or index < self.announced:
            return entry
        return None

    def last_timestamp(self, otherwise: int) -> int:
        """Of what is here and counts."""
        length = self.length if self.end is None else min(self.length, self.end)
        return self.entries[length - self.base - 1].timestamp if length > self.base else otherwise

    def worth_writing(self) -> int:
        """Up to the last entry that is no null. Nulls behind it wait for company: losing them moves nobody."""
        for index in range(self.length, max(self.written, self.base), -1):
            if not is_null(self.entries[index - 1 - self.base]):
                return index
        return max(self.written, self.base)

    def drop_below(self, index: int) -> int:
        """Forget what is before the index; how far it was there before."""
        before, index = self.base, min(index, self.length)
        if index > before:
            del self.entries[: index - before]
            self.base = index
            self.written = max(self.written, index)
        return before

    def begin_at(self, index: int) -> None:
        """A snapshot is past all that was here."""
        self.base, self.entries = index, []
        self.written = max(self.written, index)
