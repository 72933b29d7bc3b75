"""What a client has seen, for protocols whose messages have numbers: a clock. Its form needs no mark."""

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.session_token import CLOCK_BYTES
from ordercast.v1.sequencer_pb2 import LogEntry


@dataclass(frozen=True, slots=True)
class ClockCodec:
    """A core.protocol.SeenCodec. Order keys have a length, and begin with the number."""

    key_bytes: int = CLOCK_BYTES
    mark: bytes = b""

    def of_entries(self, group: str, entries: Sequence[bytes], besides: bytes) -> bytes:
        """A log is in the order of its keys, which begin with a clock: the last one covers all."""
        try:
            key = LogEntry.FromString(entries[-1]).order_key
        except DecodeError as error:
            raise RemoteProtocolError(f"not an entry of a log: {error}") from error
        if len(key) != self.key_bytes:
            raise RemoteProtocolError(f"an order key of {len(key)} bytes")
        return key[:CLOCK_BYTES]

    def merged(self, seen: Sequence[bytes]) -> bytes:
        return max(seen)

    def covers(self, one: bytes, other: bytes) -> bool:
        return one >= other

    def check(self, seen: bytes) -> None:
        if len(seen) != CLOCK_BYTES:
            raise RemoteProtocolError(f"not a clock: {len(seen)} bytes")
