"""Virtually synchronous groups under a director, who casts through whom he likes.

He also says who is believed to be up, and looks for what follows from that.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from ordercast.core.level import LEVEL
from ordercast.core.machine import TimerFired
from ordercast.core.view import FIRST
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.settings import Settings
from ordercast.protocols.isis.stamps import besides_in, stamp_in
from ordercast.protocols.isis.telling import TellOne
from ordercast.sim import stage
from ordercast.sim.board import Groups
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.client import ClientSettings
from ordercast.sim.isis.caster import Caster, CasterSettings, CastPlan
from ordercast.sim.isis.cluster import IsisCluster
from ordercast.sim.isis.membership import LOOK_S
from ordercast.sim.isis.scenario import IsisScenario
from ordercast.sim.reading import messages_in
from ordercast.v1.isis_pb2 import Seen
from ordercast.v1.membership_pb2 import DomainView, GroupView

#: Simulated seconds after the healing in which everything must have come to rest, and a client's patience then.
REST_S_MAX = 20.0
PATIENCE_S = 0.5


class Stage(stage.Stage[IsisCluster]):
    def __init__(
        self,
        groups: dict[str, tuple[str, ...]],
        *,
        spare: tuple[str, ...] = (),
        clients: int = 4,
        publishers: Mapping[str, ClientSettings] | None = None,
        settings: Settings | None = None,
        reads_live: bool = False,
        tracing: bool = False,
    ) -> None:
        """Spare nodes have nothing to begin with. Publishers go through gateways when they have planned to."""
        view = DomainView(domain="sim", number=1, level=LEVEL)
        for name, replicas in sorted(groups.items()):
            view.groups.append(GroupView(group=name, configuration=FIRST, replicas=sorted(replicas)))
        nodes = sorted({p for replicas in groups.values() for p in replicas} | {*spare})
        gateways = {gateway for publisher in (publishers or {}).values() for gateway in publisher.gateways}
        patient = CasterSettings([], pipeline=1000, patience_s=stage.NEVER_S)
        scenario = IsisScenario(
            nodes,
            sorted(gateways),
            view,
            dict(publishers or {}),
            stage.exact_network(),
            settings or Settings(),
            GatewaySettings(),
            healing_at=0.0,
            disk_delay_s=0.0,
            reads_live=reads_live,
            casters={f"c{i + 1}": replace(patient, plans=[]) for i in range(clients)},
        )
        cluster = IsisCluster(scenario, "stage", tracing=tracing)
        self.membership = cluster.membership
        super().__init__(cluster)

    def machine(self, process: str) -> Isis:
        machine = self.world.processes[process].slots["isis"].machine
        assert isinstance(machine, Isis)
        return machine

    # ------------------------------------------------------------------------------------------ clients

    def _caster(self, name: str) -> Caster:
        machine = self.world.processes[name].slots["client"].machine
        assert isinstance(machine, Caster)
        return machine

    def publish(self, client: str, *groups: str, through: str, total: bool = False) -> None:
        """A client waits for its receipts before it publishes elsewhere: let somebody else do that."""
        process, machine = self.world.processes[client], self._caster(client)
        chosen = tuple(sorted(groups))
        machine.member[chosen] = self._turn(machine, chosen, through)
        machine.plans.append(CastPlan(self.world.now, chosen, total))
        process.tell("client", TimerFired(*process.clock(), "client", 0))

    def _turn(self, client: Caster, groups: Groups, through: str) -> int:
        """Of a client's attempts, one that goes to this member."""
        assert client.view is not None
        for turn in range(1000):
            replicas = client.view.groups[groups[turn % len(groups)]].replicas
            if replicas[turn % len(replicas)] == through:
                return turn
        raise AssertionError(f"{client.name} never goes to {through}")

    def sees(self, client: str, group: str, *, at: str) -> None:
        """The client reads the last entry of somebody's log."""
        entry = self.world.processes[at].disk.logs[group].entries[-1]
        read = Seen.FromString(self.machine(at).read_besides(group))
        (key,) = messages_in(self.cluster.board, entry)
        self._caster(client).see(group, stamp_in(entry), read, key)

    def is_shown(self, client: str, group: str) -> None:
        """The client reads what was delivered in the group last, by anybody, and may be lost."""
        entry = self.cluster.shown_last(group)
        self._caster(client).see(group, stamp_in(entry), besides_in(entry))

    def tell_one(self, source: str, to: str) -> None:
        process = self.world.processes[source]
        process.tell("isis", TellOne(*process.clock(), to, self.cluster.checker.on_tell(source)))

    # -------------------------------------------------------------------------------------------- views

    def believe_in(self, *names: str) -> None:
        """These are up, in their present lives, and nobody else is: views are defined if the rule allows."""
        self.membership.suspicion.alive = {name: self.world.processes[name].incarnation for name in names}
        for name in sorted(self.membership.groups):
            self.membership._look_for_change(self.membership.groups[name])

    def place(self, group: str, *names: str) -> None:
        self.membership.place(group, list(names))

    def look(self) -> None:
        """At who has which cut: views are completed in a moment, if the rule allows. Nobody is told."""
        for name in sorted(self.membership.groups):
            self.membership._look_for_completion(self.membership.groups[name])

    # ------------------------------------------------------------------------------------------- verdict

    def _look_and_tell(self) -> None:
        self.membership.look()
        self.membership.tell_all()
        self.world.after(LOOK_S, self._look_and_tell)

    def finish(self, *gone: str) -> None:
        self.heal(*gone)
        for caster in self.cluster.casters:
            caster.settings.patience_s = PATIENCE_S
        self._look_and_tell()
        self.cluster.run_to_rest(self.world.now + REST_S_MAX)
        self.cluster.check_end()


class Schedule(stage.Schedule):
    settings: Settings = Settings()
    #: Whether clients read what is in no log yet.
    reads_live: bool = False
    #: Who publishes through gateways, and when.
    publishers: ClassVar[dict[str, ClientSettings]] = {}


def verdict(schedule: Schedule, *, tracing: bool = False) -> tuple[Violation | None, list[str]]:
    """What the checkers say of a schedule, and its conversation."""
    there = Stage(
        schedule.groups,
        spare=schedule.spare,
        publishers=schedule.publishers,
        settings=schedule.settings,
        reads_live=schedule.reads_live,
        tracing=tracing,
    )
    return stage.verdict_on(schedule, there)
