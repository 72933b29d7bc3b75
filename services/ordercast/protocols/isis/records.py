"""The keys under which a member's process persists what it must not forget.

i<group>                            IsisRecord   how far the log goes, and the view whose past it is
c<group> NUL <view><member><number> Cast         received, and not known to be everywhere
o<group> NUL <position>             CastKey      its place in the order
f<group>                            CutRecord    how a view ends, until the next one is complete
u<id>                               Submit       a message to several groups, whose parts are not all cast
p<group>                            Seen         where all parts of such messages in its log are, once all are cast
s, w                                             idempotence (protocols/idempotence.py)
y<group>                            u64          a log whose beginning is gone is copied, so far
"""

import struct

from ordercast.core.ids import pack_u64
from ordercast.protocols.idempotence import PRODUCER, SPAN

POSITION, CAST, ORDER, CUT, PARTS, COPIED, CONFIRMED = b"i", b"c", b"o", b"f", b"u", b"y", b"p"
#: Each key of these kinds begins with the name of its group.
OF_GROUPS = (POSITION, CAST, ORDER, CUT, COPIED, CONFIRMED, PRODUCER, SPAN)

_CAST = struct.Struct(">QIQ")

#: (the caster's place, its how many-th cast): unique within a view of a group.
Key = tuple[int, int]


def position(group: str) -> bytes:
    return POSITION + group.encode()


def cast(group: str, view: int, key: Key) -> bytes:
    return CAST + group.encode() + b"\0" + _CAST.pack(view, *key)


def order(group: str, place: int) -> bytes:
    return ORDER + group.encode() + b"\0" + pack_u64(place)


def cut(group: str) -> bytes:
    return CUT + group.encode()


def parts(id_: bytes) -> bytes:
    return PARTS + id_


def confirmed(group: str) -> bytes:
    return CONFIRMED + group.encode()


def copied(group: str) -> bytes:
    return COPIED + group.encode()


def group_of(key: bytes) -> str:
    """The group in a key of a kind in OF_GROUPS."""
    return key[1:].partition(b"\0")[0].decode()


def number_of(key: bytes) -> int:
    """The last number in a key of a position."""
    return int.from_bytes(key[-8:], "big")
