"""Rows of a group's index that are damaged or missing are made anew from the log of its cell.

The log has all that rows say, so nobody else is asked. Between two rows that are sound, the entries that lie
between theirs are read through, piece by piece; behind the last one, those to the log's end. Entries that are
damaged themselves are mended first. A beginning that cannot be read is forgotten: then the group begins with its
first row.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from ordercast.core.cells import cell_of
from ordercast.runtime.process.node import Node
from ordercast.runtime.storage.group_index import DamagedRow, IndexRow
from ordercast.runtime.storage.overlay import rows_of
from ordercast.runtime.storage.store import CorruptRecord
from ordercast.v1.sequencer_pb2 import LogEntry

log = structlog.get_logger("reindexing")

#: So much is read at a time, with a pause behind it, so that nobody notices.
PIECE_BYTES = 256 << 10
PIECE_ENTRIES = 256
PAUSE_S = 0.005
LOOK_S = 0.005
#: No offset is as high.
ENDLESS = 1 << 63


class Reindexing:
    def __init__(self, node: Node, mend_entry: Callable[[CorruptRecord], Awaitable[None]]) -> None:
        self.node = node
        self._mend_entry = mend_entry
        #: By address: one at a time, however many readers come upon it.
        self._busy: dict[str, asyncio.Task[None]] = {}

    async def mend(self, damaged: DamagedRow) -> None:
        address = damaged.address
        task = self._busy.get(address)
        if task is None:
            task = self._busy[address] = asyncio.create_task(self._mend(address, damaged.offset))
            task.add_done_callback(lambda _: self._busy.pop(address, None))
        await asyncio.shield(task)

    async def _mend(self, address: str, offset: int | None) -> None:
        index, writer = self.node.logs.index, self.node.writer
        if self.node.directory.is_gone(address):
            return
        before, after = (None, None) if offset is None else index.sound_around(address, offset)
        low = before.next_offset if before is not None else 0
        high = after.first_offset if after is not None else ENDLESS
        rows: list[IndexRow] = []
        if offset is not None:
            begin = before.position if before is not None else 0
            rows = [row for row in await self._read(address, begin, after) if low <= row.first_offset < high]
        spoilt = index.spoilt(address, low, high)
        ticket = writer.mend_index(address, spoilt, rows)
        writer.kick()
        while writer.durable < ticket:
            await asyncio.sleep(LOOK_S)
        log.warning("damaged index mended", group=address, offset=offset, rows=len(rows), damaged=len(spoilt))

    async def _read(self, address: str, begin: int, after: IndexRow | None) -> list[IndexRow]:
        """The group's rows in the entries from there on, up to that of the row behind."""
        storage, cell = self.node.storage, cell_of(address)
        found: list[IndexRow] = []
        there = storage.positions(cell)
        position = max(begin, there.start)
        end = there.stop if after is None else min(there.stop, after.position)
        while position < end:
            try:
                entries = storage.read(cell, position, min(PIECE_ENTRIES, end - position), PIECE_BYTES)
            except CorruptRecord as damaged:
                await self._mend_entry(damaged)
                continue
            if not entries:
                position = max(position + 1, storage.positions(cell).start)  # Retention was faster.
                continue
            for entry in entries:
                rows = rows_of(cell, entry.position, LogEntry.FromString(entry.data))
                found += [row for group, row in rows if group == address]
            position = entries[-1].position + 1
            await asyncio.sleep(PAUSE_S)
        return found
