"""The API server's side of `kubectl port-forward`: one port over a WebSocket, in two numbered channels."""

import base64
import contextlib
import hashlib
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

DATA, ERROR = 0, 1
_BINARY = 0x82
_CLOSE = 8
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def forward(asked: BaseHTTPRequestHandler, port: int, target: tuple[str, int] | None) -> None:
    """Until either side is done. Without a target, nobody listens at the port."""
    key = hashlib.sha1(asked.headers["Sec-WebSocket-Key"].encode() + _MAGIC).digest()
    asked.send_response(101)
    asked.send_header("Upgrade", "websocket")
    asked.send_header("Connection", "Upgrade")
    asked.send_header("Sec-WebSocket-Accept", base64.b64encode(key).decode())
    asked.send_header("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
    asked.end_headers()
    asked.close_connection = True
    for channel in (DATA, ERROR):
        _send(asked, channel, struct.pack("<H", port))
    if target is None:
        _send(asked, ERROR, b"connection refused")
        return
    with contextlib.suppress(OSError), socket.create_connection(target) as behind:
        threading.Thread(target=_bring_back, args=(behind, asked), daemon=True).start()
        while (data := _receive(asked.rfile)) is not None:
            behind.sendall(data[1:])


def _bring_back(behind: socket.socket, asked: BaseHTTPRequestHandler) -> None:
    with contextlib.suppress(OSError, ValueError):
        while data := behind.recv(65536):
            _send(asked, DATA, data)
        asked.connection.shutdown(socket.SHUT_RDWR)


def _send(asked: BaseHTTPRequestHandler, channel: int, data: bytes) -> None:
    length = len(data) + 1
    head = bytes([_BINARY, length]) if length < 126 else struct.pack("!BBQ", _BINARY, 127, length)
    asked.wfile.write(head + bytes([channel]) + data)
    asked.wfile.flush()


def _receive(stream: Any) -> bytes | None:
    """The next frame, unmasked; None at the end."""
    head = stream.read(2)
    if len(head) < 2 or head[0] & 0x0F == _CLOSE:
        return None
    length = head[1] & 0x7F
    if length >= 126:
        form, size = ("!H", 2) if length == 126 else ("!Q", 8)
        (length,) = struct.unpack(form, stream.read(size))
    mask = stream.read(4)
    data = stream.read(length)
    return bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
