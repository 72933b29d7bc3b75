"""gRPC's own threads of a streaming call, which have to be over before the stream counts as closed.

They are daemons: an interpreter that ends stops them wherever they are, also while they hold the call's lock. The
call's finalizer takes that lock too, and then the process never ends.
"""

import threading
from typing import Any

#: Threads of a stream that is over, gRPC's or ours, do nothing that blocks for long.
JOIN_S = 5.0


class CallThreads:
    def __init__(self) -> None:
        self._threads: set[threading.Thread] = set()

    def watch(self, call: Any) -> None:
        """The thread that takes the call's events: it is the one that tells that the call is over."""
        call.add_callback(self.note)

    def note(self) -> None:
        """The thread that runs this: gRPC asks for requests in another one."""
        self._threads.add(threading.current_thread())

    def join(self) -> None:
        """When the channel is closed, and nothing is left that those threads could wait for."""
        for thread in self._threads:
            thread.join(JOIN_S)
        self._threads.clear()
