"""A trial: clients publish and subscribe on a real cluster, something goes wrong, and what they saw is judged.

The fault is a function that runs in a thread of its own while the clients go on; it may wait for their progress.
Afterwards everything is mended, every message has to get its receipt, and all replicas have to become equal. Then
come the judges: the audit of what clients and logs show, the verifier that users have, and what clients missed.
"""

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import grpc

import ordercast
from ordercast.errors import OrdercastError
from ordercast.local.audit import Acknowledged, Evidence, SentMessage, Verdict, audit
from ordercast.local.cluster import HOST, ClusterError, LocalCluster, wait_until
from ordercast.local.load import Load, collect_logs, wait_for_equal_logs
from ordercast.local.setup import create_groups
from ordercast.local.verify import Report
from ordercast.v1.membership_pb2 import HeartbeatRequest
from ordercast.v1.membership_pb2_grpc import MembershipServiceStub
from tests.cluster.asking import verify

GROUPS = ("a", "b", "c")
PRODUCERS = 3
IN_FLIGHT = 16
#: Between two messages of one producer, on average.
PAUSE_S = 0.01
#: More than can be in flight: so many receipts are not all for messages that were sent before.
AGAIN = 2 * PRODUCERS * IN_FLIGHT
#: No promise of the cluster, only the end of a test that would hang.
PATIENCE_S = 90.0
#: How long it is watched that nobody leads.
NO_LEADER_S = 5.0


class Progress:
    """The clients as the thread of the fault sees them."""

    def __init__(self, load: Load) -> None:
        self._evidence = load.evidence
        self._change = threading.Condition()
        self.acknowledged = 0
        #: Publishes from here that ended without a receipt.
        self.refused: list[OrdercastError] = []
        load.on_receipt = self._on_receipt

    def _on_receipt(self) -> None:
        with self._change:
            self.acknowledged += 1
            self._change.notify_all()

    def wait_for_receipts(self, count: int = AGAIN) -> None:
        """Until so many more messages are acknowledged than now."""
        with self._change:
            goal = self.acknowledged + count
            if not self._change.wait_for(lambda: self.acknowledged >= goal, PATIENCE_S):
                missing = goal - self.acknowledged
                raise ClusterError(f"{missing} of {count} receipts missing after {PATIENCE_S:.0f} s")

    def publish(self, gateway: str, payload: bytes, groups: Sequence[str], timeout: float) -> ordercast.Receipt:
        """One message of a client that knows one gateway alone. It is audited with the others."""
        self._evidence.sent[payload] = SentMessage(payload, 0, tuple(sorted(groups)))
        try:
            with ordercast.connect_sync(gateway) as connection:
                receipt = connection.publish(payload, to=groups, timeout=timeout)
        except OrdercastError as error:
            self.refused.append(error)
            raise
        self._evidence.receipts[payload] = Acknowledged(
            receipt.order_key, dict(receipt.offsets), receipt.duplicate
        )
        return receipt


@dataclass(slots=True)
class TrialReport:
    verdict: Verdict
    verified: Report
    sent: int
    #: Publishes of the load without a receipt, by kind of error; and those of `Progress.publish`.
    failed: dict[str, int]
    refused: int
    #: Replicas that still lack what others of their group have.
    behind: list[str]
    #: Messages that readers of all groups as one stream saw, all of them together.
    merged: int

    def check(self) -> None:
        """Everything that was sent is acknowledged, and everything acknowledged is where it belongs, once."""
        assert self.verdict.is_clean, self.verdict.findings
        assert not self.verdict.findings, self.verdict.findings
        assert not self.failed
        assert not self.behind
        assert self.verdict.acknowledged + self.refused == self.sent
        assert self.verdict.acknowledged > 0
        assert self.verified.is_ok, self.verified.problems
        assert self.verified.is_complete, [(group.group, group.unreachable) for group in self.verified.groups]


def run_trial(
    cluster: LocalCluster,
    during: Callable[[Progress], None],
    groups: Sequence[str] = GROUPS,
    beside: Sequence[str] = (),
    shared: Collection[str] = (),
) -> TrialReport:
    """Makes those groups that are not there, runs the fault under load, mends, settles, and checks.

    Those that are `shared` live in one cell, where no other groups may be: all that is in it is judged.
    """
    return run_trial_at(cluster.gateways, during, groups, beside, lambda: mend(cluster), shared=shared)


def run_trial_at(
    gateways: Sequence[str],
    during: Callable[[Progress], None],
    groups: Sequence[str],
    beside: Sequence[str],
    mend: Callable[[], None],
    pause_s: float = PAUSE_S,
    shared: Collection[str] = (),
) -> TrialReport:
    """The same, wherever the cluster is that these gateways belong to."""
    create_groups(gateways, groups, shared=shared)
    report = asyncio.run(trial(gateways, during, groups, beside, mend, pause_s=pause_s))
    report.check()
    return report


