"""The machines of a scenario in a world, what goes on there, and what must hold in the end.

Processes are of four kinds: the registrar of streams, roots, broadcasters and leaves. All but the first gossip.
Leaves talk to each other in datagrams, if the scenario has them; everybody else has channels.
"""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from ordercast.core.machine import Deliver, Effect, ResetLog
from ordercast.core.quorums import majority
from ordercast.protocols.apbcast.bias import rate_of
from ordercast.protocols.apbcast.broadcaster import Broadcaster
from ordercast.protocols.apbcast.events import (
    BROADCASTER,
    LEAF,
    LOG,
    REGISTRAR,
    ROOT,
    Handed,
    NotTaken,
    PlaceRoots,
    Quit,
    Receipted,
    Skipped,
)
from ordercast.protocols.apbcast.leaf import Leaf
from ordercast.protocols.apbcast.registrar import Registrar
from ordercast.protocols.apbcast.registry import Known
from ordercast.protocols.apbcast.root import Root
from ordercast.protocols.apbcast.settings import Settings
from ordercast.sim.apbcast import durability
from ordercast.sim.apbcast import scenario as scenarios
from ordercast.sim.apbcast.checkers import Checker
from ordercast.sim.apbcast.producers import Producer
from ordercast.sim.apbcast.scenario import AudienceScenario, LeafPlan
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.process import Factory
from ordercast.sim.world import World
from ordercast.v1.apbcast_pb2 import Streams
from ordercast.v1.membership_pb2 import DomainView

REST_LOOK_S = 0.25
REST_S_MAX = 90.0
#: How often it is looked at the disks of roots.
DISKS_LOOK_S = 0.2


class Membership:
    """What faults ask of membership: whom it can spare."""

    def __init__(self, cluster: "AudienceCluster") -> None:
        self.cluster = cluster
        self.random: Random | None = None
        self.view = DomainView()
        self.changes: dict[str, int] = {}

    def can_spare(self, name: str) -> bool:
        cluster = self.cluster
        if name == scenarios.REGISTRAR:
            return False
        if name in cluster.scenario.broadcasters:
            return len([b for b in cluster.scenario.broadcasters if b not in cluster.gone and b != name]) > 0
        gone = {name, *cluster.gone}
        for group in cluster.state.groups:
            for members in (group.started.members, group.defined.members):
                if members and sum(m not in gone for m in members) < majority(len(members)):
                    return False
        return True


