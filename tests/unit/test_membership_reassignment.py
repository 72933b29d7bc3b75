"""The leader's duties about who holds what, from the heartbeats of nodes that do as they are told."""

from random import Random
from typing import Any

import pytest

from ordercast.membership.changes import everyone_of
from ordercast.membership.machine import Executed
from ordercast.membership.state import Code
from ordercast.v1.membership_pb2 import (
    REPLICA_CHANGE_ADD,
    REPLICA_CHANGE_REPLACE,
    CancelChange,
    ChangeReplicas,
    Command,
    CommandResult,
    CreateGroup,
    DeleteGroup,
    DrainNode,
    GiveUpDisk,
    Group,
    GroupProgress,
    HeartbeatRequest,
    RaiseLevel,
    RemoveNode,
)
from tests.unit.test_membership_machine import Member, answers, appends, commands_of, founded, kinds


class Led:
    """A leader, and nodes that copy, catch up and start as soon as they hear that they should.

    `slow` nodes copy and never catch up, `stuck` ones never start, and `away` ones say nothing.
    """

    def __init__(self, names: str = "abcde", *, groups: int = 1, level: int = 1, **settings: Any) -> None:
        self.member: Member = founded(**{"end_after_s": 5.0, **settings})
        self.away: set[str] = set()
        self.slow: set[str] = set()
        self.stuck: set[str] = set()
        self.damaged: dict[str, set[str]] = {}
        self.done: list[Command] = []
        for name in names:
            self.member.register(name, level=level)
        self.beat()
        for number in range(groups):
            assert self.do(create_group=CreateGroup(name=f"g{number}", replicas=3)).code == Code.OK

    @property
    def state(self) -> Any:
        return self.member.machine.state

    @property
    def g(self) -> Group:
        group: Group = self.state.groups["g0"]
        return group

    def do(self, **what: Any) -> CommandResult:
        (answer,) = answers(self.member.settle(self.member.execute(**what)))
        assert isinstance(answer, Executed)
        return answer.result

    def change(self, change: int, node: str = "", to: str = "") -> CommandResult:
        command = ChangeReplicas(group="g0", change=change, node=node, to=to)  # type: ignore[arg-type]
        return self.do(change_replicas=command)

    def progress(self, name: str) -> list[GroupProgress]:
        found = []
        for group in self.state.groups.values():
            progress = GroupProgress(group=group.id, configuration=group.configuration)
            progress.caught_up = name in group.next.replicas and name not in self.slow
            progress.started = name in group.starting and name not in self.stuck
            if progress.started or name not in everyone_of(group):
                # It has been restored, or deletes what it had.
                self.damaged.get(name, set()).discard(group.id)
            if progress.caught_up or progress.started:
                found.append(progress)
        return found

    def beat(self, seconds: float = 0.5, **fields: Any) -> list[Command]:
        """Heartbeats and ticks. Returns what the leader did."""
        done: list[Command] = []
        while seconds > 0:
            seconds -= 0.5
            for name in sorted(self.state.nodes):
                if name not in self.away:
                    values = {"progress": self.progress(name), "damaged": sorted(self.damaged.get(name, ()))}
                    done += self.member.done(self.member.heartbeat(name, **{**values, **fields}))
            done += self.member.done(self.member.tick(0.5))
        self.done += done
        return done

    def silence(self, *names: str) -> None:
        """Until they are ended."""
        self.away.update(names)
        self.beat(8)
        assert all(self.state.nodes[name].ended for name in names)

    def holders(self) -> dict[str, str]:
        return {name: "".join(group.replicas) for name, group in sorted(self.state.groups.items())}

    def under_way(self) -> list[str]:
        groups = self.state.groups.values()
        return sorted(g.name for g in groups if g.HasField("next") or g.HasField("previous"))


# ------------------------------------------------------------------------------------------------- levels


