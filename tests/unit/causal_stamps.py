"""What messages of causal groups carry to say what they come after, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager

from ordercast.core.causal import CastPlace
from ordercast.protocols.isis.stamps import StampCodec, decoded_stamp
from ordercast.v1.isis_pb2 import CastKey, CastStamp, GroupTime
from ordercast.v1.sequencer_pb2 import LogEntry

IDS = {"a": "a#1", "b": "b#2", "c": "c#3"}


def time_of(group: str, view: int, counts: dict[int, int] | None = None) -> GroupTime:
    members = sorted(counts or {})
    return GroupTime(group=IDS[group], view=view, members=members, counts=[(counts or {})[m] for m in members])


def stamp(view: int, member: int, number: int, *times: GroupTime, total: bool = False) -> CastStamp:
    return CastStamp(view=view, key=CastKey(member=member, number=number), times=times, total=total)


def place_of(cast: CastStamp) -> CastPlace:
    return StampCodec().place_of(cast.SerializeToString())


@contextmanager
def restamping(entry: LogEntry) -> Iterator[CastStamp]:
    """What is done to the stamp is in the entry."""
    changed = decoded_stamp(entry.protocol)
    yield changed
    entry.protocol = changed.SerializeToString()
