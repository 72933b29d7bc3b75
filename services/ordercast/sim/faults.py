"""Faults: what strikes a simulated cluster, and the healing after which everything must terminate."""

from collections.abc import Callable, Iterable
from random import Random

from ordercast.core.quorums import majority
from ordercast.sim.network import pair
from ordercast.sim.world import World
from ordercast.v1.membership_pb2 import Configuration, DomainView, GroupView


class Faults:
    """Strikes at random times until healing. Every fault ends by itself or at the healing."""

    def __init__(
        self,
        world: World,
        random: Random,
        rates: dict[str, float],
        until: float,
        view: DomainView,
        gone: dict[str, None] | None = None,
        losses: Iterable[float] = (),
        can_spare: Callable[[str], bool] = lambda name: True,
    ) -> None:
        """At `losses` somebody dies for good whom membership can spare, and is noted in `gone`."""
        self.world = world
        self.random = random
        self.until = until
        self.view = view
        self.gone = gone if gone is not None else {}
        self.can_spare = can_spare
        self.strikes: dict[str, int] = {}
        self.blocked: list[tuple[str, str]] = []
        kinds: dict[str, Callable[[], None]] = {
            "crash": self.crash,
            "crash_at_commit": self.crash_at_commit,
            "power_loss": self.power_loss,
            "partition": self.partition,
            "one_way": self.one_way,
            "bridge": self.bridge,
            "flapping": self.flapping,
            "break": self.break_connection,
            "pause": self.pause,
            "slow_disk": self.slow_disk,
            "clock_jump": self.clock_jump,
        }
        for kind in sorted(rates):
            time = random.expovariate(rates[kind])
            while time < until:
                world.at(time, self.strike, kind, kinds[kind])
                time += random.expovariate(rates[kind])
        for time in losses:
            world.at(time, self.strike, "loss", self._lose_minority)
        world.on_crash_at_commit = self._restart_later
        world.at(until, self.heal)

    def strike(self, kind: str, call: Callable[[], None]) -> None:
        self.strikes[kind] = self.strikes.get(kind, 0) + 1
        self.world.note("****", kind)
        call()

    # ----------------------------------------------------------------------------------------- processes

    def _servers(self) -> list[str]:
        return [name for name in self.world.processes if not name.startswith("c")]

    def _one(self) -> str:
        return self.random.choice(self._servers())

    def crash(self) -> None:
        name = self._one()
        self.world.processes[name].crash(torn=self.random.choice([None, 0.5, 1.0]))
        self._restart_later(name)

    def _restart_later(self, name: str) -> None:
        if self.world.now < self.until:
            self.world.after(self.random.uniform(0.02, 1.0), self.restart, name)

    def restart(self, name: str) -> None:
        process = self.world.processes[name]
        if not process.up and name not in self.gone:
            process.start()

    def crash_at_commit(self) -> None:
        process = self.world.processes[self._one()]
        commit = process.commits + self.random.randint(1, 20)
        process.crash_at_commit = (commit, self.random.choice(["before", "torn", "after"]))

    def power_loss(self) -> None:
        for name in self._servers():
            self.world.processes[name].crash(torn=self.random.choice([None, 0.5, 1.0]))
            self._restart_later(name)

    def pause(self) -> None:
        process = self.world.processes[self._one()]
        process.paused_until = self.world.now + self.random.uniform(0.05, 1.5)

    def slow_disk(self) -> None:
        process = self.world.processes[self._one()]
        normal = process.disk_delay_s
        if normal < 0.05:
            process.disk_delay_s = 0.1
            self.world.after(self.random.uniform(0.2, 1.0), self._normal_disk, process.name, normal)

    def _normal_disk(self, name: str, delay_s: float) -> None:
        self.world.processes[name].disk_delay_s = delay_s

    def clock_jump(self) -> None:
        process = self.world.processes[self._one()]
        process.wall_offset += self.random.uniform(-3600, 3600)
        process.clock_offset += self.random.choice([0.0, 0.0, 1.0, 60.0])

    # ------------------------------------------------------------------------------------------- network

    def break_connection(self) -> None:
        connections = sorted(self.world.network.connections)
        if connections:
            self.world.network.break_connection(*self.random.choice(connections))

    def _split(self) -> tuple[list[str], list[str]]:
        names = list(self.world.processes)
        self.random.shuffle(names)
        cut = self.random.randint(1, len(names) - 1)
        return names[:cut], names[cut:]

    def _both_ways(self) -> list[tuple[str, str]]:
        left, right = self._split()
        return [(a, b) for a in left for b in right] + [(b, a) for a in left for b in right]

    def _block(self, directions: list[tuple[str, str]], seconds: float) -> None:
        network = self.world.network
        breaks = self.random.random() < 0.5
        for source, to in directions:
            network.block(source, to)
            self.blocked.append((source, to))
            if breaks and pair(source, to) in network.connections and self.random.random() < 0.5:
                network.break_connection(source, to)
        self.world.after(seconds, self._unblock, directions)

    def _unblock(self, directions: list[tuple[str, str]]) -> None:
        for direction in directions:
            if direction in self.blocked:
                self.blocked.remove(direction)
                self.world.network.unblock(*direction)

    def partition(self) -> None:
        self._block(self._both_ways(), self.random.uniform(0.1, 1.5))

    def one_way(self) -> None:
        left, right = self._split()
        self._block([(a, b) for a in left for b in right], self.random.uniform(0.1, 1.0))

    def bridge(self) -> None:
        """Two sides that only one process, the first of the left, can still talk to both of."""
        left, right = self._split()
        sides = [(a, b) for a in left[1:] for b in right]
        self._block(sides + [(b, a) for a, b in sides], self.random.uniform(0.1, 1.5))

    def flapping(self) -> None:
        both = self._both_ways()
        for number in range(5):
            self.world.after(0.2 * number, self._block, both, 0.1)

    # ------------------------------------------------------------------------------------------- healing

    def heal(self) -> None:
        """Everything comes back, but for a minority that may be gone for good."""
        world = self.world
        world.note("****", "healing")
        self._unblock(list(self.blocked))
        if self.random.random() < 0.3:
            self._lose_minority()
        for process in world.processes.values():
            process.crash_at_commit = None
            process.disk_delay_s = min(process.disk_delay_s, 0.005)
            self.restart(process.name)
        # Pauses, and flaps that were still to come, end by themselves.

    def _lose_minority(self) -> None:
        """A process whose death leaves every group a majority is gone for good. Membership notices."""
        candidates = [name for name in self._servers() if name not in self.gone and self._can_lose(name)]
        if candidates:
            self.lose(self.random.choice(candidates))

    def _can_lose(self, name: str) -> bool:
        processes = self.world.processes.items()
        gateways = [n for n, p in processes if "gateway" in p.factories and n not in self.gone]
        if (name in gateways and len(gateways) < 2) or not self.can_spare(name):
            return False
        for group in self.view.groups:
            before = group.previous
            gone = {name, *self.gone, *group.lost, *before.lost}
            if any(len(c.replicas) and self._is_too_much(c, gone) for c in (group, before)):
                return False
        return True

    def _is_too_much(self, configuration: GroupView | Configuration, gone: set[str]) -> bool:
        roles = [members for members in (configuration.replicas, configuration.acceptors) if members]
        return any(sum(1 for p in members if p not in gone) < majority(len(members)) for members in roles)

    def lose(self, name: str) -> None:
        world = self.world
        process = world.processes[name]
        self.gone[name] = None
        process.crash()
        world.note(name, "is gone for good")
        world.after(0.3, world.end, name, process.incarnation)
