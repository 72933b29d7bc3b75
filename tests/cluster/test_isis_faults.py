"""Virtually synchronous groups while processes are killed, paused and cut off.

Members that do not answer are left out of the next view; those that come back are in a later one. What was
acknowledged stays, each replica's log is the beginning of every longer one, and views follow each other.
"""

import pytest

from ordercast.local.cluster import LocalCluster
from tests.cluster.changing import OPTIONS, group_of
from tests.cluster.conftest import MakeCluster
from tests.cluster.synchrony import (
    CAUSAL,
    TOTAL,
    assert_view_synchrony,
    holder_of,
    run_in_views,
    wait_for_another_view,
    wait_until_back,
    wait_until_left_out,
    with_domains,
)
from tests.cluster.trial import AGAIN, Progress, others_than, start_again

#: Enough to see that the group goes on.
A_FEW = AGAIN // 4


@pytest.fixture(scope="module")
def cluster(make_module_cluster: MakeCluster) -> LocalCluster:
    return with_domains(make_module_cluster(fault_injection=True, options=OPTIONS))


# ------------------------------------------------------------------------------------------------------ kills


@pytest.mark.parametrize("ordering", [CAUSAL, pytest.param(TOTAL, marks=pytest.mark.long)])
def test_the_token_holder_is_killed_under_load_and_what_was_acknowledged_stays(cluster, ordering):
    groups = [f"killed-{ordering}-{letter}" for letter in "abc"]

    def during(progress: Progress) -> None:
        before = group_of(cluster, groups[0])
        holder = holder_of(cluster, groups[0])
        cluster.kill(holder)
        progress.wait_for_receipts()
        wait_until_left_out(cluster, groups[0], holder)
        start_again(cluster, holder)
        assert wait_until_back(cluster, groups[0], holder).configuration >= before.configuration + 2
        progress.wait_for_receipts(A_FEW)

    run_in_views(cluster, groups, during, ordering)


@pytest.mark.long
def test_a_process_that_comes_back_at_once_is_a_new_member(cluster):
    """Before anybody has missed it: it has another life, and that alone makes another view."""
    groups = ["at-once-a", "at-once-b"]

    def during(progress: Progress) -> None:
        for name in others_than(cluster):
            before = group_of(cluster, groups[0])
            cluster.kill(name)
            start_again(cluster, name)
            wait_for_another_view(cluster, before)
            progress.wait_for_receipts(A_FEW)

    run_in_views(cluster, groups, during)


@pytest.mark.long
@pytest.mark.parametrize("ordering", [CAUSAL, TOTAL])
def test_all_are_killed_at_once_twice_in_a_row(cluster, ordering):
    groups = [f"all-{ordering}-{letter}" for letter in "abc"]

    def during(progress: Progress) -> None:
        for _ in range(2):
            cluster.kill(*cluster.members)
            start_again(cluster, *cluster.members)
        progress.wait_for_receipts()

    run_in_views(cluster, groups, during, ordering)


# ------------------------------------------------------------------------------------------- wrongly left out


@pytest.mark.long
def test_a_member_is_paused_until_it_is_left_out_and_comes_back(cluster):
    """It wakes up with what it believes, and takes part in nothing before it is in a view again."""
    groups = ["paused-a", "paused-b"]

    def during(progress: Progress) -> None:
        name = holder_of(cluster, groups[0])
        cluster.pause(name)
        without = wait_until_left_out(cluster, groups[0], name)
        progress.wait_for_receipts()
        assert_view_synchrony(cluster, groups, is_at_rest=False)
        cluster.resume(name)
        wait_until_back(cluster, groups[0], name, without)
        progress.wait_for_receipts(A_FEW)

    run_in_views(cluster, groups, during)


def test_a_member_is_cut_off_until_it_is_left_out_and_comes_back(cluster):
    groups = ["cut-off-a", "cut-off-b"]

    def during(progress: Progress) -> None:
        name = holder_of(cluster, groups[0])
        cluster.partition([name], others_than(cluster, name))
        without = wait_until_left_out(cluster, groups[0], name)
        progress.wait_for_receipts()
        cluster.heal()
        wait_until_back(cluster, groups[0], name, without)
        progress.wait_for_receipts(A_FEW)

    run_in_views(cluster, groups, during)
