"""SIGKILL under load: of each kind of process, of a node, of all nodes, and again and again at any moment."""

import time
from random import Random

import pytest

from ordercast.local.cluster import LocalCluster
from tests.cluster.trial import AGAIN, Progress, membership_leader, others_than, run_trial, start_again

KILLS = 10


@pytest.fixture(scope="module")
def apart(make_module_cluster) -> LocalCluster:
    """Each service of each node is a process."""
    return make_module_cluster(separate=True, fault_injection=True)


@pytest.fixture(scope="module")
def together(make_module_cluster) -> LocalCluster:
    """Each node is one process. Trials have groups of their own."""
    return make_module_cluster(fault_injection=True)


def victims(cluster: LocalCluster, kind: str) -> list[str]:
    """One after the other. Of equal ones that could do it, the sequencer with the highest name coordinates."""
    leader = membership_leader(cluster)
    assert leader is not None
    match kind:
        case "membership leader":
            return [leader]
        case "membership follower":
            return [next(m.name for m in cluster.running("membership") if m.name != leader)]
        case "gateway":
            return [member.name for member in cluster.running("gateway")]
        case _:
            return [f"{kind}-3"]


@pytest.mark.parametrize(
    "kind",
    [
        "membership leader",
        "sequencer",
        *(pytest.param(kind, marks=pytest.mark.long) for kind in ("membership follower", "consensus", "gateway")),
    ],
)
def test_any_kind_of_process_can_be_killed_under_load(apart, kind):
    def during(progress: Progress) -> None:
        for name in victims(apart, kind):
            apart.kill(name)
            progress.wait_for_receipts()
            start_again(apart, name)

    groups = [f"{kind.replace(' ', '-')}-{letter}" for letter in "abc"]
    run_trial(apart, during, groups)


@pytest.mark.long
def test_every_node_can_be_killed_under_load_while_the_others_serve(together):
    def during(progress: Progress) -> None:
        for name in together.members:
            together.kill(name)
            progress.wait_for_receipts()
            start_again(together, name)
        progress.wait_for_receipts()

    run_trial(together, during, ["each-a", "each-b", "each-c"])


def test_all_nodes_can_be_killed_at_once_twice_in_a_row(together):
    def during(progress: Progress) -> None:
        for _ in range(2):
            together.kill(*together.members)
            start_again(together, *together.members)
        progress.wait_for_receipts()

    run_trial(together, during, ["all-a", "all-b", "all-c"])


def test_nodes_can_be_killed_at_any_moment_of_a_commit_or_a_start(together):
    random = Random(1)

    def during(progress: Progress) -> None:
        for _ in range(KILLS):
            # Those that were killed before may still be starting: a few receipts show that a majority is there.
            progress.wait_for_receipts(AGAIN // 4)
            time.sleep(random.uniform(0.0, 0.2))
            name = random.choice(others_than(together))
            together.kill(name)
            together.start([name])

    run_trial(together, during, ["any-a", "any-b", "any-c"])
