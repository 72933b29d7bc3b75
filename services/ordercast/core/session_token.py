"""Session tokens: what a client has seen, in each domain, as bytes. Their layout, and how two become one.

A token is a row of parts, one for each domain: the domain's tag, its clock, and a MAC that only gateways can make
and check. Parts are sorted by tag. Whoever holds two tokens makes one of them without a key: in each domain the
part with the higher clock covers the other.
"""

import hashlib

from ordercast.core.errors import RemoteProtocolError

TAG_BYTES = 4
CLOCK_BYTES = 8
MAC_BYTES = 16
PART_BYTES = TAG_BYTES + CLOCK_BYTES + MAC_BYTES
#: Of one token. Requests carry it, so it has a bound.
PARTS_MAX = 16


def tag_of(domain: str) -> bytes:
    """Short, for it only tells parts apart: the MAC is over the name."""
    return hashlib.blake2b(domain.encode(), digest_size=TAG_BYTES).digest()


def parts_of(token: bytes) -> dict[bytes, bytes]:
    """By tag, each with its tag; of any bytes, for they may come from anywhere. Says nothing about MACs."""
    if len(token) % PART_BYTES:
        raise RemoteProtocolError(f"not a session token: {len(token)} bytes")
    if len(token) > PARTS_MAX * PART_BYTES:
        raise RemoteProtocolError(f"not a session token: more than {PARTS_MAX} domains")
    rows = [token[start : start + PART_BYTES] for start in range(0, len(token), PART_BYTES)]
    parts = {row[:TAG_BYTES]: row for row in rows}
    if list(parts) != sorted(parts) or len(parts) < len(rows):
        raise RemoteProtocolError("not a session token: its domains are not in order")
    return parts


def merge(one: bytes, other: bytes) -> bytes:
    """A token for all that either of them stands for.

    Of two parts with one tag the clock decides, as bytes: it is big-endian.
    """
    parts = parts_of(one)
    for tag, part in parts_of(other).items():
        parts[tag] = max(part, parts.get(tag, b""))
    if len(parts) > PARTS_MAX:
        raise RemoteProtocolError(f"a session token is for at most {PARTS_MAX} domains")
    return b"".join(parts[tag] for tag in sorted(parts))
