"""What entries of logs, and reports to gateways, carry of ISIS: a CastStamp, and what their log says besides.

Others' messages have them as bytes, and nobody but ISIS reads those.
"""

from google.protobuf.message import DecodeError

from ordercast.core.causal import CastPlace, Past
from ordercast.core.errors import RemoteProtocolError
from ordercast.v1.isis_pb2 import CastStamp, LogInView, Seen
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered, LogEntry


class StampCodec:
    """See core.causal.CausalCodec."""

    def place_of(self, protocol: bytes) -> CastPlace:
        stamp = decoded_stamp(protocol)
        times = (*stamp.times, *stamp.carried)
        if any(len(time.members) != len(time.counts) for time in times):
            raise RemoteProtocolError("not a vector time")
        past = tuple(
            Past(time.group, time.view, dict(zip(time.members, time.counts, strict=True))) for time in times
        )
        return CastPlace(stamp.view, stamp.key.member, stamp.key.number, stamp.total, past)

    def in_log(self, group: str, protocol: bytes) -> Past | None:
        try:
            log = LogInView.FromString(protocol)
        except DecodeError as error:
            raise RemoteProtocolError(f"not the view of a log: {error}") from error
        counts = {member: count for member, count in enumerate(log.counts) if count}
        return Past(group, log.view, counts) if log.view else None


def stamp_in(message: LogEntry | EnvelopeDelivered) -> CastStamp:
    if not message.protocol:
        raise RemoteProtocolError("an entry without a stamp")
    return decoded_stamp(message.protocol)


def decoded_stamp(data: bytes) -> CastStamp:
    try:
        return CastStamp.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError(f"not a stamp: {error}") from error


def besides_in(message: LogEntry | EnvelopeDelivered) -> Seen:
    return decoded_seen(message.besides)


def decoded_seen(data: bytes) -> Seen:
    try:
        return Seen.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError(f"not what somebody has seen: {error}") from error


def bytes_of(seen: Seen | None) -> bytes:
    """For such a field; nothing if there is nothing to say."""
    return seen.SerializeToString() if seen is not None else b""
