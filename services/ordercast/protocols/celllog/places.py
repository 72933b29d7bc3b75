"""Where a producer's latest messages went, packed: a table has very many of these, and looks at few of them."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ordercast.core.cells import TARGET_GROUPS_MAX, Runs
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.v1.common_pb2 import Span

#: Order keys of peers must not be longer.
ORDER_KEY_BYTES_MAX = 255
#: As many as fit into a byte, like the length.
OFFSETS_MAX = TARGET_GROUPS_MAX

_FIXED = struct.Struct(">QIQBBI")
_COUNT_BYTES, _SIZE_BYTES, _OFFSET_BYTES = 4, 1, 8

#: Oldest first. Most producers have one place, and those with many get more of them.
Places = bytes | bytearray


class Place(NamedTuple):
    """One after the other in a cell's log: sequences, and what the order key and the first offset were."""

    first_sequence: int
    messages: int
    first_offset: int
    order_key: bytes
    #: In the cell's groups that they are for, if the cell has several and all are for the same of them.
    offsets: tuple[int, ...] = ()
    #: Otherwise the same of each run, as in Span.
    runs: bytes = b""

    @property
    def end(self) -> int:
        return self.first_sequence + self.messages

    def span(self) -> Span:
        return Span(
            first_sequence=self.first_sequence,
            count=self.messages,
            first_offset=self.first_offset,
            order_key=self.order_key,
            offsets=self.offsets,
            runs=self.runs,
        )

    def parts(self, low: int, high: int) -> Iterator[Span]:
        """These of its sequences, which come again; each part within one run."""
        at = self.first_sequence
        for count, offsets in unpacked(self.runs) if self.runs else [(self.messages, self.offsets)]:
            first, end = max(low, at), min(high, at + count)
            if first < end:
                ahead = first - at
                yield Span(
                    first_sequence=first,
                    count=end - first,
                    first_offset=self.first_offset + first - self.first_sequence,
                    order_key=self.order_key,
                    duplicate=True,
                    offsets=[offset + ahead for offset in offsets],
                )
            at += count


def place_of(span: Span) -> Place:
    return Place(
        span.first_sequence, span.count, span.first_offset, span.order_key, tuple(span.offsets), span.runs
    )


def place_in_groups(first_sequence: int, messages: int, first_offset: int, order_key: bytes, runs: Runs) -> Place:
    """Of messages for groups of a cell that has several."""
    if len(runs.counts) == 1:
        return Place(first_sequence, messages, first_offset, order_key, tuple(runs.offsets))
    return Place(first_sequence, messages, first_offset, order_key, (), packed(runs))


def packed(runs: Runs) -> bytes:
    count = len(runs.counts)
    return b"".join(
        (
            struct.pack(">I", count),
            struct.pack(f">{count}I", *runs.counts),
            bytes(runs.sizes),
            struct.pack(f">{len(runs.offsets)}Q", *runs.offsets),
        )
    )


def unpacked(runs: bytes) -> list[tuple[int, tuple[int, ...]]]:
    """Of each run: how many messages, and the first one's offsets. Refuses what nobody has packed."""
    try:
        (count,) = struct.unpack_from(">I", runs)
        counts = struct.unpack_from(f">{count}I", runs, _COUNT_BYTES)
    except struct.error:
        raise RemoteProtocolError("runs that are cut short") from None
    at = _COUNT_BYTES * (1 + count)
    sizes = runs[at : at + count * _SIZE_BYTES]
    at += count * _SIZE_BYTES
    if len(runs) != at + sum(sizes) * _OFFSET_BYTES:
        raise RemoteProtocolError("runs that are not as long as they say")
    offsets = struct.unpack_from(f">{sum(sizes)}Q", runs, at)
    if not all(counts) or any(offset > CLOCK_MAX for offset in offsets):
        raise RemoteProtocolError("runs with numbers that cannot be")
    found = []
    at = 0
    for messages, size in zip(counts, sizes, strict=True):
        found.append((messages, offsets[at : at + size]))
        at += size
    return found


def appended(places: Places, place: Place) -> Places:
    """Changes what it is given only if that can be changed: use what it returns."""
    fixed = _FIXED.pack(*place[:3], len(place.order_key), len(place.offsets), len(place.runs))
    offsets = struct.pack(f">{len(place.offsets)}Q", *place.offsets) if place.offsets else b""
    row = b"".join((fixed, place.order_key, offsets, place.runs))
    if not places:
        return row
    grown = places if isinstance(places, bytearray) else bytearray(places)
    grown += row
    return grown


def first_of(places: Places) -> Place:
    return next(each(places))


def end_of_first(places: Places) -> int:
    """Before which sequence the first of them ends: this is asked very often."""
    first_sequence, messages, *_ = _FIXED.unpack_from(places)
    return int(first_sequence + messages)


def without_first(places: Places) -> Places:
    *_, length, count, runs = _FIXED.unpack_from(places)
    end = _FIXED.size + length + count * _OFFSET_BYTES + runs
    if not isinstance(places, bytearray):
        return places[end:]
    del places[:end]
    return places


def each(places: Places) -> Iterator[Place]:
    at = 0
    while at < len(places):
        first_sequence, messages, first_offset, length, count, runs = _FIXED.unpack_from(places, at)
        at += _FIXED.size + length
        order_key = bytes(places[at - length : at])
        offsets = struct.unpack_from(f">{count}Q", places, at) if count else ()
        at += count * _OFFSET_BYTES + runs
        yield Place(first_sequence, messages, first_offset, order_key, offsets, bytes(places[at - runs : at]))
