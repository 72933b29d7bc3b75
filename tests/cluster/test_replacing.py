"""Replicas are replaced, added and removed while clients publish, and processes are killed in the middle of it."""

import time

import pytest

from ordercast.local.cluster import LocalCluster
from ordercast.v1.membership_pb2 import Group
from tests.cluster.changing import (
    ask,
    begin_change,
    change,
    group_of,
    stranger_to,
    wait_for_group,
    wait_until_changed,
    wait_until_settled,
)
from tests.cluster.trial import AGAIN, Progress, membership_leader, run_trial, start_again

#: Fewer than `AGAIN`: a change begins when some of the messages that were under way in the last one still are.
A_FEW = AGAIN // 4
#: After a change was agreed: while the newcomer copies, and about when the new configuration begins.
MOMENTS_S = (0.0, 0.5)


@pytest.fixture(scope="module")
def cluster(make_module_cluster) -> LocalCluster:
    return make_module_cluster(nodes=3, workers=2, fault_injection=True)


def test_every_replica_of_three_groups_is_replaced_under_load(cluster):
    groups = ["moves-a", "moves-b", "moves-c"]
    before: dict[str, Group] = {}

    def during(progress: Progress) -> None:
        before.update({name: group_of(cluster, name) for name in groups})
        for turn in range(3):
            # All three at once: envelopes for several groups meet them in different configurations.
            begun = [replace(cluster, name, before[name].replicas[turn]) for name in groups]
            for group in begun:
                wait_until_changed(cluster, group)
            progress.wait_for_receipts(A_FEW)
        wait_until_settled(cluster, groups)

    run_trial(cluster, during, groups)
    for name in groups:
        group = group_of(cluster, name)
        assert group.configuration == before[name].configuration + 3
        assert len(group.replicas) == 3
        assert before[name].replicas[2] not in group.replicas


def replace(cluster: LocalCluster, name: str, node: str) -> Group:
    return begin_change(cluster, name, "replace", node, stranger_to(cluster, group_of(cluster, name)))


@pytest.mark.long
def test_replicas_are_removed_and_added_where_every_service_is_a_process_of_its_own(make_cluster):
    """Acceptors that are nothing else have to hand their votes over, too."""
    cluster = make_cluster(separate=True, fault_injection=True)
    groups = ["apart-a", "apart-b"]

    def during(progress: Progress) -> None:
        for name in groups:
            change(cluster, name, "remove", "sequencer-3")
            progress.wait_for_receipts(A_FEW)
            change(cluster, name, "add", "", "sequencer-3")
            progress.wait_for_receipts(A_FEW)
        wait_until_settled(cluster, groups)

    run_trial(cluster, during, groups)


@pytest.mark.parametrize(
    "victim",
    [
        "the newcomer",
        pytest.param("one that stays", marks=pytest.mark.long),
        pytest.param("one that goes", marks=pytest.mark.long),
        pytest.param("the membership leader", marks=pytest.mark.long),
    ],
)
def test_a_process_is_killed_in_the_middle_of_a_change_and_comes_back(cluster, victim):
    word = victim.rpartition(" ")[2]
    groups = [f"{word}-a", f"{word}-b"]

    def during(progress: Progress) -> None:
        for moment_s in MOMENTS_S:
            group = group_of(cluster, groups[0])
            goes, stays = group.replicas[0], group.replicas[1]
            newcomer = stranger_to(cluster, group)
            begun = begin_change(cluster, groups[0], "replace", goes, newcomer)
            time.sleep(moment_s)
            killed = {
                "the newcomer": newcomer,
                "one that stays": stays,
                "one that goes": goes,
                "the membership leader": membership_leader(cluster),
            }[victim]
            assert killed is not None
            cluster.kill(killed)
            # Two of three are there, in the old configuration and in the new one.
            progress.wait_for_receipts(A_FEW)
            start_again(cluster, killed)
            wait_until_changed(cluster, begun)
        wait_until_settled(cluster, groups)

    run_trial(cluster, during, groups)


@pytest.mark.long
def test_all_processes_are_killed_in_the_middle_of_changes(cluster):
    groups = ["all-a", "all-b", "all-c"]

    def during(progress: Progress) -> None:
        for moment_s in MOMENTS_S:
            begun = [replace(cluster, name, group_of(cluster, name).replicas[0]) for name in groups]
            time.sleep(moment_s)
            cluster.kill(*cluster.members)
            start_again(cluster, *cluster.members)
            for group in begun:
                wait_until_changed(cluster, group)
            progress.wait_for_receipts(A_FEW)
        wait_until_settled(cluster, groups)

    run_trial(cluster, during, groups)


@pytest.mark.long
def test_replicas_are_added_and_removed_under_load(cluster):
    groups = ["grows-a", "grows-b"]
    sizes: list[int] = []

    def during(progress: Progress) -> None:
        for kind in ("add", "add", "remove", "remove"):
            sizes.append(len(change(cluster, groups[0], kind).replicas))
            progress.wait_for_receipts(A_FEW)
        wait_until_settled(cluster, groups)

    run_trial(cluster, during, groups)
    assert sizes == [4, 5, 4, 3]


def test_a_change_whose_newcomer_is_down_is_cancelled_and_can_be_asked_for_again(cluster):
    groups = ["cancelled"]

    def during(progress: Progress) -> None:
        before = group_of(cluster, "cancelled")
        newcomer = stranger_to(cluster, before, "node-1", "node-2", "node-3")
        # Nobody has noticed yet, so it is still given something.
        cluster.kill(newcomer)
        begun = begin_change(cluster, "cancelled", "replace", before.replicas[0], newcomer)
        progress.wait_for_receipts()
        waiting = group_of(cluster, "cancelled")
        assert waiting.next == begun.next
        assert waiting.configuration == before.configuration
        cancelled = ask(cluster, lambda connection: connection.cancel_change("cancelled"))
        assert not cancelled.HasField("next")
        start_again(cluster, newcomer)
        after = change(cluster, "cancelled", "replace", before.replicas[0], newcomer)
        assert newcomer in after.replicas
        assert before.replicas[0] not in after.replicas
        wait_for_group(cluster, "cancelled", lambda group: not group.starting)
        progress.wait_for_receipts()

    run_trial(cluster, during, groups)
