"""The spool as a whole: takes requests, seals them, keeps no more than it may, and gives records back by offset.

One task looks after closed segments: it has them sealed, in their order, and small ones merged, and lets the
oldest go. What can be read is what is sealed. So a reader never sees an offset that a crash might give to another
record.
"""

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import structlog

from ordercast.runtime.storage.writer import end_process
from ordercast.telemetry.meters import Meters
from ordercast.telemetry.spool import layout
from ordercast.telemetry.spool.catalogue import Catalogue
from ordercast.telemetry.spool.intake import BusyError, Closed, IntakeLimits, SpoolIntake
from ordercast.telemetry.spool.lately import Lately, mark_of
from ordercast.telemetry.spool.pieces import LossError, OutOfRangeError, pieces_of, report
from ordercast.telemetry.spool.recovery import recover
from ordercast.telemetry.spool.sealed import Segment
from ordercast.telemetry.spool.sealer import Sealer, SealerDiedError
from ordercast.telemetry.spool.worker import heard

log = structlog.get_logger("spool")

#: How often retention is looked after.
LOOK_S = 1.0
#: A segment that kills the sealer gets so many tries.
TRIES_MAX = 3


@dataclass(frozen=True, slots=True)
class Keeping:
    """How much is kept."""

    retention_bytes: int
    #: None: for ever.
    retention_age_s: float | None
    #: What may wait for the sealer; beyond that nothing is taken.
    unsealed_bytes_max: int


class SpoolEnds(NamedTuple):
    begin: int
    end: int
    taken: int


