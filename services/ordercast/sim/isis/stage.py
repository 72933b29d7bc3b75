"""A small cluster of virtually synchronous groups under a director, where every delay is chosen.

Links carry frames in one millisecond and disks sync at once. The director holds and releases directions and disks,
publishes through whom he likes, crashes and restarts, says who is believed to be up, looks for what follows from
that, and tells whom he likes. At the end everything heals and the usual checkers judge.
"""

from typing import ClassVar

from ordercast.core.errors import InvariantBroken
from ordercast.core.level import LEVEL
from ordercast.core.machine import TimerFired
from ordercast.core.view import FIRST
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.settings import Settings
from ordercast.protocols.isis.telling import TellOne
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.isis.client import Client, ClientSettings, Groups, Plan
from ordercast.sim.isis.membership import LOOK_S
from ordercast.sim.isis.run import Cluster
from ordercast.sim.isis.scenario import Scenario
from ordercast.sim.network import NetworkSettings
from ordercast.v1.isis_pb2 import Seen
from ordercast.v1.membership_pb2 import DomainView, GroupView

#: Simulated seconds after the healing in which everything must have come to rest, and a client's patience then.
REST_S_MAX = 20.0
PATIENCE_S = 0.5
#: Longer than any schedule.
NEVER_S = 1e6


