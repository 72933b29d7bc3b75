"""Members and learners of one virtually synchronous group, who copy its log from each other."""

import zlib
from collections import deque
from collections.abc import Callable
from typing import Any

from ordercast.core.machine import (
    ChannelReset,
    Deliver,
    Effect,
    Event,
    LogRead,
    Persist,
    ReadLog,
    Receive,
    ResetLog,
    Send,
    SetTimer,
    Start,
    TimerFired,
    ViewChanged,
)
from ordercast.protocols.celllog.pieces import checksum_of
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.replica import Replica
from ordercast.protocols.isis.settings import FlushKind, Settings
from ordercast.sim.disk import Log
from ordercast.v1.isis_pb2 import Submit
from ordercast.v1.membership_pb2 import Configuration, DomainView, GroupView
from ordercast.v1.sequencer_pb2 import (
    LogChunk,
    LogEntry,
    Snapshot,
    SnapshotAsk,
    SnapshotPart,
)
from tests.unit.driving import LIVES, envelope_of, range_of

DEFAULTS = {"flush": FlushKind.COORDINATOR, "order_wait_s": 0.0, "stability_idle_s": 0.0, "log_chunk": 2}


class Node:
    """A process: its disk and log, on which everything is at once, and what it has to say to others."""

    def __init__(self, name: str, **settings: Any) -> None:
        self.name = name
        self.settings = Settings(**{**DEFAULTS, **settings})
        self.disk: dict[bytes, bytes] = {}
        self.log = Log()
        self.incarnation = LIVES[name]
        self.now = 100.0
        self.machine = Isis(name, self.settings)
        self.said: deque[tuple[str, Any]] = deque()
        self.timers: dict[str, None] = {}
        self.steps = 0
        #: Crash in that step, before it is on disk or after, and in either case before anything is said.
        self.crash_at: tuple[int, bool] | None = None
        self.view = DomainView()

    def start(self, view: DomainView) -> None:
        self.view = view
        self.machine = Isis(self.name, self.settings)
        self.said.clear()
        self.timers.clear()
        self.step(Start(self.now, 0.0, self.incarnation, list(self.disk.items())))
        self.step(ViewChanged(self.now, 0.0, view))

    def restart(self) -> None:
        self.incarnation += 100
        self.start(self.view)

    def change(self, view: DomainView) -> None:
        self.view = view
        self.step(ViewChanged(self.now, 0.0, view))

    def tick(self, seconds: float) -> None:
        self.now += seconds
        timers, self.timers = self.timers, {}
        for name in timers:
            self.step(TimerFired(self.now, 0.0, name, 0))

    def hear(self, source: str, message: Any, incarnation: int | None = None) -> None:
        self.step(Receive(self.now, 0.0, source, incarnation or LIVES[source], message))

    def step(self, event: Event) -> None:
        self.steps += 1
        effects = self.machine.step(event)
        if self.crash_at is not None and self.steps == self.crash_at[0]:
            if self.crash_at[1]:
                for effect in effects:
                    self._write(effect)
            self.restart()
            return
        for effect in effects:
            self._write(effect)
            if isinstance(effect, Send):
                self._say(effect)
            elif isinstance(effect, SetTimer):
                self.timers[effect.name] = None
            elif isinstance(effect, Persist):
                for send in effect.then:
                    self._say(send)
        for effect in effects:
            if isinstance(effect, ReadLog):
                self.step(self._read(effect))

    def _write(self, effect: Effect) -> None:
        if isinstance(effect, Persist):
            for key, value in effect.records:
                self.disk.pop(key, None) if value is None else self.disk.update({key: value})
        elif isinstance(effect, Deliver) and effect.final:
            self.log.write(effect.position, effect.entry)
        elif isinstance(effect, ResetLog):
            self.log.write(effect.position, None)

    def _read(self, effect: ReadLog) -> LogRead:
        first = effect.position - self.log.begins
        entries = self.log.entries[first : first + effect.count_max] if first >= 0 else []
        return LogRead(self.now, 0.0, "a", effect.position, entries, self.log.begins, effect.tag)

    def _say(self, send: Send) -> None:
        self.said.extend((to, send.message) for to in send.to)

    @property
    def replica(self) -> Replica:
        return self.machine.replicas["a"]

    @property
    def state(self) -> tuple[int, int, Any]:
        return (self.replica.position, self.replica.offset, self.replica.producers.states)

    def heard(self, type_: type) -> list[tuple[str, Any]]:
        """What it is about to say to others, and takes back."""
        found = [(to, message) for to, message in self.said if isinstance(message, type_)]
        self.said = deque(one for one in self.said if not isinstance(one[1], type_))
        return found


def nothing(source: str, to: str, message: Any) -> bool:
    return False


