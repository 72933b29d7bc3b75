"""Views of virtually synchronous groups: what membership's log records of them, and what its leader does."""

from collections.abc import Sequence
from typing import Any

import pytest

from ordercast.core.members import holders_of, how_members_change, learners_of, places_of
from ordercast.core.members.views import can_leave, completed_of
from ordercast.core.protocol import Members
from ordercast.membership.changes import everyone_of, has_survivors
from ordercast.membership.placement import load_of, rebalance
from ordercast.membership.state import Code, State
from ordercast.membership.views import Defined, may_complete, next_view
from ordercast.protocols.catalogue import UnknownProtocol, check_domain, level_of
from ordercast.runtime.process.directory import group_view
from ordercast.v1.membership_pb2 import (
    REPLICA_CHANGE_ADD,
    REPLICA_CHANGE_REMOVE,
    REPLICA_CHANGE_REPLACE,
    BeginConfiguration,
    CancelChange,
    ChangeReplicas,
    CommandResult,
    CompleteView,
    CreateDomain,
    DefineView,
    DeleteGroup,
    DrainNode,
    EndIncarnation,
    GiveUpDisk,
    Group,
    RecordLost,
    RecordStarted,
    RegisterNode,
    RemoveGroup,
    RemoveNode,
)
from tests.unit.test_membership_machine import answers, founded
from tests.unit.test_membership_state import Cluster

ADD, REMOVE, REPLACE = REPLICA_CHANGE_ADD, REPLICA_CHANGE_REMOVE, REPLICA_CHANGE_REPLACE
DOMAIN = CreateDomain(name="v", protocol="isis")


class Viewing(Cluster):
    """Nodes of level 2, and a group g with views on the first three of them: a, b, c in lives 1, 2, 3."""

    def __init__(self, names: str = "abcde", *, replicas: int = 3) -> None:
        super().__init__()
        for name in names:
            assert self.register(name, level=2).code == Code.OK
        assert self.raise_level(2).code == Code.OK
        assert self.do(create_domain=DOMAIN).code == Code.OK
        assert self.group("g", domain="v", replicas=replicas).code == Code.OK

    @property
    def g(self) -> Group:
        return self.state.groups["g"]

    def lives(self, names: Sequence[str]) -> list[int]:
        return [self.state.nodes[name].incarnation for name in names]

    def define(self, members: str, leaving: str = "", *, number: int = 0, **fields: Any) -> CommandResult:
        values: dict[str, Any] = {
            "group": self.g.id,
            "number": number or self.g.configuration + 1,
            "members": members,
            "incarnations": [self.state.nodes[n].incarnation if n in self.state.nodes else 1 for n in members],
            "leaving": leaving,
        }
        return self.do(define_view=DefineView(**(values | fields)))

    def complete(self, number: int = 0) -> CommandResult:
        return self.do(complete_view=CompleteView(group=self.g.id, number=number or self.g.configuration))

    def view(self, members: str, leaving: str = "") -> None:
        """Defined, and complete."""
        assert self.define(members, leaving).code == Code.OK
        assert self.complete().code == Code.OK

    def installed(self, *names: str, number: int = 0) -> CommandResult:
        number = number or self.g.configuration
        return self.do(record_started=RecordStarted(group=self.g.id, configuration=number, members=names))

    def change(self, change: int, node: str = "", to: str = "") -> CommandResult:
        command = ChangeReplicas(group="g", change=change, node=node, to=to)  # type: ignore[arg-type]
        return self.do(change_replicas=command)

    def begin(self) -> CommandResult:
        return self.do(begin_configuration=BeginConfiguration(group=self.g.id, configuration=self.g.next.number))

    def lost(self, name: str) -> CommandResult:
        incarnation = self.state.nodes[name].incarnation
        return self.do(record_lost=RecordLost(node=name, incarnation=incarnation, groups=[self.g.id]))

    def refused(self, result: CommandResult, *says: str, code: Code = Code.FAILED_PRECONDITION) -> None:
        assert result.code == code, result.message
        for text in says:
            assert text in result.message


def shape(group: Group) -> tuple[int, str, str]:
    """The latest view, its members, and the last completed one if it is not complete."""
    return group.configuration, "".join(group.replicas), "".join(group.previous.replicas)