def test_the_level_rises_when_all_nodes_have_it():
    led = Led("ab", groups=0, level=1)
    assert led.state.level == 1
    old = Led("ab", groups=0, level=0)
    old.member.register("c", level=1)
    old.beat(5)
    assert old.state.level == 0
    for name in "ab":
        old.member.register(name, level=1)
        old.beat()
    assert old.state.level == 1


def test_a_leader_that_did_not_note_the_level_of_nodes_hears_it_from_them():
    led = Led("ab", groups=0, level=0)
    led.beat(1, level=1)
    assert led.state.level == 1
    assert [node.level for node in led.state.nodes.values()] == [1, 1]


def test_a_node_that_is_away_with_older_software_holds_the_level_back_until_it_is_over():
    led = Led("abc", groups=0, level=0)
    for name in "ab":
        led.member.register(name, level=1)
    led.beat(1)
    assert led.state.level == 0
    led.silence("c")
    led.beat(3)
    assert led.state.level == 1


def test_nobody_raises_the_level_by_hand_and_what_needs_it_does_not_reach_the_log_before():
    led = Led("abc", level=0)
    slots = led.member.slots
    commands = [
        {"raise_level": RaiseLevel(level=1)},
        {"change_replicas": ChangeReplicas(group="g0", change=REPLICA_CHANGE_ADD)},
        {"drain_node": DrainNode(node="a", draining=True)},
    ]
    for command in commands:
        assert led.do(**command).code == Code.FAILED_PRECONDITION
    assert led.member.slots == slots


# ------------------------------------------------------------------------------------------------- a change


def test_a_change_goes_through_by_itself():
    led = Led()
    assert led.change(REPLICA_CHANGE_REPLACE, "c", "e").code == Code.OK
    led.beat(3)
    assert (led.holders(), led.g.configuration, led.under_way()) == ({"g0": "abe"}, 2, [])
    assert not led.g.starting
    assert kinds(led.done).count("begin_configuration") == 1
    assert led.beat(3) == [], "and then there is peace"


def test_a_configuration_begins_when_every_newcomer_has_caught_up():
    led = Led()
    led.slow.add("e")
    led.change(REPLICA_CHANGE_REPLACE, "c", "e")
    led.beat(3)
    assert (led.g.configuration, led.under_way()) == (1, ["g0"])
    led.slow.clear()
    led.beat(1)
    assert led.g.configuration == 2


def test_a_newcomer_that_does_not_answer_any_more_is_waited_for():
    led = Led()
    led.slow.add("e")
    led.change(REPLICA_CHANGE_REPLACE, "c", "e")
    report = GroupProgress(group="g0#1", configuration=1, caught_up=True)
    led.member.settle(led.member.heartbeat("e", progress=[report], leaving=True))
    assert led.state.nodes["e"].suspected
    assert led.member.done(led.member.tick(0.5)) == []


def test_a_report_about_a_change_that_was_cancelled_says_nothing_about_the_next_one():
    led = Led()
    led.slow.add("e")
    led.change(REPLICA_CHANGE_REPLACE, "c", "e")
    late = led.state.revision
    led.do(cancel_change=CancelChange(group="g0"))
    led.change(REPLICA_CHANGE_REPLACE, "b", "e")
    report = GroupProgress(group="g0#1", configuration=1, caught_up=True)
    led.member.heartbeat("e", progress=[report], revision=late)
    assert led.member.done(led.member.tick(0.5)) == []
    led.member.heartbeat("e", progress=[report])
    assert kinds(led.member.done(led.member.tick(0.5))) == ["begin_configuration"]


@pytest.mark.parametrize("fields", [{"configuration": 2}, {"configuration": 0}, {"group": "x#1"}])
def test_a_report_about_another_configuration_or_group_does_not_count(fields):
    led = Led()
    led.slow.add("e")
    led.change(REPLICA_CHANGE_REPLACE, "c", "e")
    report = {"group": "g0#1", "configuration": 1, "caught_up": True, "started": True} | fields
    led.member.heartbeat("e", progress=[GroupProgress(**report)])
    assert led.member.done(led.member.tick(0.5)) == []


