"""Commands that change replicas and nodes: what they wait for, what they show meanwhile, and how they end."""

import io
import json
import threading
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner, Result

from ordercast.cli import changes, consoles, group, node, output, rebalance, status, waiting
from ordercast.cli.changes import stage_of
from ordercast.cli.connection import GATEWAY_VARIABLE
from ordercast.client.errors import FailedPrecondition, Unavailable
from ordercast.core.members import kind_of
from ordercast.core.members.kind import Superseded
from ordercast.local.cluster import wait_until
from ordercast.v1.gateway_pb2 import DescribeClusterResponse, DescribeGroupResponse
from ordercast.v1.membership_pb2 import (
    GROUP_STATE_ACTIVE,
    GROUP_STATE_DELETING,
    CancelChange,
    Configuration,
    DrainNode,
    EndIncarnation,
    Group,
    Node,
)
from tests.unit.admin_gateway import ALL, AdminGateway, running

# Not the whole command line: that imports the simulator and everything below it.
app = typer.Typer()
app.add_typer(group.app, name="group")
app.add_typer(node.app, name="node")
app.command("rebalance")(rebalance.rebalance)
app.command("status")(status.status)


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch):
    """Four nodes, and the group a on the first three, which have it all."""
    monkeypatch.setattr(waiting, "LOOK_S", 0.02)
    monkeypatch.setattr(node, "STUCK_S", 0.2)
    monkeypatch.setattr(output.out, "width", 200)
    with running() as started:
        monkeypatch.setenv(GATEWAY_VARIABLE, started.address)
        for number in range(1, 5):
            started.register(f"n{number}")
        started.create("a")
        started.logs.positions = {"n1": 30, "n2": 30, "n3": 30}
        yield started


def run(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(args), input=stdin)


def document(*args: str) -> Any:
    """What stdout holds is one document and nothing else."""
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def text(*args: str) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def end(gateway: AdminGateway, name: str) -> None:
    incarnation = gateway.member.state.nodes[name].incarnation
    gateway.do(end_incarnation=EndIncarnation(name=name, incarnation=incarnation))


# ------------------------------------------------------------------------------------------------- replicas


def test_a_replica_is_added_where_there_is_room_and_the_command_waits_until_it_counts(gateway):
    made = document("group", "add-replica", "a")
    assert made["configuration"] == 2
    assert made["replicas"] == ["n1", "n2", "n3", "n4"]
    assert (made["next"], made["previous"]) == (None, None)
    assert "configuration 3, replicas on n1, n2, n3" in text("group", "remove-replica", "a", "--node", "n4")


def test_a_replica_is_replaced_by_one_elsewhere(gateway):
    assert document("group", "replace", "a", "--node", "n2", "--with", "n4")["replicas"] == ["n1", "n3", "n4"]
    assert document("group", "replace", "a")["configuration"] == 3


def test_progress_is_told_on_stderr_with_how_far_the_newcomer_is(gateway):
    gateway.begins = False
    gateway.logs.positions["n4"] = 12
    result = run("group", "add-replica", "a", "--node", "n4", "--timeout", "3")
    assert result.exit_code == 6
    assert result.stdout == ""
    assert "a: n4 copies the log for configuration 2 (n4: 12 of 30)" in result.stderr
    assert "not done after 3 s" in result.stderr
    assert "ordercast group describe a" in result.stderr
    assert list(gateway.group("a").next.replicas) == ["n1", "n2", "n3", "n4"], "the change goes on"


def test_who_does_not_wait_is_told_what_is_under_way(gateway):
    gateway.begins = False
    shown = text("group", "add-replica", "a", "--no-wait")
    assert shown == "group a: n4 copies the log for configuration 2\n"
    assert document("group", "describe", "a")["next"]["number"] == 2


def test_a_change_is_cancelled_and_whoever_waits_for_it_hears_of_that(gateway):
    gateway.begins = False
    waiting_for: list[Result] = []
    thread = threading.Thread(target=lambda: waiting_for.append(run("group", "add-replica", "a")))
    thread.start()
    wait_until("the change is agreed", lambda: gateway.group("a").HasField("next"), timeout_s=30)
    gateway.do(cancel_change=CancelChange(group="a"))
    thread.join(30)
    assert waiting_for[0].exit_code == 1
    assert "was cancelled: configuration 1, replicas on n1, n2, n3" in waiting_for[0].stderr


def test_cancelling_says_what_stays(gateway):
    gateway.begins = False
    text("group", "add-replica", "a", "--no-wait")
    assert document("group", "cancel-change", "a")["next"] is None
    result = run("group", "cancel-change", "a")
    assert (result.exit_code, result.stdout) == (5, "")


