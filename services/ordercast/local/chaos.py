"""Random kills, pauses and partitions on a local cluster while clients publish and subscribe; then the audit."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import grpc

from ordercast.core.level import LEVEL
from ordercast.local.audit import audit
from ordercast.local.cluster import ClusterError, LocalCluster
from ordercast.local.evidence import Verdict
from ordercast.local.load import Load, collect_logs, wait_for_equal_logs
from ordercast.local.setup import create_domain, create_groups
from ordercast.local.stalls import Stalls, watch
from ordercast.protocols.catalogue import DEFAULT, named
from ordercast.v1.faults_pb2 import InjectRequest

GROUPS = ("a", "b", "c")
#: Those that live in one cell, if some are to.
SHARING = ("a", "b")
#: Their domain, if they are not ordered by the protocol of the one that is always there.
DOMAIN = "chaos"
DEFAULT_PROTOCOL = DEFAULT.name
PRODUCERS = 3
SETTLE_S_MAX = 60.0
#: What a mutant broke does not settle.
SETTLE_S_MUTANT = 5.0
#: So long before it writes, a disk that lies says that it has written.
LIE_S = 0.5
#: A crash shows what a disk that lies loses only when something was acknowledged since the last one.
LIED_RECEIPTS_MIN = 50
LIED_S_MAX = 5.0
BROKEN_CHARS_MAX = 300
#: Between two messages of a producer. A gateway that forgets shows only in what is under way when it is killed.
PAUSE_S = 0.01
PAUSE_S_FORGETFUL = 0.0


@dataclass(slots=True)
class Action:
    at_s: float
    what: str
    who: list[str]


@dataclass(slots=True)
class ChaosReport:
    verdict: Verdict
    sent: int
    failed: dict[str, int]
    unavailable_ms_max: int
    #: When that ended, on the clock of the actions.
    available_again_s: float
    #: The same, if it was a second or more, with what was waited for; and the longest of the times in which there
    #: were majorities of all groups.
    stalls: Stalls
    actions: list[Action] = field(default_factory=list)
    #: What became of changes of replicas, if there were any: counts by name.
    reconfigured: dict[str, int] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        return self.verdict.is_clean and not self.reconfigured.get("changes_unfinished")

    @property
    def stalled_ms_max(self) -> int:
        return round(self.stalls.with_majorities.s_max * 1000)

    def document(self) -> dict[str, Any]:
        verdict = self.verdict
        return {
            "actions": [asdict(action) for action in self.actions],
            "sent": self.sent,
            "acknowledged": verdict.acknowledged,
            "lost": verdict.lost,
            "duplicated": verdict.duplicated,
            "order_violations": verdict.order_violations,
            "unavailable_ms_max": self.unavailable_ms_max,
            "available_again_s": self.available_again_s,
            "unavailable_waited_for": self.stalls.any.waited_for,
            "stalled_ms_max": self.stalled_ms_max,
            "stalled_waited_for": self.stalls.with_majorities.waited_for,
            "failed": self.failed,
            "findings": verdict.findings,
            **self.reconfigured,
        }


class Chaos:
    def __init__(
        self,
        directory: Path,
        *,
        seconds: float,
        seed: int,
        nodes: int = 3,
        workers: int = 0,
        separate: bool = False,
        mutant: str | None = None,
        protocol: str = DEFAULT_PROTOCOL,
        ordering: str = "",
        shared: bool = False,
        on_action: Callable[[Action], None] = lambda action: None,
    ) -> None:
        """The ordering is for protocols that let a domain choose one; empty: as they choose themselves.

        `shared`: some of the groups live in one cell.
        """
        self.cluster = LocalCluster(
            directory,
            nodes=nodes,
            workers=workers,
            separate=separate,
            fault_injection=True,
            mutant=mutant_module(mutant),
        )
        self.seconds = seconds
        self.protocol = protocol
        self.domain_settings = {"ordering": ordering} if ordering else {}
        self.sharing = SHARING if shared else ()
        self.random = Random(seed)
        self.mutant = mutant
        self.lies = mutant == "answers-before-fsync"
        self.forgets = mutant == "forgetful-gateway"
        self.pause_s = PAUSE_S_FORGETFUL if self.forgets else PAUSE_S
        #: A gateway that forgets is noticed only by its own clients: each node is killed in turn, none left out.
        self.in_turn = cycle(sorted(self.cluster.members))
        self.settle_s = SETTLE_S_MAX if mutant is None else SETTLE_S_MUTANT
        self.receipts = 0
        self.on_action = on_action
        self.actions: list[Action] = []
        self.broken: list[str] = []
        self.stalls = Stalls()
        #: Processes that run, and are of no use: behind a partition, or not yet up.
        self.cut_off: frozenset[str] = frozenset()
        self.coming: frozenset[str] = frozenset()
        self.begun = 0.0
        #: How to undo what was done, when its time comes.
        self.undo: list[tuple[float, Callable[[], None]]] = []

    def run(self) -> ChaosReport:
        with self.cluster:
            self.cluster.start()
            self.cluster.wait_healthy()
            self._create_groups()
            if self.lies:
                self._lie()
            return asyncio.run(self._run())

    def _create_groups(self) -> None:
        domain = ""
        if self.protocol != DEFAULT_PROTOCOL:
            domain = DOMAIN
            create_domain(self.cluster.gateways, domain, self.protocol, self.domain_settings)
        create_groups(self.cluster.gateways, GROUPS, domain=domain, shared=self.sharing)

    def _load(self) -> Load:
        """Where only each group by itself has a total order, nothing may be sent to several."""
        settings = named(self.protocol).parse(self.domain_settings, LEVEL)
        set_size_max = None if settings.spans_groups else 1
        return Load(self.cluster.gateways, GROUPS, self.random.getrandbits(32), set_size_max)

    def _lie(self) -> None:
        """A disk that says it has written what it only will write: what a power failure takes away."""
        for name in self.cluster.members:
            self.cluster.inject(name, InjectRequest(answer_before_sync_s=LIE_S))

    # ------------------------------------------------------------------------------------------------ a run

    async def _run(self) -> ChaosReport:
        load = self._load()
        load.on_receipt = self._count_receipt
        subscribers = [
            asyncio.create_task(load.subscribe(f"subscriber-{number}", group))
            for number in (1, 2)
            for group in GROUPS
        ]
        subscribers += [asyncio.create_task(load.subscribe_merged(f"merged-{number}")) for number in (1, 2)]
        alone, *together = [f"producer-{number}" for number in range(PRODUCERS)]
        producers = [
            asyncio.create_task(load.produce(alone, pause_s=self.pause_s)),
            asyncio.create_task(load.produce_together(together, pause_s=self.pause_s)),
        ]
        self.begun = time.monotonic()
        watching = asyncio.create_task(watch(self.stalls, load, self.away))
        await asyncio.to_thread(self._strike)
        load.is_stopping = True
        await asyncio.to_thread(self._end_faults)
        await asyncio.wait(producers, timeout=self.settle_s)
        watching.cancel()
        await load.caught_up(self.settle_s)
        with self._may_be_broken():
            await asyncio.to_thread(wait_for_equal_logs, self.cluster.gateways[0], self.settle_s)
        for task in (*producers, *subscribers):
            task.cancel()
        ended = await asyncio.gather(*producers, *subscribers, watching, return_exceptions=True)
        with self._may_be_broken():
            await asyncio.to_thread(collect_logs, self.cluster.gateways[0], load.evidence)
        verdict = audit(load.evidence)
        for outcome in ended:
            if isinstance(outcome, Exception):
                self.broken.append(f"a client ended with {outcome!r}")
        # Before the rest, of which there may be more than is told.
        verdict.findings[:0] = self.broken
        return ChaosReport(
            verdict,
            len(load.evidence.sent),
            load.failed,
            round(load.outage_s_max * 1000),
            round(load.outage_ended - self.begun, 1),
            self.stalls,
            self.actions,
            self._reconfigured(),
        )

    def _reconfigured(self) -> dict[str, int]:
        return {}

    def _strike(self) -> None:
        while (now := time.monotonic()) < self.begun + self.seconds or self._is_too_early():
            self._undo(now)
            if not self.undo or self.random.random() < 0.15:
                self._one_action()
            time.sleep(self.random.uniform(0.2, 1.5))

    def _is_too_early(self) -> bool:
        """Whether a gateway that forgets has not been killed yet."""
        return self.forgets and len(self.actions) < len(self.cluster.members)

    def _undo(self, now: float) -> None:
        due = [call for at, call in self.undo if at <= now]
        self.undo = [(at, call) for at, call in self.undo if at > now]
        for call in due:
            call()

    def _end_faults(self) -> None:
        while self.undo:
            # Some takes several attempts.
            self._undo(float("inf"))
        self.cluster.start([name for name, member in self.cluster.members.items() if not member.is_running])
        with self._may_be_broken():
            self.cluster.wait_healthy()
            self._heal()

    @contextlib.contextmanager
    def _may_be_broken(self) -> Iterator[None]:
        """Processes that were broken on purpose may notice it themselves, and end: that is a finding, too."""
        try:
            yield
        except (ClusterError, grpc.RpcError) as error:
            if self.mutant is None:
                raise
            self.broken.append(f"the cluster does not work any more: {str(error)[:BROKEN_CHARS_MAX]}")

    def _count_receipt(self) -> None:
        self.receipts += 1

    def _note(self, what: str, who: list[str]) -> None:
        action = Action(round(time.monotonic() - self.begun, 1), what, who)
        self.actions.append(action)
        self.on_action(action)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        self.undo.append((time.monotonic() + seconds, call))

    # --------------------------------------------------------------------------------------------- actions

    def _one_action(self) -> None:
        running = [m.name for m in self.cluster.running() if not m.is_paused]
        if len(running) < len(self.cluster.members):
            return  # One thing at a time, but for what was partitioned and is killed as well.
        self.random.choice(self._actions())()

    def _actions(self) -> list[Callable[[], None]]:
        if self.lies:
            return [self._kill_all]
        if self.forgets:
            return [self._kill]  # What clients then repeat elsewhere is what a forgetful gateway gets wrong.
        return [self._kill, self._kill, self._pause, self._partition, self._kill_all]

    def _kill(self) -> None:
        name = next(self.in_turn) if self.forgets else self.random.choice(sorted(self.cluster.members))
        self._note("kill", [name])
        self.cluster.kill(name)
        self._later(self.random.uniform(0.0, 3.0), lambda: self._restart([name]))

    def _kill_all(self) -> None:
        names = sorted(self.cluster.members)
        if self.lies:
            self._wait_for_receipts()
        self._note("kill", names)
        self.cluster.kill(*names)
        self._later(0.2, lambda: self._restart(names))

    def _wait_for_receipts(self) -> None:
        goal, deadline = self.receipts + LIED_RECEIPTS_MIN, time.monotonic() + LIED_S_MAX
        while self.receipts < goal and time.monotonic() < deadline:
            time.sleep(0.01)

    def _restart(self, names: list[str]) -> None:
        self.coming = frozenset(names)
        self.cluster.start([name for name in names if not self.cluster.members[name].is_running])
        with self._may_be_broken():
            self.cluster.wait_healthy(names)
            self.coming = frozenset()
            if self.lies:
                self._lie()

    def _pause(self) -> None:
        name = self.random.choice(sorted(self.cluster.members))
        self._note("pause", [name])
        self.cluster.pause(name)
        self._later(self.random.uniform(1.0, 12.0), lambda: self.cluster.resume(name))

    def _partition(self) -> None:
        """A minority of the nodes on one side."""
        numbers = sorted({name.rpartition("-")[2] for name in self.cluster.members})
        lonely = self.random.sample(numbers, (len(numbers) - 1) // 2)
        minority = [name for name in self.cluster.members if name.rpartition("-")[2] in lonely]
        majority = [name for name in self.cluster.members if name not in minority]
        self._note("partition", minority)
        self.cut_off = frozenset(minority)
        self.cluster.partition(minority, majority)
        self._later(self.random.uniform(1.0, 8.0), self._heal)

    def _heal(self) -> None:
        self.cluster.heal()
        self.cut_off = frozenset()

    def away(self) -> frozenset[str]:
        """The processes that can do nothing for the others at present."""
        members = self.cluster.members.values()
        down = [member.name for member in members if not member.is_running or member.is_paused]
        return self.cut_off | self.coming | frozenset(down)


def mutant_module(mutant: str | None) -> str | None:
    """What is broken in the processes themselves, as against what is injected from outside."""
    return mutant if mutant == "forgetful-gateway" else None
