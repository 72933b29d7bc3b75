"""The machines of a scenario in a world, and the clients that publish there: what is the same for all protocols.

A protocol's own cluster says which machines a node has, who its membership is, what is checked while the run goes
on, and what must hold when it has come to rest.
"""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from ordercast.core.machine import Effect, Machine
from ordercast.sim.board import Board
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.client import Client, Dial
from ordercast.sim.membership import Membership
from ordercast.sim.process import Factory
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import World

#: How often it is looked whether everything has come to rest.
REST_LOOK_S = 0.25

S = TypeVar("S", bound=Scenario)
M = TypeVar("M", bound=Membership)


class Cluster(ABC, Generic[S, M]):
    #: Which of a node's machines keeps the logs.
    keeper: str
    #: Simulated seconds after the healing in which everything must have come to rest.
    rest_s_max: float

    def __init__(self, scenario: S, seed: int | str, *, tracing: bool = False) -> None:
        self.scenario = scenario
        self.world = world = World(seed, scenario.network, tracing=tracing)
        #: Processes that will never come back.
        self.gone: dict[str, None] = {}
        #: How far retention has gone, by group: what is beyond that must be on every disk in the end.
        self.floors: dict[str, int] = {}
        self.board = Board()
        self.membership = self.make_membership()
        world.on_custom = self.on_custom
        for name in scenario.nodes:
            self._add_node(name)
        for name in scenario.gateways:
            if name not in scenario.nodes:
                world.add(name, {"gateway": self._gateway(name)})
        self.add_clients()
        world.network.connects = self.connects

    def _add_node(self, name: str) -> None:
        roles = self.roles(name)
        if name in self.scenario.gateways:
            roles["gateway"] = self._gateway(name)
        process = self.world.add(name, roles)
        process.disk_delay_s = self.scenario.disk_delay_s
        process.clock_rate = self.scenario.clock_rates.get(name, 1.0)

    def _gateway(self, name: str) -> Factory:
        return lambda: self.make_gateway(name)

    def add_clients(self) -> None:
        for name in self.scenario.clients:
            self.world.add(name, {"client": self._client(name)})

    def _client(self, name: str) -> Factory:
        return lambda: self.make_client(name)

    def connects(self, a: str, b: str) -> bool:
        """Clients talk to gateways, and everyone else to everyone else."""
        clients, gateways = self.scenario.clients, self.scenario.gateways
        if a in clients:
            return b in gateways
        return a in gateways if b in clients else True

    def on_custom(self, process: str, effect: Effect) -> None:
        if isinstance(effect, Dial) and self.world.processes[effect.gateway].up:
            self.world.network.disconnect(process, effect.gateway)
            self.world.network.connect(process, effect.gateway)

    # ---------------------------------------------------------------------------------- what is a protocol's own

    @abstractmethod
    def make_membership(self) -> M: ...

    @abstractmethod
    def roles(self, name: str) -> dict[str, Factory]:
        """The machines of a node, by role."""

    @abstractmethod
    def make_gateway(self, name: str) -> Machine: ...

    def make_client(self, name: str) -> Client:
        return Client(name, self.scenario.clients[name], self.board)

    @abstractmethod
    def unfinished(self) -> str:
        """Why the run is not over, or an empty string."""

    @abstractmethod
    def judge(self) -> None:
        """Once everything is healed: come to rest, and raise a Violation if something does not hold then."""

    @property
    @abstractmethod
    def delivered(self) -> int: ...

    @property
    @abstractmethod
    def by_kind(self) -> dict[str, int]:
        """Messages between processes, by what they are."""

    # ------------------------------------------------------------------------------------------------- running

    def start(self) -> None:
        for process in self.world.processes.values():
            process.start()

    def machine(self, process: str, role: str) -> Any:
        return self.world.processes[process].slots[role].machine

    @property
    def clients(self) -> list[Client]:
        return [self.machine(name, "client") for name in self.scenario.clients]

    def truncate(self, keep: int) -> None:
        """Retention, as the runtime does it: never what a replica may still have to report."""
        for name in self.scenario.nodes:
            process = self.world.processes[name]
            if not process.is_answering:
                continue
            for group, replica in self.machine(name, self.keeper).replicas.items():
                if group in process.disk.logs and group in process.written:
                    floor = min(replica.retained_from(), process.disk.logs[group].ends) - keep
                    process.truncate(group, floor)
                    self.floors[group] = max(self.floors.get(group, 0), floor)

    def run_to_rest(self, until: float) -> None:
        """Until nothing is left to do. What is left when it is too late is the reason why the run failed."""
        self.world.run_until(self.world.now + REST_LOOK_S)
        while reason := self.unfinished():
            if self.world.now >= until:
                raise self.too_late(reason)
            self.world.run_until(self.world.now + REST_LOOK_S)

    def too_late(self, reason: str) -> Violation:
        return Violation("termination", reason)
