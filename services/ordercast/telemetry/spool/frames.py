"""Frames: how requests lie in a segment, and how they are found again.

A frame is a header and the request's bytes, whose checksum is in the header. The header has a checksum of its own,
which begins with a number that only this spool knows: behind damage the next frame is searched for, and what a
sender put into a request must not pass for one, nor make the search long.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from ordercast.telemetry.flatten.requests import LOGS, METRICS, TRACES

MAGIC = b"OCTF"
VERSION = 1
#: Magic, version, signal, count of records, first offset, when it came, bytes of the request and their checksum.
HEAD = struct.Struct("<4sBBxxIQQII")
CHECKSUM = struct.Struct("<I")
HEADER_BYTES = HEAD.size + CHECKSUM.size
CODES = {TRACES: 1, METRICS: 2, LOGS: 3}
SIGNALS = {code: signal for signal, code in CODES.items()}


class Frame(NamedTuple):
    signal: str
    #: The offsets of its records: `first` and the next ones.
    first: int
    records: int
    received_ns: int
    #: Where the request lies in the segment.
    begin: int
    end: int

    @property
    def next(self) -> int:
        """The first offset that is not its own."""
        return self.first + self.records


class Damage(NamedTuple):
    """Bytes of a segment that are no frames."""

    begin: int
    end: int


def header(signal: str, first: int, count: int, received_ns: int, payload: bytes, salt: int) -> bytes:
    checksum = zlib.crc32(payload)
    head = HEAD.pack(MAGIC, VERSION, CODES[signal], count, first, received_ns, len(payload), checksum)
    return head + CHECKSUM.pack(zlib.crc32(head, salt))


def scan(data: memoryview, salt: int) -> Iterator[Frame | Damage]:
    """All there is in a segment, in its order."""
    at = 0
    while at < len(data):
        frame = _frame_at(data, at, salt)
        if frame is None:
            behind = _next_frame(data, at + 1, salt)
            yield Damage(at, behind)
            at = behind
        else:
            yield frame
            at = frame.end


def _frame_at(data: memoryview, at: int, salt: int) -> Frame | None:
    begin = at + HEADER_BYTES
    if begin > len(data):
        return None
    head = data[at : at + HEAD.size]
    (checksum,) = CHECKSUM.unpack(data[at + HEAD.size : begin])
    if checksum != zlib.crc32(head, salt):
        return None
    magic, version, code, count, first, received_ns, length, of_payload = HEAD.unpack(head)
    if magic != MAGIC or version != VERSION or code not in SIGNALS or begin + length > len(data):
        return None
    if of_payload != zlib.crc32(data[begin : begin + length]):
        return None
    return Frame(SIGNALS[code], first, count, received_ns, begin, begin + length)


def _next_frame(data: memoryview, at: int, salt: int) -> int:
    """Where the next one begins, or the end."""
    content: Any = data.obj
    while True:
        at = content.find(MAGIC, at)
        if at < 0:
            return len(data)
        if _frame_at(data, at, salt) is not None:
            return at
        at += 1
