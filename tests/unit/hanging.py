"""A gateway that can be made to hang, as a process does that was stopped: its system still takes connections."""

import contextlib
import socket
import threading
from collections.abc import Iterator

READ_BYTES = 65536


class Hanging:
    """Passes bytes on, in both directions, until it hangs."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self._behind = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self._hangs = threading.Event()
        self._resumes = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def hang(self) -> None:
        """From now on nothing comes through, and no connection ends."""
        self._hangs.set()

    def close(self) -> None:
        self._resumes.set()
        for open_socket in self._sockets:
            with contextlib.suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
            open_socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                behind = socket.create_connection(self._behind)
                self._sockets.append(behind)
                for source, target in ((client, behind), (behind, client)):
                    threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(READ_BYTES):
                if self._hangs.is_set():
                    self._resumes.wait()
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def hanging(address: str) -> Iterator[Hanging]:
    """In front of the gateway at this address."""
    found = Hanging(address)
    try:
        yield found
    finally:
        found.close()