def test_one_change_at_a_time_and_the_second_is_exit_code_5(gateway):
    gateway.begins = False
    text("group", "add-replica", "a", "--no-wait")
    assert run("group", "remove-replica", "a").exit_code == 5


@pytest.mark.parametrize(
    "args",
    [
        ("group", "add-replica", "nowhere"),
        ("group", "remove-replica", "nowhere"),
        ("group", "replace", "nowhere"),
        ("group", "cancel-change", "nowhere"),
        ("node", "drain", "nowhere"),
        ("node", "undrain", "nowhere"),
        ("node", "remove", "nowhere"),
        ("node", "give-up-disk", "nowhere", "--yes"),
    ],
)
def test_what_is_not_there_is_exit_code_3(gateway, args):
    result = run(*args)
    assert result.exit_code == 3, result.output
    assert "nowhere" in result.stderr
    assert result.stdout == ""


def test_a_group_describes_its_configuration_and_what_is_under_way(gateway):
    gateway.begins = False
    gateway.logs.positions["n4"] = 7
    assert "under way      -" in text("group", "describe", "a")
    text("group", "replace", "a", "--node", "n1", "--with", "n4", "--no-wait")
    shown = text("group", "describe", "a")
    assert "configuration  1" in shown
    assert "under way      n4 copies the log for configuration 2 (n4: 7 of 30)" in shown
    assert "n4 (copies)" in shown
    found = document("group", "describe", "a")
    assert found["learners"] == ["n4"]
    assert [(copy["node"], copy["position"]) for copy in found["copies"]] == [("n4", 7)]


# ---------------------------------------------------------------------------------------------------- nodes


def test_nodes_are_listed_with_what_they_hold(gateway):
    found = {each["name"]: each for each in document("node", "list")}
    assert list(found) == ["n1", "n2", "n3", "n4"]
    assert (found["n1"]["groups"], found["n4"]["groups"]) == (["a"], [])
    assert "incarnation" in text("node", "list")


def test_draining_waits_until_all_is_moved_away(gateway):
    gateway.create("b")
    found = document("node", "drain", "n1")
    assert (found["draining"], found["groups"]) == (True, [])
    assert all("n1" not in gateway.group(name).replicas for name in ("a", "b"))
    assert "up, draining" in text("node", "list")
    assert text("node", "undrain", "n1") == "node n1 takes something new again\n"


def test_draining_without_waiting_says_what_is_left(gateway):
    gateway.moves = False
    assert "has a part in 1 group" in text("node", "drain", "n1", "--no-wait")
    assert document("node", "drain", "n1", "--no-wait")["groups"] == ["a"]


def test_draining_where_there_is_no_other_node_ends_with_the_groups_that_stay(gateway):
    text("node", "drain", "n4")
    result = run("node", "drain", "n1")
    assert result.exit_code == 1
    assert "no other node can take what n1 holds of a" in result.stderr
    assert "ordercast node undrain n1" in result.stderr
    assert gateway.member.state.nodes["n1"].draining, "it stays so: a node may come"


def test_draining_that_takes_longer_than_its_timeout_is_exit_code_6(gateway):
    gateway.begins = False
    result = run("node", "drain", "n1", "--timeout", "3")
    assert result.exit_code == 6
    assert "n1 has a part in 1 group" in result.stderr


def test_draining_that_somebody_calls_off_ends(gateway):
    gateway.moves = False
    drained: list[Result] = []
    thread = threading.Thread(target=lambda: drained.append(run("node", "drain", "n1")))
    thread.start()
    wait_until("n1 is draining", lambda: gateway.member.state.nodes["n1"].draining, timeout_s=30)
    gateway.do(drain_node=DrainNode(node="n1", draining=False))
    thread.join(30)
    assert drained[0].exit_code == 1
    assert "not being emptied any more" in drained[0].stderr


def test_a_node_is_removed_when_it_is_empty(gateway):
    assert run("node", "remove", "n1").exit_code == 5
    text("node", "drain", "n1")
    assert text("node", "remove", "n1") == "node n1 is removed\n"
    assert "n1" not in gateway.member.state.nodes


def test_a_disk_is_not_given_up_without_a_yes(gateway):
    for args in ((), ("--json",)):
        result = run("node", "give-up-disk", "n1", *args)
        assert result.exit_code == 2
        assert "--yes" in result.stderr


