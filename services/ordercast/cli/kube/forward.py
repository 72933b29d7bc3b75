"""A port of a pod, through Kubernetes' API server, as `kubectl port-forward` does it.

Kubernetes' client gives a socket for each connection. Who can use a socket uses that; gRPC dials addresses, so for
it a local port stands for the pod's, and threads carry bytes.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any

from ordercast.cli.kube.api import ApiPlace, KubeError, api_errors

HOST = "127.0.0.1"
PIECE_BYTES = 64 << 10


@contextlib.contextmanager
def pod_socket(place: ApiPlace, pod: str, port: int, timeout_s: float) -> Iterator[Any]:
    """A connection to a port of a pod. KubeError if there is none, or if it ended because the pod refused it."""
    with api_errors(place):
        forwarded = _forwarded_within(place, pod, port, timeout_s)
    _keep_the_end(forwarded, port)
    try:
        yield forwarded.socket(port)
        with api_errors(place):
            if forwarded.error(port):
                raise OSError(f"port {port} of {pod}: {forwarded.error(port)}")
    finally:
        forwarded.close()


def _forwarded_within(place: ApiPlace, pod: str, port: int, timeout_s: float) -> Any:
    """Kubernetes' client would wait for a silent API server for ever: it does so in a thread that can be left."""
    opened: Future[Any] = Future()

    def open_() -> None:
        try:
            opened.set_result(_forwarded(place, pod, port))
        except Exception as error:  # Whatever it is, it is raised where it is waited for.
            opened.set_exception(error)

    threading.Thread(target=open_, name=f"open-{pod}", daemon=True).start()
    done, _ = wait([opened], timeout_s)
    if not done:
        opened.add_done_callback(_close_late)
        raise TimeoutError(f"port {port} of {pod} was not opened within {timeout_s:.1f} s")
    return opened.result()


def _forwarded(place: ApiPlace, pod: str, port: int) -> Any:
    from kubernetes.client import ApiClient, CoreV1Api
    from kubernetes.stream import portforward

    # A client for each: while it forwards, its ordinary calls are replaced.
    with ApiClient(place.configuration) as client:
        ask = CoreV1Api(client).connect_get_namespaced_pod_portforward
        return portforward(ask, pod, place.namespace, ports=str(port))


def _close_late(opened: "Future[Any]") -> None:
    if opened.exception() is None:
        opened.result().close()


def _keep_the_end(forwarded: Any, port: int) -> None:
    """Kubernetes' client forgets what it has not passed on yet when the other side closes: pass it on before that.

    A page of metrics ends so, always. And a connection that breaks in another way is closed here, too: otherwise
    the client's thread would end with a traceback, and leave whoever reads waiting.
    """
    from websocket import WebSocketConnectionClosedException, WebSocketException

    near, receive = forwarded.local_ports[port], forwarded.websocket.recv_data_frame

    def receive_all(*args: Any) -> Any:
        try:
            return receive(*args)
        except (WebSocketException, OSError) as error:
            with contextlib.suppress(OSError):
                near.python.sendall(near.data)
            raise WebSocketConnectionClosedException(str(error)) from error

    forwarded.websocket.recv_data_frame = receive_all


@dataclass(slots=True)
class Tunnel:
    """A local port that stands for a pod's. What is dialled there goes to the pod."""

    place: ApiPlace
    pod: str
    port: int
    timeout_s: float
    #: Why a connection came to nothing, the last time that one did.
    error: str = ""
    _listener: socket.socket = field(init=False)
    _sockets: list[Any] = field(default_factory=list)

    def __enter__(self) -> "Tunnel":
        self._listener = socket.create_server((HOST, 0))
        threading.Thread(target=self._accept, name=f"forward-{self.pod}", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._sockets):
            _end(each)
        self._listener.close()

    @property
    def address(self) -> str:
        return f"{HOST}:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # Closed: nobody dials any more.
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        self._sockets.append(near)
        try:
            with near, pod_socket(self.place, self.pod, self.port, self.timeout_s) as far:
                back = threading.Thread(target=_pump, args=(far, near), daemon=True)
                back.start()
                _pump(near, far)
                back.join()
        except KubeError as error:
            self.error = str(error)


def _pump(source: Any, sink: Any) -> None:
    """Until either side is done: then both are."""
    with contextlib.suppress(OSError):
        while piece := source.recv(PIECE_BYTES):
            sink.sendall(piece)
    _end(source)
    _end(sink)


def _end(each: Any) -> None:
    """Whoever waits for it in another thread notices; closing alone would not tell."""
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
