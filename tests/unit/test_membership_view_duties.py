"""What the leader of membership does about views, from the heartbeats of nodes that do as they are told."""

from typing import Any

from ordercast.core.members import holders_of, learners_of
from ordercast.membership.changes import is_changing
from ordercast.membership.machine import Executed
from ordercast.membership.state import Code, State
from ordercast.v1.membership_pb2 import (
    ChangeReplicas,
    Command,
    CommandResult,
    CreateGroup,
    DrainNode,
    Group,
    GroupProgress,
    MarkNode,
    RecordLost,
    RegisterNode,
    RemoveNode,
)
from tests.unit.test_membership_machine import Member, answers, founded, kinds
from tests.unit.test_membership_state import ALL
from tests.unit.test_membership_views import ADD, DOMAIN, REMOVE, REPLACE, shape


class Led:
    """A leader, and nodes that get the cut, install and copy as soon as they hear that they should.

    `behind` have no cut and install nothing, `slow` ones never catch up, `away` ones say nothing, and those in
    `stopping` are about to stop.
    """

    def __init__(self, names: str = "abcde", *, groups: int = 1, **settings: Any) -> None:
        self.member: Member = founded(**{"end_after_s": 30.0, **settings})
        self.away: set[str] = set()
        self.behind: set[str] = set()
        self.slow: set[str] = set()
        self.stopping: set[str] = set()
        self.damaged: dict[str, list[str]] = {}
        for name in names:
            self.member.register(name, level=2)
        self.beat()
        assert self.state.level == 2
        self.do(create_domain=DOMAIN)
        for number in range(groups):
            assert self.do(create_group=CreateGroup(name=f"g{number}", domain="v", replicas=3)).code == Code.OK

    @property
    def state(self) -> State:
        return self.member.machine.state

    @property
    def g(self) -> Group:
        return self.state.groups["g0"]

    def do(self, **what: Any) -> CommandResult:
        (answer,) = answers(self.member.settle(self.member.execute(**what)))
        assert isinstance(answer, Executed)
        return answer.result

    def progress(self, name: str) -> list[GroupProgress]:
        found = []
        for group in self.state.groups.values():
            if name in learners_of(group):
                is_done = name not in self.slow
                found.append(GroupProgress(group=group.id, configuration=group.configuration, caught_up=is_done))
            elif name in group.starting:
                has_cut = name not in self.behind
                installed = has_cut and not group.HasField("previous")
                progress = GroupProgress(group=group.id, configuration=group.configuration)
                progress.started, progress.caught_up = has_cut, installed
                found.append(progress)
        return found

    def say(self, name: str, **fields: Any) -> list[Command]:
        """One heartbeat. Returns what the leader does about it."""
        values = {"progress": self.progress(name), "damaged": self.damaged.get(name, [])}
        values |= {"leaving": name in self.stopping, "level": 2}
        return self.member.done(self.member.heartbeat(name, **{**values, **fields}))

    def beat(self, seconds: float = 0.5) -> list[Command]:
        done: list[Command] = []
        while seconds > 0:
            seconds -= 0.5
            for name in sorted(self.state.nodes):
                if name not in self.away:
                    done += self.say(name)
            done += self.member.done(self.member.tick(0.5))
        return done

    def restart(self, name: str) -> list[Command]:
        node = RegisterNode(name=name, node_id=name.encode(), services=ALL, peer_address="a:1", level=2)
        return self.member.done(self.member.execute(register=node))[1:]

    def suspect(self, name: str) -> None:
        """It is silent for so long."""
        self.away.add(name)
        self.beat(4)
        assert self.state.nodes[name].suspected

    def rests(self) -> None:
        """Until nothing is done any more."""
        for _ in range(20):
            if not self.beat():
                return
        raise AssertionError("no rest")

    def views(self) -> dict[str, str]:
        return {name: "".join(group.replicas) for name, group in sorted(self.state.groups.items())}


