"""One open stream to one peer: whatever queued up while the last frame was written is the next frame."""

import asyncio
from collections.abc import Awaitable, Callable

from ordercast.v1.frame_pb2 import Frame

#: A frame is closed when it has this much, so that small messages do not wait behind a log that is being fetched.
FRAME_BYTES_MAX = 1 << 20
#: How long what is not urgent waits for company.
PATIENCE_S = 0.008


class Link:
    def __init__(self, peer: str, incarnation: int, queue_bytes_max: int) -> None:
        self.peer = peer
        self.incarnation = incarnation
        self.queue_bytes_max = queue_bytes_max
        #: (domain, packet)
        self._queue: list[tuple[str, bytes]] = []
        self._queued_bytes = 0
        self._wake = asyncio.Event()
        #: Wakes the writer for what is not urgent.
        self._soon: asyncio.TimerHandle | None = None
        #: Nothing leaves any more, and nothing that still arrives counts.
        self.closed = asyncio.Event()

    @property
    def is_closed(self) -> bool:
        return self.closed.is_set()

    def send(self, domain: str, packet: bytes, urgent: bool = True) -> None:
        """A peer that is too far behind gets a channel reset, not a queue: machines say again what matters.

        One packet may be as large as it is, if nothing else waits: a snapshot would otherwise never get through.
        """
        if self.is_closed:
            return
        self._queue.append((domain, packet))
        self._queued_bytes += len(packet)
        if self._queued_bytes > self.queue_bytes_max and len(self._queue) > 1:
            self.close()
        if urgent:
            self._wake.set()
        elif self._soon is None and not self._wake.is_set():
            self._soon = asyncio.get_running_loop().call_later(PATIENCE_S, self._wake.set)

    def close(self) -> None:
        self.closed.set()
        self._forget_soon()
        self._queue.clear()
        self._queued_bytes = 0
        self._wake.set()

    async def write(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        """Until the link is closed. The transport's flow control slows this down, and nothing else."""
        while True:
            await self._wake.wait()
            if self.is_closed:
                return
            self._wake.clear()
            self._forget_soon()
            while self._queue:
                await write(self._next_frame())
                if self.is_closed:
                    return

    def _forget_soon(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None

    def _next_frame(self) -> bytes:
        frame = Frame()
        section = None
        size = taken = 0
        for domain, packet in self._queue:
            if taken and size + len(packet) > FRAME_BYTES_MAX:
                break
            if section is None or section.domain != domain:
                section = frame.sections.add(domain=domain)
            section.packets.append(packet)
            size += len(packet)
            taken += 1
        del self._queue[:taken]
        self._queued_bytes -= size
        data: bytes = frame.SerializeToString()
        return data
