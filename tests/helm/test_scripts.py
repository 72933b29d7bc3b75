"""What the chart's Jobs and its test run, against real processes."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.local.cluster import LocalCluster
from tests.helm.chart import PREFIX, named, objects
from tests.helm.scripts import SCRIPTS, loaded


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three nodes, and room for one more replica."""
    with LocalCluster(tmp_path_factory.mktemp("cluster"), nodes=3, workers=2) as started:
        started.start()
        started.wait_healthy()
        yield started
        started.stop()


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[ordercast.SyncConnection]:
    with ordercast.connect_sync(*cluster.gateways) as connection:
        yield connection


def run(cluster: LocalCluster, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    gateways = f"--gateway={','.join(cluster.gateways)}"
    command = [sys.executable, str(SCRIPTS / f"{script}.py"), gateways, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)


# --- Domains and groups


def declare(cluster: LocalCluster, folder: Path, domains: list[dict[str, Any]]) -> tuple[int, str, str]:
    path = folder / "domains.json"
    path.write_text(json.dumps(domains))
    done = run(cluster, "declare", f"--declared={path}", "--patience=90")
    return done.returncode, done.stdout, done.stderr


def test_what_is_declared_is_made_once_and_nothing_else_is_touched(
    cluster: LocalCluster, client: ordercast.SyncConnection, tmp_path: Path
):
    client.create_group("bystander", replicas=3)
    domains = [
        {"name": "default", "groups": [{"name": "orders", "retention": {"bytes": 1 << 33, "ageSeconds": 60}}]},
        {"name": "chat", "protocol": "isis", "settings": {"k_stability": 2}, "groups": [{"name": "room"}]},
    ]
    code, said, wrong = declare(cluster, tmp_path, domains)
    assert (code, wrong) == (0, "")
    assert [line for line in said.splitlines() if "created" in line] == [
        "created domain chat",
        "created group orders",
        "created group room",
    ]
    groups = {group.name: group for group in client.groups()}
    assert (groups["orders"].retention.bytes, groups["orders"].retention.age_s) == (1 << 33, 60)
    assert len(groups["orders"].replicas) == 3
    assert groups["room"].domain == "chat"
    # Again, and with less: nothing is made, and nothing goes.
    assert declare(cluster, tmp_path, domains) == (0, "", "")
    assert declare(cluster, tmp_path, domains[:1]) == (0, "", "")
    assert {group.name: group.id for group in client.groups()} == {name: each.id for name, each in groups.items()}


def test_more_replicas_are_added_and_none_is_taken_away(
    cluster: LocalCluster, client: ordercast.SyncConnection, tmp_path: Path
):
    def declared(replicas: int) -> list[dict[str, Any]]:
        return [{"name": "default", "groups": [{"name": "grows", "replicas": replicas}]}]

    assert declare(cluster, tmp_path, declared(3))[0] == 0
    code, _, wrong = declare(cluster, tmp_path, declared(5))
    assert code == 0, wrong
    assert len(client.describe_group("grows").group.replicas) == 5
    code, said, _ = declare(cluster, tmp_path, declared(3))
    assert code == 0
    assert "has 5 replicas, 3 are declared: it keeps them" in said
    assert len(client.describe_group("grows").group.replicas) == 5


def test_another_retention_is_given_and_one_that_is_not_declared_is_left(
    cluster: LocalCluster, client: ordercast.SyncConnection, tmp_path: Path
):
    def declared(**more: Any) -> list[dict[str, Any]]:
        return [{"name": "default", "groups": [{"name": "kept", **more}]}]

    def kept() -> tuple[int, int]:
        retention = client.describe_group("kept").group.retention
        return retention.bytes, retention.age_s

    assert declare(cluster, tmp_path, declared(retention={"bytes": 1 << 33}))[0] == 0
    code, said, wrong = declare(cluster, tmp_path, declared(retention={"ageSeconds": 3600}))
    assert (code, wrong) == (0, "")
    assert "group kept keeps 0 bytes, 3600 s" in said
    assert kept() == (0, 3600)
    assert declare(cluster, tmp_path, declared()) == (0, "", "")
    assert kept() == (0, 3600)
    assert declare(cluster, tmp_path, declared(retention={}))[0] == 0
    assert kept() == (0, 0)


@pytest.mark.parametrize(
    ("domain", "difference"),
    [
        ({"name": "default", "protocol": "isis"}, "the domain default has the protocol scalatom, and not isis"),
        ({"name": "default", "settings": {"gossip_s": 0.5}}, "the domain default has the settings"),
        ({"name": "other", "groups": [{"name": "fixed"}]}, "the group fixed is in the domain default"),
    ],
)
def test_what_is_there_and_differs_is_named_and_left(
    domain: dict[str, Any],
    difference: str,
    cluster: LocalCluster,
    client: ordercast.SyncConnection,
    tmp_path: Path,
):
    with contextlib.suppress(ordercast.errors.AlreadyExists):
        client.create_group("fixed", replicas=3)
    before = client.describe_group("fixed").group
    code, _, wrong = declare(cluster, tmp_path, [domain])
    assert code == 3
    assert difference in wrong
    assert "that cannot be changed" in wrong
    assert client.describe_group("fixed").group == before


def test_the_job_is_not_tried_again_if_something_differs(monkeypatch: pytest.MonkeyPatch):
    job = named(objects("separate"), "Job", f"{PREFIX}-domains")["spec"]
    (rule,) = job["podFailurePolicy"]["rules"]
    assert rule == {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}
    assert loaded("declare", monkeypatch).DIFFERS == 3
    # Kubernetes takes such a rule only of Jobs whose pods are not restarted in place.
    assert job["template"]["spec"]["restartPolicy"] == "Never"


def test_what_no_cluster_takes_is_not_tried_for_long(cluster: LocalCluster, tmp_path: Path):
    code, _, wrong = declare(cluster, tmp_path, [{"name": "odd", "settings": {"no_such": 1}}])
    assert code != 0
    assert "no_such" in wrong


# --- Patience


@pytest.mark.parametrize(
    ("error", "times"),
    [
        (ordercast.errors.Unavailable("nobody answers"), 3),
        (ordercast.errors.FailedPrecondition("too few nodes"), 3),
        (ordercast.errors.AlreadyExists("it is there"), 1),
        (ordercast.errors.InvalidArgument("no such setting"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_may_change_is_asked_again_until_it_is_late(
    error: Exception, times: int, monkeypatch: pytest.MonkeyPatch
):
    script = loaded("connecting", monkeypatch)
    asked = []
    monkeypatch.setattr(script.time, "monotonic", lambda: float(len(asked)))
    monkeypatch.setattr(script.time, "sleep", lambda seconds: None)

    def ask() -> None:
        asked.append(error)
        raise error

    with pytest.raises(type(error)):
        script.patiently(ask, 2.5)
    assert len(asked) == times


def test_an_answer_ends_the_patience(monkeypatch: pytest.MonkeyPatch):
    script = loaded("connecting", monkeypatch)
    monkeypatch.setattr(script.time, "sleep", lambda seconds: None)
    answers = iter([ordercast.errors.Unavailable("not yet"), ordercast.errors.Unavailable("not yet"), None])

    def ask() -> str:
        error = next(answers)
        if error is not None:
            raise error
        return "here"

    assert script.patiently(ask, script.time.monotonic() + 60) == "here"


# --- The test of the release


def test_the_test_of_the_release_passes_again_and_again(cluster: LocalCluster):
    for _ in range(2):
        done = run(cluster, "read_back", "--messages=30", "--verify")
        assert done.returncode == 0, done.stderr
        assert "30 messages came back from helm-test-a and helm-test-b, in the order sent" in done.stdout
        assert "All replicas agree" in done.stdout


def test_messages_that_come_back_in_another_order_are_noticed(monkeypatch: pytest.MonkeyPatch):
    script = loaded("read_back", monkeypatch)
    sent = [(7, b"a"), (8, b"b"), (9, b"c")]
    assert script.differences("g", sent, sent) == []
    assert len(script.differences("g", sent, [sent[1], sent[0], sent[2]])) == 2
    assert script.differences("g", sent, [(7, b"a"), (8, b"b"), (10, b"c")]) == [
        "g: b'c' at offset 9 was sent, and b'c' is read at 10"
    ]