def test_the_old_configuration_stays_until_a_majority_has_started():
    led = Led()
    led.stuck.update("be")
    led.change(REPLICA_CHANGE_REPLACE, "c", "e")
    led.beat(3)
    assert (led.g.configuration, list(led.g.starting), led.under_way()) == (2, ["b", "e"], ["g0"])
    led.stuck.remove("e")
    led.beat(1)
    assert (list(led.g.starting), led.under_way()) == (["b"], [])


def test_a_new_leader_goes_on_with_what_is_under_way():
    led = Led()
    led.slow.add("e")
    led.change(REPLICA_CHANGE_REPLACE, "c", "e")
    led.beat(1)
    led.slow.clear()
    led.member.follow()
    led.member.settle(led.member.lead())
    assert led.g.configuration == 1, "it hears for itself"
    led.beat(3)
    assert (led.holders(), led.under_way()) == ({"g0": "abe"}, [])


def test_a_change_whose_newcomer_is_gone_for_long_is_given_up():
    led = Led(cancel_after_s=20.0)
    led.slow.add("e")
    led.change(REPLICA_CHANGE_REPLACE, "c", "e")
    led.silence("e")
    led.beat(10)
    assert led.under_way() == ["g0"]
    led.beat(15)
    assert led.under_way() == []
    assert (led.holders(), led.g.configuration) == ({"g0": "abc"}, 1)


def test_a_newcomer_that_comes_back_in_time_goes_on():
    led = Led(cancel_after_s=20.0)
    led.slow.add("e")
    led.change(REPLICA_CHANGE_REPLACE, "c", "e")
    led.silence("e")
    led.beat(10)
    led.member.register("e", level=1)
    led.away.clear()
    led.slow.clear()
    led.beat(15)
    assert (led.holders(), led.under_way()) == ({"g0": "abe"}, [])


# ------------------------------------------------------------------------------------------------- lost members


def test_a_member_with_a_damaged_disk_is_restored_in_its_own_place():
    led = Led()
    led.damaged["b"] = {"g0#1"}
    led.beat(5)
    assert (led.holders(), led.g.configuration, list(led.g.lost)) == ({"g0": "abc"}, 2, [])
    assert led.damaged["b"] == set()
    assert kinds(led.done).count("record_lost") == 1
    assert led.beat(3) == []


def test_what_is_damaged_in_many_groups_is_restored_a_few_at_a_time():
    led = Led("abc", groups=7, moves_at_once=2)
    led.damaged["b"] = {group.id for group in led.state.groups.values()}
    most = 0
    for _ in range(60):
        led.beat(0.5)
        most = max(most, len(led.under_way()))
    assert most == 2
    assert {group.configuration for group in led.state.groups.values()} == {2}
    assert not any(group.lost for group in led.state.groups.values())


def test_a_lost_member_that_is_away_waits_and_is_restored_when_it_comes_back_with_a_new_disk():
    led = Led("abc")
    led.silence("b")
    assert led.do(give_up_disk=GiveUpDisk(node="b")).code == Code.OK
    led.beat(5)
    assert (led.g.configuration, list(led.g.lost)) == (1, ["b"])
    led.member.register("b", node_id=b"new disk", level=1)
    led.away.clear()
    led.beat(5)
    assert (led.holders(), led.g.configuration, list(led.g.lost)) == ({"g0": "abc"}, 2, [])


def test_a_lost_majority_leaves_the_leader_nothing_to_do():
    led = Led("abcd")
    for name in "ab":
        led.damaged[name] = {"g0#1"}
    led.beat(3)
    assert (list(led.g.lost), led.under_way()) == (["a", "b"], [])
    assert led.beat(3) == []


def test_a_majority_lost_while_a_change_is_prepared_is_no_reason_to_ask_for_it_for_ever():
    led = Led("abcd")
    led.slow.add("d")
    led.change(REPLICA_CHANGE_REPLACE, "c", "d")
    for name in "ab":
        led.damaged[name] = {"g0#1"}
    led.beat(2)
    led.slow.clear()
    assert led.beat(3) == []


