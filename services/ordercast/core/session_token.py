"""Session tokens: what a client has seen, in each domain, as bytes. Their layout, and how two become one.

A token is a row of parts, one for each domain: the domain's tag, what was seen there, and a MAC that only gateways
can make and check. Where domains have a clock, that is 8 bytes, and of two parts the one with the higher clock
covers the other. In virtually synchronous groups it is a serialised Seen; if neither of two covers the other, a
token has both, until a gateway makes one of them. Whoever holds two tokens makes one of them without a key.

While all parts have clocks, they follow each other, sorted by tag: the layout of the first tokens. A token with
other parts begins with a mark, each part has its length, and it never has a length that the first layout has.
"""

import hashlib
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from ordercast.core.errors import RemoteProtocolError
from ordercast.v1.isis_pb2 import GroupTime, Seen

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

#: What a Seen is preceded by: so it is never as long as a clock.
SEEN_MARK = b"seen v1:"


@dataclass(frozen=True, slots=True)
class Part:
    tag: bytes
    #: A clock, or SEEN_MARK and a serialised Seen.
    seen: bytes
    mac: bytes

    @property
    def is_clock(self) -> bool:
        return len(self.seen) == CLOCK_BYTES


def tag_of(domain: str) -> bytes:
    """Short, for it only tells parts apart: the MAC is over the name."""
    return hashlib.blake2b(domain.encode(), digest_size=TAG_BYTES).digest()


def parts_of(token: bytes) -> list[Part]:
    """Of any bytes, for they may come from anywhere; what a part says was seen can be read. Nothing about MACs."""
    parts = unread_parts_of(token)
    for part in parts:
        if not part.is_clock:
            seen_in(part.seen)
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
    if any(not part.is_clock and not _may_be_seen(part.seen) for part in parts):
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


def merge(one: bytes, other: bytes) -> bytes:
    """A token for all that either of them stands for."""
    parts = parts_of(one)
    for part in parts_of(other):
        _add(parts, part)
    if len(parts) > PARTS_MAX:
        raise RemoteProtocolError(f"a session token is for at most {PARTS_MAX} domains")
    return token_of(sorted(parts, key=lambda part: (part.tag, part.seen)))


def _add(parts: list[Part], new: Part) -> None:
    same = [part for part in parts if part.tag == new.tag]
    if any(_covers(part, new) for part in same):
        return
    for part in same:
        if _covers(new, part):
            parts.remove(part)
    parts.append(new)
    if sum(part.tag == new.tag for part in parts) > SAME_TAG_MAX:
        raise RemoteProtocolError(f"a session token has at most {SAME_TAG_MAX} parts for one domain")


def _covers(one: Part, other: Part) -> bool:
    """Of two clocks the higher one, as bytes: they are big-endian."""
    if one.is_clock or other.is_clock:
        return one.seen >= other.seen
    return covers(seen_in(one.seen), seen_in(other.seen))


# -------------------------------------------------------------------------------- what was seen, without a clock


def _may_be_seen(data: bytes) -> bool:
    return data.startswith(SEEN_MARK) and len(data) <= SEEN_BYTES_MAX


def seen_in(data: bytes) -> Seen:
    if not _may_be_seen(data):
        raise RemoteProtocolError("not a session token: a part that is neither a clock nor what was seen")
    try:
        return Seen.FromString(data[len(SEEN_MARK) :])
    except DecodeError as error:
        raise RemoteProtocolError(f"not a session token: {error}") from error


def seen_part(seen: Seen) -> bytes:
    """What a token says of a domain without a clock."""
    return SEEN_MARK + seen.SerializeToString(deterministic=True)


def covers(one: Seen, other: Seen) -> bool:
    """Whoever has seen all of `one` has seen all of `other`."""
    mine = {time.group: time for time in one.times}
    if one.epoch < other.epoch or not all(_is_covered(time, mine.get(time.group)) for time in other.times):
        return False
    # What is open in the other one is open here too, or confirmed: see `Stamp.settles` of the protocol.
    return all(group in one.open or group in one.confirmed for group in other.open)


def _is_covered(time: GroupTime, by: GroupTime | None) -> bool:
    if by is None or by.view != time.view:
        return by is not None and by.view > time.view
    counts = dict(zip(by.members, by.counts, strict=False))
    return all(counts.get(m, 0) >= c for m, c in zip(time.members, time.counts, strict=False))
