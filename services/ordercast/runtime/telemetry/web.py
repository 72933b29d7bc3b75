"""The HTTP server of a process: `/metrics` for Prometheus, `/healthz` and `/readyz` for whoever looks after it.

It has no TLS, for who probes processes has no certificate, and nothing but numbers and a word is said.
Requests have threads of their own, so that a scrape does not wait for the event loop, nor the loop for a scrape.
There are few of them: who comes when all are busy is cut off, unless one of them has been at it for too long.
"""

import contextlib
import io
import socket
import sys
import threading
import time
from collections.abc import Iterable
from http import HTTPStatus
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import structlog
from prometheus_client import make_wsgi_app

from ordercast.runtime.process.health import Health
from ordercast.runtime.process.settings import split_address
from ordercast.runtime.telemetry.exposition import registry
from ordercast.runtime.telemetry.meters import Meters
from ordercast.runtime.transport.server import ListenError

#: Whoever connects and does not get on with it is cut off.
REQUEST_S_MAX = 10.0
#: At a time.
REQUESTS_MAX = 16

log = structlog.get_logger("http")


class Server:
    """Serves from when it is made until it is stopped. ListenError if the address is not to be had."""

    def __init__(self, meters: Meters, health: Health, address: str) -> None:
        self._metrics = make_wsgi_app(registry(meters))
        self._health = health
        host, port = split_address(address)
        try:
            self._server = make_server(host, port, self._answer, _server_for(host), _Handler)
        except OSError as error:
            raise ListenError(f"cannot serve metrics at {address}: {error.strerror}") from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_port

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        try:
            return self._say(environ, start_response)
        except Exception as error:
            log.error("a request failed", exc_info=error)
            raise

    def _say(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/metrics":
                answer: Iterable[bytes] = self._metrics(environ, start_response)
                return answer
            case "/healthz":
                # Starting anew helps one that is stuck, and nobody else.
                condition = self._health.condition()
                return _said(start_response, condition != "stuck", condition)
            case "/readyz":
                condition = self._health.condition()
                return _said(start_response, condition == "serving", condition)
        # Metrics at any path, as Prometheus' library has them, would be a good answer to a misspelt probe.
        start_response(_status(HTTPStatus.NOT_FOUND), [("Content-Type", "text/plain")])
        return [b"/metrics, /healthz, /readyz\n"]


def _said(start_response: Any, is_good: bool, word: str) -> list[bytes]:
    status = HTTPStatus.OK if is_good else HTTPStatus.SERVICE_UNAVAILABLE
    start_response(_status(status), [("Content-Type", "text/plain"), ("Cache-Control", "no-store")])
    return [f"{word}\n".encode()]


def _status(status: HTTPStatus) -> str:
    return f"{status.value} {status.phrase}"


class _Handler(WSGIRequestHandler):
    timeout = REQUEST_S_MAX  # type: ignore[assignment]  # of the connection, and None in its class

    def log_message(self, format: str, *args: Any) -> None:
        """Probes and scrapes come every few seconds."""

    def get_stderr(self) -> Any:
        """For tracebacks of writes to clients that do not read; our own mistakes are logged by `_answer`."""
        return io.StringIO()


class _Server(ThreadingMixIn, WSGIServer):
    #: Nobody waits for a request when the process ends.
    daemon_threads = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        #: Connections that have a thread, and since when; the oldest first.
        self._served: dict[socket.socket, float] = {}
        self._lock = threading.RLock()

    def process_request(self, request: Any, client_address: Any) -> None:
        now = time.monotonic()
        with self._lock:
            if len(self._served) >= REQUESTS_MAX:
                # One byte now and then is no progress: whoever took too long goes when there is need.
                oldest = next(iter(self._served))
                if self._served[oldest] > now - REQUEST_S_MAX:
                    self.shutdown_request(request)
                    return
                del self._served[oldest]
                _cut_off(oldest)
            self._served[request] = now
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """This is also where a request's thread ends."""
        with self._lock:
            self._served.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up or say nothing are nothing to tell anybody of."""
        error = sys.exception()
        if isinstance(error, OSError):
            log.debug("a request came to no end", client=str(client_address), why=repr(error))
        else:
            log.error("a request failed", client=str(client_address), exc_info=error)


def _cut_off(connection: socket.socket) -> None:
    """Its thread notices, and ends."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Server6(_Server):
    address_family = socket.AF_INET6


def _server_for(host: str) -> type[_Server]:
    (family, *_), *_ = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return _Server6 if family == socket.AF_INET6 else _Server
