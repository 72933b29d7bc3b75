"""What machines deliver before it has a place in a log, for those who want it at once.

Nothing is kept for anybody: who reads gets what is delivered from then on. A reader that falls behind, or whose
process is left out of its group and misses something, is told so and not given the rest: a causal order with a gap
in it would be none.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

import grpc

from ordercast.runtime.transport.status import Refused
from ordercast.v1.sequencer_pb2 import LogEntry

#: What a reader may be behind.
ENTRIES_MAX = 4096
BYTES_MAX = 8 << 20


class LiveFeeds:
    def __init__(self) -> None:
        self._readers: dict[str, list[_Reader]] = {}

    def delivered(self, group: str, entry: LogEntry) -> None:
        readers = self._readers.get(group)
        if readers:
            data = entry.SerializeToString()
            for reader in readers:
                reader.add(data)

    def interrupted(self, group: str) -> None:
        for reader in self._readers.get(group, ()):
            message = f"the replica of {group!r} here was left out, or moved: what it missed is in the log"
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
