"""What a client has seen of virtually synchronous groups, as bytes: a serialised Seen, which has vector times.

Two of them may be incomparable: a session token then has both, until a gateway makes one of them.
"""

from collections.abc import Sequence

from google.protobuf.message import DecodeError

from ordercast.core.errors import RemoteProtocolError
from ordercast.protocols.isis import past
from ordercast.protocols.isis.stamps import besides_in, decoded_seen, stamp_in
from ordercast.v1.isis_pb2 import GroupTime, Seen
from ordercast.v1.sequencer_pb2 import LogEntry


class VectorCodec:
    """See core.protocol.SeenCodec."""

    mark = b"seen v1:"

    def of_entries(self, group: str, entries: Sequence[bytes], besides: bytes) -> bytes:
        """What their log says besides comes with them, or with each of them if they are delivered live."""
        from ordercast.protocols.isis.confirmed import seen_with
        from ordercast.protocols.isis.replica import seen_of

        try:
            found = [LogEntry.FromString(entry) for entry in entries]
        except DecodeError as error:
            raise RemoteProtocolError(f"not an entry of a log: {error}") from error
        seen = past.merged([seen_with(seen_of(group, stamp_in(entry)), besides_in(entry)) for entry in found])
        return seen_with(seen, decoded_seen(besides)).SerializeToString(deterministic=True)

    def merged(self, seen: Sequence[bytes]) -> bytes:
        return past.merged([decoded_seen(one) for one in seen]).SerializeToString(deterministic=True)

    def covers(self, one: bytes, other: bytes) -> bool:
        return covers(decoded_seen(one), decoded_seen(other))

    def check(self, seen: bytes) -> None:
        decoded_seen(seen)


def covers(one: Seen, other: Seen) -> bool:
    """Whoever has seen all of `one` has seen all of `other`."""
    mine = {time.group: time for time in one.times}
    if one.epoch < other.epoch or not all(_is_covered(time, mine.get(time.group)) for time in other.times):
        return False
    # What is open in the other one is open here too, or confirmed: see `Stamp.settles`.
    return all(group in one.open or group in one.confirmed for group in other.open)


def _is_covered(time: GroupTime, by: GroupTime | None) -> bool:
    if by is None or by.view != time.view:
        return by is not None and by.view > time.view
    counts = dict(zip(by.members, by.counts, strict=False))
    return all(counts.get(m, 0) >= c for m, c in zip(time.members, time.counts, strict=False))
