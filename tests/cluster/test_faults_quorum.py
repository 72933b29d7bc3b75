"""A destination group without a quorum: what is for it waits, and everything else goes on."""

import pytest

from ordercast.errors import DeadlineExceeded, OutcomeUnknown, Unavailable
from ordercast.local.setup import create_groups
from ordercast.v1.gateway_pb2 import DescribeGroupRequest
from tests.cluster.asking import raw
from tests.cluster.trial import Progress, gateway_of, others_than, run_trial, start_again

SMALL = ("small-1", "small-2")
DEADLINE_S = 2.0


def test_messages_to_a_group_without_a_quorum_wait_and_other_groups_go_on(make_cluster):
    """The small groups have one replica each. Messages to both of them are under way when one replica dies."""
    cluster = make_cluster(nodes=5, fault_injection=True)
    create_groups(cluster.gateways, SMALL, replicas=1)
    with raw(cluster.gateways[0]) as stub:
        described = [stub.DescribeGroup(DescribeGroupRequest(name=name), timeout=10.0) for name in SMALL]
    host, other_host = (group.group.replicas[0] for group in described)
    assert host != other_host, "groups are spread over the nodes"

    def during(progress: Progress) -> None:
        cluster.kill(host)
        progress.wait_for_receipts()
        gateway = gateway_of(cluster, others_than(cluster, host)[0])
        for groups in (SMALL[:1], SMALL):
            # The last one of a gateway that had no time for it: it was never sent.
            with pytest.raises((Unavailable, OutcomeUnknown, DeadlineExceeded)):
                progress.publish(gateway, "+".join(groups).encode(), groups, DEADLINE_S)
        progress.wait_for_receipts()
        start_again(cluster, host)
        progress.publish(gateway, b"returned", SMALL, 60.0)

    run_trial(cluster, during, beside=SMALL)