def test_a_silent_member_is_left_out_of_all_its_groups_in_one_batch():
    led = Led("abc", groups=3)
    led.away.add("c")
    led.behind.update("ab")
    done = led.beat(4)
    assert kinds(done) == ["mark_node", "define_view", "define_view", "define_view"]
    assert led.views() == {"g0": "ab", "g1": "ab", "g2": "ab"}
    assert {group.revision for group in led.state.groups.values()} == {led.g.revision}
    assert all(group.HasField("previous") for group in led.state.groups.values())


def test_a_view_is_complete_when_a_majority_says_so_and_at_once():
    led = Led("abc")
    led.behind.update("ab")
    led.suspect("c")
    assert shape(led.g) == (2, "ab", "abc")
    led.behind.discard("a")
    assert kinds(led.say("a")) == [], "one of two is no majority"
    led.behind.discard("b")
    assert kinds(led.say("b")) == ["complete_view"], "without a tick"
    assert shape(led.g) == (2, "ab", "")
    assert list(led.g.starting) == ["a", "b"]
    assert kinds(led.say("a")) == ["record_started"]
    assert kinds(led.say("b")) == ["record_started"]
    assert not led.g.starting
    assert kinds(led.say("a")) == []


def test_what_a_member_says_of_another_view_or_in_another_life_does_not_count():
    led = Led("abc")
    led.behind.update("ab")
    led.suspect("c")
    old = GroupProgress(group=led.g.id, configuration=1, started=True, caught_up=True)
    for name in "ab":
        assert kinds(led.say(name, progress=[old])) == []
    new = GroupProgress(group=led.g.id, configuration=2, started=True)
    led.say("a", progress=[new])
    assert kinds(led.restart("b")) == ["define_view"]
    new = GroupProgress(group=led.g.id, configuration=2, started=True)
    assert kinds(led.say("b", progress=[new])) == []
    assert shape(led.g) == (3, "ab", "abc")


def test_a_member_that_restarts_is_in_a_new_view_with_its_new_life():
    led = Led("abc")
    assert kinds(led.restart("b")) == ["define_view"]
    assert shape(led.g) == (2, "abc", "abc")
    assert list(led.g.incarnations) == [led.state.nodes[name].incarnation for name in "abc"]
    led.rests()
    assert shape(led.g) == (2, "abc", "")
    assert not led.g.starting


def test_who_was_left_out_comes_back_when_it_has_caught_up():
    led = Led("abc")
    led.suspect("c")
    led.rests()
    assert shape(led.g) == (2, "ab", "")
    led.away.clear()
    led.slow.add("c")
    led.rests()
    assert shape(led.g) == (2, "ab", "")
    assert not led.state.nodes["c"].suspected
    led.slow.clear()
    assert kinds(led.say("c")) == ["define_view"]
    led.rests()
    assert shape(led.g) == (3, "abc", "")


def test_a_newcomer_does_not_disturb_a_view_that_is_under_way_and_a_former_member_may():
    led = Led("abcd")
    led.suspect("c")
    led.rests()
    led.behind.update("ab")
    led.restart("b")
    assert shape(led.g) == (3, "ab", "ab")
    led.away.clear()
    led.beat(2)
    assert shape(led.g) == (3, "ab", "ab"), "c is no member of the last completed view, and waits"
    led.behind.clear()
    led.rests()
    assert led.views() == {"g0": "abc"}
    led.behind.update("abc")
    led.suspect("c")
    number = led.g.configuration
    led.away.clear()
    led.slow.add("c")
    led.beat(2)
    assert shape(led.g) == (number + 1, "abc", "abc"), "now it is: without it there might be no majority"


def test_no_view_without_a_majority_and_when_all_are_back_all_are_in_it():
    led = Led("abc")
    led.away.update("bc")
    led.beat(5)
    assert shape(led.g) == (1, "abc", "")
    led.away.add("a")
    led.beat(5)
    led.away.clear()
    led.behind.update("abc")
    led.slow.update("abc")
    for name in "abc":
        led.restart(name)
    led.behind.clear()
    led.rests()
    assert led.views() == {"g0": "abc"}
    assert list(led.g.incarnations) == [led.state.nodes[name].incarnation for name in "abc"]


