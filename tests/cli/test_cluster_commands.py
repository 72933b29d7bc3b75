"""Commands that talk to a cluster and the one that runs it, with real processes: output, exit codes, bad input."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner, Result

import ordercast
from ordercast.cli.connection import GATEWAY_VARIABLE
from ordercast.cli.main import COMMANDS, app, load
from ordercast.local.cluster import HOST, LocalCluster, free_ports, wait_until
from ordercast.v1.sequencer_pb2 import DescribeReplicaRequest
from ordercast.v1.sequencer_pb2_grpc import SequencerServiceStub
from tests.left_out import leave_out

#: Nobody listens there.
NOWHERE = ("-g", f"{HOST}:1", "--timeout", "0.5")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as started:
        started.start()
        started.wait_healthy()
        yield started
        started.stop()


@pytest.fixture(scope="module")
def gateway(cluster: LocalCluster) -> Iterator[None]:
    """Commands find the cluster by the environment, as they would in a shell."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(GATEWAY_VARIABLE, ",".join(cluster.gateways))
        patch.setenv("COLUMNS", "200")
        yield


pytestmark = pytest.mark.usefixtures("gateway")


def run(*args: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(args), input=stdin)


def text(*args: str, stdin: str | bytes | None = None) -> str:
    result = run(*args, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def document(*args: str, stdin: str | bytes | None = None) -> Any:
    """What stdout holds is one document and nothing else."""
    return json.loads(text(*args, "--json", stdin=stdin))


def unwrapped(shown: str) -> str:
    """A message of wrong usage, without its frame."""
    return " ".join(shown.replace("│", " ").split())


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """A group of the test's own."""
    name = re.sub("[^a-z0-9_]+", "_", request.node.name.removeprefix("test_"))[:60].strip("_")
    document("group", "create", name)
    wait_until_known(name)
    return name


def wait_until_known(name: str) -> None:
    """A group is made when the gateway knows of it that was asked; its replicas may hear of it a moment later."""

    def is_known() -> bool:
        return not any(log["error"] for log in document("group", "describe", name)["logs"])

    wait_until(f"all replicas know {name}", is_known, timeout_s=60)


# ---------------------------------------------------------------------------------------------------- domain


def test_a_domain_is_created_listed_and_described() -> None:
    made = document("domain", "create", "payments", "--set", "gossip_s=0.02")
    assert made["protocol"] == "scalatom"
    assert made["settings"] == {"gossip_s": "0.02"}
    assert made["name"] in [domain["name"] for domain in document("domain", "list")]
    document("group", "create", "pay-a", "pay-b", "--domain", "payments")
    assert document("domain", "describe", "payments")["groups"] == ["pay-a", "pay-b"]
    assert "gossip_s=0.02" in text("domain", "describe", "payments")
    assert "payments" in text("domain", "list")


def test_a_domain_that_exists_with_other_settings_is_exit_code_4() -> None:
    assert "ordered by scalatom" in text("domain", "create", "twice")
    assert run("domain", "create", "twice", "--set", "gossip_s=0.5").exit_code == 4


def test_a_setting_that_the_protocol_does_not_know_is_refused_by_name() -> None:
    result = run("domain", "create", "odd", "--set", "colour=blue")
    assert result.exit_code == 5
    assert "colour" in result.stderr
    assert result.stdout == ""


# ----------------------------------------------------------------------------------------------------- group


def test_groups_are_created_listed_described_and_deleted() -> None:
    made = document("group", "create", "g1", "g2", "--retention-bytes", "1000", "--retention-age", "7d")
    assert [group["name"] for group in made] == ["g1", "g2"]
    assert made[0]["retention"] == {"bytes": 1000, "age_s": 7 * 86_400}
    assert made[0]["replicas"] == ["node-1", "node-2", "node-3"]
    listed = {group["name"]: group for group in document("group", "list", "--domain", "default")}
    assert listed["g1"]["state"] == "active"
    wait_until_known("g1")
    described = document("group", "describe", "g1")
    assert [log["next_offset"] for log in described["logs"]] == [0, 0, 0]
    assert "1000 bytes and 604800 s" in text("group", "describe", "g1")
    assert document("group", "delete", "g1", "--yes")["state"] == "deleting"
    assert "is being deleted" in text("group", "delete", "g2", "--yes")


def test_one_replica_is_one_replica() -> None:
    assert len(document("group", "create", "alone", "--replicas", "1")[0]["replicas"]) == 1
    assert "alone" in text("group", "list")


def test_groups_before_the_one_that_fails_are_there_and_told() -> None:
    result = run("group", "create", "fresh", "Bad Name", "never", "--json")
    assert result.exit_code == 5
    assert [group["name"] for group in json.loads(result.stdout)] == ["fresh"]
    assert "Bad Name" in result.stderr
    assert run("group", "describe", "never").exit_code == 3


def test_a_group_is_not_deleted_without_a_yes(group: str) -> None:
    result = run("group", "delete", group)
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert document("group", "describe", group)["state"] == "active"


# ---------------------------------------------------------------------------------------------------- cursor


def test_a_cursor_is_set_listed_and_deleted(group: str) -> None:
    assert document("cursor", "set", group, "reader", "0") == {"group": group, "name": "reader", "offset": 0}
    assert "is at offset 0" in text("cursor", "set", group, "reader", "latest")
    assert [cursor["name"] for cursor in document("cursor", "list", group)] == ["reader"]
    assert "reader" in text("cursor", "list", group, "reader")
    assert document("cursor", "delete", group, "reader")["deleted"] is True
    assert run("cursor", "delete", group, "reader").exit_code == 3


# --------------------------------------------------------------------------------------- publish, subscribe


def lines_of(*args: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text("subscribe", *args, "--json").splitlines()]


def test_a_message_to_two_groups_has_one_place_in_the_order(group: str) -> None:
    document("group", "create", "other")
    receipt = document("publish", f"{group},other", "hello, both", "--key", "k", "--header", "colour=blue")
    assert receipt["offsets"] == {group: 0, "other": 0}
    assert receipt["duplicate"] is False
    found = [lines_of(name, "--until-end") for name in (group, "other")]
    for name, (delivery,) in zip((group, "other"), found, strict=True):
        assert datetime.fromisoformat(delivery.pop("stored_at")) <= datetime.now(UTC)
        assert delivery == {
            "group": name,
            "offset": 0,
            "order_key": receipt["order_key"],
            "message_id": receipt["message_id"],
            "payload": "hello, both",
            "key": "k",
            "headers": {"colour": "blue"},
        }
    assert f"{group} at 1, other at 1" in text("publish", f"other,{group}", "again", "--unordered")


def test_lines_become_messages_in_their_order(group: str) -> None:
    numbers = [str(number) for number in range(300)]
    receipts = document("publish", group, "--lines", stdin="\n".join(numbers))
    assert [receipt["offsets"][group] for receipt in receipts] == list(range(300))
    assert text("subscribe", group, "--until-end", "--payload-only").split() == numbers
    assert len(text("publish", group, "--lines", stdin="a\r\n\n").splitlines()) == 2
    assert [delivery["payload"] for delivery in lines_of(group, "--from", "300", "--until-end")] == ["a", ""]
    assert document("publish", group, "--lines", stdin="") == []


def test_a_file_is_published_as_it_is(group: str, tmp_path: Path) -> None:
    picture = tmp_path / "picture"
    picture.write_bytes(b"\xff\x00\n\x1b[31m")
    assert document("publish", group, "--file", str(picture))["offsets"] == {group: 0}
    assert document("publish", group, "--file", "-", stdin=b"from stdin")["offsets"] == {group: 1}
    assert lines_of(group, "--until-end")[0]["payload_base64"] == "/wAKG1szMW0="
    shown = text("subscribe", group, "--from", "earliest", "--limit", "2")
    assert shown.splitlines() == ["       0  \\xff\\x00\\n\\x1b[31m", "       1  from stdin"]


@pytest.mark.parametrize("args", [(), ("-",), ("--file", "-")])
def test_stdin_is_one_message_as_it_is(group: str, args: tuple[str, ...]) -> None:
    document("publish", group, *args, stdin=b"two\nlines\n")
    assert [delivery["payload"] for delivery in lines_of(group, "--until-end")] == ["two\nlines\n"]


@pytest.mark.parametrize("args", [(), ("-",), ("--file", "-")])
def test_an_empty_stdin_is_no_message(group: str, args: tuple[str, ...]) -> None:
    result = run("publish", group, *args, stdin="")
    assert result.exit_code == 2
    assert (
        f"stdin is empty, and nothing was published. A message without content is `ordercast publish {group} ''`"
        in (unwrapped(result.stderr))
    )
    document("publish", group, "")
    assert [delivery["payload"] for delivery in lines_of(group, "--until-end")] == [""]


def test_at_a_terminal_a_publish_without_a_message_shows_how_it_is_given() -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "ordercast.cli.main", "publish", "a,b"]
    try:
        done = subprocess.run(command, stdin=theirs, capture_output=True, text=True)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (done.returncode, done.stdout) == (2, "")
    for example in ("ordercast publish a,b 'hello'", "echo hello | ordercast publish a,b", "--lines"):
        assert example in unwrapped(done.stderr)


