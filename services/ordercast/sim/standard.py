"""A cluster for protocols that need nothing of their own to be simulated, and whose members are configurations.

It takes the machines and the submission from the protocol's value, and draws scenarios with the faults that all
protocols are tried with. So a package of its own needs a `Trial` and mutants, and little else.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from ordercast.core.level import LEVEL
from ordercast.core.machine import Machine
from ordercast.core.view import FIRST
from ordercast.gateway.machine import Gateway
from ordercast.gateway.settings import GatewaySettings
from ordercast.sim.cluster import Cluster
from ordercast.sim.faults import Faults
from ordercast.sim.membership import Membership
from ordercast.sim.network import NetworkSettings
from ordercast.sim.process import Factory
from ordercast.sim.scenario import Scenario, draw_client, draw_faults, draw_losses, share_cells
from ordercast.v1.membership_pb2 import DomainView, GroupView

#: How often retention and retirement have their turn.
CHORES_S = 0.3


def draw(seed: int, settings: Mapping[str, str]) -> Scenario:
    """Three to five nodes, and two to four groups of one or three replicas, in a domain with these settings."""
    random = Random(f"{seed}/scenario")
    nodes = [f"n{index + 1}" for index in range(random.choice([3, 3, 4, 5]))]
    gateways = ["g1", "g2"] if random.random() < 0.7 else nodes[-2:]
    view = DomainView(domain="sim", number=1, level=LEVEL)
    for name in "abcd"[: random.choice([2, 3, 4])]:
        replicas = sorted(random.sample(nodes, random.choice([3, 3, 3, 1])))
        view.groups.append(GroupView(group=name, configuration=FIRST, replicas=replicas))
    groups = [group.group for group in view.groups]
    healing_at = random.choice([1.0, 2.0, 4.0])
    clients = {f"c{i + 1}": draw_client(random, groups, gateways, healing_at) for i in range(random.randint(2, 4))}
    scenario = Scenario(
        nodes,
        gateways,
        view,
        clients,
        NetworkSettings(
            delay_s=random.choice([0.001, 0.003, 0.01]),
            slow=random.choice([0.0, 0.1, 0.4]),
            loss=random.choice([0.0, 0.0, 0.05, 0.3]),
        ),
        dict(settings),
        GatewaySettings(
            envelopes_open_max=random.choice([2, 4, 64]),
            envelope_messages_max=random.choice([4, 1024]),
            producer_messages_max=random.choice([8, 256]),
        ),
        healing_at,
        draw_faults(random),
        disk_delay_s=random.choice([0.0002, 0.001, 0.005]),
        clock_rates={node: random.choice([1.0, 1.0, 0.5, 2.0]) for node in nodes},
        retention=random.choice([None, 0, 3]),
        losses=draw_losses(random, healing_at),
    )
    share_cells(random, scenario)
    return scenario


def begin(cluster: "StandardCluster", seed: int, faults: Faults) -> None:
    repeat_chores(cluster)


def repeat_chores(cluster: Cluster[Any, Any]) -> None:
    """Those of every run: retention, and the retirement of gateway incarnations that are over."""
    world, scenario = cluster.world, cluster.scenario

    def again() -> None:
        if scenario.retention is not None:
            cluster.truncate(scenario.retention)
        cluster.retire()
        world.after(CHORES_S, again)

    world.after(CHORES_S, again)


class NodesStay(Membership):
    """Where no node is gone for good unless membership says that its disk is lost (`lose_for_good`)."""

    def can_spare(self, process: str) -> bool:
        return list(self.world.processes[process].factories) == ["gateway"]


class StandardCluster(Cluster[Scenario, Membership]):
    #: Whether it goes on while a minority of a group's nodes is down. Otherwise it waits until they are back.
    goes_on_without: ClassVar[bool] = True
    rest_s_max = 300.0

    def make_membership(self) -> Membership:
        kind = Membership if self.goes_on_without else NodesStay
        return kind(self.world, self.scenario.view, self.gone)

    def roles(self, name: str) -> dict[str, Factory]:
        made = self._machines(name)
        if self.protocol.acceptor is not None:
            made |= self.protocol.acceptor(name)
        return {role: self._factory(name, role) for role in made}

    def _machines(self, name: str) -> dict[str, Machine]:
        return self.protocol.replica(name, self.scenario.settings, observe=self.world.tracing)

    def _factory(self, name: str, role: str) -> Factory:
        def make() -> Machine:
            machines = self._machines(name)
            if role in machines or self.protocol.acceptor is None:
                return machines[role]
            return self.protocol.acceptor(name)[role]

        return make

    def make_gateway(self, name: str) -> Gateway:
        submission = self.protocol.submission(self.scenario.settings)
        return Gateway(name, submission, self.scenario.gateway_settings, observe=self.world.tracing)

    # ------------------------------------------------------------------------------------------------- faults

    def lose_for_good(self, name: str) -> None:
        """A node goes, with its disk, and membership knows it: its groups have it among those that are lost."""
        self.gone[name] = None
        self.world.processes[name].crash()
        for group in self.membership.groups.values():
            if name in group.replicas and name not in group.lost:
                group.lost.append(name)
        self.membership.change("disk_lost", name)
