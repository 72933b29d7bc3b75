"""What the command line shows of groups with views, and how it follows them."""

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ordercast.cli import group, output, status, views, waiting
from ordercast.cli.changes import latest_facts, stage_of
from ordercast.cli.connection import GATEWAY_VARIABLE
from ordercast.core.members import kind_of
from ordercast.core.members.kind import Superseded
from ordercast.local.cluster import wait_until
from ordercast.v1.gateway_pb2 import DescribeGroupResponse, ReplicaStatus
from ordercast.v1.membership_pb2 import (
    CompleteView,
    Configuration,
    CreateDomain,
    CreateGroup,
    DefineView,
    Group,
    RaiseLevel,
)
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, ReplicaFact
from tests.unit.admin_gateway import AdminGateway, running

app = typer.Typer()
app.add_typer(group.app, name="group")
app.command("status")(status.status)


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch):
    """Four nodes, and the group g with views on the first three."""
    monkeypatch.setattr(waiting, "LOOK_S", 0.02)
    monkeypatch.setattr(views, "LOOK_S", 0.02)
    monkeypatch.setattr(output.out, "width", 200)
    with running() as started:
        monkeypatch.setenv(GATEWAY_VARIABLE, started.address)
        for number in range(1, 5):
            started.register(f"n{number}", level=2)
        lives = {name: node.incarnation for name, node in started.member.state.nodes.items()}
        started.do(raise_level=RaiseLevel(level=2, incarnations=lives))
        started.do(create_domain=CreateDomain(name="v", protocol="isis"))
        started.do(create_group=CreateGroup(name="g", domain="v", replicas=3))
        started.logs.positions = {"n1": 30, "n2": 30, "n3": 30}
        yield started


def define(gateway: AdminGateway, *members: str, leaving: tuple[str, ...] = ()) -> None:
    found, nodes = gateway.group("g"), gateway.member.state.nodes
    lives = [nodes[name].incarnation for name in members]
    view = DefineView(group=found.id, number=found.configuration + 1, members=members, leaving=leaving)
    view.incarnations[:] = lives
    gateway.do(define_view=view)


def complete(gateway: AdminGateway) -> None:
    found = gateway.group("g")
    gateway.do(complete_view=CompleteView(group=found.id, number=found.configuration))


def run(*args: str) -> Any:
    return CliRunner().invoke(app, list(args))


def text(*args: str) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


# ------------------------------------------------------------------------------------------------- describing


def test_a_group_describes_its_view_and_not_a_configuration(gateway):
    gateway.logs.facts = {"token": "n2"}
    shown = text("group", "describe", "g")
    assert "view           1, installed" in shown
    assert "members        n1 (life 1), n2 (life 2), n3 (life 3)" in shown
    assert "token          n2" in shown
    assert json.loads(text("group", "describe", "g", "--json"))["facts"] == {"token": "n2"}
    for heading in ("acceptors", "configuration", "placement", "leaving"):
        assert heading not in shown


def test_a_view_that_is_not_complete_is_shown_with_the_last_one_that_is_and_with_who_leaves(gateway):
    gateway.starts = False
    define(gateway, "n1", "n2", leaving=("n3",))
    shown = text("group", "describe", "g")
    assert "view           2, defined" in shown
    assert "last complete  1: n1, n2, n3" in shown
    assert "leaving        n3" in shown
    assert "placement      n1, n2, n3" in shown
    assert "under way      view 2 is defined, and 1 is the last complete one" in shown
    complete(gateway)
    shown = text("group", "describe", "g")
    assert "view           2, complete" in shown
    assert "not installed  n1, n2" in shown
    assert "left out: n3" in shown
    found = json.loads(text("group", "describe", "g", "--json"))
    assert (found["placement"], found["replicas"], found["incarnations"]) == (
        ["n1", "n2", "n3"],
        ["n1", "n2"],
        [1, 2],
    )
    assert (found["leaving"], found["starting"], found["facts"]) == ([], ["n1", "n2"], {})
    assert found["learners"] == ["n3"]


def test_what_the_protocol_says_of_a_group_is_what_the_replica_says_that_knows_the_latest():
    def says(node: str, number: int, holder: str) -> ReplicaStatus:
        facts = [ReplicaFact(name="token", value=holder)]
        return ReplicaStatus(node=node, log=DescribeReplicaResponse(facts=facts, facts_number=number))

    answer = DescribeGroupResponse(replicas=[says("a", 2, "a"), says("b", 3, "c"), ReplicaStatus(node="c")])
    assert latest_facts(answer) == {"token": "c"}
    answer.replicas[1].error = "UNAVAILABLE"
    assert latest_facts(answer) == {"token": "a"}
    assert latest_facts(DescribeGroupResponse()) == {}


def test_the_status_misses_no_acceptors_and_tells_when_no_view_can_follow(gateway):
    result = run("status")
    assert result.exit_code == 0, result.output
    assert "acceptors" not in result.stdout
    gateway.logs.positions = {"n1": 30}
    for name in ("n2", "n3"):
        gateway.do(end_incarnation={"name": name, "incarnation": gateway.member.state.nodes[name].incarnation})
    result = run("status")
    assert result.exit_code == 1
    assert "group g: 1 of 3 members of the last complete view are up" in result.stdout


# ---------------------------------------------------------------------------------------------------- changing