@pytest.fixture
def cluster() -> Viewing:
    return Viewing()


# ------------------------------------------------------------------------------------------------- the rules


def test_the_next_view_is_those_of_the_placement_that_are_there():
    now = Defined(("a", "b", "c"), (1, 2, 3))
    alive = {"a": 1, "b": 2, "c": 3, "d": 4}
    assert next_view(now, "abc", "abc", alive) is None
    assert next_view(now, "abc", "abc", {"a": 1, "b": 2}) == Defined(("a", "b"), (1, 2))
    assert next_view(now, "abc", "abc", alive | {"c": 9}) == Defined(("a", "b", "c"), (1, 2, 9)), "another life"
    assert next_view(now, "abc", "abd", alive) == Defined(("a", "b", "d"), (1, 2, 4), ("c",))


def test_no_view_follows_without_a_majority_of_the_last_completed_one():
    now = Defined(("a", "b", "c"), (1, 2, 3))
    assert next_view(now, "abc", "abc", {"a": 1}) is None
    assert next_view(now, "abc", "abc", {"a": 1, "b": 2, "d": 4}, lost="b") is None
    # Not of the last one that was defined: what was visible before it may be with those who are away.
    assert next_view(Defined(("a", "b", "c"), (1, 2, 3)), "abcde", "abcde", {"b": 2, "c": 3}) is None


def test_another_view_is_due_when_one_that_leaves_dies_before_it_contributes():
    now = Defined(("a", "b"), (1, 2), ("c",))
    assert next_view(now, "abc", "ab", {"a": 1, "b": 2, "c": 3}) is None
    assert next_view(now, "abc", "ab", {"a": 1, "b": 2}) == Defined(("a", "b"), (1, 2))


def test_a_view_is_complete_with_a_majority_of_itself():
    assert may_complete("abc", "ab")
    assert not may_complete("abc", "ax")
    assert not may_complete("ab", "a")


# ----------------------------------------------------------------------------------------------- the first view


def test_a_group_begins_with_a_complete_view_of_the_present_lives_and_without_acceptors(cluster):
    assert shape(cluster.g) == (1, "abc", "")
    assert list(cluster.g.placement) == ["a", "b", "c"]
    assert list(cluster.g.incarnations) == [1, 2, 3]
    assert not [*cluster.g.acceptors, *cluster.g.starting, *cluster.g.leaving]
    assert how_members_change(cluster.g) == Members.VIEWS


def test_groups_of_other_domains_have_no_views(cluster):
    cluster.group("other", replicas=3)
    other = cluster.state.groups["other"]
    assert list(other.acceptors)
    assert not [*other.placement, *other.incarnations]
    cluster.refused(cluster.define("abc", group=other.id, number=2), "has no views")
    cluster.refused(cluster.do(complete_view=CompleteView(group=other.id, number=1)), "has no views")


def test_a_group_with_views_needs_no_consensus_nodes():
    cluster = Cluster()
    for name in "ab":
        cluster.register(name, ("gateway", "sequencer"), level=2)
    cluster.raise_level(2)
    cluster.do(create_domain=DOMAIN)
    assert cluster.group("g", domain="v", replicas=2).code == Code.OK
    assert cluster.group("h", replicas=2).code == Code.FAILED_PRECONDITION


def test_what_a_group_has_otherwise_than_its_domain_is_kept_or_refused():
    cluster = Viewing()
    kept = cluster.group("own", domain="v", settings={"k_stability": "all"})
    assert kept.code == Code.OK
    assert dict(group_view(cluster.state.groups["own"]).settings) == {"k_stability": "all"}
    for domain, settings, names in [
        ("v", {"k_stability": "few"}, "k_stability"),
        ("v", {"ordering": "total"}, "ordering"),
        ("v", {"k_stability": "1" * 2000}, "settings of"),
        ("default", {"k_stability": "all"}, "scalatom"),
    ]:
        refused = cluster.group("not", domain=domain, settings=settings)
        assert refused.code == Code.INVALID_ARGUMENT
        assert names in refused.message
    assert "not" not in cluster.state.groups


# ------------------------------------------------------------------------------------------------------ levels