def test_a_disk_that_is_gone_is_given_up_and_its_replicas_count_as_lost(gateway):
    result = run("node", "give-up-disk", "n1", "--yes")
    assert result.exit_code == 5, "it is alive"
    end(gateway, "n1")
    assert document("node", "give-up-disk", "n1", "--yes")["disk_lost"] is True
    assert document("group", "describe", "a")["lost"] == ["n1"]
    assert "ended, disk given up" in text("node", "list")


# -------------------------------------------------------------------------------------------------- rebalance


def test_a_dry_run_moves_nothing(gateway):
    gateway.create("b")
    gateway.register("n5")
    plan = document("rebalance", "--dry-run")
    assert plan
    assert all(list(move) == ["group", "from", "to", "why"] for move in plan)
    assert plan[0]["why"] in text("rebalance", "--dry-run")
    assert gateway.group("a").configuration == gateway.group("b").configuration == 1


def test_rebalancing_executes_the_plan_move_by_move(gateway):
    for name in ("b", "c", "d"):
        gateway.create(name)
    gateway.register("n5")
    plan = document("rebalance", "--dry-run")
    assert len(plan) > 1
    done = document("rebalance")
    assert [{key: move[key] for key in plan[0]} for move in done] == plan
    for move in done:
        assert move["to"] in gateway.group(move["group"]).replicas
        assert move["from"] not in gateway.group(move["group"]).replicas
    assert text("rebalance") == "everything is where it should be\n"
    assert document("rebalance") == []