# ------------------------------------------------------------------------------------------------- draining


def test_a_draining_node_is_relieved_of_everything_a_few_groups_at_a_time():
    led = Led("abcde", groups=8, moves_at_once=2)
    held = [name for name, replicas in led.holders().items() if "a" in replicas]
    assert len(held) > 3
    led.do(drain_node=DrainNode(node="a", draining=True))
    most = 0
    for _ in range(40):
        led.beat(0.5)
        most = max(most, len(led.under_way()))
    assert most == 2
    assert not any("a" in replicas for replicas in led.holders().values())
    assert all(len(replicas) == 3 for replicas in led.holders().values())
    assert led.do(remove_node=RemoveNode(node="a")).code == Code.OK
    answer = led.member.machine.heartbeat_answer(HeartbeatRequest(name="a", incarnation=1))
    assert answer.ended, "a process that is still there hears that it is over"


def test_a_group_without_another_place_is_skipped_and_the_others_move():
    led = Led("abcd", groups=1)
    led.do(create_group=CreateGroup(name="wide", replicas=4))
    led.do(drain_node=DrainNode(node="a", draining=True))
    led.beat(5)
    assert led.holders() == {"g0": "bcd", "wide": "abcd"}
    assert led.beat(3) == []


def test_many_groups_without_a_place_do_not_hide_one_that_has_one(monkeypatch):
    monkeypatch.setattr("ordercast.membership.reassignment.TRIES_MAX", 2)
    led = Led("abcd", groups=0)
    for number in range(7):
        led.do(create_group=CreateGroup(name=f"g{number}", replicas=4))
    led.do(create_group=CreateGroup(name="h", replicas=3))
    led.do(drain_node=DrainNode(node="a", draining=True))
    led.beat(0.5)
    assert led.holders()["h"] == "abc"
    led.beat(5)
    assert led.holders() == {f"g{number}": "abcd" for number in range(7)} | {"h": "bcd"}


def test_two_draining_nodes_do_not_take_from_each_other():
    led = Led("abcdef", groups=4)
    for name in "ab":
        led.do(drain_node=DrainNode(node=name, draining=True))
    led.slow.update("cdef")
    led.beat(1)
    assert len(led.under_way()) == 2, "both are in g0, which can move only once at a time"
    led.slow.clear()
    led.beat(20)
    assert all(set(replicas) <= set("cdef") for replicas in led.holders().values())


def test_a_node_that_is_to_stay_after_all_keeps_what_it_has():
    led = Led("abcd", groups=1)
    led.slow.add("d")
    led.do(drain_node=DrainNode(node="a", draining=True))
    led.beat(1)
    led.do(drain_node=DrainNode(node="a", draining=False))
    led.do(cancel_change=CancelChange(group="g0"))
    assert led.beat(5) == []
    assert led.holders() == {"g0": "abc"}


def test_a_draining_node_with_a_damaged_disk_is_relieved_too():
    led = Led("abcd", groups=1)
    led.damaged["a"] = {"g0#1"}
    led.do(drain_node=DrainNode(node="a", draining=True))
    led.beat(8)
    assert (led.holders(), list(led.g.lost)) == ({"g0": "bcd"}, [])


def test_a_group_that_is_being_deleted_is_not_moved():
    led = Led("abcd", groups=1)
    led.do(delete_group=DeleteGroup(name="g0"))
    led.do(drain_node=DrainNode(node="a", draining=True))
    led.beat(3)
    assert led.holders() == {"g0": "abc"}


# ------------------------------------------------------------------------------------------------- missing nodes


def test_by_default_a_missing_node_is_not_replaced():
    led = Led()
    led.silence("a")
    led.beat(60)
    assert led.holders() == {"g0": "abc"}


def test_a_node_that_is_missing_for_long_is_replaced_where_there_is_a_place():
    led = Led(replace_after_s=20.0)
    led.silence("a")
    led.beat(10)
    assert led.holders() == {"g0": "abc"}
    led.beat(20)
    assert (led.holders(), led.under_way()) == ({"g0": "bcd"}, [])
    few = Led("abc", replace_after_s=20.0)
    few.silence("a")
    few.beat(60)
    assert few.holders() == {"g0": "abc"}