def test_the_protocol_needs_level_2_and_members_refuse_it_before_in_the_words_of_older_software():
    cluster = Cluster()
    cluster.register("a", level=2)
    for level in (0, 1):
        if level:
            cluster.raise_level(level)
        result = cluster.do(create_domain=DOMAIN)
        assert (result.code, result.message) == (
            Code.INVALID_ARGUMENT,
            "there is no protocol 'isis': there are scalatom",
        )
    cluster.raise_level(2)
    assert cluster.do(create_domain=DOMAIN).domain.protocol == "isis"


def test_settings_of_a_domain_with_views_are_checked(cluster):
    wrong = CreateDomain(name="w", protocol="isis", settings={"ordering": "none"})
    cluster.refused(cluster.do(create_domain=wrong), "ordering", code=Code.INVALID_ARGUMENT)
    right = CreateDomain(name="w", protocol="isis", settings={"ordering": "total"})
    assert cluster.do(create_domain=right).code == Code.OK


def test_the_catalogue_knows_what_each_level_has():
    assert (level_of("scalatom"), level_of("isis"), level_of("none")) == (0, 2, 0)
    check_domain("isis", {"flush": "all"})
    check_domain("isis", {}, 2)
    with pytest.raises(UnknownProtocol, match=r"'isis': there are scalatom$"):
        check_domain("isis", {}, 1)


@pytest.mark.parametrize("level", [0, 1])
def test_what_is_about_views_is_refused_below_level_2_and_does_not_reach_the_log(level):
    member = founded()
    member.register("a", level=level)
    member.wait(1, "a", level=level)
    assert member.machine.state.level == level
    slots = member.slots
    asked: list[dict[str, Any]] = [
        {"define_view": DefineView(group="g#1", number=2, members=["a"], incarnations=[1])},
        {"complete_view": CompleteView(group="g#1", number=2)},
        {"create_domain": DOMAIN},
    ]
    for command in asked:
        (answer,) = answers(member.settle(member.execute(**command)))
        assert answer.result.code == Code.FAILED_PRECONDITION
        assert f"has level {level}, and that takes level 2" in answer.result.message
    assert member.slots == slots
    state = Cluster()
    state.register("a", level=2)
    if level:
        state.raise_level(level)
    result = state.do(complete_view=CompleteView(group="g#1", number=2))
    assert (result.code, "takes level 2" in result.message) == (Code.FAILED_PRECONDITION, True)


# ---------------------------------------------------------------------------------------------------- defining


def test_a_view_is_defined_completed_and_installed(cluster):
    assert cluster.define("ab").code == Code.OK
    assert shape(cluster.g) == (2, "ab", "abc")
    assert cluster.g.previous.number == 1
    assert list(cluster.g.incarnations) == [1, 2]
    assert list(cluster.g.starting) == ["a", "b"]
    assert cluster.complete().group == cluster.g
    assert shape(cluster.g) == (2, "ab", "")
    assert list(cluster.g.starting) == ["a", "b"], "nobody has installed it yet"
    assert cluster.installed("b").code == Code.OK
    assert list(cluster.g.starting) == ["a"]
    assert cluster.installed("a", "b").code == Code.OK
    assert not cluster.g.starting
    assert list(cluster.g.placement) == ["a", "b", "c"]


def test_the_last_completed_view_stays_until_one_of_those_that_follow_is_complete(cluster):
    cluster.define("ab")
    cluster.define("abc")
    cluster.define("bc")
    assert shape(cluster.g) == (4, "bc", "abc")
    assert cluster.g.previous.number == 1
    cluster.refused(cluster.complete(3), "view 4 of the group g is the latest, not 3")
    assert cluster.complete(4).code == Code.OK
    assert shape(cluster.g) == (4, "bc", "")


def test_only_the_view_behind_the_latest_can_be_defined(cluster):
    for number in (1, 3):
        cluster.refused(cluster.define("ab", number=number), "the view after 1 of the group g is 2")
    assert shape(cluster.g) == (1, "abc", "")


def test_a_majority_of_the_last_completed_view_has_its_say(cluster):
    cluster.refused(cluster.define("a"), "1 of the 3 members of the last complete view", "without a majority")
    assert cluster.define("ab").code == Code.OK
    # a and b are a majority of it, and b alone with anyone else would be one of view 2.
    cluster.refused(cluster.define("b"), "1 of the 3")
    assert cluster.define("bc").code == Code.OK


