"""The logs of several groups as one stream, in the order of their domain. Without I/O: gateways and tests drive
it.

Each source is one group's log, whose entries come by rising order key. A source has *passed* a key when it will
bring nothing more at or below it: because it brought an entry with that key, or because a watermark says so.
The entry with the lowest key comes out when every source has passed that key; until then some source might
bring a lower one. An envelope for several of the groups comes out once, with the entries of all of them.

A source that nothing comes from holds up the others, so somebody has to ask it to pass a key: `wanted` says
which sources and which key. Memory is bounded by room: a source that is ahead gets no more until the others
have followed, and the one that all wait for has nothing here, so it always has room.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Generic, NamedTuple, TypeVar

from ordercast.core.errors import InvariantBroken
from ordercast.core.place import NTH_MAX, Place

E = TypeVar("E")


class Part(NamedTuple, Generic[E]):
    """Of an envelope: what a group's log has of it."""

    source: str
    entry: E


class Merged(NamedTuple, Generic[E]):
    """One envelope, for some of the groups."""

    order_key: bytes
    #: In the order in which the sources were named.
    parts: Sequence[Part[E]]


class Wanted(NamedTuple):
    """These sources have to pass this key before anything more can come out."""

    order_key: bytes
    sources: tuple[str, ...]


class Source(Generic[E]):
    def __init__(self, rank: int, name: str, passed: bytes) -> None:
        self.rank = rank
        self.name = name
        #: It will bring nothing at or below it.
        self.passed = passed
        #: (order key, entry, size) that did not come out yet.
        self.ahead: deque[tuple[bytes, E, int]] = deque()
        self.size = 0


class Merge(Generic[E]):
    def __init__(self, sources: Iterable[str], start: Place, until: Place | None = None, *, size_max: int) -> None:
        """`size_max` is what may be here of all sources together; each may go beyond its share by what came at
        once.
        """
        self.start = start
        self.until = until
        self.size_max = size_max
        self.sources: dict[str, Source[E]] = {}
        #: Of what came out last: nothing at or below it comes out any more.
        self.given = b""
        #: (order key, rank) of the first entry of each source that has one.
        self._heads: list[tuple[bytes, int]] = []
        self._by_rank: dict[int, Source[E]] = {}
        self._ranks = 0
        for name in sources:
            self.join(name)

    # ---------------------------------------------------------------------------------------------- sources

    def join(self, name: str, after: bytes = b"") -> None:
        """A source more; from it comes what has a higher key than `after`."""
        if name in self.sources:
            raise InvariantBroken(f"{name!r} is one of the sources already")
        source: Source[E] = Source(self._ranks, name, after)
        self._ranks += 1
        self.sources[name] = self._by_rank[source.rank] = source

    def leave(self, name: str) -> None:
        """Nothing more comes from it, and what it had here does not come out."""
        source = self.sources.pop(name)
        del self._by_rank[source.rank]

    def has_room(self, name: str) -> bool:
        source = self.sources[name]
        return not source.ahead or source.size < self.size_max // len(self.sources)

    @property
    def size(self) -> int:
        return sum(source.size for source in self.sources.values())

    # ------------------------------------------------------------------------------------------- what comes in

    def received(self, name: str, entries: Iterable[tuple[bytes, E, int]], watermark: bytes = b"") -> None:
        """Entries by rising order key, each with its size; and a key that the source passes with the last of
        them.
        """
        source = self.sources[name]
        for key, entry, size in entries:
            if key <= source.passed:
                # Whoever reads a log goes on behind what it has, at any replica; so the log did not keep its word.
                raise InvariantBroken(f"{name!r} brings something at or below what it has passed")
            source.passed = key
            if self._is_left_out(key):
                continue
            source.ahead.append((key, entry, size))
            source.size += size
            if len(source.ahead) == 1:
                heappush(self._heads, (key, source.rank))
        source.passed = max(source.passed, watermark)

    def _is_left_out(self, key: bytes) -> bool:
        """Before the start; or behind the end, where nobody will want it."""
        return key < self.start.order_key or (self.until is not None and not (key, 0) < self.until)

    # ------------------------------------------------------------------------------------------ what comes out

    @property
    def passed(self) -> bytes:
        """What all sources have passed."""
        return min((source.passed for source in self.sources.values()), default=b"")

    @property
    def has_ended(self) -> bool:
        """All that comes before `until` came out."""
        if self.until is None or self._head() is not None:
            return False
        return not self.sources or self.passed >= self.until.order_key

    def _head(self) -> bytes | None:
        """The lowest key that is here."""
        while self._heads:
            key, rank = self._heads[0]
            source = self._by_rank.get(rank)
            if source is not None and source.ahead and source.ahead[0][0] == key:
                return key
            heappop(self._heads)  # Of one that has left.
        return None

    def take(self, count_max: int) -> list[Merged[E]]:
        """What may come out now, in order."""
        passed = self.passed
        found: list[Merged[E]] = []
        while len(found) < count_max and (key := self._head()) is not None and key <= passed:
            found.append(Merged(key, self._taken(key)))
            self.given = key
        return found

    def _taken(self, key: bytes) -> list[Part[E]]:
        """All entries with this key: a message for several groups comes out once."""
        parts = []
        while self._head() == key:
            source = self._by_rank[heappop(self._heads)[1]]
            _, entry, size = source.ahead.popleft()
            source.size -= size
            parts.append(Part(source.name, entry))
            if source.ahead:
                heappush(self._heads, (source.ahead[0][0], source.rank))
        return parts

    @property
    def place(self) -> Place:
        """Where the stream is: all before it came out, and what will come out is not before it."""
        return Place(self.given, NTH_MAX) if self.given else self.start

    def wanted(self) -> Wanted | None:
        """What holds the stream up; nothing if there is nothing to come."""
        key = self._head()
        if key is None:
            key = self.until.order_key if self.until is not None else b""
        sources = tuple(name for name, source in self.sources.items() if source.passed < key)
        return Wanted(key, sources) if sources else None