class Stage:
    def __init__(
        self,
        groups: dict[str, tuple[str, ...]],
        *,
        spare: tuple[str, ...] = (),
        clients: int = 4,
        settings: Settings | None = None,
        tracing: bool = False,
    ) -> None:
        """Spare nodes have nothing to begin with."""
        view = DomainView(domain="sim", number=1, level=LEVEL)
        for name, replicas in sorted(groups.items()):
            view.groups.append(GroupView(group=name, configuration=FIRST, replicas=sorted(replicas)))
        nodes = sorted({p for replicas in groups.values() for p in replicas} | {*spare})
        scenario = Scenario(
            nodes=nodes,
            view=view,
            clients={f"c{i + 1}": ClientSettings([], pipeline=1000, patience_s=NEVER_S) for i in range(clients)},
            network=NetworkSettings(delay_s=0.001, exact=True),
            settings=settings or Settings(),
            healing_at=0.0,
            disk_delay_s=0.0,
        )
        self.cluster = Cluster(scenario, "stage", tracing=tracing)
        self.world = self.cluster.world
        self.membership = self.cluster.membership
        self.cluster.start()
        self.run(0.01)

    def run(self, seconds: float) -> None:
        self.world.run_until(self.world.now + seconds)

    def machine(self, process: str) -> Isis:
        machine = self.world.processes[process].slots["isis"].machine
        assert isinstance(machine, Isis)
        return machine

    # ------------------------------------------------------------------------------------------ clients

    def _client(self, name: str) -> Client:
        machine = self.world.processes[name].slots["client"].machine
        assert isinstance(machine, Client)
        return machine

    def publish(self, client: str, *groups: str, through: str, total: bool = False) -> None:
        """A client waits for its receipts before it publishes elsewhere: let somebody else do that."""
        process, machine = self.world.processes[client], self._client(client)
        chosen = tuple(sorted(groups))
        machine.member[chosen] = self._turn(machine, chosen, through)
        machine.plans.append(Plan(self.world.now, chosen, total))
        process.tell("client", TimerFired(*process.clock(), "client", 0))

    def _turn(self, client: Client, groups: Groups, through: str) -> int:
        """Of a client's attempts, one that goes to this member."""
        assert client.view is not None
        for turn in range(1000):
            replicas = client.view.groups[groups[turn % len(groups)]].replicas
            if replicas[turn % len(replicas)] == through:
                return turn
        raise AssertionError(f"{client.name} never goes to {through}")

    def sees(self, client: str, group: str, *, at: str) -> None:
        """The client reads the last entry of somebody's log."""
        stamp = self.world.processes[at].disk.logs[group].entries[-1].stamp
        self._client(client)._see(group, stamp, self.machine(at).read_besides(group) or Seen())

    def tell_one(self, source: str, to: str) -> None:
        process = self.world.processes[source]
        process.tell("isis", TellOne(*process.clock(), to, self.cluster.checker.on_tell(source)))

    # ------------------------------------------------------------------------------- network, disks, lives

    def hold(self, source: str, *to: str) -> None:
        """What goes there waits."""
        for name in to:
            self.world.network.block(source, name)

    def release(self, source: str, *to: str) -> None:
        for name in to:
            self.world.network.unblock(source, name)

    def part(self, *names: str) -> None:
        """From everyone else among the nodes, both ways."""
        others = [name for name in self.cluster.scenario.nodes if name not in names]
        for name in names:
            self.hold(name, *others)
            for other in others:
                self.hold(other, name)

    def lose_in_flight(self, a: str, b: str) -> None:
        """The connection breaks: what it carried, or held, is lost."""
        self.world.network.break_connection(a, b)

    def hold_disk(self, process: str) -> None:
        self.world.processes[process].disk_delay_s = NEVER_S

    def release_disk(self, name: str) -> None:
        process = self.world.processes[name]
        process.disk_delay_s = 0.0
        if process.disk.writing is not None:
            process._synced(process.disk.writing)

    def truncate(self) -> None:
        """Retention drops all that it may, everywhere."""
        self.cluster.truncate(0)

    def crash(self, *names: str) -> None:
        for name in names:
            self.world.processes[name].crash()

    def restart(self, *names: str) -> None:
        for name in names:
            self.world.processes[name].disk_delay_s = 0.0
            self.world.processes[name].start()

    # -------------------------------------------------------------------------------------------- views

    def believe_in(self, *names: str) -> None:
        """These are up, in their present lives, and nobody else is: views are defined if the rule allows."""
        self.membership.alive = {name: self.world.processes[name].incarnation for name in names}
        for name in sorted(self.membership.groups):
            self.membership._look_for_change(self.membership.groups[name])

    def place(self, group: str, *names: str) -> None:
        self.membership.place(group, list(names))

    def look(self) -> None:
        """At who has which cut: views are completed in a moment, if the rule allows. Nobody is told."""
        for name in sorted(self.membership.groups):
            self.membership._look_for_completion(self.membership.groups[name])

    def tell(self, *names: str) -> None:
        """The latest of membership."""
        for name in names:
            self.membership.tell(name, len(self.membership.history) - 1)

    # ------------------------------------------------------------------------------------------- verdict

    def _look_and_tell(self) -> None:
        self.membership.look()
        self.membership.tell_all()
        self.world.after(LOOK_S, self._look_and_tell)

    def finish(self, *gone: str) -> None:
        """Heal everything but what is gone for good, come to rest, check."""
        self.crash(*gone)
        self.cluster.gone.update(dict.fromkeys(gone))
        for source, to in list(self.world.network.blocked):
            while self.world.network.is_blocked(source, to):
                self.release(source, to)
        for name, process in self.world.processes.items():
            if process.up:
                self.release_disk(name)
            elif name not in gone:
                self.restart(name)
        for client in self.cluster.clients:
            client.settings.patience_s = PATIENCE_S
        self._look_and_tell()
        self.cluster.run_to_rest(self.world.now + REST_S_MAX)


def verdict(schedule: "Schedule", *, tracing: bool = False) -> tuple[Violation | None, list[str]]:
    """What the checkers say of a schedule, and its conversation."""
    stage = Stage(schedule.groups, spare=schedule.spare, settings=schedule.settings, tracing=tracing)
    violation = None
    try:
        schedule.play(stage)
    except Violation as found:
        violation = found
    except (InvariantBroken, AssertionError) as broken:
        violation = Violation("invariant", f"{type(broken).__name__}: {broken}")
    return violation, stage.world.trace


class Schedule:
    """A story that only a broken protocol gets wrong. Subclasses say who there is and what happens."""

    #: The mutant that this schedule catches.
    mutant: str
    groups: ClassVar[dict[str, tuple[str, ...]]]
    #: Nodes for later.
    spare: tuple[str, ...] = ()
    settings: Settings = Settings()

    def play(self, stage: Stage) -> None:
        raise TypeError("a schedule plays something")
