"""SCALATOM under a director, who also says what membership decides: groups that come and go, and replicas."""

from ordercast.core.level import LEVEL
from ordercast.core.machine import TimerFired
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.scalatom.settings import Settings
from ordercast.sim import stage
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.client import Client, ClientSettings, Plan
from ordercast.sim.scalatom.cluster import ScalatomCluster
from ordercast.sim.scalatom.scenario import ScalatomScenario
from ordercast.v1.membership_pb2 import DomainView, GroupView

#: For schedules that keep consensus apart from the replicas.
ACCEPTORS = ("n4", "n5", "n6")


class Stage(stage.Stage[ScalatomCluster]):
    def __init__(
        self,
        groups: dict[str, tuple[str, ...]],
        *,
        acceptors: tuple[str, ...] | None = ACCEPTORS,
        gateways: tuple[str, ...] = ("g1", "g2"),
        clients: int = 2,
        spare: tuple[str, ...] = (),
        settings: Settings | None = None,
        tracing: bool = False,
    ) -> None:
        """Without acceptors, each group's replicas are its acceptors too. c1 uses the first gateway, and so on.

        Spare nodes have nothing to begin with.
        """
        view = DomainView(domain="sim", number=1, level=LEVEL)
        for name, replicas in sorted(groups.items()):
            view.groups.append(
                GroupView(group=name, configuration=1, replicas=replicas, acceptors=acceptors or replicas)
            )
        nodes = sorted({p for replicas in groups.values() for p in replicas} | {*(acceptors or ()), *spare})
        publishers = {}
        for index in range(clients):
            first = index % len(gateways)
            turned = [*gateways[first:], *gateways[:first]]
            publishers[f"c{index + 1}"] = ClientSettings([], turned, pipeline=1000, patience_s=30.0)
        scenario = ScalatomScenario(
            nodes,
            list(gateways),
            view,
            publishers,
            stage.exact_network(),
            settings or Settings(),
            GatewaySettings(finished_every=1),
            healing_at=0.0,
            disk_delay_s=0.0,
        )
        self.acceptors = acceptors
        super().__init__(ScalatomCluster(scenario, "stage", tracing=tracing))

    # ----------------------------------------------------------------------------------------- directing

    def run_to(self, time: float) -> None:
        self.world.run_until(time)

    def publish(self, client: str, *groups: str, unordered: bool = False, count: int = 1) -> None:
        process = self.world.processes[client]
        machine: Client = self.cluster.machine(client, "client")
        machine.plans.append(Plan(self.world.now, tuple(sorted(groups)), count, unordered))
        process.tell("client", TimerFired(*process.clock(), "client", 0))

    def raise_clock(self, process: str, group: str, sn: int) -> None:
        """Above this number, at one replica alone. On its disk is already how far it may rise."""
        machine = self.cluster.machine(process, "scalatom")
        machine.replicas[group].clock = machine.clock = sn + 1
        reserved = self.world.processes[process].disk.records.setdefault("scalatom", {})
        reserved.update((key, value) for key, value in machine.reservation() if value is not None)

    def create(self, group: str, *replicas: str) -> None:
        """Nobody is told."""
        members = GroupView(group=group, configuration=1, replicas=replicas, acceptors=self.acceptors or replicas)
        self.cluster.create(members)

    def close(self, group: str) -> None:
        """Nobody is told."""
        self.cluster.membership.close(group)

    def remove(self) -> None:
        """The groups that nobody mentions, once that is durable. Nobody is told."""
        self.cluster.membership.remove_clear()
        self.run(0.01)
        self.cluster.membership.remove_clear()

    def prepare(self, group: str, replicas: tuple[str, ...], acceptors: tuple[str, ...] | None = None) -> None:
        """Newcomers copy the log when they are told: nobody is."""
        self.cluster.reconfiguration.prepare(group, replicas, acceptors or self.acceptors or replicas)

    def begin(self, group: str) -> None:
        """The next configuration begins, as it was prepared, wherever newcomers are. Nobody is told."""
        self.cluster.reconfiguration.begin(group)

    def change(self, group: str, replicas: tuple[str, ...], acceptors: tuple[str, ...] | None = None) -> None:
        """The next configuration begins. Nobody is told, and newcomers copy the log when they are."""
        self.cluster.reconfiguration.next[group] = (replicas, acceptors or self.acceptors or replicas)
        self.begin(group)

    def look(self) -> None:
        """At who has started, once that is durable. Nobody is told what comes of it."""
        self.cluster.reconfiguration.look()
        self.run(0.01)
        self.cluster.reconfiguration.look()

    def lose_disk(self, process: str) -> None:
        """It is down until it is restarted. Nobody is told."""
        self.cluster.reconfiguration.lose_disk(process)

    def impatient(self, client: str, patience_s: float) -> None:
        machine: Client = self.cluster.machine(client, "client")
        machine.be_patient(patience_s)

    # ------------------------------------------------------------------------------------------- verdict

    def finish(self, *gone: str) -> None:
        self.heal(*gone)
        membership = self.cluster.membership
        latest = self.world.now + self.cluster.rest_s_max
        membership.tell_all()
        reconfiguration = self.cluster.reconfiguration
        while (membership.closed or reconfiguration.unfinished()) and self.world.now < latest:
            self.run(0.25)
            membership.remove_clear()
            reconfiguration.look()
            membership.tell_all()
        self.cluster.run_to_rest(latest)
        self.cluster.check_end()


class Schedule(stage.Schedule):
    acceptors: tuple[str, ...] | None = ACCEPTORS
    gateways: tuple[str, ...] = ("g1", "g2")
    #: Consensus on every number, as in the paper, unless the story is about numbers that stamps imply.
    settings: Settings = Settings(stamps_wait_s=0.0)


def verdict(schedule: Schedule, *, tracing: bool = False) -> tuple[Violation | None, list[str]]:
    """What the checkers say of a schedule, and its conversation."""
    there = Stage(
        schedule.groups,
        acceptors=schedule.acceptors,
        gateways=schedule.gateways,
        spare=schedule.spare,
        settings=schedule.settings,
        tracing=tracing,
    )
    return stage.verdict_on(schedule, there)