def test_a_new_leader_waits_the_whole_time_before_it_replaces_anybody():
    led = Led(replace_after_s=20.0)
    led.silence("a")
    led.beat(15)
    led.member.follow()
    led.member.settle(led.member.lead())
    led.beat(15)
    assert led.holders() == {"g0": "abc"}
    led.beat(15)
    assert led.holders() == {"g0": "bcd"}


def test_a_lost_member_that_is_missing_and_has_no_other_place_is_not_tried_again_and_again():
    led = Led("abc", replace_after_s=10.0, cancel_after_s=10.0)
    led.silence("a")
    led.do(give_up_disk=GiveUpDisk(node="a"))
    led.beat(15)
    assert led.beat(15) == []


# ------------------------------------------------------------------------------------------------- forgetting


def test_a_disk_that_was_given_up_is_not_waited_for_when_a_group_goes():
    led = Led("abcd", groups=1)
    led.silence("d")
    led.do(delete_group=DeleteGroup(name="g0"))
    led.beat(5, clear_of=["g0#1"])
    assert "g0" in led.state.groups
    led.do(give_up_disk=GiveUpDisk(node="d"))
    led.beat(5, clear_of=["g0#1"])
    assert "g0" not in led.state.groups


def test_a_deleted_group_goes_when_the_change_that_had_begun_is_over():
    led = Led()
    led.stuck.update("abe")
    led.change(REPLICA_CHANGE_REPLACE, "c", "e")
    led.beat(2)
    assert led.under_way() == ["g0"]
    led.do(delete_group=DeleteGroup(name="g0"))
    led.beat(3, clear_of=["g0#1"])
    assert "remove_group" not in kinds(led.done), "it would only be refused, again and again"
    led.stuck.clear()
    led.beat(4, clear_of=["g0#1"])
    assert "g0" not in led.state.groups


def test_a_disk_that_was_given_up_is_not_waited_for_when_incarnations_retire():
    led = Led("ab", groups=0)
    led.silence("b")
    last = led.member.register("a", level=1)
    led.beat(5)
    assert led.state.retired == 0
    led.do(give_up_disk=GiveUpDisk(node="b"))
    led.beat(5)
    assert led.state.retired == last


def test_nothing_is_retired_before_everyone_has_heard_of_a_removed_node():
    led = Led("abc", groups=0)
    led.do(drain_node=DrainNode(node="c", draining=True))
    led.member.register("a", level=1)
    before = led.state.revision
    led.do(remove_node=RemoveNode(node="c"))
    assert max(node.revision for node in led.state.nodes.values()) <= before
    for _ in range(6):
        led.member.heartbeat("a")
        led.member.heartbeat("b", revision=before)
        led.member.settle(led.member.tick(0.5))
    assert led.state.retired == 0
    led.beat(3)
    assert led.state.retired == led.state.nodes["b"].incarnation


def test_what_was_heard_of_a_removed_node_is_forgotten():
    led = Led("abc", groups=0)
    led.do(drain_node=DrainNode(node="c", draining=True))
    led.do(remove_node=RemoveNode(node="c"))
    led.beat(1)
    assert sorted(led.member.machine.heard) == ["a", "b"]


def test_a_heartbeat_may_say_something_of_every_group_there_can_be():
    led = Led("a", groups=0)
    ids = [f"{'x' * 57}-{number:05}#{number}" for number in range(1024)]
    progress = [
        GroupProgress(group=id_, configuration=2**20, started=True, position=2**40, head=2**40) for id_ in ids
    ]
    assert led.member.heartbeat("a", progress=progress, damaged=ids, clear_of=ids) == []


