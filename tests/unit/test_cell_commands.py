"""Groups that share cells, through a gateway: how they are made, shown, changed and deleted."""

import json
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from ordercast.cli import cell, group, node, output, rebalance, status, waiting
from ordercast.cli.connection import GATEWAY_VARIABLE
from ordercast.client import creating
from ordercast.client.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from ordercast.client.sync import connect_sync
from ordercast.gateway import administration
from ordercast.local.cluster import wait_until
from ordercast.v1.membership_pb2 import CreateDomain, DeleteGroup, RemoveGroup
from tests.unit.admin_gateway import running

# Not the whole command line: that imports the simulator and everything below it.
app = typer.Typer()
app.add_typer(group.app, name="group")
app.add_typer(cell.app, name="cell")
app.add_typer(node.app, name="node")
app.command("rebalance")(rebalance.rebalance)
app.command("status")(status.status)


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch):
    """Four nodes, the groups a and b in one cell on the first three, and c with a cell to itself."""
    monkeypatch.setattr(waiting, "LOOK_S", 0.02)
    monkeypatch.setattr(output.out, "width", 200)
    with running() as started:
        monkeypatch.setenv(GATEWAY_VARIABLE, started.address)
        started.level = 5
        for number in range(1, 5):
            started.register(f"n{number}")
        wait_until("the level is there", lambda: started.directory.level == 5, timeout_s=30)
        started.do(create_domain=CreateDomain(name="other", protocol="scalatom"))
        started.logs.positions = {"n1": 30, "n2": 30, "n3": 30, "n4": 30}
        run("group", "create", "a", "b", "--shared")
        run("group", "create", "c")
        yield started


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


def document(*args: str) -> Any:
    """What stdout holds is one document and nothing else."""
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def text(*args: str) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def described(documents: Any) -> dict[str, tuple[str | None, list[str]]]:
    return {one["name"]: (one["cell"], one["replicas"]) for one in documents}


IN_CELL = ("cell-1#1", ["n1", "n2", "n3"])


def test_groups_that_share_a_cell_are_shown_with_what_their_cell_has(gateway):
    found = described(document("group", "list"))
    assert (found["a"], found["b"]) == (IN_CELL, IN_CELL)
    assert found["c"][0] is None
    with connect_sync(gateway.address) as client:
        assert [one.name for one in client.cluster().groups] == ["c"]
        cluster = client.cluster(shared_groups=True)
        assert {one.name: one.cell for one in cluster.groups} == {"a": "cell-1#1", "b": "cell-1#1", "c": ""}
        assert [(one.cell.name, one.groups) for one in cluster.cells] == [("cell-1", 2)]
        a = client.describe_group("a").group
        assert (a.name, a.configuration, list(a.replicas), list(a.acceptors)) == (
            "a",
            1,
            ["n1", "n2", "n3"],
            ["n1", "n2", "n3"],
        )


def test_whoever_makes_a_group_says_where_it_lives(gateway):
    made = document("group", "create", "d", "--with", "a")
    assert described(made)["d"] == IN_CELL
    assert described(document("group", "create", "e", "--own-cell"))["e"][0] is None
    assert "cell cell-1, replicas on n1, n2, n3" in text("group", "create", "f", "--shared")
    refused = run("group", "create", "g", "--with", "c")
    assert refused.exit_code == 5
    assert "the group c has a cell to itself" in refused.stderr
    assert run("group", "create", "g", "--with", "a", "--shared").exit_code == 2
    assert run("group", "create", "a", "--shared", "--if-missing").exit_code == 0


def test_many_groups_are_made_and_listed_in_pieces(gateway, monkeypatch):
    monkeypatch.setattr(creating, "CREATED_AT_ONCE", 3)
    monkeypatch.setattr(administration, "GROUPS_TOLD_MAX", 2)
    names = [f"many-{number}" for number in range(8)]
    with connect_sync(gateway.address) as client:
        assert client.create_groups(names) == 8
        assert client.create_groups([*names, "many-9"], exist_ok=True) == 1
        with pytest.raises(AlreadyExists):
            client.create_groups(["many-8", "many-9"])
        there = [group.name for group in client.groups()]
        assert there == ["a", "b", "c", *names, "many-9"]
        assert [group.name for group in client.groups("other")] == []
        assert client.create_group("many-1", shared=True, exist_ok=True).name == "many-1"
    found = document("group", "list")
    assert [one["name"] for one in found] == there


def test_beside_a_group_of_another_domain_is_in_that_domain(gateway):
    text("group", "create", "x", "--shared", "--domain", "other")
    assert document("group", "create", "y", "--with", "x")[0]["domain"] == "other"
    assert document("group", "create", "y", "--with", "x", "--if-missing")[0]["domain"] == "other"
    assert run("group", "create", "z", "--with", "x", "--domain", "default").exit_code == 5


