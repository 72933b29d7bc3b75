"""One run of ISIS: a scenario, its world, all checkers, a verdict."""

from collections import deque
from random import Random
from typing import Any

from ordercast.core.errors import InvariantBroken
from ordercast.core.machine import Deliver, Effect, Interrupted
from ordercast.core.view import names_of
from ordercast.gateway.casting import CastingGateway
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.telling import TellOne, Told
from ordercast.sim.checkers.producers import remembered
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.client import Dial
from ordercast.sim.faults import Faults
from ordercast.sim.isis.checkers import Checker
from ordercast.sim.isis.client import Board, Client
from ordercast.sim.isis.membership import LOOK_S, ViewMembership
from ordercast.sim.isis.publisher import Publisher, Publishers
from ordercast.sim.isis.scenario import Scenario, draw
from ordercast.sim.process import Factory
from ordercast.sim.run import Result
from ordercast.sim.world import World
from ordercast.v1.isis_pb2 import CastStamp, Seen
from ordercast.v1.sequencer_pb2 import LogEntry

#: Simulated seconds after the healing in which everything must have come to rest.
REST_S_MAX = 120.0
#: How often it is looked whether it has.
REST_LOOK_S = 0.25
#: How often retention looks.
TRUNCATE_S = 0.1
#: Live deliveries that clients may come upon.
LIVE_KEPT = 8
#: Of the entries at the end of a log: among them are those that are not in all logs yet.
LATE = 8


class Cluster:
    def __init__(self, scenario: Scenario, seed: int | str, *, tracing: bool = False) -> None:
        self.scenario = scenario
        self.world = world = World(seed, scenario.network, tracing=tracing)
        self.gone: dict[str, None] = {}
        self.board = Board(peek=self._peek, peek_part=self._peek_part)
        self.random = Random(f"{seed}/readers")
        self.membership = ViewMembership(world, scenario.view, self.gone)
        self.publishers = Publishers(producers={name.encode(): None for name in scenario.publishers})
        self.checker = Checker(world, self.membership, self.board, self.publishers, may_lose=scenario.reads_live)
        self.by_kind: dict[str, int] = {}
        #: What the last look at the end found.
        self.found: Violation | None = None
        #: What was delivered last, by anybody, that may be in no log.
        self.live: deque[tuple[str, CastStamp, Seen]] = deque(maxlen=LIVE_KEPT)
        world.on_deliver = self._deliver
        world.on_commit = self.checker.on_commit
        world.on_observe = self.checker.on_observe
        world.on_send = self._count
        world.on_custom = self._custom
        for name in scenario.nodes:
            world.add(name, {"isis": self._isis(name)}).disk_delay_s = scenario.disk_delay_s
        for name in scenario.gateways:
            world.add(name, {"gateway": self._gateway(name)})
        for name in scenario.clients:
            world.add(name, {"client": self._client(name)})
        for name in scenario.publishers:
            world.add(name, {"client": self._publisher(name)})
        world.network.connects = self._connects
        self.membership.found()

    def _isis(self, name: str) -> Factory:
        return lambda: Isis(name, self.scenario.settings, observe=True)

    def _gateway(self, name: str) -> Factory:
        scenario = self.scenario
        return lambda: CastingGateway(name, scenario.gateway_settings, scenario.settings)

    def _publisher(self, name: str) -> Factory:
        return lambda: Publisher(name, self.scenario.publishers[name], self.publishers.board)

    def _connects(self, a: str, b: str) -> bool:
        """Publishers talk to gateways alone, and clients to everyone who is no client."""
        scenario = self.scenario
        for one, other in ((a, b), (b, a)):
            if one in scenario.publishers:
                return other in scenario.gateways
        return not (a in scenario.clients and b in scenario.clients)

    def _client(self, name: str) -> Factory:
        return lambda: Client(name, self.scenario.clients[name], self.board)

    def _count(self, source: str, to: Any, message: Any, size: int) -> None:
        kind = type(message).__name__
        self.by_kind[kind] = self.by_kind.get(kind, 0) + sum(1 for name in to if name != source)

    def _custom(self, process: str, effect: Effect) -> None:
        if isinstance(effect, Dial):
            if self.world.processes[effect.gateway].up:
                self.world.network.disconnect(process, effect.gateway)
                self.world.network.connect(process, effect.gateway)
            return
        if isinstance(effect, Told):
            self.checker.on_told(process, effect.source, effect.payload)
        elif isinstance(effect, Interrupted):
            self.checker.on_interrupted(process, effect.group)

    def _deliver(self, process: str, effect: Deliver) -> None:
        self.checker.on_deliver(process, effect)
        if not effect.final:
            self.live.append((effect.group, effect.entry.stamp, effect.entry.read))

    def _peek(self) -> tuple[str, CastStamp, Seen] | None:
        """Somebody's visible log, near its end; or what somebody has just delivered."""
        if self.scenario.reads_live and self.live and self.random.random() < 0.5:
            return self.random.choice(self.live)
        name = self.random.choice(self.scenario.nodes)
        process = self.world.processes[name]
        logs = process.disk.logs
        group = self.random.choice(sorted(self.membership.groups))
        machine = process.slots["isis"].machine if process.up else None
        if group not in logs or not logs[group].entries or not isinstance(machine, Isis):
            return None
        entry = logs[group].entries[-1 - self.random.randrange(min(3, len(logs[group].entries)))]
        return group, entry.stamp, machine.read_besides(group) or Seen()

    def _peek_part(self) -> tuple[str, CastStamp, Seen, str] | None:
        """Of somebody's log an entry that is for several groups, and one of those whose log has it not."""
        for name in self.random.sample(self.scenario.nodes, len(self.scenario.nodes)):
            process = self.world.processes[name]
            machine = process.slots["isis"].machine if process.up else None
            if not isinstance(machine, Isis):
                continue
            for group in sorted(group for group in process.disk.logs if group in self.membership.groups):
                for entry in process.disk.logs[group].entries[-LATE:]:
                    others = [other for other in self._lacking(entry) if other != group]
                    if others:
                        read = machine.read_besides(group) or Seen()
                        return group, entry.stamp, read, self.random.choice(others)
        return None

    def _lacking(self, entry: LogEntry) -> list[str]:
        """Groups that it is for, and not in the log of."""
        header = entry.envelope.header
        logs = self.checker.logs
        return [
            name
            for name in names_of(header.destinations)
            if all(id_ != header.id for id_, _ in logs.get(name, []))
        ]

    def start(self) -> None:
        for process in self.world.processes.values():
            process.start()

    @property
    def clients(self) -> list[Client]:
        """Those that are there."""
        processes = [self.world.processes[name] for name in self.scenario.clients]
        machines = [process.slots["client"].machine for process in processes if process.up]
        return [machine for machine in machines if isinstance(machine, Client)]

    def look(self) -> None:
        self.membership.look()
        self.world.after(LOOK_S, self.look)

    def truncate(self, keep: int) -> None:
        """Retention, as the runtime does it: never what a member may still need."""
        for name in self.scenario.nodes:
            process = self.world.processes[name]
            if not process.is_answering:
                continue
            machine = process.slots["isis"].machine
            assert isinstance(machine, Isis)
            for group, replica in machine.replicas.items():
                if group in process.disk.logs and group in process.written:
                    floor = min(replica.retained_from(), process.disk.logs[group].ends)
                    process.truncate(group, floor - keep)

    def unfinished(self) -> str:
        for name in self.scenario.publishers:
            publisher = self.world.processes[name].slots["client"].machine
            if isinstance(publisher, Publisher) and not publisher.is_done:
                return f"{name} has no receipts"
        for client in self.clients:
            if not client.is_done:
                left = {groups: len(sent) for groups, sent in client.outstanding.items() if sent}
                return f"{client.name} has no receipts: {left}"
        late = self.membership.who_is_late()
        if late:
            return f"{late} does not know the latest view"
        views = self.membership.unfinished()
        if views:
            return views
        self.found = None
        try:
            self.checker.check_end()
            self._check_states()
        except Violation as found:
            self.found = found
            return str(found)
        return ""

    def _check_states(self) -> None:
        """What follows from a log is the same everywhere, whether it was replayed or taken as a snapshot."""
        for name, group in self.membership.groups.items():
            states = {}
            for member in group.replicas:
                process = self.world.processes[member]
                machine = process.slots["isis"].machine if process.up else None
                if isinstance(machine, Isis):
                    replica = machine.replicas[name]
                    states[member] = (replica.position, replica.offset, remembered(replica.producers))
            first = next(iter(states), "")
            for member, state in states.items():
                if state != states[first]:
                    raise Violation("state", f"{member} and {first} differ in what follows from the log of {name}")

    def run_to_rest(self, until: float) -> None:
        self.world.run_until(self.world.now + REST_LOOK_S)
        while reason := self.unfinished():
            if self.world.now >= until:
                raise self.found or Violation("termination", reason)
            self.world.run_until(self.world.now + REST_LOOK_S)