def test_more_damage_than_fits_into_a_command_is_told_in_several(monkeypatch):
    monkeypatch.setattr("ordercast.membership.reassignment.LOST_PER_COMMAND_MAX", 2)
    led = Led("abc", groups=5)
    led.slow.update("abc")
    ids = [group.id for group in led.state.groups.values()]
    for _ in range(3):
        led.member.heartbeat("b", damaged=ids)
        for append in appends(effects := led.member.tick(0.5)):
            for command in commands_of(append):
                assert len(command.record_lost.groups) <= 2
        led.member.settle(effects)
    assert all(list(group.lost) == ["b"] for group in led.state.groups.values())


def test_all_services_are_relieved_not_only_sequencers():
    led = Led("abc", groups=1)
    for name in "xyzw":
        led.member.register(name, ("consensus",), level=1)
    led.g.acceptors[:] = ["x", "y", "z"]
    led.do(drain_node=DrainNode(node="x", draining=True))
    led.beat(4)
    assert "x" not in led.g.acceptors
    assert (led.holders(), len(led.g.acceptors)) == ({"g0": "abc"}, 3)


# ------------------------------------------------------------------------------------------------- rest


class Troubled(Led):
    """Nodes go, come back, are drained, lose a disk, copy slowly; but no group loses a majority."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        super().__init__("abcdefg", groups=5, replace_after_s=20.0, cancel_after_s=10.0)
        self.disks = 0

    def trouble(self) -> None:
        name = self.random.choice("abcdefg")
        match self.random.choice(["go", "come", "drain", "stay", "damage", "give up", "slow", "fast", "lead"]):
            case "go" if len(self.away) < 2:
                self.away.add(name)
            case "come":
                self.come_back(name)
            case "drain" | "stay" as kind:
                self.do(drain_node=DrainNode(node=name, draining=kind == "drain"))
            case "damage" if name not in self.away:
                groups = [group for group in self.state.groups.values() if name in group.replicas]
                if groups and self.may_lose(name, groups[:1]) and name not in groups[0].starting:
                    self.damaged.setdefault(name, set()).add(groups[0].id)
            case "give up" if name in self.away:
                if self.may_lose(name, list(self.state.groups.values())):
                    self.do(give_up_disk=GiveUpDisk(node=name))
                    self.damaged.pop(name, None)
            case "slow":
                (self.slow if self.random.random() < 0.5 else self.stuck).add(name)
            case "fast":
                self.slow.discard(name)
                self.stuck.discard(name)
            case "lead":
                self.member.follow()
                self.member.settle(self.member.lead())

    def may_lose(self, name: str, groups: list[Group]) -> bool:
        """Whoever else is damaged, or has lost something, is one too many."""
        others = {id_ for other, ids in self.damaged.items() if other != name for id_ in ids}
        return not any(group.lost or group.previous.lost or group.id in others for group in groups)

    def come_back(self, name: str) -> None:
        node = self.state.nodes[name]
        self.away.discard(name)
        if node.ended:
            self.disks += node.disk_lost
            disk = b"disk %d" % self.disks if node.disk_lost else node.node_id
            self.member.register(name, node_id=disk, level=1)

    def heal(self) -> None:
        for name in "abcdefg":
            self.come_back(name)
            self.do(drain_node=DrainNode(node=name, draining=False))
        self.slow.clear()
        self.stuck.clear()


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happened_a_cluster_that_is_whole_again_comes_to_rest(seed):
    led = Troubled(seed)
    for _ in range(60):
        led.trouble()
        led.beat(led.random.choice([0.5, 2, 6]))
        for group in led.state.groups.values():
            assert len(group.replicas) == 3
    led.heal()
    led.beat(60)
    assert led.beat(5) == []
    assert led.under_way() == []
    assert not any(group.lost or group.starting for group in led.state.groups.values())
    assert not any(led.damaged.values())


def test_that_is_not_because_nothing_happened():
    most = 0
    for seed in range(5):
        led = Troubled(seed)
        for _ in range(60):
            led.trouble()
            led.beat(2)
        most = max(most, *(group.configuration for group in led.state.groups.values()))
    assert most > 5