def test_a_move_that_is_not_done_in_time_is_exit_code_6_and_what_was_done_is_told(gateway):
    gateway.begins = False
    for name in ("b", "c", "d"):
        gateway.create(name)
    gateway.register("n5")
    result = run("rebalance", "--timeout", "3", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (6, [])
    assert "copies the log" in result.stderr


# ----------------------------------------------------------------------------------------------------- status


def test_a_change_is_no_trouble_and_a_lost_replica_is(gateway):
    gateway.begins = False
    text("group", "add-replica", "a", "--no-wait")
    assert "n4 copies the log for configuration 2" in text("status")
    found = document("status")
    assert (found["healthy"], found["groups"][0]["learners"]) == (True, ["n4"])
    text("group", "cancel-change", "a")
    end(gateway, "n1")
    text("node", "give-up-disk", "n1", "--yes")
    result = run("status", "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["healthy"]) == (1, False)
    assert "node n1 lost what it had stored of a" in found["troubles"]
    assert "n1: lost" in run("status").stdout


def test_levels_of_nodes_are_shown_where_they_differ(gateway):
    assert document("status")["level"] == 1
    assert "level 1, as g sees it" in text("status")
    # Said once for all of them.
    assert "┃ level ┃" not in text("status")
    gateway.member.state.nodes["n2"].level = 2
    gateway.do(drain_node=DrainNode(node="n2", draining=True))
    shown = text("status")
    assert "level 1, as g sees it" in shown
    assert "┃ level ┃" in shown
    assert "up, draining" in shown


def test_whoever_lost_what_was_stored_does_not_count_towards_a_majority(gateway):
    gateway.starts = False
    for name in ("n1", "n2"):
        end(gateway, name)
        text("node", "give-up-disk", name, "--yes")
    troubles = json.loads(run("status", "--json").stdout)["troubles"]
    assert "group a: 1 of 3 replicas answer" in troubles
    assert "group a: 1 of 3 acceptors are up" in troubles


# ---------------------------------------------------------------------------------------------------- waiting


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Unavailable("nobody answers")])
def test_whoever_stops_waiting_is_told_that_the_cluster_goes_on(
    error: BaseException, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(type(error)), waiting.WaitDisplay(None, "look there"):
        raise error
    assert capsys.readouterr().err == "the cluster goes on with it: look there\n"


def test_a_refusal_is_not_taken_for_something_that_goes_on(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(FailedPrecondition), waiting.WaitDisplay(None, "look there"):
        raise FailedPrecondition("no")
    assert capsys.readouterr().err == ""


def test_numbers_that_rise_are_told_less_often_than_stages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    now = 100.0
    monkeypatch.setattr(waiting.time, "monotonic", lambda: now)
    with waiting.WaitDisplay(None, "look there") as shown:
        shown.tell("copies")
        shown.tell("copies", "1 of 9")
        shown.tell("copies", "2 of 9")
        now += waiting.REPEAT_S
        shown.tell("copies", "8 of 9")
        shown.tell("begins")
        shown.tell("begins")
    assert capsys.readouterr().err == "copies\ncopies (1 of 9)\ncopies (8 of 9)\nbegins\n"


def test_on_a_terminal_one_line_changes(monkeypatch: pytest.MonkeyPatch):
    written = io.StringIO()
    monkeypatch.setattr(consoles, "err", Console(file=written, force_terminal=True))
    with waiting.WaitDisplay(None, "look there") as shown:
        shown.tell("n4 [copies]", "1 of 9")
    assert "n4 [copies] (1 of 9)" in written.getvalue()


# ---------------------------------------------------------------------------------------- judging from afar

WANTED = Configuration(number=2, replicas=["n1", "n4"], acceptors=["n1", "n4"])


def as_it_was() -> Group:
    return Group(name="a", id="a#1", configuration=1, replicas=["n1", "n2"])


def has_come(group: Group) -> bool:
    return kind_of(group).has_come(group, WANTED, list)


def test_a_change_is_done_when_nothing_of_it_is_under_way():
    found = as_it_was()
    found.next.CopyFrom(WANTED)
    assert not has_come(found)
    begun = Group(configuration=2, replicas=WANTED.replicas, previous=Configuration(number=1))
    assert not has_come(begun)
    begun.ClearField("previous")
    assert has_come(begun)


def test_a_change_behind_it_means_that_it_is_done():
    assert has_come(Group(configuration=3, replicas=["n9"], previous=WANTED))


def test_another_change_with_the_same_number_is_not_it():
    with pytest.raises(Superseded):
        has_come(as_it_was())
    found = as_it_was()
    found.next.CopyFrom(Configuration(number=2, replicas=["n1", "n5"]))
    with pytest.raises(Superseded):
        has_come(found)
    with pytest.raises(Superseded):
        has_come(Group(configuration=2, replicas=["n1", "n5"]))


def test_a_gateway_that_is_behind_does_not_end_the_waiting(monkeypatch: pytest.MonkeyPatch):
    """It shows the group as it was before the change, which looks as if nothing were under way."""
    monkeypatch.setattr(waiting, "LOOK_S", 0.0)
    before, begun, after = as_it_was(), as_it_was(), Group(name="a", id="a#1", replicas=WANTED.replicas)
    before.revision, begun.revision, after.revision = 5, 9, 12
    begun.next.CopyFrom(WANTED)
    after.configuration = 2
    seen = iter([before, begun, before, after])

    class Gateways:
        def describe_group(self, name: str) -> Any:
            return DescribeGroupResponse(group=next(seen))

    with waiting.WaitDisplay(None, "hint") as patience:
        assert changes.wait_for_change(Gateways(), begun, patience) == after  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "stage"),
    [
        (Group(replicas=["n1"]), ""),
        (
            Group(replicas=["n1"], next=Configuration(number=2, replicas=["n1", "n2", "n3"])),
            "n2, n3 copy the log for configuration 2",
        ),
        (
            Group(replicas=["n1"], lost=["n1"], next=Configuration(number=2, replicas=["n1"])),
            "n1 copies the log for configuration 2",
        ),
        (
            Group(replicas=["n1", "n2"], next=Configuration(number=2, replicas=["n1"])),
            "configuration 2 is about to begin",
        ),
        (
            Group(configuration=2, previous=Configuration(number=1), starting=["n1", "n2"]),
            "configuration 2 has begun, not yet started on n1, n2",
        ),
        (Group(configuration=2, previous=Configuration(number=1)), "configuration 2 has begun"),
        (Group(configuration=2, starting=["n3"]), "not yet started on n3"),
    ],
)
def test_what_is_under_way_is_said_in_a_few_words(found: Group, stage: str):
    assert stage_of(found) == stage


def test_a_node_is_stuck_only_if_nothing_of_it_can_go_anywhere():
    nodes = [Node(name=name, services=ALL) for name in ("n1", "n2", "n3")]
    here = {"replicas": ["n1", "n2"], "acceptors": ["n1", "n2"]}
    full = Group(name="full", state=GROUP_STATE_ACTIVE, replicas=["n1", "n2", "n3"])
    movable = Group(name="movable", state=GROUP_STATE_ACTIVE, **here)

    def is_stuck(*groups: Group) -> bool:
        return node.is_stuck("n1", DescribeClusterResponse(nodes=nodes, groups=groups))

    assert is_stuck(full)
    assert not is_stuck(full, movable)
    assert not is_stuck(Group(name="going", state=GROUP_STATE_DELETING, replicas=["n1"]))
    full.previous.number = 1
    assert not is_stuck(full), "it moves"
    for out in ("suspected", "ended", "read_only", "draining"):
        nodes[2] = Node(name="n3", services=ALL, **{out: True})
        assert is_stuck(movable), out
    nodes[2] = Node(name="n3", services=["sequencer"])
    assert is_stuck(movable), "nobody votes there"
