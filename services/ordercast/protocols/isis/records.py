"""The keys under which a member's process persists what it must not forget.

i<group>                            IsisRecord   how far the log goes, and the view whose past it is
c<group> NUL <view><member><number> Cast         received, and not known to be everywhere
o<group> NUL <position>             CastKey      its place in the order
f<group>                            CutRecord    how a view ends, until the next one is complete
u<id>                               Submit       a message to several groups, whose parts are not all cast
p<group>                            Seen         where all parts of such messages in its log are, once all are cast
s, w, y                                          about every log: protocols/celllog/records.py
"""

import struct

from ordercast.core.ids import pack_u64
from ordercast.protocols.causal.casts import Key
from ordercast.protocols.celllog.records import COPIED as COPIED
from ordercast.protocols.celllog.records import OF_LOGS, in_group, of_group
from ordercast.protocols.celllog.records import PRODUCER as PRODUCER
from ordercast.protocols.celllog.records import SPAN as SPAN
from ordercast.protocols.celllog.records import copied as copied
from ordercast.protocols.celllog.records import group_of as group_of

POSITION, CAST, ORDER, CUT, PARTS, CONFIRMED = b"i", b"c", b"o", b"f", b"u", b"p"
#: Each key of these kinds begins with the name of its group.
OF_GROUPS = (POSITION, CAST, ORDER, CUT, CONFIRMED, *OF_LOGS)

_CAST = struct.Struct(">QIQ")


def position(group: str) -> bytes:
    return of_group(POSITION, group)


def cast(group: str, view: int, key: Key) -> bytes:
    return in_group(CAST, group, _CAST.pack(view, *key))


def order(group: str, place: int) -> bytes:
    return in_group(ORDER, group, pack_u64(place))


def cut(group: str) -> bytes:
    return of_group(CUT, group)


def parts(id_: bytes) -> bytes:
    return PARTS + id_


def confirmed(group: str) -> bytes:
    return of_group(CONFIRMED, group)


def number_of(key: bytes) -> int:
    """The last number in a key of a position."""
    return int.from_bytes(key[-8:], "big")
