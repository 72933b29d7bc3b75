"""The protocol under a director: who is there, who publishes what and when, and whose clock is how wrong."""

from collections.abc import Mapping
from typing import ClassVar

from ordercast.core.level import LEVEL
from ordercast.core.machine import TimerFired
from ordercast.core.view import FIRST
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.optimistic.protocol import NAME
from ordercast.protocols.optimistic.settings import Settings
from ordercast.sim import stage
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.client import Client, ClientSettings, Plan
from ordercast.sim.network import NetworkSettings
from ordercast.sim.optimistic.cluster import OptimisticCluster
from ordercast.sim.optimistic.scenario import OptimisticScenario
from ordercast.v1.membership_pb2 import DomainView, GroupView

#: After this time every group waits for every other one, and may send to it.
SETTLED_S = 1.0


class Stage(stage.Stage[OptimisticCluster]):
    def __init__(
        self,
        groups: Mapping[str, tuple[str, ...]],
        *,
        gateways: tuple[str, ...] = ("g1", "g2"),
        settings: Settings | None = None,
        network: NetworkSettings | None = None,
        walls: Mapping[str, float] | None = None,
        tracing: bool = False,
    ) -> None:
        """c1 uses the first gateway, c2 the second, and so on. Whoever is in no `walls` has the right time."""
        view = DomainView(domain="sim", number=1, level=LEVEL)
        for name, replicas in sorted(groups.items()):
            view.groups.append(GroupView(group=name, configuration=FIRST, replicas=replicas))
        clients = {
            f"c{index + 1}": ClientSettings([], [gateway], pipeline=1000, patience_s=30.0)
            for index, gateway in enumerate(gateways)
        }
        scenario = OptimisticScenario(
            sorted({process for replicas in groups.values() for process in replicas}),
            list(gateways),
            view,
            clients,
            network or stage.exact_network(),
            settings or Settings(),
            GatewaySettings(),
            healing_at=0.0,
            disk_delay_s=0.0,
            walls=dict(walls or {}),
        )
        super().__init__(OptimisticCluster(scenario, "stage", tracing=tracing))
        self.run(SETTLED_S)

    def publish(self, client: str, *groups: str, count: int = 1) -> None:
        process = self.world.processes[client]
        machine: Client = self.cluster.machine(client, "client")
        machine.plans.append(Plan(self.world.now, tuple(sorted(groups)), count, unordered=False))
        process.tell("client", TimerFired(*process.clock(), "client", 0))

    def create(self, group: str, *replicas: str) -> None:
        """Everybody is told."""
        self.cluster.create(GroupView(group=group, configuration=FIRST, replicas=replicas))
        self.cluster.membership.tell_all()

    def leader(self, group: str) -> str:
        """Who leads its log."""
        for name in self.cluster.scenario.nodes:
            process = self.world.processes[name]
            if process.up:
                replica = self.cluster.machine(name, NAME).replicas.get(group)
                if replica is not None and replica.leader.is_leading:
                    return name
        raise Violation("termination", f"nobody leads {group}")

    def finish(self, *gone: str) -> None:
        self.heal(*gone)
        self.cluster.membership.tell_all()
        self.cluster.run_to_rest(self.world.now + self.cluster.rest_s_max)
        self.cluster.check_end()


class Schedule(stage.Schedule):
    settings: Settings = Settings()
    walls: ClassVar[Mapping[str, float]] = {}


def verdict(schedule: Schedule, *, tracing: bool = False) -> tuple[Violation | None, list[str]]:
    """What the checkers say of a schedule, and its conversation."""
    there = Stage(schedule.groups, settings=schedule.settings, walls=schedule.walls, tracing=tracing)
    return stage.verdict_on(schedule, there)
