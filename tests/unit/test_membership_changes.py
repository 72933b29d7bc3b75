"""How the configurations of a group follow each other, command by command."""

from typing import Any

import pytest

from ordercast.membership.state import Code, State
from ordercast.v1.membership_pb2 import (
    REPLICA_CHANGE_ADD,
    REPLICA_CHANGE_REMOVE,
    REPLICA_CHANGE_REPLACE,
    BeginConfiguration,
    CancelChange,
    ChangeReplicas,
    CommandResult,
    DeleteGroup,
    DrainNode,
    EndIncarnation,
    GiveUpDisk,
    Group,
    MarkNode,
    RecordLost,
    RecordStarted,
    RemoveGroup,
)
from tests.unit.test_membership_state import Cluster

ADD, REMOVE, REPLACE = REPLICA_CHANGE_ADD, REPLICA_CHANGE_REMOVE, REPLICA_CHANGE_REPLACE


class Changing(Cluster):
    """Nodes of level 1, and a group g on the first three of them: a, b, c."""

    def __init__(self, names: str = "abcde", *, zones: str = "", raised: bool = True) -> None:
        super().__init__()
        for number, name in enumerate(names):
            zone = zones[number] if zones else ""
            assert self.register(name, zone=zone, level=1).code == Code.OK
        if raised:
            assert self.raise_level().code == Code.OK
        assert self.group("g", replicas=min(3, len(names))).code == Code.OK

    @property
    def g(self) -> Group:
        return self.state.groups["g"]

    def change(self, change: int, node: str = "", to: str = "", group: str = "g") -> CommandResult:
        command = ChangeReplicas(group=group, change=change, node=node, to=to)  # type: ignore[arg-type]
        return self.do(change_replicas=command)

    def begin(self, number: int = 0) -> CommandResult:
        number = number or self.g.next.number
        return self.do(begin_configuration=BeginConfiguration(group=self.g.id, configuration=number))

    def started(self, *names: str, number: int = 0) -> CommandResult:
        number = number or self.g.configuration
        return self.do(record_started=RecordStarted(group=self.g.id, configuration=number, members=names))

    def lost(self, name: str) -> CommandResult:
        incarnation = self.state.nodes[name].incarnation
        return self.do(record_lost=RecordLost(node=name, incarnation=incarnation, groups=[self.g.id]))

    def end(self, name: str) -> CommandResult:
        incarnation = self.state.nodes[name].incarnation
        return self.do(end_incarnation=EndIncarnation(name=name, incarnation=incarnation))

    def mark(self, name: str, **marks: bool) -> CommandResult:
        return self.do(mark_node=MarkNode(name=name, incarnation=self.state.nodes[name].incarnation, **marks))

    def drain(self, name: str, draining: bool = True) -> CommandResult:
        return self.do(drain_node=DrainNode(node=name, draining=draining))

    def give_up(self, name: str) -> CommandResult:
        return self.do(give_up_disk=GiveUpDisk(node=name))

    def refused(self, result: CommandResult, *says: str, code: Code = Code.FAILED_PRECONDITION) -> None:
        assert result.code == code, result.message
        for text in says:
            assert text in result.message

    def whole_change(self, change: int, node: str = "", to: str = "") -> None:
        """From the command to the last one who starts."""
        assert self.change(change, node, to).code == Code.OK
        if self.g.HasField("next"):
            assert self.begin().code == Code.OK
        assert self.started(*self.g.starting).code == Code.OK


def shape(group: Group) -> tuple[int, str, str]:
    return group.configuration, "".join(group.replicas), "".join(group.acceptors)


@pytest.fixture
def cluster() -> Changing:
    return Changing()


# ------------------------------------------------------------------------------------------------- one change


