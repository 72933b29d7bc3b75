"""The protocol on trial: `ordercast sim tandem`. What is simulated and checked is Ordercast's own."""

from random import Random
from typing import ClassVar

from ordercast.sim import standard
from ordercast.sim.faults import Faults
from ordercast.sim.scenario import Scenario
from ordercast.sim.trial import Trial
from ordercast_tandem.mutants import MUTANTS
from ordercast_tandem.protocol import NAME, TANDEM

SEQUENCER, STANDBY = "n1", "n2"


class TandemCluster(standard.StandardCluster):
    protocol = TANDEM
    goes_on_without = False
    empty: ClassVar = {NAME: ("log", "finished")}


def draw(seed: int, *, reconfigure: bool = False) -> Scenario:
    return standard.draw(seed, {"sequencer": SEQUENCER, "standby": STANDBY})


def chores(cluster: TandemCluster, seed: int, faults: Faults) -> None:
    """In some runs one of the two goes for good."""
    standard.begin(cluster, seed, faults)
    random = Random(f"{seed}/loss")
    name = random.choice([SEQUENCER, STANDBY])
    groups = [group for group in cluster.scenario.view.groups if name in group.replicas]
    # A view says it of a node's groups, and nothing can be done for a group that had no other replica.
    may_go = name not in cluster.scenario.gateways and groups and all(len(group.replicas) > 1 for group in groups)
    if may_go and random.random() < 0.4:
        cluster.world.at(random.uniform(0.1, cluster.scenario.healing_at), cluster.lose_for_good, name)


TRIAL = Trial(
    draw,
    TandemCluster,
    chores,
    MUTANTS,
    schedules={},
    play=lambda schedule: None,
    counted={"lost_for_good": "disk_lost"},
)