def test_who_leaves_has_its_say_too(cluster):
    cluster.change(REMOVE, "c")
    assert cluster.define("a", "c").code == Code.OK
    assert list(cluster.g.leaving) == ["c"]
    assert cluster.complete().code == Code.OK
    assert not cluster.g.leaving


def test_the_lost_have_no_say_and_are_in_no_view_until_one_without_them_is_complete(cluster):
    assert cluster.lost("c").code == Code.OK
    assert list(cluster.g.lost) == ["c"]
    cluster.refused(cluster.define("abc"), "c lost what it had stored")
    assert cluster.define("ab").code == Code.OK
    assert list(cluster.g.previous.lost) == ["c"]
    cluster.refused(cluster.define("abc"), "c lost what it had stored")
    cluster.refused(cluster.define("ab", "c"), "c lost what it had stored")
    assert cluster.complete().code == Code.OK
    assert not cluster.g.lost
    assert cluster.define("abc").code == Code.OK


def test_with_too_many_lost_there_is_no_way_on(cluster):
    cluster.lost("c")
    cluster.lost("b")
    cluster.refused(cluster.define("a"), "1 of the 3")
    assert not has_survivors(cluster.g)
    cluster.refused(cluster.change(ADD), "2 of the 3 members of the last complete view", "lost what they had")


def test_a_loss_while_a_view_is_under_way_counts_for_both(cluster):
    cluster.define("abc")
    cluster.lost("c")
    assert (list(cluster.g.lost), list(cluster.g.previous.lost)) == (["c"], ["c"])
    revision = cluster.g.revision
    cluster.lost("c")
    assert cluster.g.revision == revision, "no news"
    cluster.complete()
    assert list(cluster.g.lost) == ["c"], "it is a member of the view that is complete"


def test_a_loss_of_one_that_was_left_out_counts_for_the_view_that_it_was_in(cluster):
    cluster.define("ab")
    cluster.lost("c")
    assert (list(cluster.g.lost), list(cluster.g.previous.lost)) == ([], ["c"])
    cluster.refused(cluster.define("abc"), "c lost what it had stored")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"members": ""}, "a view has members"),
        ({"members": "ba"}, "sorted"),
        ({"members": "aab"}, "sorted"),
        ({"members": "ab", "leaving": "cc"}, "sorted"),
        ({"members": "ab", "incarnations": [1]}, "2 members with 1 incarnations"),
        ({"members": "abc", "leaving": "c"}, "cannot be in a view and leave"),
    ],
)
def test_what_is_no_view_is_refused(cluster, fields, says):
    cluster.refused(cluster.define(**fields), says, code=Code.INVALID_ARGUMENT)
    assert shape(cluster.g) == (1, "abc", "")


def test_a_command_that_comes_late_defines_nothing(cluster):
    cluster.refused(cluster.define("abd"), "'d' has no place in the group g")
    cluster.refused(cluster.define("abx"), "'x' has no place in the group g")
    cluster.refused(cluster.define("ab", "e"), "'e' is not in the last complete view")
    lives = cluster.lives("abc")
    cluster.register("c", level=2)
    cluster.refused(cluster.define("abc", incarnations=lives), "the incarnation of c is 6, not 3")
    cluster.refused(cluster.define("ab", group="g#9"), "no group with the id", code=Code.NOT_FOUND)
    assert shape(cluster.g) == (1, "abc", "")


def test_a_completion_that_comes_late_completes_nothing(cluster):
    cluster.refused(cluster.complete(), "view 1 of the group g is complete already")
    cluster.view("ab")
    cluster.refused(cluster.complete(), "view 2 of the group g is complete already")
    cluster.refused(cluster.complete(1), "view 2 of the group g is the latest, not 1")


def test_nobody_has_installed_a_view_that_is_not_complete(cluster):
    cluster.define("ab")
    cluster.refused(cluster.installed("a", "b"), "view 2 of the group g is not complete")
    assert cluster.g.HasField("previous")
    cluster.complete()
    cluster.refused(cluster.installed("a", number=1), "is in configuration 2, not 1")
    cluster.refused(cluster.installed("c"), "'c' is no member", code=Code.INVALID_ARGUMENT)


