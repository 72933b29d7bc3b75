"""What a member of a view had on disk is damaged: it is left out, and comes back with a copy of the log."""

import pytest

from ordercast.local.cluster import LocalCluster, wait_until
from ordercast.protocols.isis import records
from ordercast.runtime.storage.layout import RECORDS
from ordercast.v1.gateway_pb2 import DescribeGroupRequest
from tests.cluster.asking import raw
from tests.cluster.changing import OPTIONS, flip, group_of
from tests.cluster.conftest import MakeCluster
from tests.cluster.synchrony import CAUSAL, TOTAL, run_in_views, wait_until_back, with_domains
from tests.cluster.trial import PATIENCE_S, Progress, log_of, start_again

FOUND = '"damaged record"'


@pytest.fixture(scope="module")
def cluster(make_module_cluster: MakeCluster) -> LocalCluster:
    return with_domains(make_module_cluster(fault_injection=True, options=OPTIONS))


def damaged_records(cluster: LocalCluster, group: str, node: str) -> int:
    with raw(cluster.gateways[0]) as stub:
        answer = stub.DescribeGroup(DescribeGroupRequest(name=group), timeout=PATIENCE_S)
    return next((replica.log.damaged_records for replica in answer.replicas if replica.node == node), -1)


@pytest.mark.parametrize(
    ("ordering", "kind"),
    [(CAUSAL, records.POSITION), pytest.param(TOTAL, records.PRODUCER, marks=pytest.mark.long)],
)
def test_a_damaged_record_has_its_group_copied_anew_under_load(
    cluster: LocalCluster, ordering: str, kind: bytes
) -> None:
    groups = [f"damaged-{ordering}-{letter}" for letter in "ab"]

    def during(progress: Progress) -> None:
        progress.wait_for_receipts()
        group = group_of(cluster, groups[0])
        name = group.replicas[-1]
        cluster.kill(name)
        before = len(log_of(cluster, name))
        prefix = f"{ordering}\0isis\0".encode() + kind + group.id.encode()
        assert flip(cluster.members[name].data, RECORDS, prefix, lambda keys: keys[:1])
        start_again(cluster, name)
        assert log_of(cluster, name)[before:].count(FOUND) == 1
        progress.wait_for_receipts()
        back = wait_until_back(cluster, groups[0], name)
        assert back.configuration > group.configuration
        wait_until("the damage is over", lambda: damaged_records(cluster, groups[0], name) == 0, PATIENCE_S)
        progress.wait_for_receipts()

    run_in_views(cluster, groups, during, ordering)
