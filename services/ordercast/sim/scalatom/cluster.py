"""SCALATOM's machines and its membership in a world, and what is checked there."""

from ordercast.core.ids import last_key_of, sn_of
from ordercast.core.machine import Advance, KeepsIncarnations, Retired
from ordercast.gateway.machine import Gateway
from ordercast.protocols.paxos.acceptor import Acceptor
from ordercast.protocols.paxos.proposer import Proposer
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.protocols.scalatom.submission import ScalatomSubmission
from ordercast.sim.checkers import ending, order, producers
from ordercast.sim.checkers.logs import LogChecker
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.cluster import Cluster
from ordercast.sim.membership import Membership
from ordercast.sim.process import Factory
from ordercast.sim.scalatom.ending import EMPTY, check_bounded, check_gone, check_retired
from ordercast.sim.scalatom.reconfiguration import Reconfiguration
from ordercast.sim.scalatom.scenario import ScalatomScenario
from ordercast.sim.scalatom.traffic import TrafficChecker
from ordercast.v1.membership_pb2 import GroupView

#: Simulated seconds in which a group that is asked to must have caught up.
WATERMARK_S_MAX = 60.0


class ScalatomCluster(Cluster[ScalatomScenario, Membership]):
    keeper = "scalatom"
    #: On the slowest networks an answer takes seconds, and producers that pass by wait for each of theirs.
    rest_s_max = 1000.0

    def __init__(self, scenario: ScalatomScenario, seed: int | str, *, tracing: bool = False) -> None:
        super().__init__(scenario, seed, tracing=tracing)
        world = self.world
        self.logs = LogChecker(self.board, {g.group: tuple(g.replicas) for g in scenario.view.groups})
        self.traffic = TrafficChecker(scenario.view)
        self.reconfiguration = Reconfiguration(world, self.membership, self._changes)
        world.on_deliver = self.logs.on_deliver
        world.on_commit = self.logs.on_commit
        world.on_watermark = self.logs.on_watermark
        world.on_log_reset = self.logs.on_log_reset
        world.on_send = self.traffic.on_send
        world.network.uses_datagrams = lambda a, b: a not in scenario.clients and b not in scenario.clients

    def make_membership(self) -> Membership:
        return Membership(self.world, self.scenario.view, self.gone)

    def roles(self, name: str) -> dict[str, Factory]:
        settings, observe = self.scenario.settings, self.world.tracing
        return {
            "scalatom": lambda: Scalatom(name, settings, observe=observe),
            "proposer": lambda: Proposer(name, "scalatom"),
            "acceptor": lambda: Acceptor(name),
        }

    def make_gateway(self, name: str) -> Gateway:
        return Gateway(name, ScalatomSubmission, self.scenario.gateway_settings, observe=self.world.tracing)

    @property
    def delivered(self) -> int:
        return self.logs.delivered

    @property
    def by_kind(self) -> dict[str, int]:
        return self.traffic.by_kind

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

    def retire(self) -> int:
        """What membership does when it has heard from everyone: see core.machine.Retired."""
        world = self.world
        if any(not p.up and name not in self.gone for name, p in world.processes.items()):
            return 0
        below = min(*self._live(), self._oldest_open())
        for process in world.processes.values():
            if process.up:
                process.tell_all(Retired(*process.clock(), below))
        return below

    def _live(self) -> list[int]:
        """The incarnations of gateways."""
        return [p.incarnation for p in self.world.processes.values() if p.up and "gateway" in p.factories]

    def _oldest_open(self) -> int:
        up = (process for process in self.world.processes.values() if process.up)
        machines = (slot.machine for process in up for slot in process.slots.values())
        return min(machine.oldest_open() for machine in machines if isinstance(machine, KeepsIncarnations))

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
        return ending.unfinished(self.world, there, self.clients, EMPTY)

    def judge(self) -> None:
        self.run_to_rest(self.world.now + self.rest_s_max)
        self._check_watermarks()
        self.run_to_rest(self.world.now + self.rest_s_max)
        self._await_burials()
        self.check_end()
        check_retired(self.world, self.retire())

    def _check_watermarks(self) -> None:
        """Once healed, an idle group catches up when it is asked to."""
        highest = self.highest_sn()
        asked = {}
        for group in self.groups:
            replica = self.live_replicas(group)[0]
            asked[group] = last_key_of(highest + 1)
            self.advance(group, replica, highest + 1)
        world = self.world
        world.run_until(world.now + 4.0)
        latest = world.now + WATERMARK_S_MAX
        while missing := [group for group, key in asked.items() if self.logs.groups[group].watermark < key]:
            if world.now > latest:
                raise Violation("termination", f"{missing[0]} never reached the watermark it was asked for")
            world.run_until(world.now + 0.5)

    def _await_burials(self) -> None:
        """Who buries asks others once a second, and over raw datagrams question and answer may be lost for long.

        What was never buried is for the checks to find.
        """
        world, latest = self.world, self.world.now + self.rest_s_max
        while self._oldest_open() < min(self._live()) and world.now < latest:
            world.run_until(world.now + 0.5)

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
        check_gone(self.world, self.membership.gone)
        ending.check_all_or_nothing(self.logs)
        ending.check_receipts(self.logs, self.board)
        ending.check_refused(self.logs, self.board)
        self._check_producers()
        order.check_fifo(groups, self.board)
        order.check_causality(groups, self.board)
        order.check_acyclic(groups, self.board)
        gateways = sum(1 for name in self.scenario.gateways if self.world.processes[name].up)
        check_bounded(self.world, self.scenario.gateway_settings, gateways)
        # What names a group that a view lacks is not among them: see World.lacks.
        if self.world.refusals and not self.scenario.network.datagrams:
            raise Violation("refused", self.world.refusals[0])
