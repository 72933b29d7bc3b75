"""The part of a Submission that follows from one order over all groups, in which messages have numbers."""

from collections.abc import Iterable

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, pack_u64, unpack_u64
from ordercast.core.session_token import CLOCK_BYTES
from ordercast.core.submission import Submission

#: Numbers start at 0, so "has seen nothing" needs a value below 0.
NOTHING_SEEN = -1


class ClockSubmission(Submission):
    """What a producer has seen is a number: the highest of a message that it knows of (core/clock_codec.py)."""

    def nothing_seen(self) -> int:
        return NOTHING_SEEN

    def read_session(self, session: bytes) -> int:
        if len(session) != CLOCK_BYTES or unpack_u64(session) > CLOCK_MAX:
            raise RemoteProtocolError("not a clock")
        return unpack_u64(session)

    def see(self, seen: int, presented: int) -> int:
        return max(seen, presented)

    def session_of(self, seen: Iterable[int]) -> bytes:
        clock = max(seen)
        return pack_u64(clock) if clock != NOTHING_SEEN else b""
