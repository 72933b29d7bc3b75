"""What machines deliver before it has a place in a log, for those who want it at once.

Nothing is kept for anybody: who reads gets what is delivered from then on. A reader that falls behind, or whose
process is left out of its group and misses something, is told so and not given the rest: a causal order with a gap
in it would be none.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

import grpc

from ordercast.core.cells import cell_of, names_group, shares_cell
from ordercast.core.projection import projected_live
from ordercast.runtime.transport.status import Refused
from ordercast.v1.sequencer_pb2 import LogEntry

#: What a reader may be behind.
ENTRIES_MAX = 4096
BYTES_MAX = 8 << 20


class LiveFeeds:
    def __init__(self) -> None:
        #: By the address of the group that they read.
        self._readers: dict[str, list[_Reader]] = {}

    def delivered(self, cell: str, entry: LogEntry) -> None:
        for address, readers in self._in_cell(cell):
            if not shares_cell(address):
                data = entry.SerializeToString()
            elif names_group(entry.envelope.header, address):
                data = projected_live(address, entry).SerializeToString()
            else:
                continue
            for reader in readers:
                reader.add(data)

    def _in_cell(self, cell: str) -> list[tuple[str, list["_Reader"]]]:
        return [(address, readers) for address, readers in self._readers.items() if cell_of(address) == cell]

    def interrupted(self, cell: str) -> None:
        for address, readers in self._in_cell(cell):
            message = f"the replica of {address!r} here was left out, or moved: what it missed is in the log"
            for reader in readers:
                reader.end(Refused(grpc.StatusCode.UNAVAILABLE, message, "LIVE_INTERRUPTED"))

    async def read(self, group: str) -> AsyncGenerator[list[bytes], None]:
        """Entries as they are delivered here. First none, once nothing is missed any more."""
        reader = _Reader()
        readers = self._readers.setdefault(group, [])
        readers.append(reader)
        try:
            yield []
            while True:
                yield await reader.take()
        finally:
            readers.remove(reader)
            if not readers:
                self._readers.pop(group, None)


class _Reader:
    def __init__(self) -> None:
        self._entries: deque[bytes] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self._end: Refused | None = None

    def add(self, data: bytes) -> None:
        if self._end is not None:
            return
        self._entries.append(data)
        self._bytes += len(data)
        self._news.set()
        if len(self._entries) > ENTRIES_MAX or self._bytes > BYTES_MAX:
            self._entries.clear()
            message = (
                f"more than {ENTRIES_MAX} entries or {BYTES_MAX} bytes behind: what is left out is in the log"
            )
            self.end(Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, message, "LIVE_TOO_SLOW"))

    def end(self, refused: Refused) -> None:
        """What came before is still given."""
        if self._end is None:
            self._end = refused
            self._news.set()

    async def take(self) -> list[bytes]:
        while not self._entries:
            if self._end is not None:
                raise self._end
            self._news.clear()
            await self._news.wait()
        entries = list(self._entries)
        self._entries.clear()
        self._bytes = 0
        return entries
