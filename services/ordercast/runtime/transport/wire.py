"""One connection to another process: frames in both directions, each with its length before it.

This is not a gRPC stream: those cost four times the processor time and several changes of threads for each frame,
and a message takes some ten frames. gRPC is how processes find out who they are and where to connect (mesh.py).
"""

import asyncio
import struct
from collections.abc import Callable
from typing import cast

from ordercast.runtime.process.settings import PEER_MESSAGE_BYTES_MAX

LENGTH = struct.Struct("<I")
#: Before the other side is known, nothing longer than a ticket is taken from it.
FIRST_BYTES_MAX = 64
#: Asyncio tells us to stop writing when so much waits in the transport.
WRITE_BYTES_HIGH = 4 << 20


class Wire(asyncio.Protocol):
    """First one frame that is waited for, then `start` has all that follow handed to a receiver."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._first: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._receive: Callable[[bytes], None] | None = None
        self._is_held = False
        #: More may be written; told when that is so again.
        self.is_writable = True
        self.on_writable: Callable[[], None] = lambda: None
        #: What was read so far, for whoever wonders whether the other side is still there.
        self.bytes_read = 0
        self.lost = asyncio.Event()

    # ----------------------------------------------------------------------------------- what asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BYTES_HIGH)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def eof_received(self) -> None:
        """At once: otherwise it would last until the other side, which may not read, has what we wrote."""
        self.abort()

    def pause_writing(self) -> None:
        self.is_writable = False

    def resume_writing(self) -> None:
        self.is_writable = True
        self.on_writable()

    def data_received(self, data: bytes) -> None:
        self.bytes_read += len(data)
        self._buffer += data
        self._hand_out()

    def certificate_names(self) -> list[str] | None:
        """The names in the other side's certificate: DNS names, and the common name. None without TLS."""
        transport = self._open_transport
        if transport.get_extra_info("ssl_object") is None:
            return None
        found = transport.get_extra_info("peercert") or {}
        names = [value for kind, value in found.get("subjectAltName", ()) if kind == "DNS"]
        subject = [pair for part in found.get("subject", ()) for pair in part]
        return names + [value for kind, value in subject if kind == "commonName"]

    # ---------------------------------------------------------------------------------------------- reading

    async def first(self) -> bytes:
        """The first frame; EOFError if there is none."""
        return await self._first

    def start(self, receive: Callable[[bytes], None]) -> None:
        """Receive whatever comes after the first frame."""
        self._receive = receive
        self.go_on()

    def hold(self) -> None:
        """Nothing more is handed out or read, until `go_on`."""
        if not self._is_held and not self.lost.is_set():
            self._is_held = True
            self._open_transport.pause_reading()

    def go_on(self) -> None:
        if self._is_held and not self.lost.is_set():
            self._is_held = False
            self._open_transport.resume_reading()
            self._hand_out()

    @property
    def is_held(self) -> bool:
        return self._is_held

    def _hand_out(self) -> None:
        buffer, at = self._buffer, 0
        while not self._is_held and not self.lost.is_set() and len(buffer) - at >= LENGTH.size:
            if self._receive is None and self._first.done():
                self.hold()  # Nobody takes it yet, and it must not pile up here.
                break
            (length,) = LENGTH.unpack_from(buffer, at)
            if length > (FIRST_BYTES_MAX if self._receive is None else PEER_MESSAGE_BYTES_MAX):
                self.abort()
                return
            end = at + LENGTH.size + length
            if len(buffer) < end:
                break
            frame = bytes(memoryview(buffer)[at + LENGTH.size : end])
            at = end
            if self._receive is None:
                self._first.set_result(frame)
            else:
                self._receive(frame)
        if at:
            del buffer[:at]

    # ---------------------------------------------------------------------------------------------- writing

    def write(self, frame: bytes) -> None:
        if not self.lost.is_set():
            self._open_transport.write(LENGTH.pack(len(frame)) + frame)

    def abort(self) -> None:
        """At once; what was not sent yet is not."""
        if self._transport is not None:
            self._transport.abort()
        self._end()

    def _end(self) -> None:
        self.lost.set()
        self._buffer.clear()
        if not self._first.done():
            self._first.set_exception(EOFError("the connection ended"))
            self._first.exception()  # Nobody may be waiting for it.

    @property
    def _open_transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport
