"""Where a producer's latest messages went, packed: a table has very many of these, and looks at few of them."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ordercast.v1.common_pb2 import Span

#: Order keys of peers must not be longer.
ORDER_KEY_BYTES_MAX = 255

_FIXED = struct.Struct(">QIQB")

#: Oldest first. Most producers have one place, and those with many get more of them.
Places = bytes | bytearray


class Place(NamedTuple):
    """A run of sequences, and what the order key and the first offset of the run were."""

    first_sequence: int
    messages: int
    first_offset: int
    order_key: bytes

    @property
    def end(self) -> int:
        return self.first_sequence + self.messages

    def span(self) -> Span:
        return Span(
            first_sequence=self.first_sequence,
            count=self.messages,
            first_offset=self.first_offset,
            order_key=self.order_key,
        )


def place_of(span: Span) -> Place:
    return Place(span.first_sequence, span.count, span.first_offset, span.order_key)


def appended(places: Places, place: Place) -> Places:
    """Changes what it is given only if that can be changed: use what it returns."""
    packed = _FIXED.pack(*place[:3], len(place.order_key)) + place.order_key
    if not places:
        return packed
    grown = places if isinstance(places, bytearray) else bytearray(places)
    grown += packed
    return grown


def first_of(places: Places) -> Place:
    return next(each(places))


def without_first(places: Places) -> Places:
    end = _FIXED.size + places[_FIXED.size - 1]
    if not isinstance(places, bytearray):
        return places[end:]
    del places[:end]
    return places


def each(places: Places) -> Iterator[Place]:
    at = 0
    while at < len(places):
        first_sequence, messages, first_offset, length = _FIXED.unpack_from(places, at)
        at += _FIXED.size + length
        yield Place(first_sequence, messages, first_offset, bytes(places[at - length : at]))
