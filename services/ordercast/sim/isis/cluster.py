"""The machines and the membership of virtually synchronous groups in a world, and what only they promise."""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

from ordercast.core.machine import Deliver, Effect, Interrupted, Observe
from ordercast.gateway.machine import Gateway
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.protocol import ISIS
from ordercast.protocols.isis.stamps import stamp_in
from ordercast.protocols.isis.submission import IsisSubmission
from ordercast.protocols.isis.telling import Told
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.cluster import Cluster
from ordercast.sim.isis.caster import Caster
from ordercast.sim.isis.checkers import Checker, cast_name
from ordercast.sim.isis.membership import LOOK_S, ViewMembership
from ordercast.sim.isis.scenario import IsisScenario
from ordercast.sim.process import Factory
from ordercast.sim.reading import ReplicaReading
from ordercast.v1.isis_pb2 import Submit
from ordercast.v1.membership_pb2 import GroupView
from ordercast.v1.sequencer_pb2 import LogEntry


class IsisCluster(Cluster[IsisScenario, ViewMembership]):
    protocol = ISIS
    #: On lossy networks a producer that passes by with little patience starts anew for minutes.
    rest_s_max = 300.0

    def __init__(self, scenario: IsisScenario, seed: int | str, *, tracing: bool = False) -> None:
        super().__init__(scenario, seed, tracing=tracing)
        self.checker = Checker(
            self.world, self.membership, self.board, scenario.casters, may_lose=scenario.reads_live
        )
        #: What the last look at the end found.
        self.found: Violation | None = None
        self.membership.tell_checkers = self._changed
        self.membership.found()

    def make_membership(self) -> ViewMembership:
        return ViewMembership(self.world, self.scenario.view, self.gone)

    def roles(self, name: str) -> dict[str, Factory]:
        return {"isis": lambda: Isis(name, self.scenario.settings, observe=True)}

    def make_gateway(self, name: str) -> Gateway:
        submission = partial(IsisSubmission, settings=self.scenario.settings)
        return Gateway(name, submission, self.scenario.gateway_settings)

    def add_clients(self) -> None:
        for name in self.scenario.casters:
            self.world.add(name, {"client": self._caster(name)})
        super().add_clients()

    def _caster(self, name: str) -> Factory:
        return lambda: Caster(name, self.scenario.casters[name], self.board)

    def connects(self, a: str, b: str) -> bool:
        """Casters talk to everyone who is no client."""
        casters, clients = self.scenario.casters, self.scenario.clients
        if a in casters or b in casters:
            return not (a in casters and b in casters) and a not in clients and b not in clients
        return super().connects(a, b)

    @property
    def casters(self) -> list[Caster]:
        """Those that are there."""
        processes = [self.world.processes[name] for name in self.scenario.casters]
        machines = [process.slots["client"].machine for process in processes if process.up]
        return [machine for machine in machines if isinstance(machine, Caster)]

    # ------------------------------------------------------------------------------------- what happens there

    def _changed(self, group: GroupView) -> None:
        self.logs.change(group.group, tuple(group.replicas), tuple(group.learners))

    def on_deliver(self, process: str, effect: Deliver) -> None:
        self.checker.on_deliver(process, effect)
        super().on_deliver(process, effect)

    def on_commit(self, process: str, group: str, position: int, entry: LogEntry) -> None:
        super().on_commit(process, group, position, entry)
        self.checker.on_commit(process, group, position, entry)

    def on_observe(self, process: str, effect: Observe) -> None:
        self.checker.on_observe(process, effect)

    def on_send(self, source: str, to: Sequence[str], message: Any, size: int) -> None:
        super().on_send(source, to, message, size)
        if isinstance(message, Submit):
            self.checker.on_submit(message.envelope)

    def on_custom(self, process: str, effect: Effect) -> None:
        super().on_custom(process, effect)
        if isinstance(effect, Told):
            self.checker.on_told(process, effect.source, effect.payload)
        elif isinstance(effect, Interrupted):
            self.checker.on_interrupted(process, effect.group)

    def place_of(self, group: str, entry: LogEntry) -> Hashable:
        return cast_name(group, stamp_in(entry))

    def shown_last(self, group: str) -> LogEntry:
        """Of what anybody has delivered in the group, and may be in no log."""
        assert isinstance(self.reading, ReplicaReading)
        return next(entry for name, entry in reversed(self.reading.live) if name == group)

    def look(self) -> None:
        self.membership.look()
        self.world.after(LOOK_S, self.look)

    # ------------------------------------------------------------------------------------------- what must hold

    def changing(self) -> str:
        for caster in self.casters:
            if not caster.is_done:
                left = {groups: len(sent) for groups, sent in caster.outstanding.items() if sent}
                return f"{caster.name} has no receipts: {left}"
        return self.membership.unfinished()

    def unfinished(self) -> str:
        self.found = None
        reason = super().unfinished()
        if not reason:
            try:
                self.check_own()
            except Violation as found:
                self.found = found
                reason = str(found)
        return reason

    def check_own(self) -> None:
        self.checker.check_end()

    def too_late(self, reason: str) -> Violation:
        return self.found or super().too_late(reason)
