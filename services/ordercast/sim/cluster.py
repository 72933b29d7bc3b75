"""The machines of a scenario in a world, and the clients that publish there: what is the same for all protocols.

A protocol's own cluster says which machines a node has and who its membership is. Which checkers apply, while the
run goes on and when it has come to rest, follows from the protocol's traits; what only this protocol promises is
added.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Generic, TypeVar

from ordercast.core.cells import cell_of, shares_cell
from ordercast.core.ids import pack_u64, sn_of
from ordercast.core.machine import (
    Advance,
    Deliver,
    Effect,
    Interrupted,
    KeepsIncarnations,
    Observe,
    Retired,
    Revoked,
)
from ordercast.core.place import behind_all_of
from ordercast.core.protocol import Orders, Protocol
from ordercast.gateway.machine import Gateway
from ordercast.sim.board import Board, MessageKey, Shown
from ordercast.sim.checkers import ending, producers
from ordercast.sim.checkers.by_trait import Checkers
from ordercast.sim.checkers.logs import LogChecker
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.client import Client, Dial
from ordercast.sim.membership import Membership
from ordercast.sim.merged import MergedReaders
from ordercast.sim.process import Factory, Process
from ordercast.sim.reading import LogReading, ReplicaReading
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import World
from ordercast.v1.sequencer_pb2 import LogEntry

#: How often it is looked whether everything has come to rest.
REST_LOOK_S = 0.25
#: Simulated seconds in which a group that is asked to must have caught up, and what others need for their chores.
WATERMARK_S_MAX = 60.0
ASKED_S = 4.0

S = TypeVar("S", bound=Scenario)
M = TypeVar("M", bound=Membership)


class Cluster(ABC, Generic[S, M]):
    #: What is simulated: its traits say what is checked, and its name is the role of the machine that keeps logs.
    protocol: ClassVar[Protocol]
    #: Simulated seconds after the healing in which everything must have come to rest.
    rest_s_max: float
    #: Which buffers of the protocol's machines are empty then, by role.
    empty: ClassVar[Mapping[str, Sequence[str]]] = {}

    def __init__(self, scenario: S, seed: int | str, *, tracing: bool = False) -> None:
        self.scenario = scenario
        self.world = world = World(seed, scenario.network, tracing=tracing)
        #: Processes that will never come back.
        self.gone: dict[str, None] = {}
        #: How far retention has gone, by group: what is beyond that must be on every disk in the end.
        self.floors: dict[str, int] = {}
        #: Shared cells of which the log stays, but not all that is in it.
        self.drops: dict[str, bool] = {}
        self._dropping = Random(f"{seed}/dropping")
        self.board = Board()
        self.keeper = self.protocol.name
        self.membership = self.make_membership()
        self.checkers = Checkers(world, self.board, self.protocol.traits, scenario.view)
        self.reading = self._make_reading(Random(f"{seed}/readers"))
        #: Readers of several groups, where that is possible. A director has none unless he adds some.
        self.merged = MergedReaders(self, Random(f"{seed}/merged"))
        #: Messages between processes, by what they are.
        self.by_kind: dict[str, int] = {}
        self._listen()
        for name in scenario.nodes:
            self._add_node(name)
        for name in scenario.gateways:
            if name not in scenario.nodes:
                world.add(name, {"gateway": self._gateway(name)})
        self.add_clients()
        world.network.connects = self.connects

    def _add_node(self, name: str) -> None:
        roles = self.roles(name)
        if name in self.scenario.gateways:
            roles["gateway"] = self._gateway(name)
        process = self.world.add(name, roles)
        process.disk_delay_s = self.scenario.disk_delay_s
        process.clock_rate = self.scenario.clock_rates.get(name, 1.0)

    def _gateway(self, name: str) -> Factory:
        return lambda: self.make_gateway(name)

    def add_clients(self) -> None:
        for name in self.scenario.clients:
            self.world.add(name, {"client": self._client(name)})

    def _client(self, name: str) -> Factory:
        return lambda: self.make_client(name)

    def connects(self, a: str, b: str) -> bool:
        """Clients talk to gateways, and everyone else to everyone else."""
        clients, gateways = self.scenario.clients, self.scenario.gateways
        if a in clients:
            return b in gateways
        return a in gateways if b in clients else True

    # ------------------------------------------------------------------------------------- what happens there

    def _listen(self) -> None:
        world, checkers = self.world, self.checkers
        world.on_deliver = self.on_deliver
        world.on_commit = self.on_commit
        world.on_observe = self.on_observe
        world.on_custom = self.on_custom
        world.on_send = self.on_send
        world.on_watermark = checkers.on_watermark
        world.on_log_reset = checkers.on_log_reset

    def on_deliver(self, process: str, effect: Deliver) -> None:
        self.checkers.on_deliver(process, effect)
        if not effect.final and isinstance(self.reading, ReplicaReading):
            self.reading.delivered_early(effect.group, effect.entry)

    def on_commit(self, process: str, group: str, position: int, entry: LogEntry) -> None:
        self.logs.on_commit(process, group, position, entry)

    def on_observe(self, process: str, effect: Observe) -> None:
        pass

    def on_send(self, source: str, to: Sequence[str], message: Any, size: int) -> None:
        self.checkers.on_send(source, to, message)
        kind = type(message).__name__
        self.by_kind[kind] = self.by_kind.get(kind, 0) + len(to) - (source in to)

    def on_custom(self, process: str, effect: Effect) -> None:
        if isinstance(effect, Interrupted):
            self.checkers.on_interrupted(process, effect.group)
        elif isinstance(effect, Revoked):
            self.checkers.on_revoked(process, effect)
        elif isinstance(effect, Dial) and self.world.processes[effect.gateway].up:
            self.world.network.disconnect(process, effect.gateway)
            self.world.network.connect(process, effect.gateway)

    @property
    def logs(self) -> LogChecker:
        return self.checkers.logs

    @property
    def delivered(self) -> int:
        return self.logs.delivered

    # ---------------------------------------------------------------------------------- what is a protocol's own

    @abstractmethod
    def make_membership(self) -> M: ...

    @abstractmethod
    def roles(self, name: str) -> dict[str, Factory]:
        """The machines of a node, by role."""

    @abstractmethod
    def make_gateway(self, name: str) -> Gateway: ...

    def make_client(self, name: str) -> Client:
        return Client(name, self.scenario.clients[name], self.board, self.protocol.seen, self.reading)

    def place_of(self, group: str, entry: LogEntry) -> Hashable:
        """Which delivery it is, for checkers that the protocol adds."""
        return group, entry.envelope.header.id

    def changing(self) -> str:
        """Why members are not at rest, or an empty string."""
        return ""

    def check_own(self) -> None:
        """What only this protocol promises for the end: raise a Violation if it does not hold."""

    # ------------------------------------------------------------------------------------------------- running

    def start(self) -> None:
        for process in self.world.processes.values():
            process.start()

    def machine(self, process: str, role: str) -> Any:
        return self.world.processes[process].slots[role].machine

    def _make_reading(self, random: Random) -> LogReading:
        if not self.protocol.traits.causal:
            self.logs.on_new = self._post
            return LogReading(self.board)
        return ReplicaReading(
            self.board,
            self.world,
            self.logs.groups,
            codec=self.protocol.seen,
            keeper=self.keeper,
            random=random,
            reads_live=self.scenario.reads_live,
            place_of=self.place_of,
        )

    def _post(self, key: MessageKey, entry: LogEntry) -> None:
        """Whoever comes upon it has seen all that its order key comes behind."""
        self.board.post(Shown(pack_u64(sn_of(entry.order_key)), key))

    @property
    def clients(self) -> list[Client]:
        return [self.machine(name, "client") for name in self.scenario.clients]

    def truncate(self, keep: int) -> None:
        """Retention, as the runtime does it: never what a replica may still have to report."""
        for name in self.scenario.nodes:
            process = self.world.processes[name]
            if not process.is_answering:
                continue
            for group, replica in self.machine(name, self.keeper).replicas.items():
                if group in process.disk.logs and group in process.written:
                    floor = min(replica.retained_from(), process.disk.logs[group].ends) - keep
                    if not self._drop_shared(process, group, floor):
                        process.truncate(group, floor)
                        self.floors[group] = max(self.floors.get(group, 0), floor)

    def _drop_shared(self, process: Process, cell: str, floor: int) -> bool:
        """In some cells retention takes the messages of one group after the other out of the log."""
        entries = process.disk.logs[cell].before(floor)
        groups = sorted({group for entry in entries for group in entry.envelope.header.groups})
        groups = [group for group in groups if shares_cell(group) and cell_of(group) == cell]
        if not groups or not self.drops.setdefault(cell, self._dropping.random() < 0.5):
            return False
        if self._dropping.random() < 0.3:
            group = self._dropping.choice(groups)
            process.drop(cell, floor, group)
            self.floors[group] = max(self.floors.get(group, 0), floor)
        return True

    def retire(self) -> int:
        """What membership does when it has heard from everyone: see core.machine.Retired."""
        processes = self.world.processes
        if any(not process.up and name not in self.gone for name, process in processes.items()):
            return 0
        below = min([*self._live_gateways(), *self._oldest_open()])
        for process in processes.values():
            if process.up:
                process.tell_all(Retired(*process.clock(), below))
        return below

    def _live_gateways(self) -> list[int]:
        """Their incarnations."""
        return [p.incarnation for p in self.world.processes.values() if p.up and "gateway" in p.factories]

    def _oldest_open(self) -> list[int]:
        up = (process for process in self.world.processes.values() if process.up)
        machines = (slot.machine for process in up for slot in process.slots.values())
        return [machine.oldest_open() for machine in machines if isinstance(machine, KeepsIncarnations)]

    def _await_burials(self) -> None:
        """Who buries asks others once a second, and over raw datagrams question and answer may be lost for long.

        What was never buried is for the checks to find.
        """
        world, latest = self.world, self.world.now + self.rest_s_max
        while any(open_ < min(self._live_gateways()) for open_ in self._oldest_open()) and world.now < latest:
            world.run_until(world.now + 0.5)

    def run_to_rest(self, until: float) -> None:
        """Until nothing is left to do. What is left when it is too late is the reason why the run failed."""
        self.world.run_until(self.world.now + REST_LOOK_S)
        while reason := self.unfinished():
            if self.world.now >= until:
                raise self.too_late(reason)
            self.world.run_until(self.world.now + REST_LOOK_S)

    def too_late(self, reason: str) -> Violation:
        return Violation("termination", reason)

    # ------------------------------------------------------------------------------------------- what must hold

    @property
    def groups(self) -> list[str]:
        """Those that are there and stay."""
        return sorted(name for name in self.membership.groups if name not in self.membership.closed)

    def live_replicas(self, group: str) -> list[str]:
        """Of processes that know the group."""
        processes = [self.world.processes[name] for name in self.logs.groups[group].replicas]
        return [process.name for process in processes if process.up and group in process.groups]

    def unfinished(self) -> str:
        """Why the run is not over, or an empty string."""
        membership = self.membership
        for name in membership.closed:
            return f"{name} is not gone: {membership.who_needs(name) or 'it waits for a sync'}"
        late = membership.who_is_late()
        if late:
            return f"{late} does not know the latest view"
        changing = self.changing()
        if changing:
            return changing
        there = {name: log for name, log in self.logs.groups.items() if name not in membership.gone}
        return ending.unfinished(self.world, there, self.clients, self.empty)

    def judge(self) -> None:
        """Once everything is healed: come to rest, and raise a Violation if something does not hold then."""
        self.run_to_rest(self.world.now + self.rest_s_max)
        if self.protocol.traits.merges:
            self._check_watermarks()
            self.merged.come_to_the_end()
            self.run_to_rest(self.world.now + self.rest_s_max)
        self._await_burials()
        self.check_end()
        self.check_retired(self.retire())

    def check_retired(self, below: int) -> None:
        """Gateway incarnations below this one are over, and everybody knows."""
        ending.check_all_retired(self.world, below)

    def check_end(self) -> None:
        ending.check_bodies(self.world, self.logs, self.floors)
        self.checkers.check_end()
        self._check_producers()
        self.check_own()
        # What names a group that a view lacks is not among them: see World.lacks.
        if self.world.refusals and not self.scenario.network.datagrams:
            raise Violation("refused", self.world.refusals[0])

    def _check_producers(self) -> None:
        """What a group's replicas remember follows from its log, and so does what all groups of a set remember."""
        tables = {}
        for group in self.groups:
            logs = {name: self.machine(name, self.keeper).replicas[group] for name in self.live_replicas(group)}
            last = max((log.position for log in logs.values()), default=0)
            there = {name: log for name, log in logs.items() if log.position == last and log.copied is None}
            producers.check_replicas(group, there)
            if there:
                tables[group] = next(iter(there.values())).producers
        if self.protocol.traits.orders is Orders.ACROSS:
            producers.check_sets(tables)

    # ------------------------------------------------------------------ logs that are merged by their order keys

    def highest_sn(self) -> int:
        return max((sn_of(log.keys[-1]) for log in self.logs.groups.values() if log.keys), default=0)

    def last_key(self, sn: int) -> bytes:
        """Of all that have this number."""
        return behind_all_of(pack_u64(sn), self.protocol.traits.key_bytes)

    def advance(self, group: str, process: str, sn: int) -> bytes:
        """Ask for everything up to a number; the key that is the last of them."""
        key = self.last_key(sn)
        self.advance_to(group, process, key)
        return key

    def advance_to(self, group: str, process: str, key: bytes) -> None:
        target = self.world.processes[process]
        target.tell(self.keeper, Advance(*target.clock(), group, key))

    def _check_watermarks(self) -> None:
        """Once healed, an idle group catches up when it is asked to."""
        highest = self.highest_sn()
        asked = {group: self.advance(group, self.live_replicas(group)[0], highest + 1) for group in self.groups}
        world = self.world
        world.run_until(world.now + ASKED_S)
        latest = world.now + WATERMARK_S_MAX
        while missing := [group for group, key in asked.items() if self.logs.groups[group].watermark < key]:
            if world.now > latest:
                raise Violation("termination", f"{missing[0]} never reached the watermark it was asked for")
            world.run_until(world.now + 0.5)
