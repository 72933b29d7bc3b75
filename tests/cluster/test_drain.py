"""A node that is told to stop while clients use it: it finishes what it took, and they go elsewhere."""

import asyncio
import os
import signal

from ordercast.local.audit import audit
from ordercast.local.cluster import LocalCluster
from ordercast.local.load import Load, collect_logs, wait_for_equal_logs
from tests.cluster.asking import CALL_S_MAX, assert_replicas_agree, in_time

GROUPS = ["a", "b", "c"]
#: Receipts between one act and the next: so many are not all for what was sent before.
RECEIPTS = 60


def terminate(cluster: LocalCluster, name: str) -> int:
    """The exit code."""
    process = cluster.members[name].process
    assert process is not None
    os.kill(process.pid, signal.SIGTERM)
    return process.wait(CALL_S_MAX)


async def receipts_come(load: Load) -> None:
    wanted = len(load.evidence.receipts) + RECEIPTS
    while len(load.evidence.receipts) < wanted:
        await asyncio.sleep(0.02)


def test_each_node_in_turn_stops_and_comes_back_and_nobody_notices(cluster: LocalCluster) -> None:
    load = Load(cluster.gateways, GROUPS, seed=3)
    codes = {}

    async def run() -> list[BaseException | None]:
        clients = [asyncio.create_task(load.produce(f"producer-{n}", pause_s=0.01)) for n in range(3)]
        subscribers = [
            asyncio.create_task(load.subscribe(f"subscriber-{number}", group))
            for group in GROUPS
            for number in (1, 2)
        ]
        for name in cluster.members:
            await receipts_come(load)
            codes[name] = await asyncio.to_thread(terminate, cluster, name)
            await receipts_come(load)
            cluster.start([name])
            await asyncio.to_thread(cluster.wait_healthy, [name], CALL_S_MAX)
        load.is_stopping = True
        await asyncio.gather(*clients)
        await load.caught_up(CALL_S_MAX)
        for task in subscribers:
            task.cancel()
        return await asyncio.gather(*subscribers, return_exceptions=True)

    ended = in_time(run(), timeout_s=150)
    assert codes == dict.fromkeys(cluster.members, 0)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in ended), ended
    assert load.failed == {}
    assert len(load.evidence.receipts) == len(load.evidence.sent)
    wait_for_equal_logs(cluster.gateways[0], CALL_S_MAX)
    collect_logs(cluster.gateways[0], load.evidence)
    verdict = audit(load.evidence)
    assert verdict.is_clean, verdict.findings
    assert_replicas_agree(cluster.gateways[0])


def test_the_whole_cluster_stops_and_comes_back_with_everything(cluster: LocalCluster) -> None:
    before = assert_replicas_agree(cluster.gateways[0])
    assert cluster.stop() == dict.fromkeys(cluster.members, 0)
    cluster.start()
    cluster.wait_healthy()
    after = assert_replicas_agree(cluster.gateways[0])
    assert [(g.group, g.messages) for g in after.groups] == [(g.group, g.messages) for g in before.groups]
