"""Bad input, and what cannot be done: what is said, and the exit code."""

from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.local.cluster import HOST, LocalCluster
from tests.cli.cluster_commands.commands import NOWHERE, document, run

pytestmark = pytest.mark.usefixtures("gateway")


@pytest.mark.parametrize(
    "args",
    [
        ("domain", "describe", "nowhere"),
        ("group", "describe", "nowhere"),
        ("group", "delete", "nowhere", "--yes"),
        ("group", "create", "x", "--domain", "nowhere"),
        ("cursor", "list", "nowhere"),
        ("cursor", "set", "nowhere", "c", "earliest"),
        ("subscribe", "nowhere", "--from", "earliest"),
    ],
)
def test_what_is_not_there_is_exit_code_3(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 3, result.output
    assert "nowhere" in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("status", "-g", "no-port"),
        ("status", "-g", "host:0"),
        ("status", "-g", "http://host:7400"),
        ("status", "-g", ","),
        ("status", "--timeout", "0"),
        ("status", "--ca", "/no/such/file"),
        ("status", "--cert", __file__),
        ("status", "--server-name", "gateway"),
        ("status", "--ca", __file__, "--server-name", ""),
        ("status", "--cert", __file__, "--cert-key", __file__),
        ("domain", "create", "d", "--set", "no-equals-sign"),
        ("domain", "create", "d", "--set", "a=1", "--set", "a=2"),
        ("group", "create"),
        ("group", "create", "x", "--replicas", "-1"),
        ("group", "create", "x", "--retention-age", "soon"),
        ("group", "add-replica", "x", "--timeout", "0"),
        ("group", "add-replica", "x", "--with", "n"),
        ("group", "replace"),
        ("node", "drain"),
        ("node", "drain", "n", "--timeout", "-1"),
        ("node", "give-up-disk", "n"),
        ("rebalance", "--timeout", "soon"),
        ("cursor", "set", "g", "c", "somewhere"),
        ("cursor", "set", "g", "c", str(1 << 64)),
        ("publish", "g"),
        ("publish", "g", "message", "--lines"),
        ("publish", "g", "--file", "/no/such/file"),
        ("publish", "g", "message", "--header", "no-equals-sign"),
        ("publish", "g", "message", "--cert", __file__, "--cert-key", __file__),
        ("subscribe", "g", "--from", "somewhere"),
        ("subscribe", "g", "--ack"),
        ("subscribe", "g", "--limit", "0"),
        ("subscribe", "g", "--json", "--payload-only"),
        ("subscribe", "g", "--json", "--format", "{payload}"),
        ("subscribe", "g", "--format", "{payload"),
        ("subscribe", "g", "--format", "{payload.__class__}"),
        ("subscribe", "g", "--format", "{payload!r}"),
        ("subscribe", "g", "--format", "{payload:d}"),
        ("subscribe", "g", "--format", "{}"),
        ("subscribe", "g", "--live", "--format", "{offset}"),
        ("subscribe", "g", "--live", "--last", "3"),
        ("subscribe", "g", "--from", "earliest", "--last", "3"),
        ("subscribe", "g", "--from", "10x"),
        ("subscribe", "g", "--from", "2026-13-01"),
        ("up", "--nodes", "0"),
        ("up", "--port", "65535"),
        ("up", "--telemetry", "4317"),
    ],
)
def test_wrong_usage_is_exit_code_2_before_anything_is_dialled(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert "Error" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "args",
    [
        ("status",),
        ("verify",),
        ("domain", "list"),
        ("group", "list"),
        ("group", "add-replica", "g"),
        ("group", "cancel-change", "g"),
        ("node", "list"),
        ("node", "drain", "n"),
        ("rebalance",),
        ("cursor", "list", "g"),
        ("publish", "g", "message"),
        ("subscribe", "g", "--from", "earliest"),
    ],
)
def test_a_cluster_that_cannot_be_reached_is_exit_code_6(args: tuple[str, ...]) -> None:
    result = run(*args, *NOWHERE, "--json")
    assert result.exit_code == 6, result.output
    assert "error:" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("args", [("status",), ("verify",), ("publish", "g", "message"), ("subscribe", "g")])
def test_without_a_server_it_says_at_once_where_it_looked_and_how_to_start_one(
    args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait_for_one(*args: Any, **options: Any) -> None:
        raise AssertionError("this would go on until the timeout is over")

    monkeypatch.setattr("ordercast.client.sync.connect_sync", wait_for_one)
    monkeypatch.setattr("ordercast.client.transport.sync_channel", wait_for_one)
    result = run(*args, "-g", f"{HOST}:1,localhost:1")
    assert result.exit_code == 6
    for word in (f"nobody listens at {HOST}:1", "localhost:1", "ordercast up", "--gateway"):
        assert word in result.stderr


@pytest.mark.parametrize("args", [("status",), ("publish", "g", "message"), ("subscribe", "g")])
def test_the_port_for_peers_is_told_from_a_gateway(cluster: LocalCluster, args: tuple[str, ...]) -> None:
    peers = f"{HOST}:{cluster.members['node-1'].peer_port}"
    result = run(*args, "-g", peers)
    assert result.exit_code == 5
    for word in ("port for peers", "7400", peers):
        assert word in result.stderr


def test_the_next_gateway_is_used_if_the_first_does_not_answer(cluster: LocalCluster) -> None:
    assert document("status", "-g", f"{HOST}:1,{cluster.gateways[1]}", "--timeout", "10")["gateway"] == "node-2"


def test_a_group_that_exists_is_exit_code_4_unless_it_was_asked_for_only_if_missing(group: str) -> None:
    assert run("group", "create", group).exit_code == 4
    assert document("group", "create", group, "--if-missing")[0]["name"] == group
    document("domain", "create", "missed", "--set", "gossip_s=0.02")
    kept = document("domain", "create", "missed", "--set", "gossip_s=0.03", "--if-missing")
    assert kept["settings"] == {"gossip_s": "0.02"}


def test_an_offset_that_does_not_exist_is_exit_code_7(group: str) -> None:
    result = run("cursor", "set", group, "c", "1000")
    assert result.exit_code == 7
    assert "there are no messages, and 0 is next" in result.stderr
    document("publish", group, "--lines", stdin="a\nb\n")
    result = run("subscribe", group, "--from", "1000")
    assert result.exit_code == 7
    assert "there are 0 to 1, and 2 is next" in result.stderr


def test_what_no_message_can_be_is_refused(cluster: LocalCluster, group: str, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(1 << 20))
    assert run("publish", group, "--file", str(large), "--key", "k").exit_code == 0
    with ordercast.connect_sync(*cluster.gateways) as client:
        assert client.publish(large.read_bytes(), to=[group]).offsets == {group: 1}
        with pytest.raises(ordercast.errors.InvalidArgument, match="1048577 bytes; at most 1048576"):
            client.publish(bytes((1 << 20) + 1), to=[group])
    large.write_bytes(bytes((1 << 20) + 1))
    assert run("publish", group, "--file", str(large)).exit_code == 2
    assert run("publish", group, "--lines", stdin=bytes((1 << 20) + 1)).exit_code == 2
    assert run("publish", f"{group},{group}", "twice").exit_code == 5
    assert run("publish", f"{group},", "to nobody").exit_code == 5
