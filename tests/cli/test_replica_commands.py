"""Changing replicas and nodes of a cluster of real processes, from the command line, while messages are kept."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ordercast.cli.connection import GATEWAY_VARIABLE
from ordercast.cli.main import app
from ordercast.local.cluster import LocalCluster, wait_until

#: For each command that waits. A machine that runs other tests at the same time is slow.
PATIENCE = ("--timeout", "90")
NODES = ["node-1", "node-2", "node-3", "node-4"]
#: Not one of the membership nodes, so that it can be removed.
SPARE = "node-4"
MESSAGES = [f"message {number}" for number in range(50)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster"), nodes=len(NODES)) as started:
        spare = started.members[SPARE]
        spare.services = tuple(service for service in spare.services if service != "membership")
        started.start()
        started.wait_healthy()
        yield started
        started.stop()


@pytest.fixture(scope="module", autouse=True)
def gateway(cluster: LocalCluster) -> Iterator[None]:
    """The spare node is not asked: it comes and goes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(GATEWAY_VARIABLE, ",".join(cluster.gateways[:3]))
        patch.setenv("COLUMNS", "200")
        # Refused until it is agreed that all nodes understand such commands; and then there is nothing to do.
        wait_until("the cluster has its level", lambda: run("node", "undrain", SPARE).exit_code == 0, timeout_s=60)
        yield


def run(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(args), input=stdin)


def document(*args: str, stdin: str | None = None) -> Any:
    result = run(*args, "--json", stdin=stdin)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Iterator[str]:
    """A group of the test's own on the membership nodes, with messages in it; gone afterwards."""
    name = request.node.name.removeprefix("test_")[:60].strip("_")
    replicas = document("group", "create", name)[0]["replicas"]
    if SPARE in replicas:
        (other,) = set(NODES) - set(replicas)
        document("group", "replace", name, "--node", SPARE, "--with", other, *PATIENCE)
    document("publish", name, "--lines", stdin="\n".join(MESSAGES))
    yield name
    document("group", "delete", name, "--yes")


def messages_of(group: str) -> list[str]:
    result = run("subscribe", group, "--until-end", "--payload-only")
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_a_replica_is_added_with_the_whole_log_and_removed_again(group: str) -> None:
    found = document("group", "add-replica", group, "--node", SPARE, *PATIENCE)
    assert found["replicas"] == NODES
    logs = document("group", "describe", group)["logs"]
    assert [log["next_offset"] for log in logs if log["node"] == SPARE] == [len(MESSAGES)]
    document("publish", group, "one more")
    assert messages_of(group) == [*MESSAGES, "one more"]
    assert document("verify")["ok"] is True
    found = document("group", "remove-replica", group, "--node", "node-1", *PATIENCE)
    assert found["replicas"] == NODES[1:]
    assert messages_of(group) == [*MESSAGES, "one more"]


def test_a_replica_is_replaced_by_one_on_another_node(group: str) -> None:
    found = document("group", "replace", group, "--node", "node-2", "--with", SPARE, *PATIENCE)
    assert found["replicas"] == ["node-1", "node-3", SPARE]
    document("publish", group, "one more")
    assert messages_of(group) == [*MESSAGES, "one more"]
    assert document("verify")["ok"] is True


def test_a_newcomer_that_is_away_is_waited_for_until_the_change_is_cancelled(
    cluster: LocalCluster, group: str
) -> None:
    cluster.pause(SPARE)
    try:
        result = run("group", "add-replica", group, "--node", SPARE, "--timeout", "5")
        # Refused once membership suspects the node; until then it is chosen, and copies nothing.
        if result.exit_code == 6:
            assert f"{SPARE} copies the log" in result.stderr
            assert document("group", "cancel-change", group)["next"] is None
        else:
            assert result.exit_code == 5, result.output
        assert document("group", "describe", group)["replicas"] == NODES[:3]
    finally:
        cluster.resume(SPARE)
    _wait_until_healthy()


def test_a_node_is_drained_by_moving_what_it_holds(group: str) -> None:
    found = document("node", "drain", "node-1", *PATIENCE)
    assert found["groups"] == []
    try:
        assert document("group", "describe", group)["replicas"] == NODES[1:]
        assert messages_of(group) == MESSAGES
        listed = {node["name"]: node for node in document("node", "list")}
        assert (listed["node-1"]["draining"], listed["node-1"]["groups"]) == (True, [])
    finally:
        document("node", "undrain", "node-1")


def test_draining_without_a_node_to_go_to_names_the_groups(group: str) -> None:
    document("group", "add-replica", group, "--node", SPARE, *PATIENCE)
    result = run("node", "drain", "node-1", *PATIENCE)
    assert result.exit_code == 1
    assert group in result.stderr
    document("node", "undrain", "node-1")


def test_rebalancing_does_what_its_dry_run_says(group: str) -> None:
    plan = document("rebalance", "--dry-run")
    done = document("rebalance", *PATIENCE)
    assert [{key: move[key] for key in ("group", "from", "to", "why")} for move in done] == plan
    assert document("rebalance", "--dry-run") == []
    assert messages_of(group) == MESSAGES
    assert document("verify")["ok"] is True


def test_a_node_with_a_new_disk_is_a_new_member_once_the_old_one_is_given_up(
    cluster: LocalCluster, group: str
) -> None:
    document("group", "replace", group, "--node", "node-3", "--with", SPARE, *PATIENCE)
    assert run("node", "give-up-disk", SPARE, "--yes").exit_code == 5, "it is alive"
    cluster.kill(SPARE)
    wait_until("it is suspected", lambda: _state_of(SPARE) != "up", timeout_s=60)
    assert document("node", "give-up-disk", SPARE, "--yes")["disk_lost"] is True
    shutil.rmtree(cluster.members[SPARE].data)
    cluster.start([SPARE])
    cluster.wait_healthy([SPARE])
    wait_until("it has its replicas again", lambda: not _lost(group), timeout_s=90)
    _wait_until_healthy()
    assert messages_of(group) == MESSAGES
    assert document("verify")["ok"] is True


def test_a_node_that_is_empty_is_removed(cluster: LocalCluster) -> None:
    """The last test: the node is gone then."""
    result = run("node", "remove", "node-1")
    assert result.exit_code == 5
    assert "membership" in result.stderr
    document("node", "drain", SPARE, *PATIENCE)
    assert document("node", "remove", SPARE)["removed"] is True
    wait_until("nobody knows it", lambda: SPARE not in _names(), timeout_s=30)


def _lost(group: str) -> list[str]:
    lost: list[str] = document("group", "describe", group)["lost"]
    return lost


def _names() -> list[str]:
    return [node["name"] for node in document("node", "list")]


def _state_of(name: str) -> str:
    return next(str(node["state"]) for node in document("node", "list") if node["name"] == name)


def _wait_until_healthy() -> None:
    wait_until("the cluster is healthy", lambda: run("status").exit_code == 0, timeout_s=90)