def test_one_that_stops_leaves_the_view_and_contributes_to_its_end():
    led = Led("abc")
    led.behind.update("ab")
    led.stopping.add("c")
    assert sorted(map(str, kinds(led.say("c")))) == ["define_view", "mark_node"]
    assert (shape(led.g), list(led.g.leaving)) == ((2, "ab", "abc"), ["c"])
    assert learners_of(led.g) == []
    led.behind.clear()
    led.rests()
    assert (shape(led.g), list(led.g.leaving)) == ((2, "ab", ""), [])
    led.away.add("c")
    led.beat(5)
    assert shape(led.g) == (2, "ab", "")
    led.away.clear()
    led.stopping.clear()
    led.restart("c")
    led.rests()
    assert shape(led.g) == (3, "abc", "")


def test_one_that_stops_has_its_say_where_the_others_are_too_few():
    led = Led("abc")
    led.suspect("c")
    led.rests()
    led.stopping.add("b")
    led.beat(1)
    assert shape(led.g)[1] == "a"
    led.rests()
    assert shape(led.g) == (3, "a", "")


def test_when_all_stop_nobody_leaves():
    led = Led("abc")
    led.behind.update("abc")
    led.stopping.update("abc")
    led.beat(2)
    assert shape(led.g)[1] != ""
    assert all(node.suspected for node in led.state.nodes.values())


def test_one_that_dies_while_it_leaves_is_waited_for_no_longer():
    led = Led("abc")
    led.behind.update("ab")
    led.stopping.add("c")
    led.say("c")
    assert list(led.g.leaving) == ["c"]
    led.away.add("c")
    led.beat(4)
    assert (shape(led.g), list(led.g.leaving)) == ((3, "ab", "abc"), [])


def test_a_replica_is_added_removed_and_replaced():
    led = Led("abcde")
    led.do(change_replicas=ChangeReplicas(group="g0", change=ADD, to="d"))
    led.rests()
    assert led.views() == {"g0": "abcd"}
    led.do(change_replicas=ChangeReplicas(group="g0", change=REMOVE, node="a"))
    assert (shape(led.g)[1:], list(led.g.leaving)) == (("bcd", "abcd"), ["a"])
    led.rests()
    assert led.views() == {"g0": "bcd"}
    assert holders_of(led.g) == ["b", "c", "d"]
    led.do(change_replicas=ChangeReplicas(group="g0", change=REPLACE, node="b", to="e"))
    led.rests()
    assert (led.views(), list(led.g.placement)) == ({"g0": "cde"}, ["c", "d", "e"])
    assert not is_changing(led.g)
    assert not led.g.starting


def test_a_replica_that_is_down_is_replaced():
    led = Led("abcd")
    led.suspect("c")
    led.rests()
    led.do(change_replicas=ChangeReplicas(group="g0", change=REPLACE, node="c", to="d"))
    led.rests()
    assert (led.views(), holders_of(led.g)) == ({"g0": "abd"}, ["a", "b", "d"])


def test_a_newcomer_that_never_catches_up_changes_nothing():
    led = Led("abcd")
    led.slow.add("d")
    led.do(change_replicas=ChangeReplicas(group="g0", change=REPLACE, node="c", to="d"))
    led.beat(5)
    assert shape(led.g) == (1, "abc", "")
    assert list(led.g.next.replicas) == ["a", "b", "d"]


def test_where_nobody_of_the_placement_can_be_in_a_view_the_others_stay():
    led = Led("abc")
    led.behind.update("abc")
    led.do(change_replicas=ChangeReplicas(group="g0", change=REMOVE, node="a"))
    assert (shape(led.g), list(led.g.leaving)) == ((2, "bc", "abc"), ["a"])
    led.do(change_replicas=ChangeReplicas(group="g0", change=REMOVE, node="b"))
    lost = RecordLost(node="c", incarnation=led.state.nodes["c"].incarnation, groups=[led.g.id])
    led.do(record_lost=lost)
    assert list(led.g.placement) == ["c"]
    assert (shape(led.g)[1], list(led.g.leaving)) == ("ab", []), "c comes back only behind a view without it"
    led.behind.clear()
    led.rests()
    assert (led.views(), list(led.g.lost), holders_of(led.g)) == ({"g0": "c"}, [], ["c"])