class Town:
    """Group a, in view 1 of n1 and n2 to begin with, and whoever comes later."""

    def __init__(self, names: str = "n1 n2 n3", members: str = "n1 n2", **settings: Any) -> None:
        self.nodes = {name: Node(name, **settings) for name in names.split()}
        self.group = GroupView(group="a", configuration=1)
        self.number = 1
        self.sent = self.streams = 0
        #: What comes to these, or from these, or passes a test, is lost.
        self.silent: dict[str, None] = {}
        self.loses: Callable[[str, str, Any], bool] = nothing
        self._set(members)
        for node in self.nodes.values():
            node.start(self.view)
        self.connect()
        self.talk()

    @property
    def view(self) -> DomainView:
        return DomainView(domain="test", number=self.number, groups=[self.group])

    def _set(self, members: str) -> None:
        self.group.replicas[:] = members.split()
        self.group.incarnations[:] = [self.nodes[name].incarnation for name in self.group.replicas]

    def connect(self) -> None:
        for one in self.nodes.values():
            for other in self.nodes.values():
                if one is not other:
                    one.step(ChannelReset(one.now, 0.0, other.name, other.incarnation))

    def learn(self, learners: str, *told: str) -> None:
        self.group.learners[:] = learners.split()
        self._tell(told)

    def define(self, members: str, *told: str, learners: str = "") -> None:
        if not self.group.HasField("previous"):
            before = Configuration(number=self.group.configuration, replicas=self.group.replicas)
            self.group.previous.CopyFrom(before)
        self.group.configuration += 1
        self._set(members)
        self.group.learners[:] = learners.split()
        self.group.starting[:] = members.split()
        self._tell(told)

    def complete(self, *told: str) -> None:
        self.group.ClearField("previous")
        self._tell(told)

    def installed(self, *told: str, starting: str = "") -> None:
        self.group.starting[:] = starting.split()
        self._tell(told)

    def _tell(self, told: tuple[str, ...]) -> None:
        """Everyone, unless somebody is named."""
        self.number += 1
        for name in told or self.nodes:
            if name in self.nodes:
                self.nodes[name].change(self.view)
        self.talk()

    def talk(self) -> None:
        """Until nobody has anything to say."""
        while any(node.said for node in self.nodes.values()):
            for source, node in self.nodes.items():
                said, node.said = node.said, deque()
                for to, message in said:
                    if to not in self.nodes or self.silent.keys() & {source, to}:
                        continue
                    if not self.loses(source, to, message):
                        self.nodes[to].hear(source, message, node.incarnation)

    def tick(self, seconds: float = 0.5, times: int = 1) -> None:
        for _ in range(times):
            for node in self.nodes.values():
                node.tick(seconds)
            self.talk()

    def publish(self, count: int = 1, through: str = "n1") -> None:
        """Of one producer, one message each; until all of it is visible."""
        for _ in range(count):
            self.sent += 1
            self.streams += 1
            envelope = envelope_of(self.streams, "a", ranges=[range_of(b"p", self.sent)])
            submit = Submit(group="a", envelope=envelope, stream=self.streams, index=1)
            self.nodes[through].hear("g1", submit)
            self.talk()
        self.tick(0.1, times=3)

    def forget(self, before: int) -> None:
        """Retention, on every disk."""
        for node in self.nodes.values():
            node.log.truncate(before)


def town_with_a_past(entries: int = 5, begins: int = 3, **settings: Any) -> Town:
    town = Town(**settings)
    town.publish(entries)
    town.forget(begins)
    return town


def stuck(town: Town, lost: type) -> Node:
    """A learner that has what is left of the log, and not the state."""
    town.loses = lambda source, to, message: isinstance(message, lost)
    town.learn("n3")
    town.tick(times=4)
    return town.nodes["n3"]


def begun(town: Town, chunk: LogChunk) -> Node:
    """A learner to which n1 has given that piece, and nothing since."""
    n3 = town.nodes["n3"]
    town.loses = lambda source, to, message: source == "n3"
    town.learn("n3")
    n3.hear("n1", chunk)
    n3.said.clear()
    town.loses = nothing
    return n3


def asked(node: Node, configuration: int, **fields: Any) -> list[SnapshotPart]:
    node.hear("n7", SnapshotAsk(group="a", configuration=configuration, **fields))
    return [part for _, part in node.heard(SnapshotPart)]


def part_of(snapshot: Snapshot, **fields: Any) -> SnapshotPart:
    data = snapshot.SerializeToString()
    defaults = {"group": "a", "token": 7, "parts": 1, "data": data, "checksum": zlib.crc32(data)}
    return SnapshotPart(**{**defaults, **fields})


def chunk_of(entries: list[LogEntry], **fields: Any) -> LogChunk:
    return LogChunk(group="a", entries=entries, **{"checksum": checksum_of(entries), **fields})
