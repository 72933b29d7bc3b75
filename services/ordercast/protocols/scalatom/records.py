"""The keys under which a replica's process persists what it must not forget.

    m<id>                 StampedRecord     an envelope, durable with its stamp before anybody hears of it
    c                     u64               the clock's reservation (E7)
    r                     u64               gateway incarnations below this are over and done with
    v                     u64               the number of the latest view: a restart with an older one stops
    p<group>              PositionRecord    how far the group's log is delivered
    d<group> NUL <id>     DeliveredRecord   delivered or buried, and not below done
    k<group> NUL <u64>    DoneRecord        what is finished, by gateway incarnation
    g<group>              StartedRecord     the configuration that the replica started in, if it is not the first
    h<group> NUL <id>     HandedOver        what it started from, as long as others have to start from it too
    s, w, y                                 about every log: protocols/celllog/records.py

What a delivery changes is written with it, in one transaction. Snapshots, burials and retirement write their own.
"""

from ordercast.core.ids import pack_u64
from ordercast.protocols.celllog.records import COPIED as COPIED
from ordercast.protocols.celllog.records import OF_LOGS, in_group, of_group
from ordercast.protocols.celllog.records import PRODUCER as PRODUCER
from ordercast.protocols.celllog.records import SPAN as SPAN
from ordercast.protocols.celllog.records import copied as copied
from ordercast.protocols.celllog.records import group_of as group_of

STAMPED, CLOCK, POSITION, DELIVERED, DONE = b"m", b"c", b"p", b"d", b"k"
RETIRED, VIEW = b"r", b"v"
STARTED, HANDED = b"g", b"h"
#: Each key of these kinds begins with the name of its group.
OF_GROUPS = (POSITION, DELIVERED, DONE, STARTED, HANDED, *OF_LOGS)

#: Marks the ReadLog whose answer is a report to a gateway; the rest of the tag is the envelope's id.
REPORT = "report "


def stamped(id_: bytes) -> bytes:
    return STAMPED + id_


def position(group: str) -> bytes:
    return of_group(POSITION, group)


def delivered(group: str, id_: bytes) -> bytes:
    return in_group(DELIVERED, group, id_)


def done(group: str, incarnation: int) -> bytes:
    return in_group(DONE, group, pack_u64(incarnation))


def started(group: str) -> bytes:
    return of_group(STARTED, group)


def handed(group: str, id_: bytes) -> bytes:
    return in_group(HANDED, group, id_)
