"""What clients notice while a replica of a long log is replaced.

On one cluster of three nodes, and a fourth that holds nothing yet: a group with three replicas is filled, then
one producer publishes in a closed loop without a pause. Meanwhile two replicas are replaced, one after the other.
First that of *another* node than the client's gateway, by the fourth node. Then that of the client's *gateway*,
which coordinates its envelopes as long as it holds a replica, by the node that was replaced before and has deleted
its copy. Each change is measured from when it is agreed until nothing of it is left to do, with as long a stretch
before and after as the plan says; what is after the first is before the second.

A change has two parts. While the newcomer is *copying* the log, the old replicas go on. *Switching* begins with
the new configuration, and for a moment nobody may order anything: `gap_s_max`, the longest time between two
receipts, shows it. It is told of every stretch, since on a busy machine there are gaps without any change.

Clients, servers and the copy share the machine: what the copy takes of its processors, the others have less.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import grpc

import ordercast
from ordercast.bench import environment, steady
from ordercast.bench.client import WARM_UP_S, in_process_of_its_own
from ordercast.bench.goals import Goal, at_least
from ordercast.bench.long_replay import publish
from ordercast.bench.own import servers_of
from ordercast.bench.plan import GROUPS_PREFIX, BenchPlan, Pattern, pattern_named
from ordercast.bench.servers import BenchError, Servers
from ordercast.bench.steady import SteadyOutcome, Stretch, joined
from ordercast.bench.systems import OWN
from ordercast.bench.trial import Say, empty_directory
from ordercast.client.sync import SyncConnection
from ordercast.errors import FailedPrecondition, OrdercastError
from ordercast.local.cluster import LocalCluster
from ordercast.local.load import wait_for_equal_logs
from ordercast.local.setup import create_groups
from ordercast.local.usage import cpu_s
from ordercast.local.verify import Verifier
from ordercast.v1.gateway_pb2 import DescribeGroupResponse
from ordercast.v1.membership_pb2 import Group

PATTERN = f"{GROUPS_PREFIX}1"
NODES, WORKERS, REPLICAS = 3, 1, 3
IN_FLIGHT = 1024
#: Published at once, so that somebody who waits sees that it goes on.
FILL_STEP = 250_000
#: How often it is asked how far a change is.
LOOK_S = 0.1
#: A new node has to be known to all before anything can be replaced; and a change that takes longer hangs.
AGREED_S_MAX = 30.0
CHANGE_S_MAX = 600.0
EQUAL_S_MAX = 60.0
#: The throughput while a replica is replaced, as a part of that before.
RATIO_MIN = 0.5

Entry = dict[str, Any]


@dataclass(slots=True)
class ReplacedReplica:
    """One replica that was replaced."""

    replaced: str
    by: str
    #: The client's gateway is on the node whose replica went.
    is_gateways: bool
    #: Of the log, when the newcomer was last seen copying: the hand-over brought the rest.
    copied_messages: int = 0
    copied_bytes: int = 0


@dataclass(slots=True)
class Verified:
    """By the checks of `ordercast verify`, afterwards."""

    messages: int
    #: Acknowledged messages, those that filled the log included, that the log does not have.
    lost: int
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0

    @property
    def is_ok(self) -> bool:
        return not self.lost and not self.problem_count


@dataclass(frozen=True, slots=True)
class DuringResult:
    plan: BenchPlan
    changes: list[Entry]
    verified: Verified
    machine: dict[str, Any]

    @property
    def goals(self) -> list[Goal]:
        return [goal_of(change) for change in self.changes]

    def document(self) -> Entry:
        return {
            "during": "replace",
            "changes": self.changes,
            "verified": {"ok": self.verified.is_ok, **asdict(self.verified)},
            "goals": [asdict(goal) for goal in self.goals],
            "plan": {**asdict(self.plan), "in_flight": IN_FLIGHT, "workers": WORKERS},
            "machine": self.machine,
        }


def plan_of(messages: int, size: int, seconds: float) -> BenchPlan:
    """Here `messages` are those that the log is filled with."""
    return BenchPlan(NODES, 1, REPLICAS, size, seconds, messages)


def run(plan: BenchPlan, say: Say) -> DuringResult:
    pattern = pattern_named(PATTERN, plan)
    with empty_directory(OWN) as directory, running_cluster(directory, pattern) as cluster:
        servers = servers_of(cluster)
        filled = fill(servers, plan, pattern, say)
        with (
            ordercast.connect_sync(*servers.addresses) as client,
            steady.running(servers, plan, pattern, IN_FLIGHT) as load,
        ):
            replacing = Replacing(plan, servers, pattern.groups[0], client, load, say)
            changes = replacing.run()
            outcome = load.stop()
        verified = verify(servers, pattern.groups[0], filled + outcome.acknowledged, say)
    return DuringResult(plan, entries_of(changes, outcome, replacing.server_s), verified, environment.facts())


@contextmanager
def running_cluster(directory: Path, pattern: Pattern) -> Iterator[LocalCluster]:
    """The workers start when the groups are there: so they hold none."""
    with LocalCluster(directory, nodes=NODES, workers=WORKERS) as cluster:
        names = list(cluster.members)
        for started in (names[:NODES], names[NODES:]):
            cluster.start(started)
            cluster.wait_healthy(started)
            if started == names[:NODES]:
                create_groups(cluster.gateways[:NODES], pattern.groups, REPLICAS)
        yield cluster
        cluster.stop()


def fill(servers: Servers, plan: BenchPlan, pattern: Pattern, say: Say) -> int:
    assert plan.messages is not None
    filled = 0
    while filled < plan.messages:
        say(f"filling the log: {filled:,} of {plan.messages:,} messages")
        count = min(FILL_STEP, plan.messages - filled)
        in_process_of_its_own(publish, servers, plan, pattern, count)
        filled += count
    return filled


class Replacing:
    """Two changes under load, and the stretches around them: before, copying, switching, after, copying, ..."""

    def __init__(
        self,
        plan: BenchPlan,
        servers: Servers,
        group: str,
        client: SyncConnection,
        load: steady.SteadyLoad,
        say: Say,
    ) -> None:
        self.plan = plan
        self.servers = servers
        self.group = group
        self.client = client
        self.load = load
        self.say = say
        #: Processor time of all servers when each stretch began, and at the end.
        self.server_s: list[float] = []

    def run(self) -> list[ReplacedReplica]:
        gateway = self.client.cluster().gateway
        replicas = list(self.client.describe_group(self.group).group.replicas)
        spare = next(node.name for node in self.client.nodes() if node.name not in replicas)
        another = next(name for name in reversed(replicas) if name != gateway)
        self.load.wait_for_receipts()
        self._wait(WARM_UP_S)
        self._stretch("before any change")
        self._wait(self.plan.seconds)
        changes = [ReplacedReplica(another, spare, False), ReplacedReplica(gateway, another, True)]
        for change in changes:
            self._replace(change)
            self._stretch(f"{change.replaced} is replaced by {change.by}")
            self._wait(self.plan.seconds)
        self._note_use()
        return changes

    # ---------------------------------------------------------------------------------------------- stretches

    def _stretch(self, text: str) -> None:
        self.load.begin_stretch()
        self._note_use()
        self.say(text)

    def _note_use(self) -> None:
        self.server_s.append(sum(map(cpu_s, self.servers.pids)))

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.load.check()
            time.sleep(min(LOOK_S, left))

    # ------------------------------------------------------------------------------------------------ changes

    def _replace(self, change: ReplacedReplica) -> None:
        wanted = self._begin(change).next
        self._stretch(f"{change.by} copies the log, to replace {change.replaced}")

        def is_copied(answer: DescribeGroupResponse) -> bool:
            if answer.group.configuration >= wanted.number:
                return True
            if list(answer.group.next.replicas) != list(wanted.replicas):
                raise BenchError("the change was cancelled")
            for learner in answer.learners:
                if learner.node == change.by and not learner.error:
                    change.copied_messages, change.copied_bytes = learner.log.next_offset, learner.log.bytes
            return False

        self._until("the log is copied", is_copied)
        self._stretch(f"configuration {wanted.number} has begun")
        self._until("all have started", lambda answer: is_settled(answer.group))

    def _begin(self, change: ReplacedReplica) -> Group:
        """Refused until all know what all understand, and while something of an earlier change is left to do."""
        deadline = time.monotonic() + AGREED_S_MAX
        while True:
            try:
                return self.client.change_replicas(self.group, "replace", node=change.replaced, to=change.by)
            except FailedPrecondition as error:
                if time.monotonic() > deadline:
                    raise BenchError(f"{change.replaced} cannot be replaced: {error}") from error
            self._wait(LOOK_S)

    def _until(self, what: str, is_so: Callable[[DescribeGroupResponse], bool]) -> None:
        """Somebody who moves a gateway's replica may ask while it is busy: that is no end."""
        deadline = time.monotonic() + CHANGE_S_MAX
        failure: OrdercastError | None = None
        while time.monotonic() < deadline:
            try:
                if is_so(self.client.describe_group(self.group)):
                    return
            except OrdercastError as error:
                failure = error
            self._wait(LOOK_S)
        raise BenchError(f"not within {CHANGE_S_MAX:.0f} s: {what}" + (f" ({failure})" if failure else ""))


