"""Calls to a gateway that may hang, for threads: a thread looks at intervals whether it is alive."""

import threading
from types import TracebackType
from typing import Any, Self

import grpc

from ordercast.client import transport
from ordercast.client.call_threads import CallThreads
from ordercast.client.errors import Unavailable
from ordercast.core.silence import ALIVE_MS, LOOK_S, Silence


class SilenceWatch:
    """Cancels a call as soon as its gateway has been silent for too long. Use it with `with`."""

    def __init__(self, call: Any, silence: Silence) -> None:
        self._call = call
        self._silence = silence
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ordercast silence", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(LOOK_S):
            if self._silence.look():
                self._call.cancel()
                return


def answered(channel: grpc.Channel, call: Any, silence: Silence, threads: CallThreads) -> Any:
    """The answer to a call that may take long, of a gateway that answers probes meanwhile."""
    check: Any = channel.unary_unary(transport.PROBE)
    probe: Any = None
    try:
        while True:
            try:
                return call.result(timeout=LOOK_S)
            except grpc.FutureTimeoutError:
                if silence.look():
                    raise Unavailable(transport.SILENT) from None
            if probe is None:
                probe = check.future(b"")
                threads.watch(probe)
            elif probe.done():
                if probe.code() != grpc.StatusCode.UNAVAILABLE:
                    silence.heard(ALIVE_MS)
                probe = None
    finally:
        call.cancel()
        if probe is not None:
            probe.cancel()
