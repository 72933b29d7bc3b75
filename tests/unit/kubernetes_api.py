"""As much of Kubernetes' API server as lists and watches EndpointSlices, for the real client to talk to."""

import contextlib
import json
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

HOST = "127.0.0.1"
END = b""

Slice = dict[str, Any]


def endpoint(pod: str, address: str, **conditions: bool) -> dict[str, Any]:
    return {"addresses": [address], "conditions": conditions, "targetRef": {"kind": "Pod", "name": pod}}


def slice_of(name: str, *endpoints: dict[str, Any], family: str = "IPv4") -> Slice:
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": name, "resourceVersion": "1"},
        "addressType": family,
        "endpoints": list(endpoints),
    }


class ApiServer:
    """Thread-safe. What is in `slices` is listed; `put` and `delete` tell those who watch, too."""

    def __init__(self, port: int = 0, context: ssl.SSLContext | None = None) -> None:
        self.slices: dict[str, Slice] = {}
        #: Path, query and token of each list; and of each watch.
        self.lists: list[tuple[str, dict[str, list[str]], str | None]] = []
        self.watches: list[tuple[str, dict[str, list[str]], str | None]] = []
        #: Instead of a list: a code and a body.
        self.instead: tuple[int, bytes] | None = None
        self._version = 1
        self._watchers: list[queue.SimpleQueue[bytes]] = []
        self._connections: list[socket.socket] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer((HOST, port), self._handler())
        self._server.daemon_threads = True
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def die(self) -> None:
        """Nobody listens, and connections are gone."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.end_watches()

    # -------------------------------------------------------------------------------------------- what there is

    def put(self, endpoint_slice: Slice) -> None:
        with self._lock:
            name = endpoint_slice["metadata"]["name"]
            kind = "MODIFIED" if name in self.slices else "ADDED"
            self.slices[name] = endpoint_slice
            self._say(kind, endpoint_slice)

    def delete(self, name: str) -> None:
        with self._lock:
            self._say("DELETED", self.slices.pop(name))

    def forget_history(self) -> None:
        """What those who watch go on from is no longer known: 410."""
        with self._lock:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            self._say("ERROR", gone)

    def say(self, text: bytes) -> None:
        for watcher in self._watchers:
            watcher.put(text)

    def end_watches(self) -> None:
        self.say(END)

    def _say(self, kind: str, each: dict[str, Any]) -> None:
        self._version += 1
        self.say(json.dumps({"type": kind, "object": each}).encode() + b"\n")

    # --------------------------------------------------------------------------------------------------- HTTP

    def _listed(self) -> tuple[int, bytes]:
        if self.instead is not None:
            return self.instead
        with self._lock:
            document = {
                "kind": "EndpointSliceList",
                "metadata": {"resourceVersion": str(self._version)},
                "items": list(self.slices.values()),
            }
        return 200, json.dumps(document).encode()

    def _watched(self, timeout_s: float) -> Iterator[bytes]:
        watcher: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._watchers.append(watcher)
        end = time.monotonic() + timeout_s
        try:
            with contextlib.suppress(queue.Empty):
                while text := watcher.get(timeout=max(end - time.monotonic(), 0)):
                    yield text
        finally:
            self._watchers.remove(watcher)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                api._connections.append(self.connection)
                url = urlsplit(self.path)
                query = parse_qs(url.query)
                asked = (url.path, query, self.headers["Authorization"])
                if "watch" in query:
                    self._watch(asked, float(query["timeoutSeconds"][0]))
                    return
                api.lists.append(asked)
                code, body = api._listed()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _watch(self, asked: Any, timeout_s: float) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                watched = api._watched(timeout_s)
                api.watches.append(asked)
                with contextlib.suppress(OSError):
                    for text in watched:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
                    self.wfile.write(b"0\r\n\r\n")

            def log_message(self, *_: object) -> None:
                pass

        return Handler