def test_a_replacement_is_prepared_begins_and_leaves_the_old_configuration_behind(cluster):
    result = cluster.change(REPLACE, "c", "e")
    assert result.group == cluster.g
    assert shape(cluster.g) == (1, "abc", "abc")
    assert (cluster.g.next.number, list(cluster.g.next.replicas)) == (2, ["a", "b", "e"])
    assert list(cluster.g.next.acceptors) == ["a", "b", "e"]
    assert cluster.begin().code == Code.OK
    assert shape(cluster.g) == (2, "abe", "abe")
    assert not cluster.g.HasField("next")
    assert (cluster.g.previous.number, list(cluster.g.previous.replicas)) == (1, ["a", "b", "c"])
    assert list(cluster.g.starting) == ["a", "b", "e"]
    cluster.started("a")
    assert cluster.g.HasField("previous")
    cluster.started("e")
    assert not cluster.g.HasField("previous")
    assert list(cluster.g.starting) == ["b"]
    cluster.started("b")
    assert list(cluster.g.starting) == []


def test_a_replica_more_copies_the_log_first_and_one_less_begins_at_once(cluster):
    cluster.change(ADD, to="e")
    assert (shape(cluster.g)[0], list(cluster.g.next.replicas)) == (1, ["a", "b", "c", "e"])
    cluster.begin()
    cluster.started(*"abce")
    cluster.change(REMOVE, "b")
    assert not cluster.g.HasField("next")
    assert shape(cluster.g) == (3, "ace", "ace")
    assert (cluster.g.previous.number, list(cluster.g.starting)) == (2, ["a", "c", "e"])


def test_every_step_is_told_to_watchers(cluster):
    steps = (
        lambda: cluster.change(REPLACE, "c", "d"),
        cluster.begin,
        lambda: cluster.started("a"),
        lambda: cluster.started("b"),
        lambda: cluster.lost("a"),
        lambda: cluster.change(REPLACE, "a"),
        lambda: cluster.do(cancel_change=CancelChange(group="g")),
    )
    for step in steps:
        seen = cluster.state.revision
        assert step().code == Code.OK
        assert [group.id for group in cluster.state.changes_since(seen).groups] == ["g#1"]
        assert cluster.state.changed == cluster.state.revision


def test_what_is_started_already_is_no_news(cluster):
    cluster.whole_change(REPLACE, "c", "d")
    before = cluster.state.changed
    assert cluster.started("a", "b").code == Code.OK
    assert cluster.state.changed == before


@pytest.mark.parametrize("under_way", ["next", "previous"])
def test_there_is_one_change_at_a_time(cluster, under_way):
    cluster.change(REPLACE, "c", "d")
    if under_way == "previous":
        cluster.begin()
    before = cluster.state.to_bytes()
    for change in (ADD, REMOVE, REPLACE):
        cluster.refused(cluster.change(change), "another change of the group g is under way")
    assert State.from_bytes(before).groups["g"] == cluster.g


def test_the_next_change_may_come_while_one_member_has_yet_to_start(cluster):
    cluster.change(REPLACE, "c", "d")
    cluster.begin()
    cluster.started("a", "d")
    assert cluster.change(ADD, to="e").code == Code.OK
    assert list(cluster.g.starting) == ["b"]
    cluster.begin()
    assert list(cluster.g.starting) == ["a", "b", "d", "e"]


def test_majorities_of_replicas_and_of_acceptors_have_to_start():
    cluster = Changing("abcd")
    cluster.state.groups["g"].acceptors[:] = ["a"]
    cluster.whole_change(ADD, to="d")
    assert shape(cluster.g) == (2, "abcd", "a")
    cluster.change(REMOVE, "d")
    cluster.started("b", "c")
    assert cluster.g.HasField("previous"), "a majority of the replicas, and no acceptor"
    cluster.started("a")
    assert not cluster.g.HasField("previous")


def test_a_configuration_that_is_not_prepared_does_not_begin(cluster):
    cluster.refused(cluster.begin(2), "no configuration of the group g is being prepared")
    cluster.change(REPLACE, "c", "d")
    for number in (1, 3):
        cluster.refused(cluster.begin(number), f"not {number}")
    assert cluster.begin(2).code == Code.OK
    cluster.refused(cluster.begin(2))
    unknown = BeginConfiguration(group="g#7", configuration=2)
    assert cluster.do(begin_configuration=unknown).code == Code.NOT_FOUND