def test_commands_about_views_are_not_remembered_and_a_snapshot_keeps_what_they_did(cluster):
    remembered = len(cluster.state.executed)
    cluster.change(REMOVE, "c")
    cluster.define("ab", "c")
    assert len(cluster.state.executed) == remembered + 1
    assert State.from_bytes(cluster.state.to_bytes()).groups["g"] == cluster.g


# ------------------------------------------------------------------------------------------------ who is where


def test_who_was_left_out_copies_the_log_and_keeps_it(cluster):
    cluster.define("ab")
    assert learners_of(cluster.g) == ["c"]
    assert holders_of(cluster.g) == ["a", "b", "c"]
    cluster.complete()
    assert learners_of(cluster.g) == ["c"]
    assert holders_of(cluster.g) == ["a", "b", "c"]


def test_who_leaves_keeps_the_log_until_the_view_is_complete_and_copies_nothing(cluster):
    cluster.change(REMOVE, "c")
    cluster.define("ab", "c")
    assert learners_of(cluster.g) == []
    assert holders_of(cluster.g) == ["a", "b", "c"]
    cluster.complete()
    assert holders_of(cluster.g) == ["a", "b"]


def test_one_that_stops_does_not_copy_while_it_contributes(cluster):
    cluster.define("ab", "c")
    assert learners_of(cluster.g) == []
    cluster.complete()
    assert learners_of(cluster.g) == ["c"], "its place stays"


def test_machines_are_told_lives_and_who_leaves(cluster):
    cluster.define("ab", "c")
    view = group_view(cluster.g)
    assert (view.configuration, list(view.replicas), list(view.incarnations)) == (2, ["a", "b"], [1, 2])
    assert (list(view.leaving), list(view.learners), view.previous.number) == (["c"], [], 1)
    cluster.complete()
    view = group_view(cluster.g)
    assert (list(view.leaving), list(view.learners), list(view.starting)) == ([], ["c"], ["a", "b"])
    assert not view.HasField("previous")


def test_where_a_group_should_be_counts_for_placing_others(cluster):
    cluster.view("ab")
    assert places_of(cluster.g) == ["a", "b", "c"]
    assert load_of(cluster.state.nodes.values(), [cluster.g]) == {"a": 1, "b": 1, "c": 1, "d": 0, "e": 0}
    cluster.group("h", domain="v", replicas=3)
    assert list(cluster.state.groups["h"].placement) == ["a", "d", "e"]


def test_a_node_that_is_left_out_is_still_a_holder(cluster):
    cluster.view("ab")
    cluster.do(drain_node=DrainNode(node="c", draining=True))
    cluster.refused(cluster.do(remove_node=RemoveNode(node="c")), "c is a member of the group g")
    assert everyone_of(cluster.g) == ["a", "b", "c"]
    register = RegisterNode(
        name="c", node_id=b"disk of c", services=["gateway"], peer_address="c:1", level=2, cluster_id=b"cluster"
    )
    cluster.refused(cluster.do(register=register), "it has to run the service sequencer")


def test_a_process_can_leave_where_a_view_can_follow():
    group = Group(configuration=4, replicas="abc", placement="abc", incarnations=[1, 2, 3])
    assert can_leave(group, "a", "bc")
    assert can_leave(group, "a", "ab"), "it has its say until it is gone"
    assert not can_leave(group, "a", "a"), "nobody stays"
    assert not can_leave(group, "a", "")
    group.lost.append("b")
    assert not can_leave(group, "a", "b"), "two of three are needed"
    del group.lost[:]
    group.placement[:] = "a"
    assert can_leave(group, "a", "b"), "where nobody has a place, former members stay"
    group.placement[:], group.lost[:] = "abc", "b"
    group.previous.number = 3
    group.previous.replicas[:] = "abcde"
    assert completed_of(group).replicas == list("abcde")
    assert not can_leave(group, "a", "cb")
    assert can_leave(group, "a", "cd")


# ----------------------------------------------------------------------------------------------- other places