def is_settled(group: Group) -> bool:
    return not (group.HasField("next") or group.HasField("previous") or group.starting)


def verify(servers: Servers, group: str, acknowledged: int, say: Say) -> Verified:
    say("reading all replicas, to see whether they agree")
    address = servers.addresses[0]
    wait_for_equal_logs(address, EQUAL_S_MAX)
    with grpc.insecure_channel(address) as channel:
        report = Verifier(channel).run()
    messages = sum(found.messages for found in report.groups)
    others = [f"{name} cannot be read: {why}" for g in report.groups for name, why in g.unreachable.items()]
    # For the verifier a replica may be behind, as the cluster may go on. This one has had the time.
    with ordercast.connect_sync(*servers.addresses) as client:
        others += replicas_behind(client.describe_group(group))
    problems = [*report.problems, *others]
    return Verified(messages, max(acknowledged - messages, 0), problems, report.problem_count + len(others))


def replicas_behind(answer: DescribeGroupResponse) -> list[str]:
    head = max(replica.log.position for replica in answer.replicas)
    return [
        f"{replica.node} has {replica.log.position} of {head} envelopes"
        for replica in answer.replicas
        if not replica.error and replica.log.position < head
    ]


# --------------------------------------------------------------------------------------------- the reckoning


def entries_of(
    changes: Sequence[ReplacedReplica], outcome: SteadyOutcome, server_s: Sequence[float]
) -> list[Entry]:
    """Three stretches for each change, and one before them all."""
    assert len(outcome.stretches) == 1 + 3 * len(changes) == len(server_s) - 1
    entries = []
    for number, change in enumerate(changes):
        first = 3 * number
        before, copying, switching, after = outcome.stretches[first : first + 4]
        used = [later - earlier for earlier, later in zip(server_s[first:], server_s[first + 1 :], strict=False)]
        during = joined([copying, switching])
        phases = [
            phase_of("before", before, used[0]),
            phase_of("during", during, used[1] + used[2]),
            phase_of("after", after, used[3]),
        ]
        entries.append(
            {
                **asdict(change),
                "phases": phases,
                "ratio": round(during.messages_per_second / before.messages_per_second, 3)
                if before.messages_per_second
                else None,
                "change_s": round(during.seconds, 2),
                "copying_s": round(copying.seconds, 2),
                "switching_s": round(switching.seconds, 2),
                "copying_gap_s_max": round(copying.gap_s_max, 3),
                "switching_gap_s_max": round(switching.gap_s_max, 3),
            }
        )
    return entries


def phase_of(phase: str, stretch: Stretch, server_s: float) -> Entry:
    count = len(stretch.latencies)
    return {
        "phase": phase,
        "seconds": round(stretch.seconds, 2),
        "messages_per_second": round(stretch.messages_per_second, 1),
        "p50_ms": round(stretch.percentile_ms(0.50), 1),
        "p99_ms": round(stretch.percentile_ms(0.99), 1),
        "gap_s_max": round(stretch.gap_s_max, 3),
        "failed": stretch.failed,
        "server_cpu_s_per_10k": round(server_s / max(count, 1) * 10_000, 3),
    }


def goal_of(change: Entry) -> Goal:
    before, during, _ = (phase["messages_per_second"] for phase in change["phases"])
    whose = "the gateway's" if change["is_gateways"] else "another node's"
    return at_least(f"replacing {whose} replica: messages/s, half of before", during, RATIO_MIN, before)
