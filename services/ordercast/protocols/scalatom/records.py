"""The keys under which a replica's process persists what it must not forget.

    m<id>                 StampedRecord     an envelope, durable with its stamp before anybody hears of it
    c                     u64               the clock's reservation (E7)
    r                     u64               gateway incarnations below this are over and done with
    v                     u64               the number of the latest view: a restart with an older one stops
    p<group>              PositionRecord    how far the group's log is delivered
    s<group> NUL <hash>   ProducerRecord    idempotence state of one (producer, set), without its spans
    w<group> NUL <hash><u64>  Span          where the sequences from this one on went
    d<group> NUL <id>     DeliveredRecord   delivered or buried, and not below done
    k<group> NUL <u64>    DoneRecord        what is finished, by gateway incarnation
    g<group>              StartedRecord     the configuration that the replica started in, if it is not the first
    h<group> NUL <id>     HandedOver        what it started from, as long as others have to start from it too
    y<group>              u64               it copies a log whose beginning is gone, and has got so far

What a delivery changes is written with it, in one transaction. Snapshots, burials and retirement write their own.
"""

from ordercast.core.ids import pack_u64
from ordercast.protocols.idempotence import PRODUCER, SPAN

STAMPED, CLOCK, POSITION, DELIVERED, DONE = b"m", b"c", b"p", b"d", b"k"
RETIRED, VIEW = b"r", b"v"
STARTED, HANDED, COPIED = b"g", b"h", b"y"
#: Each key of these kinds begins with the name of its group.
OF_GROUPS = (POSITION, PRODUCER, SPAN, DELIVERED, DONE, STARTED, HANDED, COPIED)

#: Marks the ReadLog whose answer is a report to a gateway; the rest of the tag is the envelope's id.
REPORT = "report "


def stamped(id_: bytes) -> bytes:
    return STAMPED + id_


def position(group: str) -> bytes:
    return POSITION + group.encode()


def delivered(group: str, id_: bytes) -> bytes:
    return DELIVERED + group.encode() + b"\0" + id_


def done(group: str, incarnation: int) -> bytes:
    return DONE + group.encode() + b"\0" + pack_u64(incarnation)


def started(group: str) -> bytes:
    return STARTED + group.encode()


def handed(group: str, id_: bytes) -> bytes:
    return HANDED + group.encode() + b"\0" + id_


def copied(group: str) -> bytes:
    return COPIED + group.encode()


def group_of(key: bytes) -> str:
    """The group in a key of a kind in OF_GROUPS."""
    return key[1:].partition(b"\0")[0].decode()
