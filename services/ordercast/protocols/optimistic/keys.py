"""Order keys: (microseconds, sequence, envelope id) in 28 bytes that compare as the order does.

The microseconds are what clients have seen, as a clock. The sequence counts messages whose timestamps were raised
above the same predecessor. A null that lets everything up to a timestamp pass has the highest id: its key is not
below that of the message that it was asked for [E2].
"""

import struct

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, ID_BYTES

_STAMP = struct.Struct(">QI")
_STAMP_BYTES = _STAMP.size

KEY_BYTES = _STAMP_BYTES + ID_BYTES
SEQUENCE_MAX = 2**32 - 1
#: Below every key.
LOWEST = bytes(KEY_BYTES)
_ID_MAX = b"\xff" * ID_BYTES


def key_of(timestamp: int, id_: bytes) -> bytes:
    """That of a message as its sender stamped it."""
    return _STAMP.pack(timestamp, 0) + id_


def raised_above(key: bytes, id_: bytes) -> bytes:
    """[Algorithm 3 l.30] The key of a message that comes right behind another one."""
    timestamp, sequence = _STAMP.unpack_from(key)
    if sequence == SEQUENCE_MAX:
        return _STAMP.pack(timestamp + 1, 0) + id_
    return _STAMP.pack(timestamp, sequence + 1) + id_


def null_for(key: bytes) -> bytes:
    """[E2] A key at or above all messages with the stamp of this one."""
    return key[:_STAMP_BYTES] + _ID_MAX


def timestamp_of(key: bytes) -> int:
    return int.from_bytes(key[:8], "big")


def check(key: bytes) -> None:
    """It comes from a peer."""
    if len(key) != KEY_BYTES or timestamp_of(key) > CLOCK_MAX:
        raise RemoteProtocolError("not an order key")
