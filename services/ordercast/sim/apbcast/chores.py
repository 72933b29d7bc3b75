"""What goes on besides publishing and faults: leaves come and go, roots are replaced, homes move, logs are cut."""

from random import Random

from ordercast.protocols.apbcast.events import BROADCASTER, REGISTRAR, MoveHome, PlaceRoots
from ordercast.sim.apbcast.cluster import AudienceCluster
from ordercast.sim.apbcast.scenario import REGISTRAR as REGISTRAR_PROCESS
from ordercast.sim.faults import Faults

RETENTION_S = 0.7


def begin(cluster: AudienceCluster, seed: int, faults: Faults) -> None:
    scenario, world = cluster.scenario, cluster.world
    chores = Chores(cluster, Random(f"{seed}/chores"))
    for name, plan in scenario.leaves.items():
        if plan.comes_at:
            world.at(plan.comes_at, cluster.come, name)
        if plan.goes_at is not None:
            world.at(plan.goes_at, cluster.go, name)
    for time in scenario.changes:
        world.at(time, chores.change)
    if scenario.retention is not None:
        world.after(RETENTION_S, chores.cut)


class Chores:
    def __init__(self, cluster: AudienceCluster, random: Random) -> None:
        self.cluster = cluster
        self.random = random
        self.created = 0

    def change(self) -> None:
        kind = self.random.choice(["replace", "replace", "replace", "create", "give_up", "move_home"])
        changes = self.cluster.membership.changes
        changes[kind] = changes.get(kind, 0) + 1
        getattr(self, kind)()

    def cut(self) -> None:
        self.cluster.truncate(self.cluster.scenario.retention or 0)
        self.cluster.world.after(RETENTION_S, self.cut)

    def _free(self) -> list[str]:
        cluster = self.cluster
        taken = {n for g in cluster.state.groups for c in (g.started, g.defined) for n in c.members}
        return [n for n in cluster.scenario.all_roots if n not in taken and n not in cluster.gone]

    def _place(self, group: str, members: list[str]) -> None:
        registrar = self.cluster.world.processes[REGISTRAR_PROCESS]
        if registrar.is_answering:
            registrar.tell(REGISTRAR, PlaceRoots(*registrar.clock(), group, tuple(members)))

    def replace(self) -> None:
        """Some leave, some come: up to all of them at once."""
        groups = list(self.cluster.state.groups)
        if not groups:
            return
        group = self.random.choice(groups)
        members = [n for n in group.defined.members if n not in self.cluster.gone]
        free = self._free()
        leave = self.random.sample(members, min(len(members), self.random.choice([0, 1, 1, len(members)])))
        come = self.random.sample(free, min(len(free), self.random.choice([1, 1, 2])))
        members = [name for name in members if name not in leave] + come
        if members:
            self._place(group.group, members)

    def create(self) -> None:
        free = self._free()
        if free:
            self.created += 1
            self._place(f"h{self.created}", self.random.sample(free, min(len(free), self.random.choice([1, 3]))))

    def give_up(self) -> None:
        """It goes when nobody is at home there any more, which may be never."""
        names = [group.group for group in self.cluster.state.groups]
        if len(names) > 1:
            name = self.random.choice(names)
            self._place(name, [])
            others = [other for other in names if other != name]
            for broadcaster in self.cluster.scenario.broadcasters:
                self._move(broadcaster, self.random.choice(others))

    def move_home(self) -> None:
        names = [group.group for group in self.cluster.state.groups]
        if names:
            self._move(self.random.choice(sorted(self.cluster.scenario.broadcasters)), self.random.choice(names))

    def _move(self, broadcaster: str, home: str) -> None:
        process = self.cluster.world.processes[broadcaster]
        if process.is_answering:
            process.tell(BROADCASTER, MoveHome(*process.clock(), home))
