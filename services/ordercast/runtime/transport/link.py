"""One open connection to one peer: whatever queued up since the last frame is the next frame."""

import asyncio
from collections.abc import Callable

import structlog

from ordercast.runtime.process.settings import PEER_MESSAGE_BYTES_MAX
from ordercast.runtime.transport.wire import Wire
from ordercast.v1.frame_pb2 import Frame

log = structlog.get_logger("link")

#: A frame is closed when it has this much, so that small messages do not wait behind a log that is being fetched.
FRAME_BYTES_MAX = 1 << 20
#: A longer one fits into no frame that the other side takes: a kilobyte is for what stands around it.
PACKET_BYTES_MAX = PEER_MESSAGE_BYTES_MAX - 1024
#: How long what is not urgent waits for company.
PATIENCE_S = 0.008
#: A side that has nothing to say for so long sends a frame without content.
PING_S = 2.0
#: After so many times that long without a word the other side is taken for gone.
SILENT_PINGS_MAX = 4


class Link:
    def __init__(
        self, peer: str, incarnation: int, queue_bytes_max: int, wire: Wire, on_frame: Callable[[int], None]
    ) -> None:
        """`on_frame` is told how long each frame was that was written."""
        self.peer = peer
        self.incarnation = incarnation
        self.queue_bytes_max = queue_bytes_max
        self.wire = wire
        self._on_frame = on_frame
        #: (domain, packet)
        self._queue: list[tuple[str, bytes]] = []
        self.queued_bytes = 0
        self._loop = asyncio.get_running_loop()
        #: The frame that is about to be written: at the end of this turn of the loop, or when patience ends.
        self._flushing: asyncio.Handle | None = None
        self._soon: asyncio.TimerHandle | None = None
        self._has_written = False
        self._silent_pings = 0
        self._bytes_read = 0
        self._ping = self._loop.call_later(PING_S, self._look_after)
        wire.on_writable = self._flush

    @property
    def is_closed(self) -> bool:
        """Nothing leaves any more, and nothing that still arrives counts."""
        return self.wire.lost.is_set()

    def send(self, domain: str, packet: bytes, urgent: bool = True) -> None:
        """A peer that is too far behind gets a channel reset, not a queue: machines say again what matters.

        One packet may be as large as it is, if nothing else waits: a snapshot would otherwise never get through.
        """
        if self.is_closed:
            return
        if len(packet) > PACKET_BYTES_MAX:
            # Nothing is lost without a reset, not even this.
            log.error("what a machine has to say is too long", peer=self.peer, domain=domain, bytes=len(packet))
            self.close()
            return
        self._queue.append((domain, packet))
        self.queued_bytes += len(packet)
        if self.queued_bytes > self.queue_bytes_max and len(self._queue) > 1:
            self.close()
        elif self._flushing is not None:
            return
        elif urgent:
            self._flushing = self._loop.call_soon(self._flush)
        elif self._soon is None:
            self._soon = self._loop.call_later(PATIENCE_S, self._flush)

    def close(self) -> None:
        """At once: a peer that does not read would otherwise keep it open."""
        self._ping.cancel()
        self._forget_flush()
        self._queue.clear()
        self.queued_bytes = 0
        self.wire.abort()

    def _flush(self) -> None:
        self._forget_flush()
        while self._queue and self.wire.is_writable and not self.is_closed:
            self._has_written = True
            frame = self._next_frame()
            self._on_frame(len(frame))
            self.wire.write(frame)

    def _forget_flush(self) -> None:
        for handle in (self._flushing, self._soon):
            if handle is not None:
                handle.cancel()
        self._flushing = self._soon = None

    def _look_after(self) -> None:
        """A connection may hang without anybody being told, as when a cable is pulled."""
        self._ping = self._loop.call_later(PING_S, self._look_after)
        if not self._has_written:
            self.wire.write(b"")
        self._has_written = False
        is_silent = self.wire.bytes_read == self._bytes_read and not self.wire.is_held
        self._silent_pings = self._silent_pings + 1 if is_silent else 0
        self._bytes_read = self.wire.bytes_read
        if self._silent_pings >= SILENT_PINGS_MAX:
            self.close()

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
        self.queued_bytes -= size
        data: bytes = frame.SerializeToString()
        return data
