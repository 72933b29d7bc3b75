"""A node is drained under load: everything it held moves away, nothing of it stays on its disk, and it can go."""

import pytest

from ordercast.errors import FailedPrecondition
from ordercast.local.cluster import LocalCluster, wait_until
from ordercast.v1.membership_pb2 import Group
from tests.cluster.asking import assert_replicas_agree
from tests.cluster.changing import ask, change, group_of, groups_on_disk, node_of, wait_until_settled
from tests.cluster.trial import PATIENCE_S, Progress, gateway_of, run_trial, start_again


def members_of(group: Group) -> set[str]:
    """Of all configurations that count."""
    configurations = (group, group.previous, group.next)
    return {name for c in configurations for name in (*c.replicas, *c.acceptors)}


def drain(cluster: LocalCluster, name: str) -> None:
    """Until it has no part in anything."""
    node = ask(cluster, lambda connection: connection.drain_node(name))
    assert node.draining

    def is_empty() -> bool:
        found = ask(cluster, lambda connection: connection.cluster())
        return found.revision >= node.revision and not any(name in members_of(group) for group in found.groups)

    wait_until(f"{name} is drained", is_empty, PATIENCE_S)


def test_a_drained_node_holds_nothing_and_can_be_removed_and_come_back_under_its_name(make_cluster):
    cluster = make_cluster(nodes=3, workers=2, fault_injection=True)
    groups = ["a", "b", "c", "d"]

    def during(progress: Progress) -> None:
        before = {name: group_of(cluster, name) for name in groups}
        held = [name for name in groups if "node-5" in before[name].replicas]
        assert held, "a node that has nothing is nothing to drain"
        with pytest.raises(FailedPrecondition, match="drain it first"):
            ask(cluster, lambda connection: connection.remove_node("node-5"))
        drain(cluster, "node-5")
        progress.wait_for_receipts()
        for name in held:
            assert len(group_of(cluster, name).replicas) == 3
            assert group_of(cluster, name).configuration > before[name].configuration
        # Its gateway still serves, and it gets nothing new.
        progress.publish(gateway_of(cluster, "node-5"), b"at a drained node", ["a", "b"], PATIENCE_S)
        with pytest.raises(FailedPrecondition, match="it is being drained"):
            ask(cluster, lambda c: c.change_replicas("a", "add", to="node-5"))

        # Old members delete what they had when they hear that the change is done.
        data, old = cluster.members["node-5"].data, list(before.values())
        wait_until("nothing is on its disk", lambda: not any(groups_on_disk(data, old).values()), PATIENCE_S)
        cluster.kill("node-5")
        on_disk = groups_on_disk(data, old)
        assert not any(on_disk.values()), on_disk
        ask(cluster, lambda connection: connection.remove_node("node-5"))
        wait_until("it is forgotten", lambda: node_of(cluster, "node-5") is None, PATIENCE_S)
        progress.wait_for_receipts()

        # The name is free: the same process registers anew, and can take something.
        start_again(cluster, "node-5")
        wait_until("it is known", lambda: node_of(cluster, "node-5") is not None, PATIENCE_S)
        assert not node_of(cluster, "node-5").draining
        moved = group_of(cluster, held[0])
        assert "node-5" in change(cluster, held[0], "replace", moved.replicas[0], "node-5").replicas
        wait_until_settled(cluster, groups)
        progress.wait_for_receipts()

    run_trial(cluster, during, groups)

    # A membership node can be emptied as well, but it stays; and it can be used again.
    drain(cluster, "node-1")
    with pytest.raises(FailedPrecondition, match="one of the membership nodes"):
        ask(cluster, lambda connection: connection.remove_node("node-1"))
    node = ask(cluster, lambda connection: connection.drain_node("node-1", draining=False))
    assert not node.draining
    assert "node-1" in change(cluster, "a", "add", to="node-1").replicas
    wait_until_settled(cluster, groups)
    assert_replicas_agree(cluster.gateways[0])
