"""Processes in a simulated world whose machines do as they are told, and remember what happens to them."""

from collections.abc import Sequence
from typing import Any

from ordercast.core.ids import pack_u64
from ordercast.core.machine import ChannelReset, Effect, Event, Receive, Send, Start, TimerFired
from ordercast.sim.network import NetworkSettings
from ordercast.sim.process import Process
from ordercast.sim.world import World
from ordercast.v1.scalatom_pb2 import HaveAsk, Pull


class Puppet:
    """Performs the effects it is given; hears numbers, in the packets of one type."""

    def __init__(self, hears: type = Pull) -> None:
        self.handles = (hears,)
        self.next: list[Effect] = []
        self.heard: list[tuple[str, int]] = []
        self.times: list[float] = []
        self.resets: list[tuple[str, int]] = []
        self.records: dict[bytes, bytes] = {}
        self.events: list[Event] = []

    def step(self, event: Event) -> list[Effect]:
        match event:
            case Receive():
                self.heard.append((event.source, int.from_bytes(event.message.id, "big")))
                self.times.append(event.now)
            case ChannelReset():
                self.resets.append((event.peer, event.incarnation))
            case Start():
                self.records = dict(event.records)
        self.events.append(event)
        effects, self.next = self.next, []
        return effects

    def buffers(self) -> dict[str, int]:
        return {}


def number(value: int, type_: type = Pull) -> Any:
    return type_(id=pack_u64(value))


class Theatre:
    """Processes a, b and c, connected, each with one puppet; and d, with two that hear different things."""

    def __init__(self, seed: int = 1, **network: Any) -> None:
        self.world = World(seed, NetworkSettings(**{"delay_s": 0.01, **network}))
        for name in "abc":
            self.world.add(name, {"puppet": Puppet})
        self.world.add("d", {"one": Puppet, "two": lambda: Puppet(HaveAsk)})
        for process in self.world.processes.values():
            process.disk_delay_s = 0.0
            process.start()
        self.run(5.0)

    def run(self, seconds: float) -> None:
        self.world.run_until(self.world.now + seconds)

    def process(self, name: str) -> Process:
        return self.world.processes[name]

    def puppet(self, name: str, role: str = "puppet") -> Any:
        return self.process(name).slots[role].machine

    def perform(self, name: str, *effects: Effect, role: str = "puppet") -> None:
        self.puppet(name, role).next = list(effects)
        self.process(name).tell(role, TimerFired(*self.process(name).clock(), "", 0))

    def say(self, source: str, to: str, *values: int) -> None:
        """Each in a step, and so a frame, of its own."""
        for value in values:
            self.perform(source, Send((to,), number(value)))

    def heard(self, name: str, role: str = "puppet") -> list[int]:
        return [value for _, value in self.puppet(name, role).heard]

    def slow_disk(self, name: str) -> None:
        """Nothing more gets durable for a long time."""
        self.process(name).disk_delay_s = 1e9

    def sync(self, name: str) -> None:
        """Whatever is being written, or waits to be, is durable now."""
        process = self.process(name)
        process.disk_delay_s = 0.0
        while process.disk.writing is not None:
            process._synced(process.disk.writing)


def is_rising(values: Sequence[float]) -> bool:
    return list(values) == sorted(values)