class AudienceCluster:
    rest_s_max = REST_S_MAX

    def __init__(self, scenario: AudienceScenario, seed: int | str, *, tracing: bool = False) -> None:
        self.scenario = scenario
        self.world = world = World(seed, scenario.network, tracing=tracing)
        self.gone: dict[str, None] = {}
        #: Leaves that are not there: not yet, or not any more.
        self.away: dict[str, None] = {}
        self.membership = Membership(self)
        self.by_kind: dict[str, int] = {}
        self.checker = Checker(scenario)
        #: How far retention has gone.
        self.floor = 0
        self.producers = {n: Producer(world, n, p, self._published) for n, p in scenario.producers.items()}
        self._add_processes()
        world.network.connects = self.connects
        world.network.uses_datagrams = lambda a, b: a in scenario.leaves and b in scenario.leaves
        world.on_deliver, world.on_log_reset = self._on_deliver, self._on_log_reset
        world.on_custom, world.on_send = self._on_custom, self._on_send

    # ---------------------------------------------------------------------------------------------- processes

    def _add_processes(self) -> None:
        scenario = self.scenario
        self._add(scenarios.REGISTRAR, {REGISTRAR: lambda: Registrar(scenarios.REGISTRAR, scenario.settings)})
        numbers: dict[int, int] = {}
        tops = {name: index for index, members in enumerate(scenario.roots.values()) for name in members}
        for name in scenario.all_roots:
            top = tops.get(name, 0)
            numbers[top] = numbers.get(top, -1) + 1
            roles: dict[str, Factory] = {
                ROOT: partial(Root, name, scenario.settings),
                LEAF: self._leaf(name, LeafPlan((top, numbers[top] % 3, 100 + numbers[top])), is_root=True),
            }
            self._add(name, roles)
        for index, (name, (home, rate)) in enumerate(scenario.broadcasters.items()):
            address = (sorted(scenario.roots).index(home), index % 2, 50 + index)
            make = partial(Broadcaster, name, scenario.settings, home, rate_of(rate))
            self._add(name, {BROADCASTER: make, LEAF: self._leaf(name, LeafPlan(address))})
        for name, plan in scenario.leaves.items():
            self._add(name, {LEAF: self._leaf(name, plan)})

    def _add(self, name: str, roles: dict[str, Factory]) -> None:
        process = self.world.add(name, roles)
        process.disk_delay_s = self.scenario.disk_delay_s
        process.clock_rate = self.scenario.clock_rates.get(name, 1.0)

    def _leaf(self, name: str, plan: LeafPlan, *, is_root: bool = False) -> Callable[[], Leaf]:
        """Settings are those of the domain, but for what kind of leaf it is."""
        known = self.scenario.settings
        fields = {field: getattr(known, field) for field in Settings.__dataclass_fields__}
        settings = Settings(**{**fields, "leaves": plan.leaves})
        contacts = self.scenario.all_roots

        def make() -> Leaf:
            leaf = Leaf(name, plan.address, settings, contacts, interest=plan.interest, is_root=is_root)
            self.checker.on_begun(name, plan, self.world.processes[name].incarnation)
            return leaf

        return make

    def connects(self, a: str, b: str) -> bool:
        """Leaves have no business with the registrar."""
        return scenarios.REGISTRAR not in (a, b) or not (a in self.scenario.leaves or b in self.scenario.leaves)

    def start(self) -> None:
        for name, process in self.world.processes.items():
            plan = self.scenario.leaves.get(name)
            if name in self.scenario.absent or (plan is not None and plan.comes_at > 0):
                self.away[name] = None
            else:
                process.start()
        registrar = self.world.processes[scenarios.REGISTRAR]
        for group, members in self.scenario.roots.items():
            registrar.tell(REGISTRAR, PlaceRoots(*registrar.clock(), group, members))
        for producer in self.producers.values():
            producer.begin()
        self.world.after(DISKS_LOOK_S, self._look_at_disks)

    def come(self, name: str) -> None:
        self.away.pop(name, None)
        if not self.world.processes[name].up and name not in self.gone:
            self.world.processes[name].start()

    def go(self, name: str) -> None:
        """It says farewell, and is away."""
        process = self.world.processes[name]
        self.gone[name] = None
        if process.is_answering:
            process.tell(LEAF, Quit(*process.clock()))
        process.crash()

    # ------------------------------------------------------------------------------------------ what happens

    def _published(self, cast: Any, plan: Any) -> None:
        self.checker.on_published(cast, plan.reads_at)

    def _on_deliver(self, process: str, effect: Deliver) -> None:
        self.checker.on_deliver(process, effect)

    def _on_log_reset(self, process: str, effect: ResetLog) -> None:
        self.checker.on_log_reset(process, effect)

    def _on_custom(self, process: str, effect: Effect) -> None:
        if isinstance(effect, Handed):
            self.checker.on_handed(process, effect)
        elif isinstance(effect, Receipted):
            self.checker.homes = self._note_homes()
            self.checker.on_receipt(process, effect)
            if (producer := self.producers.get(effect.cast.producer.decode())) is not None:
                producer.on_receipt(effect)
        elif isinstance(effect, NotTaken):
            if (producer := self.producers.get(effect.cast.producer.decode())) is not None:
                producer.on_refused(effect)
        elif isinstance(effect, Skipped):
            self.checker.on_skipped(process, effect, self.floor)

    def _on_send(self, source: str, to: Sequence[str], message: Any, size: int) -> None:
        kind = type(message).__name__
        self.by_kind[kind] = self.by_kind.get(kind, 0) + len(to) - (source in to)
        if isinstance(message, Streams):
            self._note_homes()

    def _note_homes(self) -> dict[str, set[str]]:
        for group in self.state.groups:
            self.checker.homes.setdefault(group.group, set()).update(group.started.members)
        return self.checker.homes

    def _look_at_disks(self) -> None:
        known = Known(self.state)
        announced = []
        for name in self.scenario.broadcasters:
            process = self.world.processes[name]
            speaking = self.machine(name, BROADCASTER).speaking if process.up else None
            if speaking is not None and speaking.leaving is None:
                announced.append((speaking.stream.stream, speaking.announced))
        durability.check(self.world.processes, known, announced)
        self.world.after(DISKS_LOOK_S, self._look_at_disks)

    def truncate(self, keep: int) -> None:
        """Retention, as far as every root that is up allows."""
        for name in self.scenario.all_roots:
            process = self.world.processes[name]
            if process.is_answering and LOG in process.disk.logs and LOG in process.written:
                floor = min(self.machine(name, ROOT).retained_from(), process.disk.logs[LOG].ends) - keep
                process.truncate(LOG, floor)
                self.floor = max(self.floor, floor)

    # -------------------------------------------------------------------------------------------- looking up

    def machine(self, process: str, role: str) -> Any:
        return self.world.processes[process].slots[role].machine

    @property
    def state(self) -> Streams:
        """As it is on the registrar's disk."""
        found = Streams()
        for value in self.world.processes[scenarios.REGISTRAR].disk.records.get(REGISTRAR, {}).values():
            found = Streams.FromString(value)
        return found

    def live_roots(self) -> list[str]:
        """Of configurations that have started."""
        members = [name for group in self.state.groups for name in group.started.members]
        return [name for name in members if self.world.processes[name].up]

    def live_leaves(self) -> list[str]:
        return [name for name in self.scenario.leaves if self.world.processes[name].up]

    @property
    def delivered(self) -> int:
        return self.checker.handed

    # --------------------------------------------------------------------------------------------- the end

    def unfinished(self) -> str:
        """Why the run is not over, or an empty string."""
        if any(process.up and process._deferred for process in self.world.processes.values()):
            return "somebody is paused"
        for name, producer in self.producers.items():
            if not producer.is_done:
                return f"{name} has no receipts for {sorted(producer.pending)}"
        state = self.state
        for group in state.groups:
            if group.started.number != group.defined.number:
                return f"{group.group} does not start in configuration {group.defined.number}"
        for removal in state.removals:
            return f"stream {removal.stream} is not removed"
        try:
            self.checker.check_end(self.live_roots(), self.live_leaves())
        except Violation as found:
            return str(found)
        for name in self.scenario.broadcasters:
            if self.world.processes[name].up and self.machine(name, BROADCASTER).buffers()["open"]:
                return f"{name} has messages without receipts"
        return self._untidy()

    def _untidy(self) -> str:
        """Rumours end, and who is gone is forgotten, by everybody."""
        addresses = {
            self.scenario.leaves[name].address: name for name in self.gone if name in self.scenario.leaves
        }
        for name, process in self.world.processes.items():
            if not process.up or LEAF not in process.slots:
                continue
            leaf = self.machine(name, LEAF)
            if len(leaf.rumours):
                return f"{name} tells {len(leaf.rumours)} rumours and does not come to an end"
            for address, gone in addresses.items():
                if address in leaf.views.members:
                    return f"{name} knows {gone}, which is gone"
        return ""

    def judge(self) -> None:
        world = self.world
        latest = world.now + self.rest_s_max
        world.run_until(world.now + REST_LOOK_S)
        while reason := self.unfinished():
            if world.now >= latest:
                raise Violation("termination", reason)
            world.run_until(world.now + REST_LOOK_S)
        self.checker.check_end(self.live_roots(), self.live_leaves())
        self._check_bounds()
        if world.refusals and not self.scenario.network.datagrams:
            raise Violation("refused", world.refusals[0])

    def _check_bounds(self) -> None:
        """Nobody has more in its buffers than settings allow, nor knows more processes than R of each part."""
        settings = self.scenario.settings
        for name, process in self.world.processes.items():
            for role, slot in process.slots.items() if process.up else ():
                buffers = slot.machine.buffers()
                if role == LEAF and buffers["held"] > settings.hold:
                    raise Violation("bounded", f"{name} holds {buffers['held']} messages")
                if (
                    isinstance(slot.machine, Leaf)
                    and (known := _largest_part(slot.machine)) > settings.representatives
                ):
                    raise Violation("bounded", f"{name} knows {known} representatives of one part")
                if role == BROADCASTER and buffers["entries"] > 4 * settings.window + 64:
                    raise Violation("bounded", f"{name} has {buffers['entries']} entries")


def _largest_part(leaf: Leaf) -> int:
    """By how many it is represented, as far as the leaf knows."""
    levels = range(2, leaf.views.levels + 1)
    return max(len(addresses) for level in levels for addresses in leaf.views.level(level).values())
