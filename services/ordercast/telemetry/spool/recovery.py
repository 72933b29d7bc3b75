"""What a start finds on the disk, and makes of it.

A torn end, of a write that was never acknowledged, is cut off. What a sealer or a merger left behind is removed.
The rest is to be sealed.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import structlog

from ordercast.telemetry.spool import layout
from ordercast.telemetry.spool.frames import Damage, Frame, scan
from ordercast.telemetry.spool.intake import Closed
from ordercast.telemetry.spool.lately import Taken, still_kept
from ordercast.telemetry.spool.sealed import DamagedError, SealedFile, Segment
from ordercast.telemetry.spool.sealing import content_of, taken_lately

log = structlog.get_logger("spool")


class Found(NamedTuple):
    sealed: list[Segment]
    #: In the order in which they are to be sealed.
    closed: list[Closed]
    #: The offset of the next record.
    next: int
    #: Sealed segments that cannot be read.
    damaged: list[Segment]
    #: Whether an end was cut off.
    is_torn: bool
    #: Requests that are there, those of long ago apart.
    taken: list[Taken]


def recover(directory: Path, salt: int) -> Found:
    layout.remove_leftovers(directory)
    sealed, damaged, taken = _sealed(directory)
    is_torn = False
    after = max((segment.end for segment in (*sealed, *damaged)), default=0)
    closed: list[Closed] = []
    segments = layout.open_segments(directory)
    for first, path in segments:
        is_last = path == segments[-1][1]
        frames, requests, torn = _frames(path, salt, cut_end=is_last)
        taken += requests
        is_torn = is_torn or torn
        end = max((frame.next for frame in frames), default=first)
        after = max(after, end)
        if path.stat().st_size and not _covered(first, end, sealed):
            closed.append(Closed(first, end, path.stat().st_size, path))
        else:
            layout.remove(path)
    sealed += _in_their_place(damaged, sealed)
    layout.forget_old_damage(directory)
    return Found(sorted(sealed, key=lambda segment: segment.first), closed, after, damaged, is_torn, taken)


def _sealed(directory: Path) -> tuple[list[Segment], list[Segment], list[Taken]]:
    """Those that can be read, and those that cannot; and requests that are in them.

    Without those whose records are all in another one: a merger was cut off before it removed them.
    """
    whole: list[Segment] = []
    damaged: list[Segment] = []
    taken: list[Taken] = []
    for first, end, path in layout.sealed_segments(directory):
        size = path.stat().st_size
        if whole and end <= whole[-1].end:
            layout.remove(path)
            continue
        try:
            with SealedFile(path) as file:
                whole.append(Segment(first, end, size, file.index.received_ns_max, path))
                taken += still_kept(file.index.requests)
        except DamagedError as error:
            log.error("a sealed segment is damaged", path=path.name, why=str(error))
            damaged.append(Segment(first, end, size, path.stat().st_mtime_ns, path))
    return whole, damaged, taken


def _in_their_place(damaged: list[Segment], whole: list[Segment]) -> Iterator[Segment]:
    """Damaged ones stay, for their names say what is lost. Unless they lie over what they were made of."""
    for segment in damaged:
        if any(other.first < segment.end and segment.first < other.end for other in whole):
            layout.set_aside(segment.path)
        else:
            yield segment


def _frames(path: Path, salt: int, cut_end: bool) -> tuple[list[Frame], list[Taken], bool]:
    """What is in it, which requests these are, and whether its end was cut off."""
    if not path.stat().st_size:
        return [], [], False
    with content_of(path) as data:
        found = list(scan(data, salt))
        frames = [each for each in found if isinstance(each, Frame)]
        taken = taken_lately(data, frames)
    cut = found[-1]
    is_torn = cut_end and isinstance(cut, Damage)
    if is_torn:
        log.warning("a torn end is cut off", path=path.name, bytes_cut=cut.end - cut.begin)
        with path.open("r+b") as file:
            file.truncate(cut.begin)
            os.fsync(file.fileno())
    return frames, taken, is_torn


def _covered(first: int, end: int, sealed: list[Segment]) -> bool:
    """Whether all of it is sealed already: the sealer was cut off before it removed what it had sealed."""
    return first < end and any(segment.first <= first and end <= segment.end for segment in sealed)
