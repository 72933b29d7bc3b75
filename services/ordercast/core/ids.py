"""Envelope ids, order keys and consensus values: fixed-width, big-endian, so that bytes compare as numbers.

An envelope id is (gateway incarnation, counter) in 16 bytes; it is also the id of its consensus
instance. An order key that compares over several groups is (sn, id) in 24 bytes. Other keys have other lengths:
how long those of a domain are, its protocol's traits say (core/protocol.py).
"""

import struct
from functools import lru_cache

_U64 = struct.Struct(">Q")
_PAIR = struct.Struct(">QQ")

ID_BYTES = 16
#: Of a key that is (sn, id).
KEY_BYTES = 24
U64_MAX = 2**64 - 1
#: A clock or sequence number above this is no work of ours: it would raise everyone's without end.
CLOCK_MAX = 2**62

#: Below every real order key; what a group's log that is still empty has reached.
KEY_MIN = b"\x00" * KEY_BYTES
_ID_MAX = b"\xff" * ID_BYTES


def envelope_id(incarnation: int, counter: int) -> bytes:
    return _PAIR.pack(incarnation, counter)


def incarnation_of(id_: bytes) -> int:
    return int.from_bytes(id_[:8], "big")


def counter_of(id_: bytes) -> int:
    return int.from_bytes(id_[8:], "big")


def pack_u64(number: int) -> bytes:
    return _U64.pack(number)


def unpack_u64(data: bytes) -> int:
    return int.from_bytes(data, "big")


def order_key(sn: int, id_: bytes) -> bytes:
    """Ties in sn are broken by the id: the order is total."""
    return _U64.pack(sn) + id_


def last_key_of(sn: int) -> bytes:
    """At or above every order key with this sn."""
    return _U64.pack(sn) + _ID_MAX


def sn_of(key: bytes) -> int:
    return int.from_bytes(key[:8], "big")


def group_id(name: str, number: int) -> str:
    """Of a group, for good: a name that is used again gets another number. A name has no '#'."""
    return f"{name}#{number}"


@lru_cache(65_536)
def group_name(id_: str) -> str:
    """Of a group's id, or of its address (core/cells.py).

    >>> group_name("orders#17"), group_name("c1/orders#17")
    ('orders', 'orders')
    """
    return id_.rpartition("/")[2].partition("#")[0]


def group_number(id_: str) -> int:
    """The number in a group's or a cell's id, which no other one has had.

    >>> group_number("orders#17")
    17
    """
    return int(id_.rpartition("#")[2])


def short(id_: bytes) -> str:
    """An envelope id as people read it: incarnation.counter."""
    return f"{incarnation_of(id_)}.{counter_of(id_)}"
