"""Replicas of virtually synchronous groups are added, removed and replaced under load: nobody loses or repeats."""

import time

import pytest

from ordercast.core.members import places_of
from ordercast.local.cluster import LocalCluster
from ordercast.local.configurations import is_settled
from ordercast.v1.membership_pb2 import Group
from tests.cluster.changing import OPTIONS, begin_change, group_of, stranger_to, wait_for_group
from tests.cluster.conftest import MakeCluster
from tests.cluster.synchrony import run_in_views, wait_for_another_view, with_domains
from tests.cluster.trial import AGAIN, Progress, start_again

A_FEW = AGAIN // 4


@pytest.fixture(scope="module")
def cluster(make_module_cluster: MakeCluster) -> LocalCluster:
    return with_domains(make_module_cluster(nodes=3, workers=2, fault_injection=True, options=OPTIONS))


def replace(cluster: LocalCluster, name: str, node: str) -> Group:
    return begin_change(cluster, name, "replace", node, stranger_to(cluster, group_of(cluster, name)))


def test_every_replica_of_two_groups_is_replaced_under_load(cluster):
    groups = ["moves-a", "moves-b"]
    before: dict[str, Group] = {}

    def during(progress: Progress) -> None:
        before.update({name: wait_for_group(cluster, name, is_settled) for name in groups})
        for turn in range(3):
            # Both at once: messages for both meet them in different views.
            begun = [replace(cluster, name, before[name].replicas[turn]) for name in groups]
            for group in begun:
                wait_for_another_view(cluster, group)
            progress.wait_for_receipts(A_FEW)

    run_in_views(cluster, groups, during)
    for name in groups:
        group = group_of(cluster, name)
        assert len(group.replicas) == 3
        assert before[name].replicas[2] not in group.replicas


def test_replicas_are_added_and_removed_under_load(cluster):
    groups = ["grows-a", "grows-b"]
    sizes: list[int] = []

    def during(progress: Progress) -> None:
        for kind in ("add", "add", "remove", "remove"):
            changed = wait_for_another_view(cluster, begin_change(cluster, groups[0], kind))
            sizes.append(len(changed.replicas))
            progress.wait_for_receipts(A_FEW)

    run_in_views(cluster, groups, during)
    assert sizes == [4, 5, 4, 3]


@pytest.mark.long
@pytest.mark.parametrize("victim", ["the newcomer", "one that stays", "one that goes"])
def test_a_process_is_killed_in_the_middle_of_a_change_and_comes_back(cluster, victim):
    word = victim.rpartition(" ")[2]
    groups = [f"{word}-a", f"{word}-b"]

    def during(progress: Progress) -> None:
        group = wait_for_group(cluster, groups[0], is_settled)
        goes, stays, newcomer = group.replicas[0], group.replicas[1], stranger_to(cluster, group)
        begun = begin_change(cluster, groups[0], "replace", goes, newcomer)
        time.sleep(0.1)
        killed = {"the newcomer": newcomer, "one that stays": stays, "one that goes": goes}[victim]
        cluster.kill(killed)
        progress.wait_for_receipts(A_FEW)
        start_again(cluster, killed)
        after = wait_for_another_view(cluster, begun)
        assert newcomer in after.replicas
        assert goes not in places_of(after)
        progress.wait_for_receipts(A_FEW)

    run_in_views(cluster, groups, during)


@pytest.mark.long
def test_all_processes_are_killed_in_the_middle_of_a_change(cluster):
    groups = ["all-a", "all-b"]

    def during(progress: Progress) -> None:
        begun = [replace(cluster, name, group_of(cluster, name).replicas[0]) for name in groups]
        cluster.kill(*cluster.members)
        start_again(cluster, *cluster.members)
        for group in begun:
            wait_for_another_view(cluster, group)
        progress.wait_for_receipts(A_FEW)

    run_in_views(cluster, groups, during)
