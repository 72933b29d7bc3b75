"""The keys of records. Others are in celllog/records.py and in paxos/parallel/acceptor.py.

p<group>                    PositionRecord   how far the group's log is delivered
A<group>, V<group> NUL <u64>                 promise and votes
D<group> NUL <u64>          value            of an applied instance, where the own vote was not for it
F<group> NUL <source>       FollowedRecord   a source that the group follows, itself among them
T<group> NUL <key>          StampedKey       a message with its final key that is not delivered
P<group> NUL <id>           u64              where an envelope is that its gateway may ask about
B<group> NUL <receiver>     SourceState      what a receiver begins to follow the group from
H<group> NUL <u64>          ids              payloads that took effect in this instance of the group
m<id>                       Multicast        a payload that some group here needs
"""

from ordercast.core.ids import pack_u64, unpack_u64
from ordercast.protocols.celllog.records import OF_LOGS, group_of, in_group, of_group
from ordercast.protocols.group_records import GroupRecords
from ordercast.protocols.paxos.parallel.acceptor import ACCEPTOR, VOTE
from ordercast.v1.sequencer_pb2 import PositionRecord

POSITION = b"p"
DECIDED, FOLLOWED, STAMPED, PLACED, BASE, HELD = b"D", b"F", b"T", b"P", b"B", b"H"
PAYLOAD = b"m"
#: Of consensus: everything else is about logs.
OF_CONSENSUS = (ACCEPTOR, VOTE)
OF_GROUPS = (POSITION, *OF_CONSENSUS, DECIDED, FOLLOWED, STAMPED, PLACED, BASE, HELD, *OF_LOGS)

OPTIMISTIC_RECORDS = GroupRecords(
    OF_GROUPS, group_of, POSITION, lambda value: PositionRecord.FromString(value).position
)


def position(group: str) -> bytes:
    return of_group(POSITION, group)


def decided(group: str, instance: int) -> bytes:
    return in_group(DECIDED, group, pack_u64(instance))


def followed(group: str, source: str) -> bytes:
    return in_group(FOLLOWED, group, source.encode())


def stamped(group: str, key: bytes) -> bytes:
    return in_group(STAMPED, group, key)


def placed(group: str, id_: bytes) -> bytes:
    return in_group(PLACED, group, id_)


def base(group: str, receiver: str) -> bytes:
    return in_group(BASE, group, receiver.encode())


def held(group: str, instance: int) -> bytes:
    return in_group(HELD, group, pack_u64(instance))


def payload(id_: bytes) -> bytes:
    return PAYLOAD + id_


def what_of(key: bytes) -> bytes:
    """What stands behind the group in a key."""
    return key.partition(b"\0")[2]


def instance_in(key: bytes) -> int:
    return unpack_u64(key[-8:])
