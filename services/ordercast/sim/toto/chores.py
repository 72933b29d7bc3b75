"""What happens in a run of ToTo besides publishing and faults: membership looks, somebody is suspected wrongly."""

from random import Random

from ordercast.sim import standard
from ordercast.sim.faults import Faults
from ordercast.sim.toto.cluster import TotoCluster
from ordercast.sim.toto.membership import LOOK_S


def begin(cluster: TotoCluster, seed: int, faults: Faults) -> None:
    membership, world, nodes = cluster.membership, cluster.world, cluster.scenario.nodes
    membership.delays = membership.random
    world.after(LOOK_S, cluster.look)
    random = Random(f"{seed}/suspicions")
    for at in cluster.scenario.suspicions:
        world.at(at, lambda: membership.suspicion.suspect(random.choice(nodes), random.uniform(0.1, 0.6)))
    standard.repeat_chores(cluster)
