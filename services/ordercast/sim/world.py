"""The simulated world: time, processes, network, and what is recorded of a run.

Everything that happens is an entry in one heap, ordered by (time, ticket), and every random number comes from the
seed. So a seed is a run, byte for byte.
"""

import hashlib
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from random import Random
from struct import Struct
from typing import Any

from ordercast.core.machine import Deliver, Effect, Ended, Observe, ResetLog, Watermark
from ordercast.core.view import LateView
from ordercast.sim.network import Network, NetworkSettings
from ordercast.sim.process import Factory, Process
from ordercast.sim.trace import describe
from ordercast.v1.sequencer_pb2 import LogEntry

_TIME = Struct(">d")


class World:
    domain = "sim"

    def __init__(self, seed: int | str, network: NetworkSettings | None = None, *, tracing: bool = False) -> None:
        self.now = 0.0
        self.processes: dict[str, Process] = {}
        self.random = Random(f"{seed}/world")
        self.disk_random = Random(f"{seed}/disk")
        self.network = Network(self, network or NetworkSettings(), Random(f"{seed}/network"))
        self.view: Any = None
        #: What membership has told a process that starts: how many changes, the view, and closed groups.
        self.news_for: Callable[[Process], tuple[int, Any, tuple[str, ...]]] = lambda process: (0, self.view, ())
        #: Whether the process may lack the group in its view: then it refuses what names it, and that is right.
        self.may_lack: Callable[[Process, str], bool] = lambda process, group: False
        #: Whether processes may be in different configurations of a group.
        self.may_differ: Callable[[], bool] = lambda: False
        #: Packets that left a process for another one.
        self.messages = 0
        self.refusals: list[str] = []
        #: Refusals because of a view that is late: no mistake of anybody.
        self.lags = 0
        self.tracing = tracing
        self.trace: list[str] = []
        self.lives: dict[int, str] = {}
        #: What membership says is over: process -> its last incarnation.
        self.ended: dict[str, int] = {}
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._tickets = 0
        self._digest = hashlib.blake2b(digest_size=16)
        # What listeners want to hear; a checker sets these.
        self.on_deliver: Callable[[str, Deliver], None] = lambda process, effect: None
        self.on_send: Callable[[str, Sequence[str], Any, int], None] = lambda source, to, message, size: None
        self.on_commit: Callable[[str, str, int, LogEntry], None] = lambda process, group, position, entry: None
        self.on_watermark: Callable[[str, Watermark], None] = lambda process, effect: None
        self.on_log_reset: Callable[[str, ResetLog], None] = lambda process, effect: None
        self.on_observe: Callable[[str, Observe], None] = lambda process, effect: None
        self.on_custom: Callable[[str, Effect], None] = lambda process, effect: None
        self.on_crash_at_commit: Callable[[str], None] = lambda process: None

    def add(self, name: str, factories: dict[str, Factory]) -> Process:
        process = self.processes[name] = Process(self, name, factories)
        return process

    def new_incarnation(self, name: str) -> int:
        number = len(self.lives) + 1
        self.lives[number] = name
        return number

    def end(self, name: str, incarnation: int) -> None:
        """Membership has given that life of a process up, and every earlier one, and says so."""
        self.ended[name] = max(incarnation, self.ended.get(name, 0))
        for process in self.processes.values():
            if process.up:
                process.tell_all(Ended(*process.clock(), name, self.ended[name]))

    # -------------------------------------------------------------------------------------------- time

    def ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def at(self, time: float, call: Callable[..., None], *args: Any) -> None:
        self._tickets += 1
        heappush(self._heap, (time, self._tickets, call, args))

    def after(self, delay: float, call: Callable[..., None], *args: Any) -> None:
        self.at(self.now + delay, call, *args)

    def run_until(self, time: float) -> None:
        heap = self._heap
        while heap and heap[0][0] <= time:
            self.now, _, call, args = heappop(heap)
            call(*args)
        self.now = max(self.now, time)

    # ---------------------------------------------------------------------------------------- recording

    def digest(self) -> str:
        return self._digest.hexdigest()

    def digest_frame(self, source: str, to: str, data: bytes) -> None:
        self._digest.update(_TIME.pack(self.now) + (source + to).encode() + data)

    def delivered(self, process: str, effect: Deliver) -> None:
        self._digest.update(f"{process} {effect.group} {effect.position} ".encode() + effect.entry.order_key)
        self.note(process, "delivers", effect.entry)
        self.on_deliver(process, effect)

    def committed(self, process: str, log: list[tuple[str, int, LogEntry | None]]) -> None:
        for group, position, entry in log:
            if entry is not None:
                self.on_commit(process, group, position, entry)

    def watermarked(self, process: str, effect: Watermark) -> None:
        self.on_watermark(process, effect)

    def log_reset(self, process: str, effect: ResetLog) -> None:
        self.note(process, f"takes a snapshot of {effect.group} at {effect.position}")
        self.on_log_reset(process, effect)

    def observed(self, process: str, effect: Observe) -> None:
        self.on_observe(process, effect)
        if self.tracing:
            where = effect.detail or effect.group
            why = f" ({effect.blocked_on})" if effect.blocked_on else ""
            self.note(process, f"observes {effect.stage} of {describe(effect.id)}: {where}{why}")

    def custom(self, process: str, effect: Effect) -> None:
        self.on_custom(process, effect)

    def crashed_at_commit(self, process: str) -> None:
        self.on_crash_at_commit(process)

    def refuse(self, process: str, source: str, message: Any, why: str) -> None:
        text = f"{process} refuses {type(message).__name__} from {source}: {why}"
        self.refusals.append(text)
        self.note(process, text)

    def lacks(self, process: Process, source: str, message: Any, group: str) -> None:
        if not self.may_lack(process, group):
            self.refuse(process.name, source, message, f"unknown group {group!r}")
            return
        self.lags += 1
        self.note(process.name, f"does not know {group}: {type(message).__name__} from {source}")

    def differs(self, process: Process, source: str, message: Any, error: LateView) -> None:
        if not self.may_differ():
            self.refuse(process.name, source, message, str(error))
            return
        self.lags += 1
        self.note(
            process.name, f"is elsewhere with {error.group}: {type(message).__name__} from {source}: {error}"
        )

    def note(self, process: str, text: str, about: Any = None) -> None:
        if self.tracing:
            suffix = f" {describe(about)}" if about is not None else ""
            self.trace.append(f"{self.now:9.4f}  {process:>4}  {text}{suffix}")

    def trace_receive(self, source: str, to: str, message: Any) -> None:
        self.trace.append(f"{self.now:9.4f}  {to:>4}  <- {source}: {describe(message)}")
