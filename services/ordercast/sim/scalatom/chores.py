"""What happens in a run of SCALATOM besides publishing and faults: retention, merging readers, changes."""

from collections.abc import Callable
from functools import partial
from random import Random

from ordercast.sim.faults import Faults
from ordercast.sim.scalatom.cluster import ScalatomCluster
from ordercast.sim.scalatom.reconfiguration import draw_members
from ordercast.sim.scalatom.scenario import Change, Creation, Deletion
from ordercast.v1.membership_pb2 import GroupView


def begin(cluster: ScalatomCluster, seed: int, faults: Faults) -> None:
    _chores(cluster, Random(f"{seed}/chores"))
    _changes(cluster)
    _reconfigure(cluster, Random(f"{seed}/configurations"), faults.restart)
    _crash_sealed(cluster, Random(f"{seed}/sealed crashes"), faults)


def _chores(cluster: ScalatomCluster, random: Random) -> None:
    """Retention and merged subscriptions, at random times."""
    world, scenario = cluster.world, cluster.scenario

    def truncate() -> None:
        if scenario.retention is not None:
            cluster.truncate(scenario.retention)
            world.after(0.3, truncate)

    def advance() -> None:
        group = random.choice(cluster.groups)
        replicas = cluster.live_replicas(group)
        if replicas:
            sn = cluster.highest_sn() + random.choice([0, 0, 1, 3])
            cluster.advance(group, random.choice(replicas), sn)
        if world.now < scenario.healing_at:
            world.after(random.uniform(0.05, 0.5), advance)

    def retire() -> None:
        cluster.retire()
        if world.now < scenario.healing_at:
            world.after(0.4, retire)

    world.after(0.4, retire)
    world.after(0.3, truncate)
    world.after(random.uniform(0.05, 0.5), advance)


def _changes(cluster: ScalatomCluster) -> None:
    """Groups come and go."""
    world, membership = cluster.world, cluster.membership
    random = membership.random
    assert random is not None

    def close(name: str) -> None:
        if name not in membership.groups:
            return
        if not membership.closed:
            world.after(random.uniform(0.05, 0.2), remove)
        membership.close(name)

    def remove() -> None:
        membership.remove_clear()
        if membership.closed:
            world.after(random.uniform(0.05, 0.2), remove)

    def create(group: GroupView) -> None:
        """Membership creates no group where those who are gone leave no majority."""
        if cluster.reconfiguration.can_work(group.replicas, group.acceptors):
            cluster.create(group)

    for change in cluster.scenario.changes:
        if isinstance(change, Creation):
            world.at(change.at, create, change.group)
        elif isinstance(change, Deletion):
            world.at(change.at, close, change.name)


def _reconfigure(cluster: ScalatomCluster, random: Random, restart: Callable[[str], None]) -> None:
    """Replicas come and go, and disks are lost."""
    world, reconfiguration, scenario = cluster.world, cluster.reconfiguration, cluster.scenario

    def change() -> None:
        group = cluster.membership.groups[random.choice(cluster.groups)]
        reconfiguration.prepare(group.group, *draw_members(random, group, scenario.nodes))

    def lose_disk() -> None:
        name = random.choice(scenario.nodes)
        if name not in cluster.gone:
            reconfiguration.lose_disk(name)
        world.after(random.uniform(0.02, 0.5), restart, name)

    def look() -> None:
        reconfiguration.look()
        world.after(random.uniform(0.01, 0.2), look)

    planned = [change for change in scenario.changes if isinstance(change, Change)]
    for one in planned:
        world.at(one.at, change if not one.loses_disk else lose_disk)
    if planned:
        world.after(random.uniform(0.01, 0.2), look)


def _crash_sealed(cluster: ScalatomCluster, random: Random, faults: Faults) -> None:
    """From each of the planned times on, the next who is sealed and has not started crashes, and comes back."""
    world, healing_at = cluster.world, cluster.scenario.healing_at

    def crash(name: str) -> None:
        world.processes[name].crash(torn=random.choice([None, 0.5, 1.0]))
        # Mostly before the others have started without it.
        world.after(random.choice([0.005, 0.05, 0.5]), faults.restart, name)

    def look() -> None:
        sealed = [name for name in cluster.scenario.nodes if _is_sealed(cluster, name)]
        if sealed:
            faults.strike("sealed_crash", partial(crash, random.choice(sealed)))
        elif world.now < healing_at:
            world.after(random.uniform(0.001, 0.01), look)  # a hand-over takes some frames and a sync

    for at in cluster.scenario.sealed_crashes:
        world.at(at, look)


def _is_sealed(cluster: ScalatomCluster, name: str) -> bool:
    """In some group: what it had there it may still have to hand over, and to take up again if it stays."""
    process = cluster.world.processes[name]
    if not process.is_answering:
        return False
    return any(replica.is_sealed for replica in cluster.machine(name, "scalatom").replicas.values())
