"""What happens in a run of ISIS besides publishing and faults: membership looks, groups move, logs are cut."""

from random import Random

from ordercast.protocols.isis.telling import TellOne
from ordercast.sim.faults import Faults
from ordercast.sim.isis.cluster import IsisCluster
from ordercast.sim.isis.membership import LOOK_S

#: How often retention looks.
TRUNCATE_S = 0.1


def begin(cluster: IsisCluster, seed: int, faults: Faults) -> None:
    cluster.membership.delays = cluster.membership.random
    cluster.world.after(LOOK_S, cluster.look)
    _events(cluster, Random(f"{seed}/events"))


def _events(cluster: IsisCluster, random: Random) -> None:
    """Groups move, somebody is suspected wrongly, somebody tells somebody something, logs are cut."""
    world, membership, nodes = cluster.world, cluster.membership, cluster.scenario.nodes

    def move() -> None:
        name = random.choice(sorted(membership.groups))
        placement = membership.placement[name]
        others = [node for node in nodes if node not in placement and node not in membership.absent]
        kind = random.choice(["add", "remove", "replace"])
        changed = list(placement)
        if kind != "add" and len(changed) > 1:
            changed.remove(random.choice(changed))
        if kind != "remove" and others:
            changed.append(random.choice(others))
        if membership.can_be_at(changed):
            membership.place(name, changed)

    def tell() -> None:
        source, to = random.sample(nodes, 2)
        process = world.processes[source]
        if process.up:
            process.tell("isis", TellOne(*process.clock(), to, cluster.checker.on_tell(source)))

    def truncate(keep: int) -> None:
        cluster.truncate(keep)
        world.after(TRUNCATE_S, truncate, keep)

    if cluster.scenario.retention is not None:
        world.after(TRUNCATE_S, truncate, cluster.scenario.retention)
    for at in cluster.scenario.moves:
        world.at(at, move)
    for at in cluster.scenario.tells:
        world.at(at, tell)
    for at in cluster.scenario.suspicions:
        world.at(at, lambda: membership.suspicion.suspect(random.choice(nodes), random.uniform(0.1, 0.6)))
