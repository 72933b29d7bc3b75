"""SIGSTOP under load: a process that was away for long comes back and still believes that it is in charge."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.trial import Progress, gateway_of, membership_leader, run_trial

PAUSE_S = 20.0


@pytest.mark.long
def test_the_node_that_leads_membership_is_paused_and_acknowledges_nothing_stale(make_cluster):
    """Clients of its gateway that know no other one wait, and get true receipts."""
    cluster = make_cluster(fault_injection=True)

    def during(progress: Progress) -> None:
        leader = membership_leader(cluster)
        assert leader is not None
        resumed = time.monotonic() + PAUSE_S
        cluster.pause(leader)
        with ThreadPoolExecutor(1) as executor:
            gateway = gateway_of(cluster, leader)
            patient = executor.submit(progress.publish, gateway, b"patient", ["a", "b", "c"], 4 * PAUSE_S)
            assert membership_leader(cluster) not in (leader, None)
            progress.wait_for_receipts()
            time.sleep(max(0.0, resumed - time.monotonic()))
            progress.wait_for_receipts()
            cluster.resume(leader)
            patient.result()
        progress.wait_for_receipts()

    run_trial(cluster, during)


@pytest.mark.long
def test_the_process_that_coordinates_is_paused_and_others_take_over(make_cluster):
    """Where all could do it, gateways name the replica with the highest name."""
    cluster = make_cluster(separate=True, fault_injection=True)

    def during(progress: Progress) -> None:
        resumed = time.monotonic() + PAUSE_S
        cluster.pause("sequencer-3")
        progress.wait_for_receipts()
        time.sleep(max(0.0, resumed - time.monotonic()))
        progress.wait_for_receipts()
        cluster.resume("sequencer-3")
        progress.wait_for_receipts()

    run_trial(cluster, during)
