"""Reading the logs of the groups that have a replica in this process.

Entries come as they are stored. Readers wait for what is committed next; how many there are, and how slow, does
not matter to whoever writes: each holds one chunk and a position.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import grpc

from ordercast.core.cells import cell_of, shares_cell
from ordercast.core.entries import order_key_in
from ordercast.core.machine import Watermark
from ordercast.core.watermarks import Watermarks
from ordercast.runtime.storage.damage_advice import of_record
from ordercast.runtime.storage.group_index import GroupIndex, can_be_mended
from ordercast.runtime.storage.pages import OwnPages, Pages, SharedPages
from ordercast.runtime.storage.store import CorruptRecord, LogBounds, Storage
from ordercast.runtime.storage.writer import Writer
from ordercast.runtime.transport.status import Refused
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, ReadGroupResponse, StartAt

CHUNK_BYTES_MAX = 256 << 10
CHUNK_ENTRIES_MAX = 1024
#: Damaged entries that one look may come upon; each is mended once.
MENDS_MAX = 16
#: How long a description waits for what is on its way to the disk: less than gateways wait for it.
WRITTEN_S_MAX = 0.75

Found = TypeVar("Found")


def out_of_range(group: str, offset: int, bounds: LogBounds) -> Refused:
    if bounds.first_offset == bounds.next_offset:
        there = "there are no messages"
    else:
        there = f"there are {bounds.first_offset} to {bounds.next_offset - 1}"
    return Refused(
        grpc.StatusCode.OUT_OF_RANGE,
        f"offset {offset} of {group!r} does not exist: {there}, and {bounds.next_offset} is next",
        "OFFSET_OUT_OF_RANGE",
        {"first_offset": str(bounds.first_offset), "next_offset": str(bounds.next_offset)},
    )


class LocalLogs:
    def __init__(self, storage: Storage, writer: Writer) -> None:
        self.storage = storage
        self.writer = writer
        #: Mends a damaged entry from other replicas, or raises.
        self.mend: Callable[[CorruptRecord], Awaitable[None]] | None = None
        #: How many entries of a log were mended, and how many could not be.
        self.repairs: Callable[[str], tuple[int, int]] = lambda group: (0, 0)
        #: Whether there is a replica of the group here; and whether there is a log, be it one that is still
        #: copied.
        self.serves: Callable[[str], bool] = lambda group: False
        self.holds: Callable[[str], bool] = lambda group: False
        #: Adds what the protocol's machine knows of the group.
        self.describe_view: Callable[[str, DescribeReplicaResponse], None] = lambda group, found: None
        #: What whoever reads the group's log has seen besides its entries, as the protocol's machine knows it.
        self.read_besides: Callable[[str], bytes] = lambda group: b""
        #: Where a group that shares its cell ends, as the protocol's machine has it on disk.
        self.end_of: Callable[[str], int] = lambda group: 0
        #: Groups of shared cells are gone: their addresses, by domain.
        self.removed: Callable[[Mapping[str, list[str]]], None] = lambda gone: None
        self.index = GroupIndex(storage, lambda group: self.end_of(group))
        #: Lets machines here pass an order key, for readers who merge logs.
        self.advance: Callable[[Sequence[str], bytes], None] = lambda cells, order_key: None
        self.watermarks = Watermarks()
        #: By cell: how many entries the log on disk had, and the key of the last of them.
        self._last_keys: dict[str, tuple[int, bytes]] = {}
        self._tails: dict[str, asyncio.Event] = {}

    def said(self, watermark: Watermark) -> None:
        """Readers that wait at the end of the log look again."""
        self.watermarks.note(watermark)
        self.notify(watermark.group)

    def notify(self, group: str) -> None:
        event = self._tails.pop(group, None)
        if event is not None:
            event.set()

    def let_go(self) -> None:
        """Whoever waits for a group that is not served here any more is told so."""
        for group in list(self._tails):
            if not self.serves(group):
                self.notify(group)
        self.watermarks.keep(lambda cell: self.holds(cell))

    def check_served(self, group: str) -> None:
        if not self.serves(cell_of(group)):
            raise Refused(grpc.StatusCode.NOT_FOUND, f"no replica of {group!r} here", "NO_REPLICA")

    def _pages(self, group: str) -> Pages:
        return SharedPages(self.index, group) if shares_cell(group) else OwnPages(self.storage, group)

    async def describe(
        self, group: str, stored_ms: int | None = None, order_key: bytes = b""
    ) -> DescribeReplicaResponse:
        """With the place of a time or of an order key in the log, if one is given."""
        cell, pages = cell_of(group), self._pages(group)
        if not self.holds(cell):
            self.check_served(group)
        await self._written(cell)
        bounds = await self._sound(pages.bounds)
        repaired, unrepaired = self.repairs(cell)
        found = DescribeReplicaResponse(
            first_offset=bounds.first_offset,
            next_offset=bounds.next_offset,
            bytes=bounds.bytes,
            position=bounds.ends,
            damaged_records=self.storage.damaged_records,
            repaired_entries=repaired,
            damaged_entries=unrepaired,
        )
        if stored_ms is not None:
            wall_ms = stored_ms
            found.stored_offset = await self._sound(lambda: pages.offset_stored_at(wall_ms))
        self.describe_view(cell, found)
        if order_key:
            found.passed_key = await self._passed(cell)
            await self._describe_key(pages, order_key, found)
        return found

    async def _describe_key(self, pages: Pages, order_key: bytes, found: DescribeReplicaResponse) -> None:
        """Where the key is. What was dropped before the first entry may have had it, unless that comes before
        it.
        """
        offset = await self._sound(lambda: pages.offset_of_key(order_key))
        bounds = await self._sound(pages.bounds)
        is_whole = True
        if bounds.first_offset:
            first = await self._sound(lambda: pages.read(pages.place_of(bounds.first_offset), 1, 0))
            # Of what was dropped here nothing is above what was ever delivered here.
            found.first_key = order_key_in(first[0].data) if first else found.reached_key
            is_whole = b"" < found.first_key <= order_key
        if is_whole:
            found.key_offset = max(offset, bounds.first_offset)

    async def unread(self, group: str, offset: int) -> tuple[int, int | None]:
        """How many messages stand at this offset and behind it, and when the first of them was stored."""
        self.check_served(group)
        pages = self._pages(group)
        bounds = await self._sound(pages.bounds)
        first = max(offset, bounds.first_offset)
        if first >= bounds.next_offset:
            return 0, None
        stored = await self._sound(lambda: pages.read(pages.place_of(first), 1, 1))
        return bounds.next_offset - offset, stored[0].wall_ms if stored else None

    async def _written(self, group: str) -> None:
        """Until what was delivered here before is on disk.

        A producer has its receipt as soon as one replica delivered. If that replica then described only what is on
        its disk, the producer would be told that the offset in its receipt does not exist. A disk that is full or
        broken keeps nobody waiting: then there is what there is.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WRITTEN_S_MAX):
                end = (await self._sound(lambda: self.writer.own_bounds(group))).ends
                while (await self._sound(lambda: self.storage.bounds(group))).ends < end:
                    await self._tail(group).wait()
                    if not self.holds(group):
                        self.check_served(group)

    def _tail(self, group: str) -> asyncio.Event:
        """Set when the group has news on disk, or is not served any more."""
        found = self._tails.get(group)
        if found is None:
            found = self._tails[group] = asyncio.Event()
        return found

    async def _sound(self, look: Callable[[], Found]) -> Found:
        """What is found there; damaged entries on the way are mended first."""
        found = ""
        for _ in range(MENDS_MAX):
            try:
                return look()
            except CorruptRecord as damaged:
                found = f"{damaged}; {of_record(damaged)}"
                if self.mend is not None and can_be_mended(damaged):
                    await self.mend(damaged)
                    continue
                break
        raise Refused(grpc.StatusCode.DATA_LOSS, f"a damaged record: {found}", "DAMAGED")

    def start_offset(self, group: str, start: StartAt, bounds: LogBounds) -> int:
        match start.WhichOneof("at"):
            case "offset":
                if not bounds.first_offset <= start.offset <= bounds.next_offset:
                    raise out_of_range(group, start.offset, bounds)
                return start.offset
            case "earliest":
                return bounds.first_offset
            case _:
                return bounds.next_offset

    async def read(
        self,
        group: str,
        start: StartAt,
        stop_at_end: bool,
        *,
        watermarks: bool = False,
        chunk_bytes: int = 0,
    ) -> AsyncGenerator[ReadGroupResponse, None]:
        """First where the log begins and ends, then its entries; for ever, unless it is to stop at the end.

        With `watermarks`, also up to which order key nothing is missing, whenever the reader is at the end.
        """
        self.check_served(group)
        cell, pages = cell_of(group), self._pages(group)
        offset = await self._sound(lambda: self.start_offset(group, start, pages.bounds()))
        place = await self._sound(lambda: pages.place_of(offset))
        bounds = await self._sound(pages.bounds)
        if offset < bounds.first_offset:
            # Retention was here after the offset was chosen: the place may be that of a later one.
            raise out_of_range(group, offset, bounds)
        yield ReadGroupResponse(
            first_offset=bounds.first_offset, next_offset=bounds.next_offset, start_offset=offset
        )
        end = pages.end(bounds) if stop_at_end else None
        chunk_bytes_max = min(chunk_bytes or CHUNK_BYTES_MAX, CHUNK_BYTES_MAX)
        told = b""
        while end is None or place < end:
            waiting = self._tail(cell)
            # First this, for it is about what is in the log now: if that has nothing more, the reader has it all.
            passed = await self._passed(cell) if watermarks else b""
            stored = await self._sound(partial(pages.read, place, CHUNK_ENTRIES_MAX, chunk_bytes_max))
            if not stored:
                bounds = await self._sound(pages.bounds)
                if place < pages.begin(bounds):
                    raise out_of_range(group, offset, bounds)
                if passed > told:
                    told = passed
                    yield ReadGroupResponse(next_offset=offset, watermark=passed)
                    continue
                await waiting.wait()
                self.check_served(group)
                continue
            if stored[0].first_offset > offset:
                # A snapshot without a log took the place of what was here: what it stands for is elsewhere.
                raise out_of_range(group, offset, await self._sound(pages.bounds))
            place = pages.behind(stored[-1])
            offset = stored[-1].next_offset
            shown = [entry for entry in stored if entry.next_offset > entry.first_offset]
            response = ReadGroupResponse(
                next_offset=offset,
                entries=[entry.data for entry in shown],
                stored_ms=[entry.wall_ms for entry in shown],
                besides=self.read_besides(cell),
            )
            if response.entries:
                yield response

    async def _passed(self, cell: str) -> bytes:
        """The order key that whoever has read the log as it is on disk has passed: all that comes has a higher
        one.
        """
        ends = (await self._sound(lambda: self.storage.bounds(cell))).ends
        known, key = self._last_keys.get(cell, (0, b""))
        if known != ends:
            last = await self._sound(lambda: self.storage.read(cell, ends - 1, 1, 0)) if ends else []
            key = order_key_in(last[0].data) if last else b""
            self._last_keys[cell] = (ends, key)
        return max(key, self.watermarks.readable(cell, ends))
