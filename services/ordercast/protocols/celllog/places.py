"""Where a producer's latest messages went, packed: a table has very many of these, and looks at few of them."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ordercast.core.cells import TARGET_GROUPS_MAX
from ordercast.v1.common_pb2 import Span

#: Order keys of peers must not be longer.
ORDER_KEY_BYTES_MAX = 255
#: As many as fit into a byte, like the length.
OFFSETS_MAX = TARGET_GROUPS_MAX

_FIXED = struct.Struct(">QIQBB")
_OFFSET_BYTES = 8

#: Oldest first. Most producers have one place, and those with many get more of them.
Places = bytes | bytearray


class Place(NamedTuple):
    """A run of sequences, and what the order key and the first offset of the run were."""

    first_sequence: int
    messages: int
    first_offset: int
    order_key: bytes
    #: In the cell's groups that the run is for, if the cell has several.
    offsets: tuple[int, ...] = ()

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
        )

    def part(self, low: int, high: int) -> Span:
        """These of its sequences, which come again."""
        ahead = low - self.first_sequence
        return Span(
            first_sequence=low,
            count=high - low,
            first_offset=self.first_offset + ahead,
            order_key=self.order_key,
            duplicate=True,
            offsets=[offset + ahead for offset in self.offsets],
        )


def place_of(span: Span) -> Place:
    return Place(span.first_sequence, span.count, span.first_offset, span.order_key, tuple(span.offsets))


def appended(places: Places, place: Place) -> Places:
    """Changes what it is given only if that can be changed: use what it returns."""
    packed = _FIXED.pack(*place[:3], len(place.order_key), len(place.offsets)) + place.order_key
    if place.offsets:
        packed += struct.pack(f">{len(place.offsets)}Q", *place.offsets)
    if not places:
        return packed
    grown = places if isinstance(places, bytearray) else bytearray(places)
    grown += packed
    return grown


def first_of(places: Places) -> Place:
    return next(each(places))


def without_first(places: Places) -> Places:
    end = _FIXED.size + places[_FIXED.size - 2] + places[_FIXED.size - 1] * _OFFSET_BYTES
    if not isinstance(places, bytearray):
        return places[end:]
    del places[:end]
    return places


def each(places: Places) -> Iterator[Place]:
    at = 0
    while at < len(places):
        first_sequence, messages, first_offset, length, count = _FIXED.unpack_from(places, at)
        at += _FIXED.size + length
        order_key = bytes(places[at - length : at])
        offsets = struct.unpack_from(f">{count}Q", places, at) if count else ()
        at += count * _OFFSET_BYTES
        yield Place(first_sequence, messages, first_offset, order_key, offsets)
