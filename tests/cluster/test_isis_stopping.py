"""Members of virtually synchronous groups that are told to stop: they take part in the end of their views."""

import os
import signal

import pytest

from ordercast.local.cluster import LocalCluster
from tests.cluster.conftest import MakeCluster
from tests.cluster.synchrony import (
    CAUSAL,
    TOTAL,
    run_in_views,
    wait_until_back,
    wait_until_left_out,
    with_domains,
)
from tests.cluster.trial import PATIENCE_S, Progress, others_than, start_again

#: Nobody is found missing in time: only who says that it leaves is left out.
NEVER_SUSPECTED = ("--detection.suspect-s=200",)


@pytest.fixture(scope="module")
def cluster(make_module_cluster: MakeCluster) -> LocalCluster:
    return with_domains(make_module_cluster(fault_injection=True, options=NEVER_SUSPECTED))


def stop(cluster: LocalCluster, name: str) -> int:
    process = cluster.members[name].process
    assert process is not None
    os.kill(process.pid, signal.SIGTERM)
    return process.wait(PATIENCE_S)


@pytest.mark.long
@pytest.mark.parametrize("ordering", [CAUSAL, TOTAL])
def test_each_member_stops_in_turn_and_its_groups_go_on_without_missing_it(cluster, ordering):
    """It would be missed after minutes. If groups go on, it is because it said that it leaves."""
    groups = [f"stopped-{ordering}-{letter}" for letter in "abc"]
    codes: dict[str, int] = {}

    def during(progress: Progress) -> None:
        for name in others_than(cluster):
            codes[name] = stop(cluster, name)
            for group in groups:
                wait_until_left_out(cluster, group, name)
            progress.wait_for_receipts()
            start_again(cluster, name)
            wait_until_back(cluster, groups[0], name)

    run_in_views(cluster, groups, during, ordering)
    assert codes == dict.fromkeys(cluster.members, 0)


def test_the_whole_cluster_stops_and_comes_back_with_everything(cluster):
    """The last one cannot leave: there is nobody to go on. It does not wait for that."""
    groups = ["whole-a", "whole-b"]
    codes: list[dict[str, int]] = []

    def during(progress: Progress) -> None:
        codes.append(cluster.stop())
        start_again(cluster, *cluster.members)
        progress.wait_for_receipts()

    run_in_views(cluster, groups, during)
    assert codes == [dict.fromkeys(cluster.members, 0)]