def test_a_report_of_another_configuration_or_of_a_stranger_is_refused(cluster):
    cluster.change(REPLACE, "c", "d")
    cluster.begin()
    cluster.refused(cluster.started("a", number=1), "configuration 2, not 1")
    cluster.refused(cluster.started("a", "c"), "'c'", code=Code.INVALID_ARGUMENT)
    assert list(cluster.g.starting) == ["a", "b", "d"]


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"change": 0}, "does not say"),
        ({"change": ADD, "node": "a"}, "`to`"),
        ({"change": REMOVE, "to": "d"}, "`node`"),
    ],
)
def test_a_change_that_makes_no_sense_is_a_bad_argument(cluster, fields, says):
    cluster.refused(cluster.change(**fields), says, code=Code.INVALID_ARGUMENT)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"change": REMOVE, "node": "d"}, "'d' holds no replica of the group g"),
        ({"change": REPLACE, "node": "d", "to": "e"}, "'d' holds no replica"),
        ({"change": REPLACE, "node": "x" * 500}, "holds no replica"),
        ({"change": ADD, "to": "a"}, "a holds a replica of the group g already"),
        ({"change": REPLACE, "node": "c", "to": "a"}, "already"),
        ({"change": ADD, "to": "nobody"}, "there is no node 'nobody'"),
        ({"change": REPLACE, "node": "c", "to": "c"}, "only a member that lost it"),
    ],
)
def test_a_change_that_cannot_be_is_refused_and_nothing_has_changed(cluster, fields, says):
    before = cluster.g.SerializeToString()
    result = cluster.change(**fields)
    cluster.refused(result, says)
    assert len(result.message) < 300
    assert cluster.g.SerializeToString() == before


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        (lambda cluster: cluster.end("d"), "it is down"),
        (lambda cluster: cluster.mark("d", suspected=True), "does not answer"),
        (lambda cluster: cluster.mark("d", read_only=True), "disk is full"),
        (lambda cluster: cluster.drain("d"), "being drained"),
        (lambda cluster: (cluster.end("d"), cluster.give_up("d")), "its disk is given up"),
        (lambda cluster: cluster.register("d", ("gateway",), level=1), "service sequencer"),
    ],
)
def test_a_node_that_can_take_nothing_new_is_no_place(cluster, mark, why):
    mark(cluster)
    cluster.refused(cluster.change(ADD, to="d"), why)
    assert cluster.change(ADD).group.next.replicas == ["a", "b", "c", "e"]


def test_the_last_replica_stays():
    cluster = Changing("a")
    cluster.refused(cluster.change(REMOVE), "a holds the only replica of the group g: delete the group instead")


def test_a_group_has_only_so_many_replicas():
    cluster = Changing("abcdefgh")
    for _ in range(4):
        cluster.whole_change(ADD)
    assert len(cluster.g.replicas) == 7
    cluster.refused(cluster.change(ADD), "has 7 replicas: no group has more")


def test_without_another_node_nothing_is_added_or_replaced():
    cluster = Changing("abc")
    for change in (ADD, REPLACE):
        cluster.refused(cluster.change(change), "there is no other node")


def test_an_unknown_group_is_not_found(cluster):
    for name in ("nothing", "g#9"):
        assert cluster.change(ADD, group=name).code == Code.NOT_FOUND
        assert cluster.do(cancel_change=CancelChange(group=name)).code == Code.NOT_FOUND
    assert cluster.change(ADD, group="g#1").code == Code.OK


def test_a_repeated_change_is_answered_as_the_first_time(cluster):
    command = ChangeReplicas(group="g", change=ADD)
    first = cluster.do(b"r", change_replicas=command)
    cluster.begin()
    assert cluster.do(b"r", change_replicas=command) == first
    assert cluster.g.configuration == 2


# ------------------------------------------------------------------------------------------------- cancelling


