"""Parts of a sealed segment, as they are sent: batches as they lie on the disk, several small ones together."""

import asyncio
from collections.abc import AsyncGenerator
from typing import NamedTuple

import structlog

from ordercast.telemetry.meters import Meters
from ordercast.telemetry.spool.sealed import STREAM_END, DamagedError, Piece, SealedFile, Segment

log = structlog.get_logger("spool")

#: Batches are put together up to about this.
SEND_BYTES = 1 << 20


class OutOfRangeError(Exception):
    """The spool has `begin` to `end`."""

    def __init__(self, begin: int, end: int) -> None:
        super().__init__(f"the spool has the records from {begin} up to but without {end}")
        self.begin = begin
        self.end = end


class LossError(Exception):
    """The records from `begin` up to but without `end` are lost."""

    def __init__(self, begin: int, end: int) -> None:
        super().__init__(f"the records from {begin} up to but without {end} are lost")
        self.begin = begin
        self.end = end


class SentPieces(NamedTuple):
    #: An Arrow stream.
    arrow: bytes
    #: The first offset behind what is in it.
    end: int


async def pieces_of(segment: Segment, begin: int, end: int, meters: Meters) -> AsyncGenerator[SentPieces, None]:
    """From the batch with `begin` on, as far as the segment goes or `end` is.

    LossError at what is lost, FileNotFoundError if the segment was merged or dropped meanwhile.
    """
    if begin < segment.first:
        # Between two segments: what was damaged before it was sealed.
        raise LossError(begin, min(end, segment.first))
    try:
        file = await asyncio.to_thread(SealedFile, segment.path)
    except DamagedError as error:
        report(segment, segment.first, segment.end, str(error), meters)
        raise LossError(begin, min(end, segment.end)) from error
    with file:
        pieces = [piece for piece in file.index.pieces if piece.end > begin and piece.first < end]
        for group in _groups(pieces):
            found, damage = await asyncio.to_thread(_read, file, group)
            if found:
                good = group[len(found) - 1].end
                yield SentPieces(b"".join((file.schema, *found, STREAM_END)), good)
            if damage is not None:
                bad = group[len(found)]
                report(segment, bad.first, bad.end, damage, meters)
                raise LossError(max(begin, bad.first), min(end, bad.end))


def _groups(pieces: list[Piece]) -> list[list[Piece]]:
    groups: list[list[Piece]] = []
    size = SEND_BYTES
    for piece in pieces:
        if size + piece.length > SEND_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(piece)
        size += piece.length
    return groups


def _read(file: SealedFile, pieces: list[Piece]) -> tuple[list[bytes], str | None]:
    """Up to the first that is damaged; and what is wrong with that."""
    found: list[bytes] = []
    for piece in pieces:
        try:
            found.append(file.read(piece))
        except DamagedError as error:
            return found, str(error)
    return found, None


def report(segment: Segment, begin: int, end: int, why: str, meters: Meters) -> None:
    if meters.corrupt_once((begin, end)):
        log.error("records are lost", path=segment.path.name, begin=begin, end=end, why=why)