def test_a_newcomer_copies_the_log_before_its_place_counts(cluster):
    result = cluster.change(ADD, to="d")
    assert list(result.group.next.replicas) == ["a", "b", "c", "d"]
    assert not result.group.next.acceptors
    assert learners_of(cluster.g) == ["d"]
    assert list(cluster.g.placement) == ["a", "b", "c"]
    cluster.refused(cluster.define("abcd"), "'d' has no place")
    assert cluster.begin().code == Code.OK
    assert not cluster.g.HasField("next")
    assert list(cluster.g.placement) == ["a", "b", "c", "d"]
    assert shape(cluster.g) == (1, "abc", ""), "the view is for the leader to define"
    assert learners_of(cluster.g) == ["d"]
    cluster.view("abcd")
    assert learners_of(cluster.g) == []


def test_views_go_on_while_a_newcomer_copies_and_a_change_can_be_cancelled(cluster):
    cluster.change(REPLACE, "c", "d")
    cluster.define("ab")
    assert cluster.g.HasField("next")
    assert learners_of(cluster.g) == ["c", "d"]
    assert cluster.do(cancel_change=CancelChange(group="g")).code == Code.OK
    cluster.refused(cluster.do(cancel_change=CancelChange(group="g")), "no change of the group g")
    # A view that is not complete is no change of where the group should be.
    assert cluster.change(REPLACE, "c", "e").code == Code.OK
    assert cluster.begin().code == Code.OK
    assert list(cluster.g.placement) == ["a", "b", "e"]


def test_a_replica_that_is_removed_loses_its_place_at_once(cluster):
    assert cluster.change(REMOVE, "c").code == Code.OK
    assert (list(cluster.g.placement), list(cluster.g.replicas)) == (["a", "b"], ["a", "b", "c"])
    assert not cluster.g.HasField("next")


def test_changes_are_about_places_and_not_about_who_is_there(cluster):
    cluster.view("ab")
    cluster.refused(cluster.change(ADD, to="c"), "c holds a replica of the group g already")
    cluster.refused(cluster.change(REMOVE, "d"), "'d' holds no replica")
    cluster.refused(cluster.change(REPLACE, "d", "e"), "'d' holds no replica")
    assert cluster.change(REPLACE, "c", "e").code == Code.OK
    cluster.refused(cluster.change(REMOVE, "a"), "another change of the group g is under way")


def test_no_more_places_than_a_group_may_have_and_no_fewer_than_one():
    cluster = Viewing("abcdefgh", replicas=7)
    cluster.refused(cluster.change(ADD), "has 7 replicas: no group has more")
    one = Viewing("ab", replicas=1)
    one.refused(one.change(REMOVE), "holds the only replica")


def test_one_that_lost_its_disk_needs_no_change(cluster):
    cluster.lost("c")
    cluster.refused(cluster.change(REPLACE, "c", "c"), "comes back by itself")
    assert list(cluster.change(REPLACE, "c").group.next.replicas) == ["a", "b", "d"], "elsewhere it may go"


def test_a_disk_that_is_given_up_is_lost_in_the_view_and_in_the_one_before(cluster):
    cluster.define("abc", number=2)
    incarnation = cluster.state.nodes["c"].incarnation
    cluster.do(end_incarnation=EndIncarnation(name="c", incarnation=incarnation))
    assert cluster.do(give_up_disk=GiveUpDisk(node="c")).code == Code.OK
    assert (list(cluster.g.lost), list(cluster.g.previous.lost)) == (["c"], ["c"])
    cluster.register("c", level=2, node_id=b"a new disk")
    cluster.refused(cluster.define("abc"), "c lost what it had stored")
    cluster.view("ab")
    assert cluster.define("abc").code == Code.OK


def test_rebalancing_moves_places():
    cluster = Viewing("abc", replicas=1)
    for name in ("h", "i", "j"):
        cluster.group(name, domain="v", replicas=1)
    for group in cluster.state.groups.values():
        group.placement[:], group.replicas[:] = ["a"], ["a"]
    moves = rebalance(cluster.state.nodes.values(), cluster.state.groups.values())
    assert sorted((move.node, move.to) for move in moves) == [("a", "b"), ("a", "c")]


def test_a_group_is_removed_when_its_view_is_complete(cluster):
    cluster.define("ab")
    group = cluster.do(delete_group=DeleteGroup(name="g")).group
    cluster.refused(cluster.do(remove_group=RemoveGroup(id=group.id)), "it is not over yet")
    assert cluster.complete().code == Code.OK
    assert cluster.do(remove_group=RemoveGroup(id=group.id)).code == Code.OK
