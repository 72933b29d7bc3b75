"""Nodes come back without their disks: refused as who they were, taken in as new ones, and given all they held."""

import pytest

from ordercast.local.cluster import LocalCluster, wait_until
from tests.cluster.changing import (
    OPTIONS,
    assert_refused,
    assert_seeded_anew,
    give_up_disk,
    group_of,
    groups_on_disk,
    held_by,
    node_of,
    take_in_as_new,
    wait_for_group,
    wipe,
)
from tests.cluster.trial import PATIENCE_S, Progress, log_of, membership_leader, run_trial, start_again

VOTES = "this membership node votes"


@pytest.fixture(scope="module")
def cluster(make_module_cluster) -> LocalCluster:
    return make_module_cluster(nodes=3, workers=2, fault_injection=True, options=OPTIONS)


def test_nodes_that_lost_their_disks_are_refused_until_those_are_given_up_and_then_seeded_anew(cluster):
    """First one that is only a worker, then a membership node, whose vote is gone as well."""
    groups = ["a", "b", "c"]

    def during(progress: Progress) -> None:
        for name in ("node-4", "node-3"):
            before = held_by(cluster, name, groups)
            assert before
            said = len(log_of(cluster, name))
            wipe(cluster, name)
            assert_refused(
                cluster, name, "belongs to a node with another disk", f"ordercast node give-up-disk {name}"
            )
            progress.wait_for_receipts()
            take_in_as_new(cluster, name)
            assert_seeded_anew(cluster, name, before)
            progress.wait_for_receipts()
            node = node_of(cluster, name)
            assert node is not None
            assert not node.disk_lost

        # Its vote counts again: with one other membership node it is a majority.
        wait_until("it votes", lambda: VOTES in log_of(cluster, "node-3")[said:], PATIENCE_S)
        cluster.kill("node-2")
        assert membership_leader(cluster) is not None
        start_again(cluster, "node-2")

    run_trial(cluster, during, groups)


def test_a_disk_that_was_given_up_is_refused_when_it_turns_up_again(cluster):
    groups = ["given-up-a", "given-up-b"]

    def during(progress: Progress) -> None:
        name = group_of(cluster, groups[0]).replicas[-1]
        before = held_by(cluster, name, groups)
        cluster.kill(name)
        give_up_disk(cluster, name)
        for group in before:
            wait_for_group(cluster, group, lambda found: name in found.lost)
        assert_refused(cluster, name, "was given up for good")
        old = cluster.members[name].data
        assert any(groups_on_disk(old, list(before.values())).values())
        progress.wait_for_receipts()
        wipe(cluster, name)
        start_again(cluster, name)
        assert_seeded_anew(cluster, name, before)
        progress.wait_for_receipts()

    run_trial(cluster, during, groups)
