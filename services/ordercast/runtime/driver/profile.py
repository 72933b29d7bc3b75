"""Where a process spends its time: seconds and events, by machine and kind of event.

Telemetry has nothing like it: to look at the clock before and after every event costs too much to be always on.
Seconds are those of the processor: on a busy machine an event also waits for it.
"""

import time

from ordercast.core.machine import Event, Receive


class Profile:
    def __init__(self) -> None:
        self.spent: dict[tuple[str, str], tuple[int, float]] = {}

    def begin(self) -> float:
        return time.thread_time()

    def end(self, begun: float, role: str, event: Event) -> None:
        kind = type(event.message if isinstance(event, Receive) else event).__name__
        count, spent = self.spent.get((role, kind), (0, 0.0))
        self.spent[role, kind] = (count + 1, spent + time.thread_time() - begun)

    def document(self) -> dict[str, tuple[int, float]]:
        """(events, seconds) by "role kind"."""
        return {f"{role} {kind}": spent for (role, kind), spent in self.spent.items()}