def test_a_named_producer_goes_on(group: str) -> None:
    first, second = (document("publish", group, text_, "--producer", "billing") for text_ in ("one", "two"))
    assert first["message_id"].startswith("billing-")
    assert first["message_id"] != second["message_id"]


def test_acknowledgements_move_the_cursor(group: str) -> None:
    document("publish", group, "--lines", stdin="a\nb\nc\n")
    first = lines_of(group, "--cursor", "reader", "--from", "earliest", "--ack", "--limit", "2")
    assert [delivery["payload"] for delivery in first] == ["a", "b"]
    assert document("cursor", "list", group)[0]["offset"] == 2
    assert [delivery["payload"] for delivery in lines_of(group, "--cursor", "reader", "--until-end")] == ["c"]
    assert document("cursor", "list", group)[0]["offset"] == 2


def test_a_new_cursor_begins_where_the_help_says(group: str) -> None:
    document("publish", group, "--lines", stdin="a\nb\n")
    found = lines_of(group, "--cursor", "whole", "--until-end", "--ack")
    assert [delivery["payload"] for delivery in found] == ["a", "b"]
    assert document("cursor", "list", group, "whole")[0]["offset"] == 2
    command = [sys.executable, "-m", "ordercast.cli.main", "subscribe", group, "--cursor", "news", "--limit", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        wait_until("the cursor exists", lambda: run("cursor", "list", group, "news").exit_code == 0, 60.0)
        text("publish", group, "c")
        assert process.communicate(timeout=60)[0].split() == ["2", "c"]


def test_messages_are_read_from_a_time_and_the_last_so_many(group: str) -> None:
    document("publish", group, "--lines", stdin="a\nb\nc\n")
    for start in ("1h", "2026-01-01", "2026-01-01T00:00+00:00"):
        assert text("subscribe", group, "--from", start, "--until-end", "--payload-only").split() == [
            "a",
            "b",
            "c",
        ]
    assert text("subscribe", group, "--last", "2", "--until-end", "--payload-only").split() == ["b", "c"]
    assert document("cursor", "set", group, "c", "1h")["offset"] == 0


def test_messages_are_printed_in_a_form_of_the_users_own(group: str) -> None:
    document("publish", group, "one", "--key", "k", "--header", "colour=blue", "--header", "size=1")
    document("publish", group, "--file", "-", stdin=b"\xff\n")
    whole = ("subscribe", group, "--until-end")
    assert text(*whole).splitlines()[0] == "       0  k:  one  [colour=blue, size=1]"
    form = r"{offset:>3}\t{key}\t{headers[colour]}|{headers}\t{{{payload}}}"
    printed = run(*whole, "--format", form, "--print0").stdout_bytes
    assert printed == b"  0\tk\tblue|colour=blue size=1\t{one}\0  1\t\t|\t{\xff\n}\0"
    assert run(*whole, "--payload-only", "--print0").stdout_bytes == b"one\0\xff\n\0"
    described = lines_of(group, "--until-end", "--limit", "1")[0]
    form = "{group} {message_id} {order_key} {stored_at} {sequence}"
    names = ("group", "message_id", "order_key", "stored_at")
    assert text(*whole, "--format", form, "--limit", "1").split()[:4] == [described[name] for name in names]


def test_live_delivery_says_which_protocol_has_it(group: str) -> None:
    result = run("subscribe", group, "--live")
    assert result.exit_code == 5
    assert "ordered by scalatom" in result.stderr
    assert "protocol isis" in result.stderr


def test_a_list_of_groups_is_told_what_to_do() -> None:
    result = run("subscribe", "a,b")
    assert result.exit_code == 2
    assert "one group" in " ".join(result.stderr.split())


def test_an_unknown_field_is_told_what_there_is() -> None:
    result = run("subscribe", "a", "--format", "{offset} {colour}")
    assert result.exit_code == 2
    assert "{colour}" in result.stderr
    assert "{message_id}" in result.stderr


def test_ctrl_c_ends_a_subscription_with_exit_code_0(group: str) -> None:
    text("publish", group, "first")
    command = [sys.executable, "-m", "ordercast.cli.main", "subscribe", group, "--from", "earliest"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith("first\n")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")


def test_a_reader_that_goes_away_is_no_failure(group: str) -> None:
    text("publish", group, "--lines", stdin="\n".join("x" * 1000 for _ in range(200)))
    command = (
        f"{sys.executable} -m ordercast.cli.main subscribe {group} --until-end | head -1; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_a_publish_that_fails_prints_no_receipt() -> None:
    result = run("publish", "nowhere", "lost", "--json")
    assert (result.exit_code, result.stdout) == (3, "")
    result = run("publish", "nowhere", "--lines", "--json", stdin="lost\nlost\n")
    assert (result.exit_code, json.loads(result.stdout)) == (3, [])


# --------------------------------------------------------------------------------------------- status, verify


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


# --------------------------------------------------------------------------------------------------- bad input


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


def test_the_help_has_the_table_of_exit_codes() -> None:
    shown = " ".join(text("--help").split())
    assert "6 unavailable, or timed out" in shown
    assert "ORDERCASTCTL_GATEWAY" in text("status", "--help")


def loaded_by(code: str) -> list[str]:
    """The modules that are there once this ran, in a process of its own."""
    script = f"{code}\nimport sys; print(chr(10), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1].split()


CALL = "from ordercast.cli.main import app; app({!r}.split(), standalone_mode=False)"
SERVER_ONLY = ("lmdb", "pydantic_settings", "structlog", "prometheus_client", "ordercast.runtime", "ordercast.sim")


def test_the_help_loads_neither_grpc_nor_rich_nor_any_command() -> None:
    loaded = loaded_by(CALL.format("--help"))
    for heavy in ("grpc", "google.protobuf", "rich", "pydantic", "asyncio", "ordercast.cli.publish", *SERVER_ONLY):
        assert heavy not in loaded


def test_a_publish_loads_the_client_and_nothing_of_the_rest(group: str) -> None:
    loaded = loaded_by(CALL.format(f"publish {group} hello"))
    assert "ordercast.client.sync" in loaded
    for heavy in ("rich", "ordercast.cli.group", "ordercast.cli.up", "ordercast.client.aio", *SERVER_ONLY):
        assert heavy not in loaded


def test_every_command_can_be_loaded_and_its_line_in_the_help_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = text("--help")
    for name, source in COMMANDS.items():
        assert load(name).name == name
        assert f"  {name} " in shown
        assert source.help in shown


def test_a_flag_takes_nothing_and_the_help_does_not_say_so() -> None:
    for command in (["--help"], ["publish", "--help"], ["group", "--help"], ["group", "create", "--help"]):
        assert "<bool>" not in text(*command)


def test_the_version_is_that_of_the_package() -> None:
    assert text("--version") == f"ordercast {metadata.version('ordercast')}\n"
    assert ordercast.__version__ == metadata.version("ordercast")


# -------------------------------------------------------------------------------------------------------- up


def row_of_ports(count: int) -> int:
    """The first of so many free ports behind each other."""
    free = free_ports(8 * count)
    return next(port for port in free if all(port + i in free for i in range(count)))


class Up:
    """`ordercast up` as a process, and what it has said on stderr so far."""

    def __init__(self, directory: Path, *args: str, stdout: int = subprocess.PIPE) -> None:
        command = [sys.executable, "-m", "ordercast.cli.main", "up", "--data", str(directory), *args]
        self.process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True)
        self.said: list[str] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self.said += (line for line in self.process.stderr)

    def document(self) -> Any:
        """The document, which ends with the first line that is a closing brace."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line == "}\n":
                break
        return json.loads("".join(lines))

    def wait_for(self, words: str, times: int = 1) -> None:
        wait_until(words, lambda: sum(words in line for line in list(self.said)) >= times, timeout_s=60)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        code = self.process.wait(timeout=60)
        self._listener.join(timeout=60)
        return code


@contextlib.contextmanager
def up(directory: Path, *args: str, stdout: int = subprocess.PIPE) -> Iterator[Up]:
    started = Up(directory, *args, stdout=stdout)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.signal(signal.SIGTERM)
            started.end()


def test_a_local_cluster_restarts_what_dies_and_stops_cleanly(tmp_path: Path) -> None:
    data, port = tmp_path / "data", row_of_ports(6)
    with up(data, "--port", str(port), "--json") as started:
        shown = started.document()
        assert shown["gateways"] == [f"{HOST}:{port + i}" for i in range(3)]
        pids = {process["name"]: process["pid"] for process in shown["processes"]}
        assert document("status", "-g", shown["gateways"][0])["healthy"] is True

        other = ("--data", str(tmp_path / "other"))
        for args, words in ((("--data", str(data)), "in use by another"), (other, f"{port} is in use")):
            result = run("up", *args, "--port", str(port))
            assert result.exit_code == 6
            assert words in result.stderr

        os.kill(pids["node-2"], signal.SIGKILL)
        started.wait_for("node-2 was killed by SIGKILL: it is started again")
        started.wait_for("node-2 serves", times=2)
        started.signal(signal.SIGTERM)
        assert started.end() == 0
    assert "all processes have stopped\n" in started.said
    for pid in pids.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    result = run("up", "--data", str(data), "--nodes", "1")
    assert result.exit_code == 2
    assert "holds a cluster of `--nodes 3`, not of `--nodes 1`" in result.stderr


def test_services_apart_are_processes_of_their_own(tmp_path: Path) -> None:
    port = row_of_ports(5)
    with up(tmp_path, "--nodes", "1", "--separate", "--port", str(port), "--json") as started:
        names = [process["name"] for process in started.document()["processes"]]
        assert names == ["membership-1", "consensus-1", "sequencer-1", "gateway-1"]
        document("group", "create", "only", "-g", f"{HOST}:{port}")
        assert document("publish", "only", "hello", "-g", f"{HOST}:{port}")["offsets"] == {"only": 0}
        started.signal(signal.SIGINT)
        assert started.end() == 0


@pytest.fixture
def openssl() -> None:
    if shutil.which("openssl") is None:
        leave_out("`ordercast up --tls`: there is no openssl here")


@pytest.mark.usefixtures("openssl")
def test_with_tls_a_local_cluster_makes_its_certificates_and_clients_are_no_processes(tmp_path: Path) -> None:
    port = row_of_ports(5)
    with up(tmp_path, "--nodes", "1", "--separate", "--port", str(port), "--tls", "--json") as started:
        shown = started.document()
        files = {option: Path(path) for option, path in shown["tls"].items()}
        options = [f"--{option.replace('_', '-')}={path}" for option, path in files.items()]
        gateway = ("-g", f"{HOST}:{port}")
        document("group", "create", "only", *gateway, *options)
        assert document("publish", "only", "hello", *gateway, *options)["offsets"] == {"only": 0}
        assert run("publish", "only", "hello", *gateway, "--timeout", "2", options[0]).exit_code != 0

        (sequencer,) = [process for process in shown["processes"] if process["services"] == ["sequencer"]]
        as_client = grpc.ssl_channel_credentials(
            *(files[name].read_bytes() for name in ("ca", "cert_key", "cert"))
        )
        with grpc.secure_channel(f"{HOST}:{sequencer['peer_port']}", as_client) as channel:
            describe = SequencerServiceStub(channel).DescribeReplica
            with pytest.raises(grpc.RpcError) as caught:
                describe(DescribeReplicaRequest(group="only#1"), timeout=20)
            assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
        started.signal(signal.SIGINT)
        assert started.end() == 0
    folder = tmp_path / "tls"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(key.stat().st_mode) for key in folder.glob("*.key")} == {0o600}


def test_certificates_need_openssl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run("up", "--data", str(tmp_path / "data"), "--port", str(row_of_ports(6)), "--tls")
    assert result.exit_code == 2
    assert "openssl, which is not here: install it" in result.stderr


def test_off_a_terminal_each_event_is_a_line(tmp_path: Path) -> None:
    port = row_of_ports(2)
    with up(tmp_path, "--nodes", "1", "--port", str(port)) as started:
        assert started.process.stdout is not None
        lines = []
        for line in started.process.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith("Ctrl-C"):
                break
        started.signal(signal.SIGINT)
        assert started.end() == 0
        lines += started.process.stdout.read().splitlines()
    assert f"  ordercast publish a,b 'hello, both' -g {HOST}:{port}" in lines
    assert f"Its data is kept in {tmp_path}; delete that directory to start afresh." in lines
    assert "\x1b" not in "".join(lines)
    assert lines[-1] == "all processes have stopped"


def drain(terminal: int) -> None:
    """A terminal that nobody reads fills up, and then holds up who writes to it."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 4096):
            pass


def test_on_a_terminal_a_table_is_drawn(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    try:
        with up(tmp_path, "--nodes", "1", "--port", str(row_of_ports(2)), stdout=theirs) as started:
            shown = b""
            while b"1 of 1 processes serve" not in shown:
                shown += os.read(ours, 4096)
            started.signal(signal.SIGINT)
            threading.Thread(target=drain, args=(ours,), daemon=True).start()
            assert started.end() == 0
    finally:
        os.close(theirs)
    assert b"restarts" in shown


def test_a_second_ctrl_c_kills_what_does_not_stop(tmp_path: Path) -> None:
    with up(tmp_path, "--nodes", "1", "--port", str(row_of_ports(2)), "--json") as started:
        (process,) = started.document()["processes"]
        os.kill(process["pid"], signal.SIGSTOP)
        started.signal(signal.SIGINT)
        started.wait_for("stopping 1 processes")
        started.signal(signal.SIGINT)
        assert started.end() == 1
    assert "killed node-1\n" in started.said


def test_a_process_that_is_refused_is_shown_and_not_started_again(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"format": 1, "nodes": 1, "separate": false}')
    (tmp_path / "node-1").mkdir()
    (tmp_path / "node-1" / "data.mdb").write_bytes(b"no store" * 1024)
    with up(tmp_path, "--nodes", "1", "--port", str(row_of_ports(2))) as started:
        assert started.end() == 5
    assert len([line for line in started.said if "node-1 does not start: cannot start: " in line]) == 1


def test_a_process_that_an_earlier_cluster_left_behind_is_named(cluster: LocalCluster) -> None:
    (cluster.directory / "cluster.json").write_text('{"format": 1, "nodes": 3, "separate": false}')
    result = run("up", "--data", str(cluster.directory), "--port", str(row_of_ports(6)))
    assert result.exit_code == 6
    assert "node-1 of an earlier cluster still runs" in result.stderr


def test_a_port_that_somebody_listens_on_is_named(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        result = run("up", "--data", str(tmp_path), "--nodes", "1", "--port", str(port))
    assert result.exit_code == 6
    assert f"{HOST}:{port} is in use" in result.stderr


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"format": 9}', '{"format": 1, "nodes": "x", "separate": 0}']
)
def test_a_damaged_description_of_a_cluster_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "cluster.json").write_text(content)
    result = run("up", "--data", str(tmp_path))
    assert result.exit_code == 2
    assert "cluster.json" in result.stderr


def test_a_directory_with_something_else_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    result = run("up", "--data", str(tmp_path))
    assert result.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    shutil.rmtree(tmp_path)
    tmp_path.write_text("no directory")
    assert run("up", "--data", str(tmp_path)).exit_code == 2