def test_a_change_is_cancelled_until_it_has_begun(cluster):
    cancel = CancelChange(group="g")
    cluster.refused(cluster.do(cancel_change=cancel), "no change of the group g is under way")
    cluster.change(REPLACE, "c", "d")
    assert not cluster.do(cancel_change=cancel).group.HasField("next")
    assert shape(cluster.g) == (1, "abc", "abc")
    cluster.change(REPLACE, "c", "e")
    assert cluster.g.next.number == 2, "numbers are of configurations that began"
    cluster.begin()
    cluster.refused(cluster.do(cancel_change=cancel), "too late")


def test_a_deleted_group_gives_up_what_is_prepared_and_finishes_what_has_begun(cluster):
    cluster.change(REPLACE, "c", "d")
    cluster.do(delete_group=DeleteGroup(name="g"))
    assert not cluster.g.HasField("next")
    cluster.refused(cluster.change(ADD), "being deleted")
    assert cluster.do(remove_group=RemoveGroup(id="g#1")).code == Code.OK

    cluster.group("g", replicas=3)
    cluster.change(REPLACE, cluster.g.replicas[0])
    cluster.begin()
    cluster.do(delete_group=DeleteGroup(name="g"))
    cluster.refused(cluster.do(remove_group=RemoveGroup(id="g#2")), "not over yet")
    cluster.started(*cluster.g.starting)
    assert cluster.do(remove_group=RemoveGroup(id="g#2")).code == Code.OK


# ------------------------------------------------------------------------------------------------- who and where


def test_a_newcomer_goes_where_there_is_the_least_and_into_a_zone_of_its_own():
    cluster = Changing("abcdef", zones="xyzxxz")
    assert "".join(cluster.g.replicas) == "abc"
    # c leaves zone z: f is the one that is there.
    assert cluster.change(REPLACE, "c").group.next.replicas == ["a", "b", "f"]
    cluster = Changing("abcde")
    cluster.group("busy", replicas=1)  # on d
    assert list(cluster.state.groups["busy"].replicas) == ["d"]
    assert cluster.change(ADD).group.next.replicas == ["a", "b", "c", "e"]


def test_what_is_on_its_way_to_a_node_counts_as_being_there(cluster):
    assert cluster.group("h", replicas=1).group.replicas == ["d"]
    cluster.change(ADD, to="e")
    assert cluster.group("i", replicas=1).group.replicas == ["a"], "e is not empty any more"


@pytest.mark.parametrize("change", [REMOVE, REPLACE])
def test_the_replica_that_is_missed_least_goes(change):
    steps = [
        ("b", lambda cluster: cluster.mark("b", read_only=True)),
        ("c", lambda cluster: cluster.drain("c")),
        ("b", lambda cluster: cluster.mark("b", suspected=True)),
        ("c", lambda cluster: cluster.end("c")),
        ("a", lambda cluster: cluster.lost("a")),
    ]
    for count in range(1, len(steps) + 1):
        cluster = Changing()
        for _, step in steps[:count]:
            assert step(cluster).code == Code.OK
        gone = steps[count - 1][0]
        cluster.mark("a", read_only=False, suspected=gone == "a")
        group = cluster.change(change).group
        after = group.next if group.HasField("next") else group
        assert gone not in after.replicas


def test_among_healthy_replicas_one_of_the_most_crowded_zone_goes_and_then_the_most_loaded():
    cluster = Changing("abcd", zones="xxyy")
    cluster.state.groups["g"].replicas[:] = ["a", "b", "c"]
    cluster.state.groups["g"].acceptors[:] = ["a", "b", "c"]
    for name, node in (("h", "b"), ("i", "c"), ("j", "c")):
        cluster.group(name, replicas=1)
        cluster.state.groups[name].replicas[:] = cluster.state.groups[name].acceptors[:] = [node]
    assert cluster.change(REMOVE).group.replicas == ["a", "c"]


# ------------------------------------------------------------------------------------------------- acceptors


def separate(replicas: str = "abc", acceptors: str = "xyz") -> Changing:
    """Replicas and acceptors on nodes of their own; p and q are free, and only q runs both."""
    cluster = Changing("abc")
    for name in "xyzw":
        cluster.register(name, ("consensus",), level=1)
    cluster.register("p", ("sequencer",), level=1)
    cluster.register("q", ("consensus", "sequencer"), level=1)
    cluster.g.replicas[:], cluster.g.acceptors[:] = list(replicas), list(acceptors)
    return cluster