def test_a_change_is_done_when_the_view_consists_of_the_places_that_are_taken():
    found = Group(name="g", configuration=7, replicas="ab", incarnations=[1, 2], placement="abc")

    def has_come(places: str) -> bool:
        return kind_of(found).has_come(found, Configuration(number=3, replicas=places), lambda: "abd")

    assert has_come("abc"), "c is not there"
    found.replicas[:] = "a"
    assert not has_come("abc")
    found.replicas[:] = "ab"
    found.previous.number = 6
    assert not has_come("abc")
    found.ClearField("previous")
    with pytest.raises(Superseded):
        has_come("abd")
    found.next.replicas[:] = "abd"
    assert not has_come("abd"), "d copies the log"
    with pytest.raises(Superseded):
        has_come("abc")


def test_what_a_change_wants_is_where_the_group_should_be():
    begun = Group(configuration=4, replicas="abc", incarnations=[1, 2, 3], placement="ab")
    assert list(kind_of(begun).wanted(begun).replicas) == ["a", "b"]
    begun.next.replicas[:] = "abd"
    assert list(kind_of(begun).wanted(begun).replicas) == ["a", "b", "d"]


def test_a_change_tells_what_is_under_way():
    found = Group(configuration=4, replicas="ab", incarnations=[1, 2], placement="ab")
    assert stage_of(found) == ""
    found.next.replicas[:] = "abd"
    assert stage_of(found) == "d copies the log for a later view"
    found.next.replicas[:] = "abde"
    assert stage_of(found) == "d, e copy the log for a later view"
    found.next.replicas[:] = "a"
    assert stage_of(found) == "other places are about to count"
    found.ClearField("next")
    found.starting[:] = "b"
    assert stage_of(found) == "view 4 not yet installed on b"


def test_a_replica_is_added_and_the_command_waits_for_its_view(gateway):
    ended: list[Any] = []
    thread = threading.Thread(target=lambda: ended.append(run("group", "add-replica", "g", "--node", "n4")))
    thread.start()
    wait_until("n4 has its place", lambda: "n4" in gateway.group("g").placement, timeout_s=30)
    assert thread.is_alive(), "it has no view yet"
    define(gateway, "n1", "n2", "n3", "n4")
    complete(gateway)
    thread.join(30)
    assert ended[0].stdout == "group g: view 2, replicas on n1, n2, n3, n4\n"
    result = run("group", "remove-replica", "g", "--node", "n1", "--timeout", "3")
    assert result.exit_code == 6, "it waits for a view without it"
    assert list(gateway.group("g").placement) == ["n2", "n3", "n4"]


# ---------------------------------------------------------------------------------------------------- following


def groups_one_after_the_other(*found: Group | None) -> Any:
    """A client that sees these, and the last one for ever."""
    left = list(found)

    def groups() -> list[Group]:
        now = left.pop(0) if len(left) > 1 else left[0]
        return [now] if now is not None else []

    return SimpleNamespace(groups=groups)


def some_views() -> list[Group]:
    first = Group(name="g", id="g#1", configuration=1, replicas="ab", incarnations=[1, 2], placement="ab")
    second = Group(
        name="g", id="g#1", configuration=2, replicas="a", incarnations=[1], placement="ab", leaving="b"
    )
    second.previous.number = 1
    second.starting[:] = "a"
    third = Group(
        name="g", id="g#1", configuration=2, replicas="a", incarnations=[1], placement="ab", starting="a"
    )
    fourth = Group(name="g", id="g#1", configuration=2, replicas="a", incarnations=[1], placement="ab")
    return [first, first, second, third, third, fourth]


def test_each_step_of_a_view_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr(views, "LOOK_S", 0.0)
    views.follow(groups_one_after_the_other(*some_views()), "g", 4, json=False)
    assert capsys.readouterr().out.splitlines() == [
        "view 1 installed: a (life 1), b (life 2)",
        "view 2 defined: a (life 1); leaving: b",
        "view 2 complete: a (life 1)",
        "view 2 installed: a (life 1)",
    ]


def test_views_are_followed_as_json_lines(capsys, monkeypatch):
    monkeypatch.setattr(views, "LOOK_S", 0.0)
    views.follow(groups_one_after_the_other(*some_views()), "g", 2, json=True)
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["view"], first["progress"], first["members"], first["previous"]) == (
        1,
        "installed",
        ["a", "b"],
        None,
    )
    assert (second["view"], second["progress"], second["leaving"], second["previous"]) == (2, "defined", ["b"], 1)
    assert (second["incarnations"], second["placement"], second["starting"]) == ([1], ["a", "b"], ["a"])


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ([None], 3),
        ([Group(name="g", id="g#1", replicas="a")], 5),
        ([some_views()[0], None], 3),
        ([some_views()[0], Group(name="g", id="g#2", replicas="a", incarnations=[1], placement="a")], 3),
    ],
    ids=["no such group", "no views", "deleted", "made anew"],
)
def test_following_ends_where_there_is_nothing_to_follow(found, code, monkeypatch):
    monkeypatch.setattr(views, "LOOK_S", 0.0)
    with pytest.raises(typer.Exit) as ended:
        views.follow(groups_one_after_the_other(*found), "g", 0, json=False)
    assert ended.value.exit_code == code


def test_the_command_follows_a_real_group(gateway):
    assert text("group", "watch", "g", "--count", "1").startswith("view 1 installed: n1 (life 1), n2")
    assert json.loads(text("group", "watch", "g", "--count", "1", "--json"))["view"] == 1
    assert run("group", "watch", "nowhere", "--count", "1").exit_code == 3
