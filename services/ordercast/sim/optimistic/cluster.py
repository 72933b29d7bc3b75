"""The machines of the protocol in a world, and what only it promises."""

from functools import partial
from random import Random

from ordercast.core.machine import Machine
from ordercast.core.quorums import has_majority
from ordercast.gateway.machine import Gateway
from ordercast.protocols.optimistic.machine import Optimistic
from ordercast.protocols.optimistic.protocol import NAME, OPTIMISTIC
from ordercast.protocols.optimistic.submission import OptimisticSubmission
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.faults import Faults
from ordercast.sim.optimistic.scenario import OptimisticScenario
from ordercast.sim.standard import StandardCluster
from ordercast.sim.standard import begin as begin_standard
from ordercast.v1.membership_pb2 import GroupView

#: Nothing is left in these when all has come to rest.
EMPTY = {NAME: ("pending", "stamped", "shown", "missing")}


class OptimisticCluster(StandardCluster):
    protocol = OPTIMISTIC
    scenario: OptimisticScenario
    empty = EMPTY

    def __init__(self, scenario: OptimisticScenario, seed: int | str, *, tracing: bool = False) -> None:
        super().__init__(scenario, seed, tracing=tracing)
        for name, offset in scenario.walls.items():
            self.world.processes[name].wall_offset = offset

    def _machines(self, name: str) -> dict[str, Machine]:
        return {NAME: Optimistic(name, self.scenario.settings, observe=self.world.tracing)}

    def make_gateway(self, name: str) -> Gateway:
        submission = partial(OptimisticSubmission, settings=self.scenario.settings)
        return Gateway(name, submission, self.scenario.gateway_settings, observe=self.world.tracing)

    def create(self, group: GroupView) -> None:
        """Membership creates no group where those who are gone leave no majority."""
        if has_majority(group.replicas, [name for name in group.replicas if name not in self.gone]):
            self.logs.add(group.group, tuple(group.replicas))
            self.membership.create(group)

    def check_own(self) -> None:
        """What every replica derives from a source's log is the same at the same place."""
        found: dict[tuple[str, int], tuple[str, bytes]] = {}
        for name in self.scenario.nodes:
            if not self.world.processes[name].up:
                continue
            machine: Optimistic = self.machine(name, NAME)
            for replica in machine.replicas.values():
                for source, following in replica.following.items():
                    if following.state is None:
                        continue
                    state = following.state.to_message().SerializeToString()
                    who, known = found.setdefault((source, following.state.next), (name, state))
                    if known != state:
                        raise Violation(
                            "agreement", f"{name} and {who} derive different states from the log of {source}"
                        )


def begin(cluster: OptimisticCluster, seed: int, faults: Faults) -> None:
    """The chores of every run, and merged subscriptions, which ask groups to go on."""
    begin_standard(cluster, seed, faults)
    world, random = cluster.world, Random(f"{seed}/advance")
    for at, group in cluster.scenario.creations:
        world.at(at, cluster.create, group)

    def advance() -> None:
        group = random.choice(cluster.groups)
        replicas = cluster.live_replicas(group)
        if replicas:
            sn = cluster.highest_sn() + random.choice([0, 0, 1, 1000])
            cluster.advance(group, random.choice(replicas), sn)
        if world.now < cluster.scenario.healing_at:
            world.after(random.uniform(0.05, 0.5), advance)

    world.after(random.uniform(0.05, 0.5), advance)
