"""One run of SCALATOM: a scenario, its world, all checkers, a verdict."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import last_key_of, sn_of
from ordercast.core.machine import Advance, Effect, KeepsIncarnations, Retired
from ordercast.gateway.machine import Gateway
from ordercast.protocols.paxos.acceptor import Acceptor
from ordercast.protocols.paxos.proposer import Proposer
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.sim.checkers import ending, order, producers
from ordercast.sim.checkers.logs import LogChecker
from ordercast.sim.checkers.traffic import TrafficChecker
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.client import Board, Client, Dial
from ordercast.sim.faults import Faults
from ordercast.sim.membership import Membership
from ordercast.sim.process import Factory
from ordercast.sim.reconfiguration import Reconfiguration, draw_members
from ordercast.sim.scenario import Change, Creation, Deletion, Scenario, draw
from ordercast.sim.world import World
from ordercast.v1.membership_pb2 import GroupView

#: Simulated seconds after the healing in which everything must have come to rest.
REST_S_MAX = 300.0
#: How often it is looked whether it has.
LOOK_S = 0.25
#: And in which a group that is asked to must have caught up.
WATERMARK_S_MAX = 60.0


@dataclass(slots=True)
class Result:
    seed: int
    violation: Violation | None
    delivered: int
    messages: int
    digest: str
    strikes: dict[str, int] = field(default_factory=dict)
    by_kind: dict[str, int] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)


class Cluster:
    """The machines of a scenario in a world, with the checkers that need no end."""

    def __init__(self, scenario: Scenario, seed: int | str, *, tracing: bool = False) -> None:
        self.scenario = scenario
        self.world = world = World(seed, scenario.network, tracing=tracing)
        #: Processes that will never come back.
        self.gone: dict[str, None] = {}
        self.membership = Membership(world, scenario.view, self.gone)
        #: How far retention has gone, by group: what is beyond that must be on every disk in the end.
        self.floors: dict[str, int] = {}
        self.board = Board()
        self.logs = LogChecker(self.board, {g.group: tuple(g.replicas) for g in scenario.view.groups})
        self.traffic = TrafficChecker(scenario.view)
        self.reconfiguration = Reconfiguration(world, self.membership, self._changes)
        world.on_deliver = self.logs.on_deliver
        world.on_commit = self.logs.on_commit
        world.on_watermark = self.logs.on_watermark
        world.on_log_reset = self.logs.on_log_reset
        world.on_send = self.traffic.on_send
        world.on_custom = self._custom
        for name in scenario.nodes:
            self._add_node(name)
        for name in scenario.gateways:
            if name not in scenario.nodes:
                world.add(name, {"gateway": self._gateway(name)})
        for name in scenario.clients:
            world.add(name, {"client": self._client(name)})
        world.network.connects = self._connects
        world.network.uses_datagrams = lambda a, b: a not in scenario.clients and b not in scenario.clients

    def _add_node(self, name: str) -> None:
        settings, observe = self.scenario.settings, self.world.tracing
        roles: dict[str, Factory] = {
            "scalatom": lambda: Scalatom(name, settings, observe=observe),
            "proposer": lambda: Proposer(name, "scalatom"),
            "acceptor": lambda: Acceptor(name),
        }
        if name in self.scenario.gateways:
            roles["gateway"] = self._gateway(name)
        process = self.world.add(name, roles)
        process.disk_delay_s = self.scenario.disk_delay_s
        process.clock_rate = self.scenario.clock_rates.get(name, 1.0)

    def _gateway(self, name: str) -> Factory:
        settings, observe = self.scenario.gateway_settings, self.world.tracing
        return lambda: Gateway(name, settings, observe=observe)

    def _client(self, name: str) -> Factory:
        return lambda: Client(name, self.scenario.clients[name], self.board)

    def _connects(self, a: str, b: str) -> bool:
        """Clients talk to gateways, and everyone else to everyone else."""
        clients, gateways = self.scenario.clients, self.scenario.gateways
        if a in clients:
            return b in gateways
        return a in gateways if b in clients else True

    def _custom(self, process: str, effect: Effect) -> None:
        if isinstance(effect, Dial) and self.world.processes[effect.gateway].up:
            self.world.network.disconnect(process, effect.gateway)
            self.world.network.connect(process, effect.gateway)

    def start(self) -> None:
        for process in self.world.processes.values():
            process.start()

    @property
    def clients(self) -> list[Client]:
        return [self.machine(name, "client") for name in self.scenario.clients]

    def machine(self, process: str, role: str) -> Any:
        return self.world.processes[process].slots[role].machine

    def live_replicas(self, group: str) -> list[str]:
        """Of processes that know the group."""
        processes = [self.world.processes[name] for name in self.logs.groups[group].replicas]
        return [process.name for process in processes if process.up and group in process.groups]

    def highest_sn(self) -> int:
        return max((sn_of(log.keys[-1]) for log in self.logs.groups.values() if log.keys), default=0)

    # ------------------------------------------------------------------------------------------- groups

    @property
    def groups(self) -> list[str]:
        """Those that are there and stay."""
        return sorted(name for name in self.membership.groups if name not in self.membership.closed)

    def create(self, group: GroupView) -> None:
        self.logs.add(group.group, tuple(group.replicas))
        self.traffic.add(group)
        self.membership.create(group)

    def _changes(self, group: GroupView) -> None:
        self.logs.change(group.group, tuple(group.replicas), tuple(group.learners))
        self.traffic.add(group)

    # ------------------------------------------------------------------------------------------- chores

    def advance(self, group: str, process: str, sn: int) -> None:
        target = self.world.processes[process]
        target.tell("scalatom", Advance(*target.clock(), group, last_key_of(sn)))

    def truncate(self, keep: int) -> None:
        """Retention, as the runtime does it: never what a replica may still have to report."""
        for name in self.scenario.nodes:
            process = self.world.processes[name]
            if process.up:
                for group, replica in self.machine(name, "scalatom").replicas.items():
                    if group in process.disk.logs and group in process.written:
                        floor = min(replica.retained_from(), process.disk.logs[group].ends) - keep
                        process.truncate(group, floor)
                        self.floors[group] = max(self.floors.get(group, 0), floor)

    def retire(self) -> int:
        """What membership does when it has heard from everyone: see core.machine.Retired."""
        world = self.world
        if any(not p.up and name not in self.gone for name, p in world.processes.items()):
            return 0
        up = [process for process in world.processes.values() if process.up]
        live = [p.incarnation for p in up if "gateway" in p.factories]
        machines = [slot.machine for process in up for slot in process.slots.values()]
        open_ = [machine.oldest_open() for machine in machines if isinstance(machine, KeepsIncarnations)]
        below = min([*live, *open_])
        for process in up:
            process.tell_all(Retired(*process.clock(), below))
        return below

    def unfinished(self) -> str:
        """Why the run is not over, or an empty string."""
        membership = self.membership
        for name in membership.closed:
            return f"{name} is not gone: {membership.who_needs(name) or 'it waits for a sync'}"
        late = membership.who_is_late()
        if late:
            return f"{late} does not know the latest view"
        changing = self.reconfiguration.unfinished()
        if changing:
            return changing
        there = {name: log for name, log in self.logs.groups.items() if name not in membership.gone}
        return ending.unfinished(self.world, there, self.clients)

    def run_to_rest(self, until: float) -> None:
        """Until nothing is left to do. What is left when it is too late is the reason why the run failed."""
        self.world.run_until(self.world.now + LOOK_S)
        while reason := self.unfinished():
            if self.world.now >= until:
                raise Violation("termination", reason)
            self.world.run_until(self.world.now + LOOK_S)

    def _check_producers(self) -> None:
        tables = {}
        for group in self.groups:
            replicas = {name: self.machine(name, "scalatom").replicas[group] for name in self.live_replicas(group)}
            last = max((replica.position for replica in replicas.values()), default=0)
            there = {name: r.producers for name, r in replicas.items() if r.position == last and r.copied is None}
            producers.check_replicas(group, there)
            if there:
                tables[group] = next(iter(there.values()))
        producers.check_sets(tables)

    def check_end(self) -> None:
        groups = self.logs.groups
        ending.check_bodies(self.world, self.logs, self.floors)
        ending.check_gone(self.world, self.membership.gone)
        ending.check_all_or_nothing(self.logs)
        ending.check_receipts(self.logs, self.board)
        self._check_producers()
        order.check_fifo(groups, self.board)
        order.check_causality(groups, self.board)
        order.check_acyclic(groups, self.board)
        gateways = sum(1 for name in self.scenario.gateways if self.world.processes[name].up)
        ending.check_bounded(self.world, self.scenario.gateway_settings, gateways)
        # What names a group that a view lacks is not among them: see World.lacks.
        if self.world.refusals and not self.scenario.network.datagrams:
            raise Violation("refused", self.world.refusals[0])


def run_seed(seed: int, *, reconfigure: bool = False, tracing: bool = False) -> Result:
    return run_scenario(draw(seed, reconfigure=reconfigure), seed, tracing=tracing)


def run_scenario(scenario: Scenario, seed: int, *, tracing: bool = False) -> Result:
    cluster = Cluster(scenario, seed, tracing=tracing)
    world, membership = cluster.world, cluster.membership
    faults = Faults(world, Random(f"{seed}/faults"), scenario.faults, scenario.healing_at, membership.view)
    membership.absent = cluster.gone = faults.gone
    violation = None
    try:
        begin(cluster, seed, faults)
        world.run_until(scenario.healing_at)
        cluster.run_to_rest(scenario.healing_at + REST_S_MAX)
        _check_watermarks(cluster)
        cluster.run_to_rest(world.now + REST_S_MAX)
        cluster.check_end()
        ending.check_retired(world, cluster.retire())
    except Violation as found:
        violation = found
    except (InvariantBroken, AssertionError) as broken:
        violation = Violation("invariant", f"{type(broken).__name__}: {broken}")
    return Result(
        seed,
        violation,
        cluster.logs.delivered,
        world.messages,
        world.digest(),
        {**faults.strikes, **membership.changes},
        cluster.traffic.by_kind,
        world.trace,
    )


def begin(cluster: Cluster, seed: int, faults: Faults) -> None:
    """All processes, and whatever happens to them later."""
    cluster.start()
    _chores(cluster, Random(f"{seed}/chores"))
    _changes(cluster, Random(f"{seed}/views"))
    _reconfigure(cluster, Random(f"{seed}/configurations"), faults.restart)


def _chores(cluster: Cluster, random: Random) -> None:
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


def _changes(cluster: Cluster, random: Random) -> None:
    """Groups come and go."""
    world, membership = cluster.world, cluster.membership
    membership.random = random

    def close(name: str) -> None:
        if not membership.closed:
            world.after(random.uniform(0.05, 0.2), remove)
        membership.close(name)

    def remove() -> None:
        membership.remove_clear()
        if membership.closed:
            world.after(random.uniform(0.05, 0.2), remove)

    for change in cluster.scenario.changes:
        if isinstance(change, Creation):
            world.at(change.at, cluster.create, change.group)
        elif isinstance(change, Deletion):
            world.at(change.at, close, change.name)


def _reconfigure(cluster: Cluster, random: Random, restart: Callable[[str], None]) -> None:
    """Replicas come and go, and disks are lost."""
    world, reconfiguration, scenario = cluster.world, cluster.reconfiguration, cluster.scenario

    def change() -> None:
        group = cluster.membership.groups[random.choice(cluster.groups)]
        reconfiguration.prepare(group.group, *draw_members(random, group, scenario.nodes))

    def lose_disk() -> None:
        name = random.choice(scenario.nodes)
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


def _check_watermarks(cluster: Cluster) -> None:
    """Once healed, an idle group catches up when it is asked to, and burials have time to happen."""
    highest = cluster.highest_sn()
    asked = {}
    for group in cluster.groups:
        replica = cluster.live_replicas(group)[0]
        asked[group] = last_key_of(highest + 1)
        cluster.advance(group, replica, highest + 1)
    world = cluster.world
    world.run_until(world.now + 4.0)
    latest = world.now + WATERMARK_S_MAX
    while missing := [group for group, key in asked.items() if cluster.logs.groups[group].watermark < key]:
        if world.now > latest:
            raise Violation("termination", f"{missing[0]} never reached the watermark it was asked for")
        world.run_until(world.now + 0.5)