def next_shape(result: CommandResult) -> tuple[str, str]:
    assert result.code == Code.OK, result.message
    group = result.group
    after = group.next if group.HasField("next") else group
    return "".join(after.replicas), "".join(after.acceptors)


def test_acceptors_stay_when_replicas_on_other_nodes_change():
    assert next_shape(separate().change(REPLACE, "c", "p")) == ("abp", "xyz")
    assert next_shape(separate().change(ADD, to="q")) == ("abcq", "xyz")
    assert next_shape(separate().change(REMOVE, "a")) == ("bc", "xyz")


def test_an_acceptor_on_a_node_that_leaves_goes_with_the_replica_if_it_can():
    assert next_shape(separate(acceptors="axy").change(REPLACE, "a", "q")) == ("bcq", "qxy")
    # p does not run consensus: b does, and holds a replica.
    assert next_shape(separate(acceptors="axy").change(REPLACE, "a", "p")) == ("bcp", "bxy")
    assert next_shape(separate(acceptors="axy").change(REMOVE, "a")) == ("bc", "bxy")


def test_an_acceptor_that_has_no_place_holds_up_a_replacement_and_goes_with_a_removal():
    cluster = separate(acceptors="ab")
    for name in "cxyzwq":
        cluster.mark(name, read_only=True)
    cluster.refused(cluster.change(REPLACE, "a", "p"), "no other node with the service consensus")
    assert next_shape(cluster.change(REMOVE, "a")) == ("bc", "b")


def test_a_newcomer_that_cannot_vote_leaves_the_votes_elsewhere():
    cluster = Changing("abc")
    cluster.register("p", ("sequencer",), level=1)
    cluster.register("w", ("consensus",), level=1)
    assert next_shape(cluster.change(ADD, to="p")) == ("abcp", "abc")
    cluster.do(cancel_change=CancelChange(group="g"))
    assert next_shape(cluster.change(REPLACE, "a", "p")) == ("bcp", "bcw")


def test_an_acceptor_alone_can_be_replaced_and_nobody_has_to_copy_anything():
    cluster = separate()
    cluster.refused(cluster.change(REPLACE, "x", "y"), "y holds an acceptor of the group g already")
    cluster.refused(cluster.change(REPLACE, "x", "p"), "service consensus")
    result = cluster.change(REPLACE, "x", "w")
    assert next_shape(result) == ("abc", "wyz")
    assert (result.group.configuration, list(result.group.starting)) == (2, list("abcwyz"))


# ------------------------------------------------------------------------------------------------- lost members


def test_a_lost_member_takes_no_part_and_starts_afresh_in_its_own_place(cluster):
    cluster.lost("b")
    assert (list(cluster.g.lost), list(cluster.g.starting)) == (["b"], [])
    before = cluster.state.changed
    assert cluster.lost("b").code == Code.OK
    assert cluster.state.changed == before
    assert next_shape(cluster.change(REPLACE, "b")) == ("abc", "abc")
    assert cluster.g.HasField("next"), "it has to copy the log"
    cluster.begin()
    assert (shape(cluster.g), list(cluster.g.lost)) == ((2, "abc", "abc"), [])
    assert (list(cluster.g.previous.lost), list(cluster.g.starting)) == (["b"], ["a", "b", "c"])


@pytest.mark.parametrize(
    "away", [lambda cluster: cluster.end("b"), lambda cluster: cluster.drain("b")], ids=["ended", "draining"]
)
def test_a_lost_member_that_cannot_stay_goes_elsewhere_if_there_is_a_place(away):
    for names, expected in (("abcde", "acd"), ("abc", "abc")):
        cluster = Changing(names)
        cluster.lost("b")
        away(cluster)
        assert next_shape(cluster.change(REPLACE, "b"))[0] == expected
        assert cluster.g.HasField("next")


