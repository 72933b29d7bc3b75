"""The network between simulated processes.

Channels are what the runtime offers: FIFO per pair, resent over loss, until one end crashes or the connection
breaks; then what was in flight may be lost and both ends get a ChannelReset. As an option (`datagrams`) every
frame is on its own: lost, duplicated and reordered as it comes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ordercast.sim.world import World


@dataclass(slots=True)
class NetworkSettings:
    delay_s: float = 0.002
    #: Share of frames that take up to ten times longer.
    slow: float = 0.1
    loss: float = 0.0
    duplication: float = 0.0
    datagrams: bool = False
    #: A fixed delay instead of a distribution, to count communication steps.
    exact: bool = False


@dataclass(slots=True)
class Connection:
    """Both directions between two processes, as long as it lives."""

    is_open: bool = True
    #: When the last frame of each direction arrives.
    last: dict[str, float] = field(default_factory=dict)
    #: Frames that wait for a blocked direction, by sender.
    waiting: dict[str, list[bytes]] = field(default_factory=dict)


def pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


class Network:
    def __init__(self, world: "World", settings: NetworkSettings, random: Random) -> None:
        self.world = world
        self.settings = settings
        self.random = random
        self.connections: dict[tuple[str, str], Connection] = {}
        #: Directions that carry nothing now, and how many faults block each.
        self.blocked: dict[tuple[str, str], int] = {}
        #: Who talks to whom at all.
        self.connects: Callable[[str, str], bool] = lambda a, b: True
        #: Which pairs use datagrams, if the settings say so at all. Clients have streams in any case.
        self.uses_datagrams: Callable[[str, str], bool] = lambda a, b: True

    # ------------------------------------------------------------------------------------- connections

    def connect(self, a: str, b: str) -> None:
        """Both ends are up: sooner or later they find each other."""
        if self.connects(a, b):
            self.world.after(self._delay(), self._connected, a, b)

    def _connected(self, a: str, b: str) -> None:
        processes = self.world.processes
        key = pair(a, b)
        if key in self.connections or not (processes[a].up and processes[b].up):
            return
        if self.is_blocked(a, b) or self.is_blocked(b, a):
            self.world.after(0.05, self._connected, a, b)
            return
        self.connections[key] = Connection()
        for end, other in ((a, b), (b, a)):
            processes[end].channel_reset(other, processes[other].incarnation)

    def disconnect(self, a: str, b: str) -> None:
        """What is in flight is lost from here on: frames carry the connection they were sent on."""
        self._close(pair(a, b))

    def _close(self, key: tuple[str, str]) -> None:
        connection = self.connections.pop(key, None)
        if connection is not None:
            connection.is_open = False

    def break_connection(self, a: str, b: str) -> None:
        if pair(a, b) in self.connections:
            self.disconnect(a, b)
            self.connect(a, b)

    def crashed(self, name: str) -> None:
        for key in [key for key in self.connections if name in key]:
            self._close(key)

    # ------------------------------------------------------------------------------------------- frames

    def send(self, source: str, to: str, data: bytes) -> None:
        connection = self.connections.get(pair(source, to))
        if connection is None:
            return
        if self.settings.datagrams and self.uses_datagrams(source, to):
            self._send_datagram(source, to, data, connection)
        elif (source, to) in self.blocked:
            connection.waiting.setdefault(source, []).append(data)
        else:
            self._send_in_order(source, to, data, connection)

    def _send_in_order(self, source: str, to: str, data: bytes, connection: Connection) -> None:
        delay = self._delay()
        while self.settings.loss and self.random.random() < self.settings.loss:
            delay += 10 * self.settings.delay_s  # sent again after a timeout
        arrival = max(self.world.now + delay, connection.last.get(source, 0.0))
        connection.last[source] = arrival
        self.world.at(arrival, self._arrive, source, to, data, connection)

    def _send_datagram(self, source: str, to: str, data: bytes, connection: Connection) -> None:
        if (source, to) in self.blocked or self.random.random() < self.settings.loss:
            return
        copies = 2 if self.random.random() < self.settings.duplication else 1
        for _ in range(copies):
            self.world.after(self._delay(), self._arrive, source, to, data, connection)

    def _arrive(self, source: str, to: str, data: bytes, connection: Connection) -> None:
        if connection.is_open:
            self.world.processes[to].arrived(source, data)

    def _delay(self) -> float:
        settings, random = self.settings, self.random
        if settings.exact:
            return settings.delay_s
        delay = settings.delay_s * (0.5 + random.random())
        if random.random() < settings.slow:
            delay *= 1 + 9 * random.random()
        return delay

    # ------------------------------------------------------------------------------------------- faults

    def is_blocked(self, source: str, to: str) -> bool:
        return (source, to) in self.blocked

    def block(self, source: str, to: str) -> None:
        self.blocked[(source, to)] = self.blocked.get((source, to), 0) + 1

    def unblock(self, source: str, to: str) -> None:
        count = self.blocked.get((source, to), 0)
        if count > 1:
            self.blocked[(source, to)] = count - 1
            return
        self.blocked.pop((source, to), None)
        connection = self.connections.get(pair(source, to))
        if connection is not None:
            for data in connection.waiting.pop(source, []):
                self._send_in_order(source, to, data, connection)