async def trial(
    gateways: Sequence[str],
    during: Callable[[Progress], None],
    groups: Sequence[str],
    beside: Sequence[str],
    mend: Callable[[], None],
    seed: int = 1,
    pause_s: float = PAUSE_S,
) -> TrialReport:
    """`beside` are groups with a producer of their own, whose receipts count as nobody's progress."""
    load, other = Load(gateways, groups, seed), Load(gateways, beside, seed + 1)
    other.evidence = load.evidence
    progress = Progress(load)
    alone, *together = [f"producer-{number}" for number in range(PRODUCERS)]
    publishing = [
        load.produce(alone, in_flight=IN_FLIGHT, pause_s=pause_s),
        load.produce_together(together, in_flight=IN_FLIGHT, pause_s=pause_s),
    ]
    if beside:
        publishing.append(other.produce("beside", in_flight=IN_FLIGHT, pause_s=pause_s))
    producers = [asyncio.create_task(each) for each in publishing]
    subscribers = [
        asyncio.create_task(load.subscribe(f"subscriber-{number}", group))
        for number, group in itertools.product((1, 2), (*groups, *beside))
    ]
    subscribers += [asyncio.create_task(load.subscribe_merged(f"merged-{number}")) for number in (1, 2)]
    tasks = (*producers, *subscribers)
    try:
        await asyncio.to_thread(progress.wait_for_receipts)
        await asyncio.to_thread(during, progress)
        load.is_stopping = other.is_stopping = True
        await asyncio.to_thread(mend)
        await asyncio.wait(producers, timeout=PATIENCE_S)
        await load.caught_up(PATIENCE_S)
        await asyncio.to_thread(wait_for_equal_logs, gateways[0], PATIENCE_S)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    # Other trials on the same cluster have groups of their own.
    await asyncio.to_thread(collect_logs, gateways[0], load.evidence, groups={*groups, *beside})
    verdict = audit(load.evidence)
    for outcome in ended:
        if isinstance(outcome, Exception):
            verdict.find(f"a client ended with {outcome!r}")
    verified = await asyncio.to_thread(verify, gateways[0])
    failed = load.failed | other.failed
    behind = replicas_behind(load.evidence)
    merged = sum(len(witness.seen) for witness in load.evidence.merged.values())
    return TrialReport(verdict, verified, len(load.evidence.sent), failed, len(progress.refused), behind, merged)


def replicas_behind(evidence: Evidence) -> list[str]:
    return [
        f"{replica} has {len(entries)} entries of {group}"
        for group, logs in evidence.logs.items()
        for replica, entries in logs.items()
        if len(entries) < max(map(len, logs.values()))
    ]


# ------------------------------------------------------------------------------------------------- on a cluster


def mend(cluster: LocalCluster) -> None:
    """Whatever was done to the processes and their network is undone."""
    for name in cluster.members:
        cluster.resume(name)
    start_again(cluster, *(name for name, member in cluster.members.items() if not member.is_running))
    cluster.wait_healthy(timeout_s=PATIENCE_S)
    cluster.heal()


def start_again(cluster: LocalCluster, *names: str) -> None:
    cluster.start(names)
    cluster.wait_healthy(names, timeout_s=PATIENCE_S)


def exit_code(cluster: LocalCluster, name: str) -> int:
    """Of a process that ends by itself, soon."""
    process = cluster.members[name].process
    assert process is not None
    return process.wait(PATIENCE_S)


def log_of(cluster: LocalCluster, name: str) -> str:
    return cluster.members[name].log.read_text(errors="replace")


def wait_for_log(cluster: LocalCluster, name: str, text: str) -> None:
    wait_until(f"{text!r} in the log of {name}", lambda: text in log_of(cluster, name), PATIENCE_S)


def gateway_of(cluster: LocalCluster, name: str) -> str:
    return f"{HOST}:{cluster.members[name].client_port}"


def others_than(cluster: LocalCluster, *names: str) -> list[str]:
    return [name for name in cluster.members if name not in names]


def membership_leader(cluster: LocalCluster, patience_s: float = PATIENCE_S) -> str | None:
    """The name of the process; None if there is no leader for so long. All are asked once at least.

    Only a leader answers to heartbeats, even to those of strangers.
    """
    deadline = time.monotonic() + patience_s
    while True:
        for member in cluster.running("membership"):
            with grpc.insecure_channel(f"{HOST}:{member.peer_port}") as channel:
                try:
                    MembershipServiceStub(channel).Heartbeat(HeartbeatRequest(name="nobody"), timeout=1)
                except grpc.RpcError:
                    continue
            return member.name
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.1)


def assert_nobody_leads_any_more(cluster: LocalCluster) -> None:
    """Who led with a majority that is gone notices only after a while that too few follow."""
    wait_until("nobody leads", lambda: membership_leader(cluster, patience_s=0.0) is None, PATIENCE_S)
    assert membership_leader(cluster, NO_LEADER_S) is None
