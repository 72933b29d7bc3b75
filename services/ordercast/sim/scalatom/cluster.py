"""SCALATOM's machines and its membership in a world, and what only it promises."""

from collections.abc import Sequence
from typing import Any

from ordercast.gateway.machine import Gateway
from ordercast.protocols.paxos.acceptor import Acceptor
from ordercast.protocols.paxos.proposer import Proposer
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.protocols.scalatom.protocol import SCALATOM
from ordercast.protocols.scalatom.submission import ScalatomSubmission
from ordercast.sim.cluster import Cluster
from ordercast.sim.membership import Membership
from ordercast.sim.process import Factory
from ordercast.sim.scalatom.ending import EMPTY, check_bounded, check_gone, check_retired
from ordercast.sim.scalatom.reconfiguration import Reconfiguration
from ordercast.sim.scalatom.scenario import ScalatomScenario
from ordercast.sim.scalatom.traffic import TrafficChecker
from ordercast.v1.membership_pb2 import GroupView


class ScalatomCluster(Cluster[ScalatomScenario, Membership]):
    protocol = SCALATOM
    #: On the slowest networks an answer takes seconds, and producers that pass by wait for each of theirs.
    rest_s_max = 1000.0
    empty = EMPTY

    def __init__(self, scenario: ScalatomScenario, seed: int | str, *, tracing: bool = False) -> None:
        super().__init__(scenario, seed, tracing=tracing)
        self.traffic = TrafficChecker(scenario.view)
        self.by_kind = self.traffic.by_kind
        self.reconfiguration = Reconfiguration(self.world, self.membership, self._changes)
        clients = scenario.clients
        self.world.network.uses_datagrams = lambda a, b: a not in clients and b not in clients

    def make_membership(self) -> Membership:
        return Membership(self.world, self.scenario.view, self.gone)

    def roles(self, name: str) -> dict[str, Factory]:
        settings, observe = self.scenario.settings, self.world.tracing
        return {
            "scalatom": lambda: Scalatom(name, settings, observe=observe),
            "proposer": lambda: Proposer(name, "scalatom"),
            "acceptor": lambda: Acceptor(name),
        }

    def make_gateway(self, name: str) -> Gateway:
        return Gateway(name, ScalatomSubmission, self.scenario.gateway_settings, observe=self.world.tracing)

    def on_send(self, source: str, to: Sequence[str], message: Any, size: int) -> None:
        self.checkers.on_send(source, to, message)
        self.traffic.on_send(source, to, message, size)

    # ------------------------------------------------------------------------------------------- groups

    def create(self, group: GroupView) -> None:
        self.logs.add(group.group, tuple(group.replicas))
        self.traffic.add(group)
        self.membership.create(group)

    def _changes(self, group: GroupView) -> None:
        self.logs.change(group.group, tuple(group.replicas), tuple(group.learners))
        self.traffic.add(group)

    def changing(self) -> str:
        return self.reconfiguration.unfinished()

    # ------------------------------------------------------------------------------------------- what must hold

    def check_retired(self, below: int) -> None:
        super().check_retired(below)
        check_retired(self.world, below)

    def check_own(self) -> None:
        check_gone(self.world, self.membership.gone)
        gateways = sum(1 for name in self.scenario.gateways if self.world.processes[name].up)
        check_bounded(self.world, self.scenario.gateway_settings, gateways)
