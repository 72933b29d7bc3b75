"""The machines and the membership of a ToTo domain in a world, and what only it promises."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ordercast.gateway.machine import Gateway
from ordercast.protocols.toto.machine import Toto
from ordercast.protocols.toto.protocol import TOTO
from ordercast.protocols.toto.submission import TotoSubmission
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.cluster import Cluster
from ordercast.sim.process import Factory
from ordercast.sim.toto.membership import LOOK_S, DomainMembership
from ordercast.sim.toto.scenario import TotoScenario
from ordercast.v1.toto_pb2 import DagMessage

#: Simulated seconds for which it is listened.
SILENCE_S = 0.5


class TotoCluster(Cluster[TotoScenario, DomainMembership]):
    protocol = TOTO
    rest_s_max = 300.0
    empty: ClassVar[Mapping[str, Sequence[str]]] = {TOTO.name: ("hidden", "waiting", "forwarded", "early")}

    def make_membership(self) -> DomainMembership:
        return DomainMembership(self.world, self.scenario.view, self.gone)

    def roles(self, name: str) -> dict[str, Factory]:
        return {TOTO.name: lambda: Toto(name, self.scenario.settings, observe=True)}

    def make_gateway(self, name: str) -> Gateway:
        return Gateway(name, TotoSubmission, self.scenario.gateway_settings)

    def look(self) -> None:
        self.membership.look()
        self.world.after(LOOK_S, self.look)

    def check_own(self) -> None:
        """At rest nobody votes: an empty message is sent because somebody waits for it."""
        before = self.by_kind.get(DagMessage.__name__, 0)
        self.world.run_until(self.world.now + SILENCE_S)
        if self.by_kind.get(DagMessage.__name__, 0) != before:
            raise Violation("silence", "messages are sent though nothing is open")

    def changing(self) -> str:
        return self.membership.unfinished()
