"""A ToTo domain under a director, who also says who is believed to be up, and looks for what follows from that.

Every node has a gateway, and client c1 publishes through n1: so messages are cast where the director wants it.
"""

from ordercast.core.level import LEVEL
from ordercast.core.machine import TimerFired
from ordercast.core.view import FIRST
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.toto.machine import Toto
from ordercast.protocols.toto.protocol import NAME
from ordercast.protocols.toto.settings import Settings
from ordercast.sim import stage
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.client import Client, ClientSettings, Plan
from ordercast.sim.toto.cluster import TotoCluster
from ordercast.sim.toto.membership import LOOK_S
from ordercast.sim.toto.scenario import TotoScenario
from ordercast.v1.membership_pb2 import DomainView, GroupView, ProcessView

#: A client's patience after the healing, and before.
PATIENCE_S = 0.5
PATIENT_S = 30.0


class Stage(stage.Stage[TotoCluster]):
    def __init__(
        self,
        groups: dict[str, tuple[str, ...]],
        *,
        nodes: tuple[str, ...],
        settings: Settings | None = None,
        tracing: bool = False,
    ) -> None:
        view = DomainView(domain="sim", number=1, level=LEVEL)
        view.processes.CopyFrom(ProcessView(number=FIRST, names=sorted(nodes)))
        for name, replicas in sorted(groups.items()):
            view.groups.append(GroupView(group=name, configuration=FIRST, replicas=sorted(replicas)))
        publishers = {}
        for index in range(len(nodes)):
            turned = [*nodes[index:], *nodes[:index]]
            publishers[f"c{index + 1}"] = ClientSettings([], turned, pipeline=1000, patience_s=PATIENT_S)
        scenario = TotoScenario(
            list(nodes),
            list(nodes),
            view,
            publishers,
            stage.exact_network(),
            settings or Settings(),
            GatewaySettings(),
            healing_at=0.0,
            disk_delay_s=0.0,
        )
        cluster = TotoCluster(scenario, "stage", tracing=tracing)
        self.membership = cluster.membership
        super().__init__(cluster)

    def machine(self, process: str) -> Toto:
        machine: Toto = self.cluster.machine(process, NAME)
        return machine

    def publish(self, client: str, *groups: str) -> None:
        process = self.world.processes[client]
        machine: Client = self.cluster.machine(client, "client")
        machine.plans.append(Plan(self.world.now, tuple(sorted(groups)), 1, unordered=False))
        process.tell("client", TimerFired(*process.clock(), "client", 0))

    # -------------------------------------------------------------------------------------------- views

    def believe_in(self, *names: str) -> None:
        """These are up, and nobody else is: a view is defined if the rule allows. Nobody is told."""
        self.membership.suspicion.alive = {name: self.world.processes[name].incarnation for name in names}
        self.membership.look_for_change()

    def look(self) -> None:
        """At who has which cut: a view is complete in a moment, if the rule allows. Nobody is told."""
        self.membership.look_for_completion()

    # ------------------------------------------------------------------------------------------- verdict

    def _look_and_tell(self) -> None:
        self.membership.look()
        self.membership.tell_all()
        self.world.after(LOOK_S, self._look_and_tell)

    def finish(self, *gone: str) -> None:
        self.heal(*gone)
        for name in self.cluster.scenario.clients:
            machine: Client = self.cluster.machine(name, "client")
            machine.be_patient(PATIENCE_S)
        self._look_and_tell()
        self.cluster.run_to_rest(self.world.now + self.cluster.rest_s_max)
        self.cluster.check_end()


class Schedule(stage.Schedule):
    #: All of the domain, with groups or without.
    nodes: tuple[str, ...]
    settings: Settings = Settings()


def verdict(schedule: Schedule, *, tracing: bool = False) -> tuple[Violation | None, list[str]]:
    """What the checkers say of a schedule, and its conversation."""
    there = Stage(schedule.groups, nodes=schedule.nodes, settings=schedule.settings, tracing=tracing)
    return stage.verdict_on(schedule, there)
