"""Two versions at once: the nodes of a cluster get new software one after the other, while clients go on.

What the older version does not know must not be said to it, nor stand in membership's log, before no node has that
version any more; and it must not open what the newer one wrote.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

import ordercast
from ordercast.client.admin import Change
from ordercast.errors import FailedPrecondition, InvalidArgument, OrdercastError
from ordercast.local.cluster import LocalCluster, wait_until
from ordercast.runtime.process.exits import EXIT_REFUSED
from ordercast.v1.membership_pb2 import Group
from tests.cluster.releases import code_of_previous_release
from tests.cluster.trial import (
    PATIENCE_S,
    Progress,
    exit_code,
    gateway_of,
    log_of,
    membership_leader,
    run_trial,
    start_again,
    wait_for_log,
)

TOO_EARLY = "not all nodes run software that can change replicas"
TOO_OLD = "is too old for this cluster"
OTHER_FORMAT = "has the format '2'; this version knows '1'"


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return code_of_previous_release(tmp_path_factory.mktemp("previous"))


def upgrade(cluster: LocalCluster, name: str) -> None:
    assert cluster.upgrade(name, None, PATIENCE_S) == 0
    cluster.wait_healthy([name], PATIENCE_S)


def refusal_of_a_change(cluster: LocalCluster, gateway: str) -> OrdercastError:
    with (
        ordercast.connect_sync(gateway_of(cluster, gateway)) as connection,
        pytest.raises(OrdercastError) as refused,
    ):
        connection.change_replicas("a", "remove", node="node-2")
    return refused.value


def change_replicas(cluster: LocalCluster, change: Change, node: str, to: str) -> None:
    """As soon as the cluster's level allows it, and until it is done."""
    with ordercast.connect_sync(gateway_of(cluster, "node-1")) as connection:

        def is_agreed() -> bool:
            try:
                connection.change_replicas("a", change, node=node, to=to)
            except FailedPrecondition as error:
                if TOO_EARLY not in str(error):
                    raise
                return False
            return True

        def group() -> Group:
            return next(group for group in connection.groups() if group.name == "a")

        wait_until(f"the change {change} is agreed", is_agreed, PATIENCE_S)
        wait_until(
            f"the change {change} is done",
            lambda: not (group().HasField("next") or group().HasField("previous")),
            PATIENCE_S,
        )


def refusals(cluster: LocalCluster) -> Counter[str]:
    """What processes refused of each other, by reason. They log the first, the second, the fourth, ..."""
    found: Counter[str] = Counter()
    for name, member in cluster.members.items():
        if not member.log.exists():
            continue
        for line in log_of(cluster, name).splitlines():
            if '"event": "refused"' in line:
                entry = json.loads(line)
                found[entry["why"]] = max(found[entry["why"]], entry["count"])
    return found


def test_nodes_get_the_next_version_one_after_the_other_and_clients_notice_nothing(make_cluster, previous):
    cluster = make_cluster(is_started=False, workers=1, fault_injection=True)
    for member in cluster.members.values():
        member.source = previous
    first = ["node-1", "node-2", "node-3"]
    cluster.start(first)
    cluster.wait_healthy(first, PATIENCE_S)

    def replace_the_software(progress: Progress) -> None:
        upgrade(cluster, "node-1")
        progress.wait_for_receipts()
        one_new_and_two_old(progress)
        upgrade(cluster, "node-2")
        progress.wait_for_receipts()
        two_new_and_one_old(progress)
        upgrade(cluster, "node-3")
        progress.wait_for_receipts()
        all_new(progress)

    def one_new_and_two_old(progress: Progress) -> None:
        refused = refusal_of_a_change(cluster, "node-1")
        assert isinstance(refused, FailedPrecondition | InvalidArgument), refused
        # It lacks what the others have by then, and they send it in their way.
        cluster.kill("node-1")
        progress.wait_for_receipts()
        start_again(cluster, "node-1")
        progress.wait_for_receipts()
        # No way back with the same disk.
        assert cluster.upgrade("node-1", previous, PATIENCE_S) == 0
        assert exit_code(cluster, "node-1") == EXIT_REFUSED
        wait_for_log(cluster, "node-1", OTHER_FORMAT)
        cluster.members["node-1"].source = None
        start_again(cluster, "node-1")
        progress.wait_for_receipts()

    def two_new_and_one_old(progress: Progress) -> None:
        cluster.kill("node-3")
        progress.wait_for_receipts()
        # Of those that are left, one leads membership: its answer says why.
        assert membership_leader(cluster) in ("node-1", "node-2")
        refused = refusal_of_a_change(cluster, "node-2")
        assert isinstance(refused, FailedPrecondition), refused
        assert TOO_EARLY in str(refused)
        start_again(cluster, "node-3")
        progress.wait_for_receipts()

    def all_new(progress: Progress) -> None:
        change_replicas(cluster, "remove", "node-2", "")
        progress.wait_for_receipts()
        change_replicas(cluster, "add", "", "node-2")
        progress.wait_for_receipts()
        cluster.start(["node-4"])
        assert exit_code(cluster, "node-4") == EXIT_REFUSED
        wait_for_log(cluster, "node-4", TOO_OLD)
        # With the software of the others, it is taken in.
        cluster.members["node-4"].source = None
        start_again(cluster, "node-4")

    report = run_trial(cluster, replace_the_software)
    assert report.refused == 0
    odd = {why: count for why, count in refusals(cluster).items() if "handles" in why or "damaged" in why}
    assert not odd
