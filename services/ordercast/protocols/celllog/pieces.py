"""Pieces of a log on the wire: which entries fit into one, and how damage on the way is found."""

import zlib
from collections.abc import Iterable, Sequence

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.v1.sequencer_pb2 import LogChunk, LogEntry


def checksum_of(entries: Iterable[LogEntry]) -> int:
    found = 0
    for entry in entries:
        found = zlib.crc32(entry.SerializeToString(deterministic=True), found)
    return found


def as_fit(entries: Sequence[LogEntry], bytes_max: int) -> Sequence[LogEntry]:
    """As many as a piece may have bytes, but one at least; whoever copies asks for the rest."""
    total = 0
    for count, entry in enumerate(entries):
        total += entry.ByteSize()
        if count and total > bytes_max:
            return entries[:count]
    return entries


def check_piece(chunk: LogChunk, *, may_lack_checksum: bool) -> None:
    """It came as it was sent, and a log can have it. What its entries say is for the protocol to check."""
    is_unchecked = may_lack_checksum and not chunk.HasField("checksum")
    if not is_unchecked and chunk.checksum != checksum_of(chunk.entries):
        raise RemoteProtocolError("a piece of a log that was damaged on the way")
    if not chunk.begins <= chunk.head <= CLOCK_MAX or chunk.position > CLOCK_MAX:
        raise RemoteProtocolError("a log that ends before it begins")
