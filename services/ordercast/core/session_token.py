"""Session tokens: what a client has seen, in each domain, as bytes. Their layout, and how two become one.

A token is a row of parts, one for each domain: the domain's tag, what was seen there, and a MAC that only gateways
can make and check. What was seen is bytes of the domain's protocol (core.protocol.SeenCodec). Where that has a
clock, those are 8 bytes, and of two parts the one with the higher clock covers the other. Otherwise they begin
with a mark that tells whose form it is; if neither of two covers the other, a token has both, until a gateway
makes one of them. Whoever holds two tokens makes one of them without a key.

While all parts have clocks, they follow each other, sorted by tag: the layout of the first tokens. A token with
other parts begins with a mark, each part has its length, and it never has a length that the first layout has.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError

if TYPE_CHECKING:
    from ordercast.core.protocol import SeenCodec

TAG_BYTES = 4
CLOCK_BYTES = 8
MAC_BYTES = 16
PART_BYTES = TAG_BYTES + CLOCK_BYTES + MAC_BYTES
#: Of one token, and of one domain in it. Requests carry it, so it has a bound.
PARTS_MAX = 16
SAME_TAG_MAX = 4
SEEN_BYTES_MAX = 16 << 10

_MARK = b"\xc5"
_LENGTH_BYTES = 2
_PAD = b"\x00"
#: Follows from the bounds above. It is looked at before anything else.
TOKEN_BYTES_MAX = len(_MARK + _PAD) + PARTS_MAX * (_LENGTH_BYTES + TAG_BYTES + SEEN_BYTES_MAX + MAC_BYTES)

#: The mark that precedes what was seen if that is no clock.
MARK_BYTES = 8

#: The codec of a form that has a mark, found by the bytes that begin with it; None if it is not known here.
CodecOf = Callable[[bytes], "SeenCodec | None"]


@dataclass(frozen=True, slots=True)
class Part:
    tag: bytes
    #: A clock, or a mark and what the protocol says behind it.
    seen: bytes
    mac: bytes

    @property
    def is_clock(self) -> bool:
        return len(self.seen) == CLOCK_BYTES


def tag_of(domain: str) -> bytes:
    """Short, for it only tells parts apart: the MAC is over the name."""
    return hashlib.blake2b(domain.encode(), digest_size=TAG_BYTES).digest()


def parts_of(token: bytes, codec_of: CodecOf) -> list[Part]:
    """Of any bytes, for they may come from anywhere; what a part says was seen can be read, if its form is known.

    Nothing is said about MACs.
    """
    parts = unread_parts_of(token)
    for part in parts:
        codec = None if part.is_clock else codec_of(part.seen)
        if codec is not None:
            codec.check(part.seen[MARK_BYTES:])
    return parts


def unread_parts_of(token: bytes) -> list[Part]:
    """As parts_of, but what they say was seen may be anything: a gateway reads it only below a MAC of its own.

    Takes a time that is proportional to the token's length, which is bounded.
    """
    if len(token) > TOKEN_BYTES_MAX:
        raise RemoteProtocolError(f"not a session token: {len(token)} bytes; at most {TOKEN_BYTES_MAX}")
    parts = _fixed_parts(token) if len(token) % PART_BYTES == 0 else _marked_parts(token)
    order = [(part.tag, part.seen) for part in parts]
    if order != sorted(order) or any(_is_twice(parts, index) for index in range(1, len(parts))):
        raise RemoteProtocolError("not a session token: its domains are not in order")
    if any(part.tag == other.tag for part, other in zip(parts, parts[SAME_TAG_MAX:], strict=False)):
        raise RemoteProtocolError(f"not a session token: more than {SAME_TAG_MAX} parts for one domain")
    return parts


def _is_twice(parts: list[Part], index: int) -> bool:
    """A domain with a clock has one part; another one has a few, all different."""
    before, part = parts[index - 1], parts[index]
    return before.tag == part.tag and (before.is_clock or part.is_clock or before.seen == part.seen)


def _fixed_parts(token: bytes) -> list[Part]:
    if len(token) > PARTS_MAX * PART_BYTES:
        raise RemoteProtocolError(f"not a session token: more than {PARTS_MAX} domains")
    rows = [token[start : start + PART_BYTES] for start in range(0, len(token), PART_BYTES)]
    return [Part(row[:TAG_BYTES], row[TAG_BYTES:-MAC_BYTES], row[-MAC_BYTES:]) for row in rows]


def _marked_parts(token: bytes) -> list[Part]:
    if token[:1] != _MARK:
        raise RemoteProtocolError(f"not a session token: {len(token)} bytes")
    parts: list[Part] = []
    start = len(_MARK)
    while start + len(_PAD) < len(token):
        if len(parts) == PARTS_MAX:
            raise RemoteProtocolError(f"not a session token: more than {PARTS_MAX} domains")
        end_of_length = start + _LENGTH_BYTES
        length = int.from_bytes(token[start:end_of_length], "big")
        start = end_of_length + length
        if start > len(token) or length < TAG_BYTES + MAC_BYTES:
            raise RemoteProtocolError("not a session token: it is cut off")
        row = token[end_of_length:start]
        parts.append(Part(row[:TAG_BYTES], row[TAG_BYTES:-MAC_BYTES], row[-MAC_BYTES:]))
    if any(not CLOCK_BYTES <= len(part.seen) <= SEEN_BYTES_MAX for part in parts):
        raise RemoteProtocolError("not a session token: a part that is neither a clock nor what was seen")
    # One token is one row of bytes: nothing may stand for the same parts in two ways.
    if not parts or token != token_of(parts):
        raise RemoteProtocolError("not a session token: not in its one form")
    return parts


def token_of(parts: list[Part]) -> bytes:
    """Sorted parts as bytes."""
    if all(part.is_clock for part in parts):
        return b"".join(part.tag + part.seen + part.mac for part in parts)
    rows = [part.tag + part.seen + part.mac for part in parts]
    token = _MARK + b"".join(len(row).to_bytes(_LENGTH_BYTES, "big") + row for row in rows)
    return token if len(token) % PART_BYTES else token + _PAD


def merge(one: bytes, other: bytes, codec_of: CodecOf) -> bytes:
    """A token for all that either of them stands for."""
    parts = parts_of(one, codec_of)
    for part in parts_of(other, codec_of):
        _add(parts, part, codec_of)
    if len(parts) > PARTS_MAX:
        raise RemoteProtocolError(f"a session token is for at most {PARTS_MAX} domains")
    return token_of(sorted(parts, key=lambda part: (part.tag, part.seen)))


def _add(parts: list[Part], new: Part, codec_of: CodecOf) -> None:
    same = [part for part in parts if part.tag == new.tag]
    if any(_covers(part, new, codec_of) for part in same):
        return
    for part in same:
        if _covers(new, part, codec_of):
            parts.remove(part)
    parts.append(new)
    if sum(part.tag == new.tag for part in parts) > SAME_TAG_MAX:
        raise RemoteProtocolError(f"a session token has at most {SAME_TAG_MAX} parts for one domain")


def _covers(one: Part, other: Part, codec_of: CodecOf) -> bool:
    """Of two clocks the higher one, as bytes: they are big-endian. A form that nobody here knows covers itself."""
    if one.is_clock or other.is_clock:
        return one.seen >= other.seen
    codec = codec_of(one.seen)
    if codec is None or one.seen[:MARK_BYTES] != other.seen[:MARK_BYTES]:
        return one.seen == other.seen
    return codec.covers(one.seen[MARK_BYTES:], other.seen[MARK_BYTES:])