def run_seed(seed: int, *, tracing: bool = False) -> Result:
    return run_scenario(draw(seed), seed, tracing=tracing)


def run_scenario(scenario: Scenario, seed: int, *, tracing: bool = False) -> Result:
    cluster = Cluster(scenario, seed, tracing=tracing)
    world, membership = cluster.world, cluster.membership
    faults = Faults(world, Random(f"{seed}/faults"), scenario.faults, scenario.healing_at, membership.view)
    membership.absent = cluster.gone = faults.gone
    membership.random = membership.delays = Random(f"{seed}/views")
    violation = None
    try:
        cluster.start()
        world.after(LOOK_S, cluster.look)
        _events(cluster, Random(f"{seed}/events"))
        world.run_until(scenario.healing_at)
        cluster.run_to_rest(scenario.healing_at + REST_S_MAX)
    except Violation as found:
        violation = found
    except (InvariantBroken, AssertionError) as broken:
        violation = Violation("invariant", f"{type(broken).__name__}: {broken}")
    return Result(
        seed,
        violation,
        cluster.checker.delivered,
        world.messages,
        world.digest(),
        {**faults.strikes, **membership.changes},
        cluster.by_kind,
        world.trace,
    )


def _events(cluster: Cluster, random: Random) -> None:
    """Groups move, somebody is suspected wrongly, somebody tells somebody something, logs are cut."""
    world, membership, nodes = cluster.world, cluster.membership, cluster.scenario.nodes

    def move() -> None:
        name = random.choice(sorted(membership.groups))
        placement = membership.placement[name]
        others = [node for node in nodes if node not in placement]
        kind = random.choice(["add", "remove", "replace"])
        changed = list(placement)
        if kind != "add" and len(changed) > 1:
            changed.remove(random.choice(changed))
        if kind != "remove" and others:
            changed.append(random.choice(others))
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
        world.at(at, lambda: membership.suspect(random.choice(nodes), random.uniform(0.1, 0.6)))
