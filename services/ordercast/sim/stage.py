"""A small cluster under a director: for scripted schedules, where every delay is chosen.

Links carry frames in one millisecond and disks sync at once. The director blocks and opens directions,
publishes, crashes and restarts; at the end everything heals and the usual checkers judge.
"""

from typing import ClassVar

from ordercast.core.errors import InvariantBroken
from ordercast.core.level import LEVEL
from ordercast.core.machine import TimerFired
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.scalatom.settings import Settings
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.client import Client, ClientSettings, Plan
from ordercast.sim.network import NetworkSettings
from ordercast.sim.run import REST_S_MAX, Cluster
from ordercast.sim.scenario import Scenario
from ordercast.v1.membership_pb2 import DomainView, GroupView

#: For schedules that keep consensus apart from the replicas.
ACCEPTORS = ("n4", "n5", "n6")


class Stage:
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
        self.cluster = Cluster(
            Scenario(
                nodes,
                list(gateways),
                view,
                publishers,
                NetworkSettings(delay_s=0.001, exact=True),
                settings or Settings(),
                GatewaySettings(finished_every=1),
                healing_at=0.0,
                disk_delay_s=0.0,
            ),
            "stage",
            tracing=tracing,
        )
        self.acceptors = acceptors
        self.world = self.cluster.world
        self.cluster.start()
        self.run(0.01)

    # ----------------------------------------------------------------------------------------- directing

    def run(self, seconds: float) -> None:
        self.world.run_until(self.world.now + seconds)

    def run_to(self, time: float) -> None:
        self.world.run_until(time)

    def lose_in_flight(self, a: str, b: str) -> None:
        """The connection breaks: what it carried is lost."""
        self.world.network.break_connection(a, b)

    def publish(self, client: str, *groups: str, unordered: bool = False, count: int = 1) -> None:
        process = self.world.processes[client]
        machine: Client = self.cluster.machine(client, "client")
        machine.plans.append(Plan(self.world.now, tuple(sorted(groups)), count, unordered))
        process.tell("client", TimerFired(*process.clock(), "client", 0))

    def block(self, source: str, *to: str) -> None:
        for name in to:
            self.world.network.block(source, name)

    def open(self, source: str, *to: str) -> None:
        for name in to:
            self.world.network.unblock(source, name)

    def raise_clock(self, process: str, group: str, sn: int) -> None:
        """Above this number, at one replica alone, as after a restart."""
        machine = self.cluster.machine(process, "scalatom")
        machine.replicas[group].clock = machine.clock = sn + 1

    def slow_disk(self, process: str, seconds: float) -> None:
        self.world.processes[process].disk_delay_s = seconds

    def crash(self, process: str) -> None:
        self.world.processes[process].crash()

    def restart(self, process: str) -> None:
        self.world.processes[process].disk_delay_s = 0.0
        self.world.processes[process].start()

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

    def tell(self, *processes: str) -> None:
        """The latest view, and which groups are closed."""
        for name in processes:
            self.cluster.membership.tell(name, len(self.cluster.membership.history) - 1)

    def pause(self, process: str, seconds: float) -> None:
        self.world.processes[process].paused_until = self.world.now + seconds

    def impatient(self, client: str, patience_s: float) -> None:
        machine: Client = self.cluster.machine(client, "client")
        machine.patience_s = patience_s

    # ------------------------------------------------------------------------------------------- verdict

    def finish(self, *gone: str) -> None:
        """Heal everything but what is gone for good, come to rest, check."""
        for source, to in list(self.world.network.blocked):
            self.open(source, to)
        self.cluster.gone.update(dict.fromkeys(gone))
        for name, process in self.world.processes.items():
            process.disk_delay_s = 0.0
            if not process.up and name not in gone:
                process.start()
        membership = self.cluster.membership
        latest = self.world.now + REST_S_MAX
        membership.tell_all()
        reconfiguration = self.cluster.reconfiguration
        while (membership.closed or reconfiguration.unfinished()) and self.world.now < latest:
            self.run(0.25)
            membership.remove_clear()
            reconfiguration.look()
            membership.tell_all()
        self.cluster.run_to_rest(latest)
        self.cluster.check_end()


def verdict(schedule: "Schedule", *, tracing: bool = False) -> tuple[Violation | None, list[str]]:
    """What the checkers say of a schedule, and its conversation."""
    stage = Stage(
        schedule.groups,
        acceptors=schedule.acceptors,
        gateways=schedule.gateways,
        spare=schedule.spare,
        settings=schedule.settings,
        tracing=tracing,
    )
    violation = None
    try:
        schedule.play(stage)
    except Violation as found:
        violation = found
    except InvariantBroken as broken:
        violation = Violation("invariant", str(broken))
    return violation, stage.world.trace


class Schedule:
    """A story that only a broken protocol gets wrong. Subclasses say who there is and what happens."""

    #: The mutant that this schedule catches.
    mutant: str
    groups: ClassVar[dict[str, tuple[str, ...]]]
    acceptors: tuple[str, ...] | None = ACCEPTORS
    gateways: tuple[str, ...] = ("g1", "g2")
    #: Nodes for later.
    spare: tuple[str, ...] = ()
    #: Consensus on every number, as in the paper, unless the story is about numbers that stamps imply.
    settings: Settings = Settings(stamps_wait_s=0.0)

    def play(self, stage: Stage) -> None:
        raise TypeError("a schedule plays something")
