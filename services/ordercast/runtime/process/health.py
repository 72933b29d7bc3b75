"""How this process is, in one word, for whoever asks from a thread: what health checks by gRPC are told, too.

Only the event loop gives the answer. One that is stuck gives none, and that is an answer as well.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Literal

#: Health checks by gRPC say SERVING of the second, and NOT_SERVING of the others.
Phase = Literal["starting", "serving", "stopping"]
Condition = Literal["starting", "serving", "stopping", "stuck"]

#: The loop has so long. Whoever probes has to be more patient.
ANSWER_S_MAX = 3.0


class Health:
    def __init__(self, phase: Callable[[], Phase]) -> None:
        """To be made in the event loop that answers; `phase` is called there."""
        self._loop = asyncio.get_running_loop()
        self._phase = phase

    def condition(self) -> Condition:
        """From any thread but the loop's own."""
        said: list[Phase] = []
        answered = threading.Event()

        def answer() -> None:
            said.append(self._phase())
            answered.set()

        try:
            self._loop.call_soon_threadsafe(answer)
        except RuntimeError:  # The loop is closed: this was asked in the last moment.
            return "stopping"
        return said[0] if answered.wait(ANSWER_S_MAX) else "stuck"