def test_a_newcomer_comes_into_a_view_that_nobody_is_left_to_complete():
    led = Led("abcd")
    for name in "ab":
        led.do(change_replicas=ChangeReplicas(group="g0", change=REMOVE, node=name))
        led.rests()
    assert led.views() == {"g0": "c"}
    led.slow.add("d")
    led.behind.update("cd")
    led.restart("c")
    assert shape(led.g)[1:] == ("c", "c")
    led.do(change_replicas=ChangeReplicas(group="g0", change=REPLACE, node="c", to="d"))
    led.restart("c")
    led.beat(2)
    assert list(led.g.incarnations) == [led.state.nodes["c"].incarnation], "its new life does not wait for d"
    led.slow.clear()
    led.behind.clear()
    led.rests()
    assert led.views() == {"g0": "d"}


def test_a_drained_node_is_emptied_and_can_be_removed():
    led = Led("abcde", groups=4)
    led.do(drain_node=DrainNode(node="a", draining=True))
    for _ in range(20):
        led.beat()
    assert all("a" not in holders_of(group) for group in led.state.groups.values())
    assert all(len(group.replicas) == 3 for group in led.state.groups.values())
    assert led.do(remove_node=RemoveNode(node="a")).code == Code.OK


def test_a_node_that_is_missing_for_long_is_replaced():
    led = Led("abcd", end_after_s=5.0, replace_after_s=2.0)
    led.away.add("b")
    led.beat(15)
    led.rests()
    assert (led.views(), list(led.g.placement)) == ({"g0": "acd"}, ["a", "c", "d"])


def test_a_member_that_lost_its_disk_is_left_out_and_comes_back_as_a_newcomer():
    led = Led("abc")
    led.slow.add("c")
    led.damaged["c"] = [led.g.id]
    done = led.beat()
    led.damaged.clear()
    done += led.beat(2)
    assert "record_lost" in kinds(done)
    assert "change_replicas" not in kinds(done), "nobody has to restore it"
    led.rests()
    assert (led.views(), list(led.g.lost)) == ({"g0": "ab"}, [])
    led.slow.clear()
    led.rests()
    assert led.views() == {"g0": "abc"}


def test_a_member_that_lost_its_disk_does_not_count_as_having_the_cut():
    led = Led("abc")
    led.behind.update("b")
    led.restart("a")
    led.behind.update("ac")
    led.restart("a")
    assert shape(led.g)[1:] == ("abc", "abc")
    number = led.g.configuration
    led.member.settle(
        led.member.execute(
            record_lost=RecordLost(node="c", incarnation=led.state.nodes["c"].incarnation, groups=[led.g.id])
        )
    )
    assert shape(led.g) == (number + 1, "ab", "abc"), "at once, another view without it"


def test_a_new_leader_goes_on_when_it_has_heard_for_itself():
    led = Led("abc")
    led.behind.update("ab")
    led.suspect("c")
    assert shape(led.g) == (2, "ab", "abc")
    led.member.follow("other")
    led.behind.clear()
    assert led.say("a") + led.say("b") == [], "it does not lead"
    led.member.settle(led.member.lead())
    assert shape(led.g) == (2, "ab", "abc")
    led.beat()
    assert shape(led.g) == (2, "ab", "")


def test_a_node_that_is_suspected_and_heard_again_causes_no_more_views_than_it_must():
    led = Led("abc")
    node = led.state.nodes["c"]
    led.member.settle(
        led.member.execute(mark_node=MarkNode(name="c", incarnation=node.incarnation, suspected=True))
    )
    assert shape(led.g)[1] == "ab"
    led.rests()
    assert (led.g.configuration, led.views()) == (3, {"g0": "abc"})
    assert led.beat(5) == []