class Spool:
    """`start`, use, `stop`, in one event loop."""

    def __init__(self, directory: Path, limits: IntakeLimits, keeping: Keeping, meters: Meters) -> None:
        """SpoolDirectoryError if the directory cannot be used."""
        self._directory = directory
        self._limits = limits
        self._keeping = keeping
        self._meters = meters
        self._lock = layout.lock(directory)
        identity = layout.identify(directory)
        self.spool_id = identity.spool_id
        self._salt = identity.salt
        found = recover(directory, identity.salt)
        self.catalogue = Catalogue(found.sealed, limits.segment_bytes)
        self._closed = deque(found.closed)
        self._taken = found.next
        self._lately = Lately(found.taken)
        #: Requests that are not on disk yet, by their marks.
        self._under_way: dict[bytes, asyncio.Future[None]] = {}
        #: What is below is sealed, or lost.
        self._sealed_to = found.closed[0].first if found.closed else found.next
        self._meters.corrupt(found.is_torn)
        for segment in found.damaged:
            self._meters.corrupt_once((segment.first, segment.end))
        self._sealer = Sealer(self._lock, identity.salt)
        self._intake: SpoolIntake | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._work = asyncio.Event()
        self._work.set()
        self._is_full = False

    # --- From the start to the stop

    def start(self) -> None:
        self._intake = SpoolIntake(self._directory, self._salt, self._taken, self._limits, self)
        self._keeper = asyncio.create_task(self._keep())
        self._keeper.add_done_callback(_end_if_it_failed)

    async def stop(self) -> None:
        """What was taken is on disk, and nothing is taken any more."""
        if self._intake is not None:
            await asyncio.to_thread(self._intake.stop)
            # Answers to what was written last are on their way.
            await asyncio.sleep(0)
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        await self._sealer.stop()
        os.close(self._lock)

    # --- Take

    async def take(self, signal: str, payload: bytes, count: int) -> bool:
        """Returns when it is on disk, and whether it is new. BusyError or FullError if it is not taken.

        One that was taken lately is on disk; one that is on its way there is waited for.
        """
        assert self._intake is not None
        mark = mark_of(signal, payload)
        if mark in self._lately:
            self._meters.repeated()
            return False
        answer = self._under_way.get(mark)
        is_new = answer is None
        if answer is None:
            answer = self._under_way[mark] = self._submit(signal, payload, count)
            answer.add_done_callback(lambda done: self._settled(mark, done))
        else:
            self._meters.repeated()
        # Whoever asked may go: the request does not.
        await asyncio.shield(answer)
        return is_new

    def _submit(self, signal: str, payload: bytes, count: int) -> "asyncio.Future[None]":
        assert self._intake is not None
        unsealed_bytes = sum(segment.bytes for segment in self._closed)
        if unsealed_bytes > self._keeping.unsealed_bytes_max:
            raise BusyError(unsealed_bytes, self._limits.segment_bytes)
        return self._intake.submit(signal, payload, count)

    def _settled(self, mark: bytes, answer: "asyncio.Future[None]") -> None:
        del self._under_way[mark]
        if not answer.cancelled() and answer.exception() is None:
            self._lately.add(mark)

    def synced(self, end: int, duration_s: float) -> None:
        self._taken = end
        self._meters.synced(duration_s)

    def closed(self, segment: Closed) -> None:
        self._closed.append(segment)
        self._work.set()

    def room_changed(self, free_bytes: int, is_full: bool) -> None:
        self._meters.room(free_bytes, is_full)
        if is_full != self._is_full:
            self._is_full = is_full
            if is_full:
                log.error("the disk is full", free_bytes=free_bytes)
            else:
                log.info("there is room on the disk again", free_bytes=free_bytes)

    def failed(self, error: BaseException) -> None:
        end_process(error)

    # --- Read

    @property
    def state(self) -> SpoolEnds:
        begin = self.catalogue.begin
        # Without anything that can be read it will begin with what is sealed next.
        return SpoolEnds(self._sealed_to if begin is None else begin, self._sealed_to, self._taken)

    async def read(self, begin: int, end: int) -> AsyncGenerator[bytes, None]:
        """Arrow streams with the records of the range, and perhaps some around it.

        OutOfRangeError if the spool does not have it, LossError when it comes to what is lost.
        """
        at = begin
        missed: Segment | None = None
        while at < end:
            state = self.state
            if at < state.begin or end > state.end:
                raise OutOfRangeError(state.begin, state.end)
            segment = self.catalogue.at(at)
            if segment is None:
                raise LossError(at, end)
            try:
                async with contextlib.aclosing(pieces_of(segment, at, end, self._meters)) as pieces:
                    async for piece in pieces:
                        yield piece.arrow
                        at = piece.end
            except FileNotFoundError as error:
                # Merged or dropped since: the next look finds what is there now. Unless somebody took it away.
                if segment is missed:
                    report(segment, segment.first, segment.end, "the file is gone", self._meters)
                    raise LossError(at, min(end, segment.end)) from error
                missed = segment

    # --- Keep

    async def _keep(self) -> None:
        looked_at = 0.0
        while True:
            can_seal = True
            while self._closed and can_seal:
                can_seal = await self._seal_next()
            candidates = self.catalogue.to_merge()
            if candidates:
                await self._merge(candidates)
            if time.monotonic() - looked_at >= LOOK_S:
                looked_at = time.monotonic()
                await self._drop_the_oldest()
            self._tell_meters()
            if (self._closed and can_seal) or candidates:
                continue
            self._work.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._work.wait(), LOOK_S)

    async def _seal_next(self) -> bool:
        """False if it cannot be done now."""
        segment = self._closed[0]
        for left in reversed(range(TRIES_MAX)):
            try:
                answer = await self._sealer.perform("seal", [segment.path])
            except SealerDiedError as error:
                log.error("the sealer died", path=segment.path.name, why=str(error), tries_left=left)
                continue
            break
        else:
            aside = layout.set_aside(segment.path)
            log.critical("a segment is set aside: sealing it kills the sealer", path=aside.name)
            self._lose(segment)
            return True
        if "error" in answer:
            log.error("a segment cannot be sealed", path=segment.path.name, why=answer["error"])
            if not segment.path.exists():
                self._lose(segment)
                return True
            # The disk is full, most likely: nothing is lost by trying again until it is not.
            return False
        for told in answer["segments"]:
            self.catalogue.add(heard(told))
        self._pass_on(segment)
        if answer["damages"]:
            log.error("a segment was damaged, and in part set aside", path=segment.path.name)
            self._meters.corrupt(1)
            layout.forget_old_damage(self._directory)
        if answer["poison"]:
            log.warning("records could not be understood", reasons=answer["poison"], first=segment.first)
        return True

    def _lose(self, segment: Closed) -> None:
        self._meters.corrupt(1)
        self._pass_on(segment)

    def _pass_on(self, segment: Closed) -> None:
        self._closed.popleft()
        self._sealed_to = segment.end

    async def _merge(self, segments: list[Segment]) -> None:
        try:
            answer = await self._sealer.perform("merge", [segment.path for segment in segments])
        except SealerDiedError as error:
            answer = {"error": str(error)}
        if "error" in answer:
            log.error("segments cannot be merged", first=segments[0].first, why=answer["error"])
            self.catalogue.leave_apart(segments)
            return
        self.catalogue.add(heard(answer["segments"][0]))
        await asyncio.to_thread(_remove, segments)

    async def _drop_the_oldest(self) -> None:
        keeping = self._keeping
        size = self.catalogue.bytes + sum(segment.bytes for segment in self._closed)
        dropped: list[Segment] = []
        while (oldest := self.catalogue.oldest()) is not None:
            age_s = time.time() - oldest.received_ns_max / 1e9
            is_old = keeping.retention_age_s is not None and age_s > keeping.retention_age_s
            if size <= keeping.retention_bytes and not is_old:
                break
            dropped.append(self.catalogue.drop_oldest())
            size -= oldest.bytes
            log.info("segment dropped", first=oldest.first, end=oldest.end, bytes=oldest.bytes)
        # Readers do not see them any more.
        await asyncio.to_thread(_remove, dropped)

    def _tell_meters(self) -> None:
        state = self.state
        size = self.catalogue.bytes + sum(segment.bytes for segment in self._closed)
        self._meters.holds(*state, size, len(self.catalogue) + len(self._closed))


def _remove(segments: list[Segment]) -> None:
    for segment in segments:
        layout.remove(segment.path)


def _end_if_it_failed(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        end_process(error)
