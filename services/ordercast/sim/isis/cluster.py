"""The machines and the membership of virtually synchronous groups in a world, and what is checked there."""

from collections import deque
from functools import partial
from random import Random
from typing import Any

from ordercast.core.machine import Deliver, Effect, Interrupted
from ordercast.core.view import names_of
from ordercast.gateway.machine import Gateway
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.protocol import ISIS
from ordercast.protocols.isis.stamps import besides_in, stamp_in
from ordercast.protocols.isis.submission import IsisSubmission
from ordercast.protocols.isis.telling import Told
from ordercast.sim.checkers.producers import remembered
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.client import Client
from ordercast.sim.cluster import Cluster
from ordercast.sim.isis.caster import CastBoard, Caster
from ordercast.sim.isis.checkers import Checker
from ordercast.sim.isis.membership import LOOK_S, ViewMembership
from ordercast.sim.isis.publisher import Publishers
from ordercast.sim.isis.scenario import IsisScenario
from ordercast.sim.process import Factory
from ordercast.v1.isis_pb2 import CastStamp, Seen
from ordercast.v1.sequencer_pb2 import LogEntry

#: Live deliveries that clients may come upon.
LIVE_KEPT = 8
#: Of the entries at the end of a log: among them are those that are not in all logs yet.
LATE = 8


class IsisCluster(Cluster[IsisScenario, ViewMembership]):
    keeper = "isis"
    #: On lossy networks a producer that passes by with little patience starts anew for minutes.
    rest_s_max = 300.0

    def __init__(self, scenario: IsisScenario, seed: int | str, *, tracing: bool = False) -> None:
        self.cast_board = CastBoard(peek=self._peek, peek_part=self._peek_part)
        super().__init__(scenario, seed, tracing=tracing)
        world = self.world
        self.random = Random(f"{seed}/readers")
        publishers = Publishers(self.board, {name.encode(): None for name in scenario.clients})
        self.checker = Checker(world, self.membership, self.cast_board, publishers, may_lose=scenario.reads_live)
        self._by_kind: dict[str, int] = {}
        #: What the last look at the end found.
        self.found: Violation | None = None
        #: What was delivered last, by anybody, that may be in no log.
        self.live: deque[tuple[str, CastStamp, Seen]] = deque(maxlen=LIVE_KEPT)
        world.on_deliver = self._deliver
        world.on_commit = self.checker.on_commit
        world.on_observe = self.checker.on_observe
        world.on_send = self._count
        self.membership.found()

    def make_membership(self) -> ViewMembership:
        return ViewMembership(self.world, self.scenario.view, self.gone)

    def roles(self, name: str) -> dict[str, Factory]:
        return {"isis": lambda: Isis(name, self.scenario.settings, observe=True)}

    def make_gateway(self, name: str) -> Gateway:
        submission = partial(IsisSubmission, settings=self.scenario.settings)
        return Gateway(name, submission, self.scenario.gateway_settings)

    def make_client(self, name: str) -> Client:
        return Client(name, self.scenario.clients[name], self.board, ISIS.seen)

    def add_clients(self) -> None:
        for name in self.scenario.casters:
            self.world.add(name, {"client": self._caster(name)})
        super().add_clients()

    def _caster(self, name: str) -> Factory:
        return lambda: Caster(name, self.scenario.casters[name], self.cast_board)

    def connects(self, a: str, b: str) -> bool:
        """Casters talk to everyone who is no client."""
        casters, clients = self.scenario.casters, self.scenario.clients
        if a in casters or b in casters:
            return not (a in casters and b in casters) and a not in clients and b not in clients
        return super().connects(a, b)

    @property
    def delivered(self) -> int:
        return self.checker.delivered

    @property
    def by_kind(self) -> dict[str, int]:
        return self._by_kind

    def _count(self, source: str, to: Any, message: Any, size: int) -> None:
        kind = type(message).__name__
        self._by_kind[kind] = self._by_kind.get(kind, 0) + sum(1 for name in to if name != source)

    def on_custom(self, process: str, effect: Effect) -> None:
        super().on_custom(process, effect)
        if isinstance(effect, Told):
            self.checker.on_told(process, effect.source, effect.payload)
        elif isinstance(effect, Interrupted):
            self.checker.on_interrupted(process, effect.group)

    def _deliver(self, process: str, effect: Deliver) -> None:
        self.checker.on_deliver(process, effect)
        if not effect.final:
            self.live.append((effect.group, stamp_in(effect.entry), besides_in(effect.entry)))

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
        return group, stamp_in(entry), Seen.FromString(machine.read_besides(group))

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
                        read = Seen.FromString(machine.read_besides(group))
                        return group, stamp_in(entry), read, self.random.choice(others)
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

    @property
    def casters(self) -> list[Caster]:
        """Those that are there."""
        processes = [self.world.processes[name] for name in self.scenario.casters]
        machines = [process.slots["client"].machine for process in processes if process.up]
        return [machine for machine in machines if isinstance(machine, Caster)]

    def look(self) -> None:
        self.membership.look()
        self.world.after(LOOK_S, self.look)

    def unfinished(self) -> str:
        for client in self.clients:
            if not client.is_done:
                return f"{client.name} still waits for {client.waits_for()}"
        for caster in self.casters:
            if not caster.is_done:
                left = {groups: len(sent) for groups, sent in caster.outstanding.items() if sent}
                return f"{caster.name} has no receipts: {left}"
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

    def judge(self) -> None:
        """All that must hold is what is looked for."""
        self.run_to_rest(self.world.now + self.rest_s_max)

    def too_late(self, reason: str) -> Violation:
        return self.found or super().too_late(reason)
