"""Asking for the log: one piece at a time, of one source after the other, and not too fast.

A piece is asked for by the position that it begins at. So whoever is interrupted goes on where it was, and with
another source if it must: logs of a group never differ but in length.
"""

from collections.abc import Sequence
from typing import Generic

from ordercast.core.machine import Send, SetTimer
from ordercast.protocols.celllog.stepping import LogMachine, R
from ordercast.v1.sequencer_pb2 import FetchLog

COPY_TIMER = "copy"
#: Shorter waits between two pieces are not worth a timer.
WAIT_S_MIN = 0.001


class Fetching(Generic[R]):
    def __init__(self, machine: LogMachine[R]) -> None:
        self.machine = machine
        #: Groups whose next piece is asked for at that time, and of whom.
        self.due: dict[str, tuple[float, str]] = {}

    def fetch(self, replica: R, source: str) -> None:
        """At once. Until `fetch_due` an answer may come."""
        machine = self.machine
        fetch = FetchLog(
            group=replica.name, configuration=replica.group.configuration, position=replica.lacks_from
        )
        replica.fetch_due = machine.now + machine.patience_s()
        machine.out.append(Send((source,), fetch))
        machine.wake_for_copy()

    def fetch_in_turn(self, replica: R, sources: Sequence[str]) -> None:
        """One of them may be dead and never answer."""
        if sources:
            replica.fetches += 1
            self.fetch(replica, sources[replica.fetches % len(sources)])

    def fetch_next(self, replica: R, source: str, size: int) -> None:
        """After a piece of so many bytes, at the rate that is allowed."""
        machine = self.machine
        wait_s = size / machine.settings.copy_bytes_per_s
        if wait_s < WAIT_S_MIN:
            self.fetch(replica, source)
            return
        replica.fetch_due = machine.now + wait_s + machine.patience_s()
        self.due[replica.name] = (machine.now + wait_s, source)
        self._set_timer()

    def on_timer(self) -> None:
        machine = self.machine
        for name, (at, source) in list(self.due.items()):
            if machine.now >= at:
                del self.due[name]
                if name in machine.replicas:
                    self.fetch(machine.replicas[name], source)
        if self.due:
            self._set_timer()

    def _set_timer(self) -> None:
        first = min(at for at, _ in self.due.values())
        self.machine.out.append(SetTimer(COPY_TIMER, first - self.machine.now))