def test_cells_are_listed_and_described(gateway):
    listed = document("cell", "list")
    assert [(one["name"], one["domain"], one["groups"]) for one in listed] == [("cell-1", "default", 2)]
    assert document("cell", "list", "--domain", "other") == []
    for name in ("cell-1", "cell-1#1"):
        found = document("cell", "describe", name)
        assert (found["groups"], found["names"], found["replicas"]) == (2, ["a", "b"], ["n1", "n2", "n3"])
        assert [log["position"] for log in found["logs"]] == [30, 30, 30]
    shown = text("cell", "describe", "cell-1")
    assert "groups         2: a, b" in shown
    assert "configuration  1" in shown
    nowhere = run("cell", "describe", "cell-7")
    assert (nowhere.exit_code, nowhere.stdout) == (3, "")


def test_a_group_says_which_cell_it_shares_and_with_whom(gateway):
    shown = text("group", "describe", "a")
    assert "cell           cell-1 (cell-1#1): what changes there, changes for all its groups" in shown
    assert "groups there   2: a, b" in shown
    assert "cell-1" in text("group", "list")
    assert "cell " not in text("group", "describe", "c")


def test_who_changes_the_replicas_of_a_group_hears_that_its_cell_is_changed(gateway):
    result = run("group", "add-replica", "a", "--node", "n4")
    assert result.exit_code == 0, result.output
    assert "a shares the cell cell-1, which is changed for all its groups" in result.stderr
    assert result.stdout == "cell cell-1: configuration 2, replicas on n1, n2, n3, n4\n"
    found = described(document("group", "list"))
    assert found["b"][1] == ["n1", "n2", "n3", "n4"]
    assert found["c"][1] != found["b"][1]
    named = run("group", "remove-replica", "cell-1", "--node", "n4")
    assert "configuration 3, replicas on n1, n2, n3" in named.stdout
    assert "shares" not in named.stderr


def test_the_change_of_a_cell_is_cancelled_by_a_name_of_a_group(gateway):
    gateway.begins = False
    assert "cell cell-1: n4 copies the log" in text("group", "replace", "a", "--node", "n1", "--no-wait")
    assert "n4 copies the log" in text("group", "describe", "b")
    assert "n4 (copies)" in text("cell", "describe", "cell-1")
    assert "the change is cancelled" in text("group", "cancel-change", "b")


def test_draining_and_evening_out_move_cells(gateway):
    gateway.register("n5")
    result = run("node", "drain", "n1")
    assert result.exit_code == 0, result.output
    assert "n1" not in described(document("group", "list"))["a"][1]
    gateway.moves = False
    gateway.register("n6")
    moves = document("rebalance", "--dry-run")
    assert {one["group"] for one in moves} <= {"cell-1", "c"}


def test_the_state_of_a_cluster_is_that_of_its_cells(gateway):
    shown = text("status")
    assert "cell-1" in shown
    found = document("status")
    assert [one["name"] for one in found["groups"]] == ["c"]
    assert [(one["name"], one["groups"], len(one["logs"])) for one in found["cells"]] == [("cell-1", 2, 3)]
    del gateway.logs.positions["n1"], gateway.logs.positions["n2"]
    sick = run("status", "--json")
    assert "cell cell-1: 1 of 3 replicas answer" in json.loads(sick.stdout)["troubles"]


def test_a_group_is_deleted_and_made_again_in_a_cell(gateway):
    text("group", "delete", "a", "--yes")
    assert document("group", "describe", "a")["state"] == "deleting"
    id_ = gateway.group("a").id
    gateway.do(remove_group=RemoveGroup(id=id_))
    assert document("cell", "list")[0]["groups"] == 1
    again = document("group", "create", "a", "--shared")[0]
    assert (again["cell"], again["id"] != id_) == ("cell-1#1", True)
    gateway.do(delete_group=DeleteGroup(name="a"))


def test_the_sdk_says_where_a_group_lives_too(gateway):
    with connect_sync(gateway.address) as client:
        assert client.create_group("s", shared=True).cell == "cell-1#1"
        assert client.create_group("t", beside="s").cell == "cell-1#1"
        assert client.create_group("u", own_cell=True).cell == ""
        with pytest.raises(InvalidArgument, match="one of them"):
            client.create_group("v", shared=True, own_cell=True)
        assert [one.groups for one in client.cells()] == [4]
        assert list(client.describe_cell("cell-1").groups) == ["a", "b", "s", "t"]
        with pytest.raises(NotFound, match="unknown cell"):
            client.describe_cell("c")


def test_where_some_software_is_older_no_group_shares_a_cell():
    with running() as older, connect_sync(older.address) as client:
        older.level = 4
        older.register("n1")
        with pytest.raises(FailedPrecondition, match="that takes level 5"):
            client.create_group("a", shared=True)
        with pytest.raises(FailedPrecondition, match="that takes level 5"):
            client.create_group("a", beside="b")
