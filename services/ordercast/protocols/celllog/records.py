"""The keys of records about a group's log, and of all records that belong to one group.

    s<group> NUL <hash>       ProducerRecord  idempotence state of one (producer, set), without its spans
    w<group> NUL <hash><u64>  Span            where the sequences from this one on went
    y<group>                  u64             a log whose beginning is gone is copied, so far
    e<group> NUL <address>    u64             the offset that is given next in a group that shares its cell

A protocol keeps how far its log goes under a key of its own, for what it keeps with it differs.
"""

from ordercast.core.ids import pack_u64
from ordercast.protocols.celllog.idempotence import PRODUCER as PRODUCER
from ordercast.protocols.celllog.idempotence import SPAN as SPAN
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.group_records import GROUP_END as GROUP_END
from ordercast.protocols.group_records import group_end

COPIED = b"y"
#: Each key of these kinds begins with the name of its group.
OF_LOGS = (PRODUCER, SPAN, COPIED, GROUP_END)


def of_group(kind: bytes, group: str) -> bytes:
    """The key of the one record of this kind that a group has."""
    return kind + group.encode()


def in_group(kind: bytes, group: str, what: bytes) -> bytes:
    """The key of one of the records of this kind that a group has. No name of a group holds a NUL."""
    return kind + group.encode() + b"\0" + what


def group_of(key: bytes) -> str:
    """The group in a key that one of the two above has made."""
    return key[1:].partition(b"\0")[0].decode()


def copied(group: str) -> bytes:
    return of_group(COPIED, group)


def copied_record(group: str, position: int | None) -> Record:
    """How far a log is copied whose beginning is gone; None once the copy has become the log."""
    return (copied(group), None if position is None else pack_u64(position))


def group_end_record(cell: str, address: str, offset: int | None) -> Record:
    return (group_end(cell, address), None if offset is None else pack_u64(offset))


def address_in(key: bytes) -> str:
    """The group in a key of the one above."""
    return key[1:].partition(b"\0")[2].decode()
