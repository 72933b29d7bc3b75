"""The keys under which a replica's process persists what it must not forget.

    m<id>                 StampedRecord     an envelope, durable with its stamp before anybody hears of it
    c                     u64               the clock's reservation (E7)
    p<group>              PositionRecord    how far the group's log is delivered
    s<group> NUL <hash>   ProducerRecord    idempotence state of one (producer, set)
    d<group> NUL <id>     DeliveredRecord   delivered or buried, and not below done
    k<group> NUL <u64>    DoneRecord        what is finished, by gateway incarnation

Everything but m and c is written with the delivery that changes it, in one transaction.
"""

import hashlib

from ordercast.core.ids import pack_u64

STAMPED, CLOCK, POSITION, PRODUCER, DELIVERED, DONE = b"m", b"c", b"p", b"s", b"d", b"k"

Record = tuple[bytes, bytes | None]

#: Marks the ReadLog whose answer is a report to a gateway; the rest of the tag is the envelope's id.
REPORT = "report "


def stamped(id_: bytes) -> bytes:
    return STAMPED + id_


def position(group: str) -> bytes:
    return POSITION + group.encode()


def producer(group: str, producer_id: bytes, groups: tuple[str, ...]) -> bytes:
    # Destination sets may be long and keys may not.
    digest = hashlib.blake2b("\0".join(groups).encode() + b"\0\0" + producer_id, digest_size=16).digest()
    return PRODUCER + group.encode() + b"\0" + digest


def delivered(group: str, id_: bytes) -> bytes:
    return DELIVERED + group.encode() + b"\0" + id_


def done(group: str, incarnation: int) -> bytes:
    return DONE + group.encode() + b"\0" + pack_u64(incarnation)


def group_of(key: bytes) -> str:
    """The group in a key of kind s, d or k."""
    return key[1 : key.index(b"\0")].decode()
