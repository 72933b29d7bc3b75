"""Whether a cluster is well, and its replicas agree."""

import json

import pytest

from ordercast.local.cluster import LocalCluster, wait_until
from tests.cli.cluster_commands.commands import document, run, text

pytestmark = pytest.mark.usefixtures("gateway")


def test_the_status_of_a_healthy_cluster_is_exit_code_0(group: str) -> None:
    found = document("status")
    assert found["healthy"] is True
    assert [node["state"] for node in found["nodes"]] == ["up", "up", "up"]
    logs = next(each["logs"] for each in found["groups"] if each["name"] == group)
    assert [log["next_offset"] for log in logs] == [0, 0, 0]
    assert "healthy" in text("status")


def test_verify_finds_agreement(group: str) -> None:
    text("publish", group, "--lines", stdin="a\nb\n")
    report = document("verify")
    assert report["ok"] is True
    found = next(each for each in report["groups"] if each["group"] == group)
    assert (found["messages"], found["unreachable"]) == (2, {})
    assert "All replicas agree" in text("verify")


def test_a_node_that_is_down_is_exit_code_1_and_named(cluster: LocalCluster, group: str) -> None:
    gateway = ("-g", cluster.gateways[0])
    cluster.kill("node-3")
    try:
        wait_until("node-3 is suspected", lambda: run("status", *gateway).exit_code == 1, timeout_s=60)
        found = json.loads(run("status", *gateway, "--json").stdout)
        assert found["healthy"] is False
        assert "node node-3 is suspected" in found["troubles"]
        assert "node node-3 is suspected" in run("status", *gateway).stdout
        result = run("verify", *gateway, "--json")
        report = json.loads(result.stdout)
        assert (result.exit_code, report["agrees"], report["complete"]) == (1, True, False)
        assert "node-3" in next(each for each in report["groups"] if each["group"] == group)["unreachable"]
        assert "some replicas could not be" in text("verify", *gateway, "--allow-missing")
    finally:
        cluster.start(["node-3"])
        cluster.wait_healthy()
    wait_until("node-3 is back", lambda: run("status", *gateway).exit_code == 0, timeout_s=60)
