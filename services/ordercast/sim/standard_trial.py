"""A Trial in one call, for protocols that need nothing of their own to be simulated (standard.py)."""

from collections.abc import Mapping, Sequence
from random import Random

from ordercast.core.protocol import Protocol
from ordercast.sim import standard
from ordercast.sim.faults import Faults
from ordercast.sim.mutant import Mutant
from ordercast.sim.scenario import Scenario
from ordercast.sim.trial import Trial

#: In so many runs a node goes for good with its disk, and membership says so, if there is one that may.
LOSES = 0.4


def standard_trial(
    protocol: Protocol,
    mutants: Sequence[Mutant],
    *,
    settings: Mapping[str, str],
    empty: Sequence[str],
    waits: bool = False,
    may_lose: Sequence[str] = (),
) -> Trial:
    """`settings` are those of the domain, whose nodes are n1, n2, n3 and sometimes more.

    `empty` are the buffers of the protocol's machine in which nothing is left when all has come to rest. A
    protocol that `waits` goes on only when all nodes are back. Of the nodes in `may_lose` one loses its disk in
    some runs.
    """
    own = {"protocol": protocol, "goes_on_without": not waits, "empty": {protocol.name: tuple(empty)}}

    def draw(seed: int, *, reconfigure: bool = False) -> Scenario:
        return standard.draw(seed, settings)

    def chores(cluster: standard.StandardCluster, seed: int, faults: Faults) -> None:
        standard.begin(cluster, seed, faults)
        if may_lose:
            _lose_one(cluster, may_lose, Random(f"{seed}/loss"))

    return Trial(
        draw,
        type("ClusterOnTrial", (standard.StandardCluster,), own),
        chores,
        mutants,
        schedules={},
        play=lambda schedule: None,
        counted={"lost_for_good": "disk_lost"} if may_lose else {},
    )


def _lose_one(cluster: standard.StandardCluster, may_lose: Sequence[str], random: Random) -> None:
    name = random.choice(may_lose)
    groups = [group for group in cluster.scenario.view.groups if name in group.replicas]
    # A view says it of a node's groups, and nothing can be done for a group that had no other replica.
    may_go = name not in cluster.scenario.gateways and groups and all(len(group.replicas) > 1 for group in groups)
    if may_go and random.random() < LOSES:
        cluster.world.at(random.uniform(0.1, cluster.scenario.healing_at), cluster.lose_for_good, name)
