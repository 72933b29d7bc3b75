"""Cuts of the network under load: of a minority, in one direction, between two, flapping, and with a crash."""

import time
from random import Random

import pytest

from ordercast.errors import DeadlineExceeded, OutcomeUnknown, Unavailable
from ordercast.local.cluster import LocalCluster
from ordercast.v1.faults_pb2 import InjectRequest
from tests.cluster.trial import (
    Progress,
    gateway_of,
    membership_leader,
    mend,
    others_than,
    run_trial,
)

#: What a client hears by its deadline from a gateway that cannot do anything for it.
NO_SERVICE = (Unavailable, DeadlineExceeded, OutcomeUnknown)
DEADLINE_S = 5.0
FLAPS = 6


@pytest.fixture(scope="module")
def cluster(make_module_cluster) -> LocalCluster:
    """Each trial has groups of its own, and mends what it broke."""
    return make_module_cluster(fault_injection=True)


def test_the_majority_serves_and_clients_of_the_minority_hear_so_by_their_deadline(cluster):
    """The node that is cut off led membership."""
    groups = ["minority-a", "minority-b", "minority-c"]

    def during(progress: Progress) -> None:
        leader = membership_leader(cluster)
        assert leader is not None
        cluster.partition([leader], others_than(cluster, leader))
        progress.wait_for_receipts()
        with pytest.raises(NO_SERVICE):
            progress.publish(gateway_of(cluster, leader), b"from the minority", groups[:2], DEADLINE_S)
        progress.wait_for_receipts()
        cluster.heal()
        progress.publish(gateway_of(cluster, leader), b"healed", groups[:2], 60.0)
        progress.wait_for_receipts()

    run_trial(cluster, during, groups)


def test_nodes_that_are_deaf_or_cut_off_from_one_other_do_not_hold_up_the_rest(cluster):
    first, second, third = cluster.members

    def during(progress: Progress) -> None:
        # It hears nobody, and everybody hears it. It is the one that gateways let coordinate.
        cluster.inject(third, InjectRequest(deaf_to=[first, second]))
        progress.wait_for_receipts()
        cluster.heal()
        progress.wait_for_receipts()
        # The third is the only one that both others hear.
        cluster.partition([first], [second])
        progress.wait_for_receipts()

    run_trial(cluster, during, ["deaf-a", "deaf-b", "deaf-c"])


@pytest.mark.long
def test_a_network_that_flaps_loses_nothing(cluster):
    random = Random(1)

    def during(progress: Progress) -> None:
        for _ in range(FLAPS):
            lonely = random.choice(others_than(cluster))
            cluster.partition([lonely], others_than(cluster, lonely))
            time.sleep(random.uniform(0.1, 1.5))
            cluster.heal()
            time.sleep(random.uniform(0.0, 0.5))
        progress.wait_for_receipts()

    run_trial(cluster, during, ["flapping-a", "flapping-b", "flapping-c"])


def test_a_crash_with_a_partition_or_a_pause_stops_service_and_splits_nothing(cluster):
    """Two of three are gone in each case: whoever is left must not go on alone."""
    groups = ["split-a", "split-b", "split-c"]
    first, second, third = cluster.members

    def during(progress: Progress) -> None:
        cluster.partition([second], [third])
        cluster.kill(first)
        for name in (second, third):
            with pytest.raises(NO_SERVICE):
                progress.publish(gateway_of(cluster, name), f"alone at {name}".encode(), groups[:1], DEADLINE_S)
        mend(cluster)
        progress.wait_for_receipts()
        cluster.pause(second)
        cluster.kill(third)
        with pytest.raises(NO_SERVICE):
            progress.publish(gateway_of(cluster, first), b"alone at last", groups[:1], DEADLINE_S)
        mend(cluster)
        progress.wait_for_receipts()

    run_trial(cluster, during, groups)
