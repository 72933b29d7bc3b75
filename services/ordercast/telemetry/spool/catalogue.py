"""The sealed segments, by their offsets; which of them are to be merged, and which to go."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from ordercast.telemetry.spool.sealed import Segment

#: So many neighbours of about one size become one segment. A record is written anew once for each such step.
MERGE_COUNT = 8
MERGE_COUNT_MAX = 8 * MERGE_COUNT
#: Of sizes, each so much smaller than the one before.
CLASSES = 8


class Catalogue:
    def __init__(self, segments: Sequence[Segment], segment_bytes: int) -> None:
        """`segment_bytes`: what a merged one may grow to."""
        self._segments = list(segments)
        self._segment_bytes = segment_bytes
        #: First offsets of segments that could not be merged.
        self._apart: set[int] = set()

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def begin(self) -> int | None:
        """None without any."""
        return self._segments[0].first if self._segments else None

    @property
    def end(self) -> int:
        return self._segments[-1].end if self._segments else 0

    @property
    def bytes(self) -> int:
        return sum(segment.bytes for segment in self._segments)

    def add(self, segment: Segment) -> None:
        """In the place of those that lie within it."""
        left = bisect_left(self._segments, segment.first, key=lambda each: each.first)
        right = bisect_right(self._segments, segment.end, lo=left, key=lambda each: each.end)
        self._segments[left:right] = [segment]

    def at(self, offset: int) -> Segment | None:
        """The one with this record, or the next one if there is no such record."""
        found = bisect_right(self._segments, offset, key=lambda each: each.end)
        return self._segments[found] if found < len(self._segments) else None

    def firsts(self, begin: int, count_max: int) -> list[int]:
        """First offsets of those that reach beyond `begin`."""
        found = bisect_right(self._segments, begin, key=lambda each: each.end)
        return [segment.first for segment in self._segments[found : found + count_max]]

    # --- Merge

    def to_merge(self) -> list[Segment]:
        """Neighbours that are small enough to be one segment: the smallest, and of those the newest, first."""
        for size_class in range(CLASSES, 1, -1):
            run: list[Segment] = []
            for segment in reversed(self._segments):
                fits = segment.first not in self._apart and self._size_class(segment) >= size_class
                if run and not (fits and self._can_join(segment, run)):
                    if len(run) >= MERGE_COUNT:
                        break
                    run = []
                if fits:
                    run.append(segment)
            if len(run) >= MERGE_COUNT:
                return run[::-1]
        return []

    def leave_apart(self, segments: Sequence[Segment]) -> None:
        """They could not be merged, and are not to be tried again."""
        self._apart.update(segment.first for segment in segments)

    def _can_join(self, segment: Segment, run: list[Segment]) -> bool:
        size = segment.bytes + sum(each.bytes for each in run)
        return segment.end == run[-1].first and len(run) < MERGE_COUNT_MAX and size <= self._segment_bytes

    def _size_class(self, segment: Segment) -> int:
        """0 for those that are large enough; each further class is MERGE_COUNT times smaller."""
        size, found = segment.bytes, 0
        while size < self._segment_bytes and found < CLASSES:
            size *= MERGE_COUNT
            found += 1
        return found

    # --- Retention

    def oldest(self) -> Segment | None:
        return self._segments[0] if self._segments else None

    def drop_oldest(self) -> Segment:
        segment = self._segments.pop(0)
        self._apart.discard(segment.first)
        return segment