def test_a_lost_replica_that_stays_in_another_change_has_to_copy_as_well(cluster):
    cluster.lost("b")
    cluster.change(REMOVE, "c")
    assert (cluster.g.configuration, list(cluster.g.next.replicas)) == (1, ["a", "b"])


def test_without_a_surviving_majority_no_configuration_follows(cluster):
    cluster.lost("a")
    cluster.lost("b")
    for change in (ADD, REMOVE, REPLACE):
        cluster.refused(cluster.change(change), "2 of the 3 replicas of the group g lost what they had stored")


def test_a_majority_that_is_lost_while_a_change_is_prepared_keeps_it_from_beginning(cluster):
    cluster.change(ADD)
    cluster.lost("a")
    cluster.lost("b")
    cluster.refused(cluster.begin(), "lost what they had stored")
    assert cluster.g.configuration == 1


def test_what_an_older_life_found_damaged_is_not_of_the_configuration_that_it_has_yet_to_start_in(cluster):
    """b is restored in its own place, and says until then that its disk is damaged: that is known."""
    cluster.lost("b")
    cluster.change(REPLACE, "b")
    cluster.begin()
    assert cluster.lost("b").code == Code.OK
    assert (list(cluster.g.lost), "b" in cluster.g.starting) == ([], True)
    cluster.started("b")
    cluster.lost("b")
    assert list(cluster.g.lost) == ["b"]


def test_a_life_that_began_later_and_finds_damage_may_have_voted_already(cluster):
    """d starts in configuration 2, votes, and crashes before anybody hears of it. Its disk comes back damaged."""
    cluster.change(REPLACE, "c", "d")
    cluster.begin()
    cluster.register("d", level=1)
    cluster.lost("d")
    assert (list(cluster.g.lost), list(cluster.g.starting)) == (["d"], ["a", "b"])
    cluster.started("a")
    assert cluster.g.HasField("previous"), "who started and lost it does not count"
    cluster.started("b")
    assert not cluster.g.HasField("previous")


def test_damage_from_before_that_becomes_known_afterwards_keeps_a_member_out_of_both(cluster):
    """b would hand over what it does not have, and nobody has seen to it that it copies what it lacks."""
    cluster.change(REPLACE, "c", "d")
    cluster.begin()
    cluster.lost("b")
    assert (list(cluster.g.previous.lost), list(cluster.g.lost)) == (["b"], ["b"])
    assert list(cluster.g.starting) == ["a", "d"]


def test_a_member_of_the_old_configuration_alone_no_longer_hands_over_what_it_lost(cluster):
    cluster.change(REPLACE, "c", "d")
    cluster.begin()
    cluster.lost("c")
    assert (list(cluster.g.previous.lost), list(cluster.g.lost)) == (["c"], [])
    before = cluster.state.changed
    cluster.lost("c")
    assert cluster.state.changed == before


def test_groups_that_a_node_is_not_in_and_lives_that_are_over_lose_nothing(cluster):
    before = cluster.state.changed
    assert cluster.lost("e").code == Code.OK
    old = cluster.state.nodes["a"].incarnation
    unknown = RecordLost(node="a", incarnation=old, groups=["x#9"])
    assert cluster.do(record_lost=unknown).code == Code.OK
    assert cluster.state.changed == before
    cluster.register("a", level=1)
    late = RecordLost(node="a", incarnation=old, groups=["g#1"])
    cluster.refused(cluster.do(record_lost=late), "incarnation of a is")
    for groups in ([], ["g#1"] * 257):
        record = RecordLost(node="b", incarnation=cluster.state.nodes["b"].incarnation, groups=groups)
        cluster.refused(cluster.do(record_lost=record), "at a time", code=Code.INVALID_ARGUMENT)
    assert not cluster.g.lost


def test_a_lost_acceptor_starts_afresh_without_copying():
    cluster = separate()
    cluster.lost("x")
    result: Any = cluster.change(REPLACE, "x")
    assert next_shape(result) == ("abc", "xyz")
    assert (result.group.configuration, list(result.group.previous.lost)) == (2, ["x"])
