"""Nodes that are drained, removed, come back with another disk, or run software of another version."""

import pytest

from ordercast.core.errors import InvariantBroken
from ordercast.membership import settings as limits
from ordercast.membership.settings import LEVEL
from ordercast.membership.state import Code, State
from ordercast.v1.membership_pb2 import (
    CancelChange,
    ChangeReplicas,
    CommandResult,
    CreateGroup,
    RaiseLevel,
    RemoveNode,
    RetireIncarnations,
)
from tests.unit.test_membership_changes import ADD, REPLACE, Changing
from tests.unit.test_membership_state import ALL, Cluster


@pytest.fixture
def cluster() -> Changing:
    """A group g on a, b, c; d and e are free."""
    return Changing()


def remove_node(cluster: Cluster, name: str) -> CommandResult:
    return cluster.do(remove_node=RemoveNode(node=name))


# ------------------------------------------------------------------------------------------------- draining


def test_a_draining_node_gets_nothing_new_until_it_is_not_any_more(cluster):
    for name in "ad":
        assert cluster.drain(name).node.draining
    assert cluster.group("h", replicas=3).group.replicas == ["b", "c", "e"]
    cluster.drain("d", draining=False)
    assert cluster.group("i", replicas=1).group.replicas == ["d"]
    assert cluster.drain("nobody").code == Code.NOT_FOUND


def test_a_node_that_is_registered_again_is_still_draining(cluster):
    cluster.drain("a")
    assert cluster.register("a", level=1).code == Code.OK
    assert cluster.state.nodes["a"].draining


def test_to_drain_what_is_draining_is_no_news(cluster):
    cluster.drain("a")
    before = cluster.state.changed
    assert cluster.drain("a").code == Code.OK
    assert cluster.state.changed == before


# ------------------------------------------------------------------------------------------------- removing


def test_a_node_goes_when_it_is_in_no_configuration_of_any_group(cluster):
    cluster.refused(remove_node(cluster, "e"), "alive", "drain it first")
    cluster.drain("e")
    cluster.drain("c")
    cluster.refused(remove_node(cluster, "c"), "c is a member of the group g: drain it first")
    cluster.change(REPLACE, "c", "d")
    cluster.drain("d")
    cluster.refused(remove_node(cluster, "d"), "member of the group g")
    cluster.begin()
    cluster.refused(remove_node(cluster, "c"), "member of the group g")
    cluster.started(*"abd")
    for name in "ce":
        incarnation = cluster.state.nodes[name].incarnation
        node = remove_node(cluster, name).node
        assert (node.name, node.removed, node.ended, node.incarnation) == (name, True, True, incarnation)
    assert sorted(cluster.state.nodes) == ["a", "b", "d"]
    assert remove_node(cluster, "c").code == Code.NOT_FOUND


def test_it_is_said_how_many_groups_hold_a_node_back(cluster):
    cluster.drain("d")
    cluster.drain("e")
    for name in "hi":
        cluster.group(name, replicas=3)
    cluster.end("a")
    cluster.refused(remove_node(cluster, "a"), "the group g and 2 more")


def test_a_node_that_is_down_need_not_be_drained(cluster):
    cluster.end("e")
    assert remove_node(cluster, "e").code == Code.OK


def test_a_membership_node_stays(cluster):
    cluster.register("m", ("membership",), level=1)
    cluster.drain("m")
    cluster.refused(remove_node(cluster, "m"), "one of the membership nodes")


def test_a_removed_name_is_free_for_another_node(cluster):
    cluster.drain("e")
    remove_node(cluster, "e")
    result = cluster.register("e", node_id=b"another disk", level=1)
    assert result.code == Code.OK
    node = cluster.state.nodes["e"]
    assert (node.draining, node.removed, node.ended) == (False, False, False)
    assert not cluster.state.removed


def test_watchers_hear_that_a_node_is_gone(cluster):
    seen = cluster.state.revision
    cluster.end("e")
    remove_node(cluster, "e")
    changes = cluster.state.changes_since(seen)
    assert [(node.name, node.removed) for node in changes.nodes] == [("e", True)]
    assert not cluster.state.changes_since(cluster.state.revision).nodes


def test_who_starts_afresh_hears_of_removed_nodes_while_something_of_them_may_be_open(cluster):
    """Its gateway may have left envelopes behind: everyone has to know that it is over to finish them."""
    cluster.end("a")
    cluster.end("e")
    remove_node(cluster, "e")
    assert [node.name for node in cluster.state.changes_since(0).nodes if node.removed] == ["e"]
    for name in "abcd":
        cluster.register(name, level=1)
    assert cluster.do(retire=RetireIncarnations(below=6)).code == Code.OK
    assert [node.name for node in cluster.state.changes_since(0).nodes] == ["a", "b", "c", "d"]


def test_removed_nodes_are_forgotten_once_nothing_of_them_can_be_open(monkeypatch):
    monkeypatch.setattr(limits, "TOMBSTONES_MAX", 1)
    cluster = Changing()
    for name in "de":
        cluster.end(name)
    first = remove_node(cluster, "d").revision
    result = remove_node(cluster, "e")
    assert (result.code, "e" in cluster.state.nodes) == (Code.RESOURCE_EXHAUSTED, True)
    for name in "abc":
        cluster.register(name, level=1)
    cluster.do(retire=RetireIncarnations(below=6))
    assert remove_node(cluster, "e").code == Code.OK
    assert list(cluster.state.removed) == ["e"]
    assert cluster.state.changes_since(first - 1).reset
    assert not cluster.state.changes_since(first).reset


def test_forgetting_a_group_does_not_bring_back_changes_that_are_forgotten(monkeypatch):
    """Of two kinds of tombstones the later one that is forgotten counts."""
    monkeypatch.setattr(limits, "TOMBSTONES_MAX", 1)
    monkeypatch.setattr(limits, "GROUP_TOMBSTONES_MAX", 1)
    cluster = Changing("abcdefgh")
    for name in "xy":
        cluster.group(name, replicas=1)
    cluster.remove("x")
    cluster.state.retired = cluster.state.incarnation_last + 1
    for name in "gh":
        cluster.end(name)
        assert remove_node(cluster, name).code == Code.OK
    later = cluster.state.changes_from
    assert later > cluster.state.deleted["x#2"].revision
    cluster.remove("y")
    assert "x#2" not in cluster.state.deleted
    assert cluster.state.changes_from == later


# ------------------------------------------------------------------------------------------------- a new disk


def test_a_name_with_another_disk_is_told_the_one_command_that_takes_it_in(cluster):
    cluster.end("b")
    result = cluster.register("b", node_id=b"new disk", level=1)
    cluster.refused(result, "belongs to a node with another disk; this disk is new", "give-up-disk b`")
    assert "`ordercast node give-up-disk b`" in result.message


def test_a_disk_that_is_given_up_makes_room_for_another_which_has_to_copy_everything(cluster):
    cluster.group("h", replicas=1)  # on d
    cluster.end("b")
    seen = cluster.state.revision
    node = cluster.give_up("b").node
    changes = cluster.state.changes_since(seen)
    assert ([one.name for one in changes.nodes], [one.name for one in changes.groups]) == (["b"], ["g"])
    assert (node.disk_lost, node.ended, node.suspected) == (True, True, True)
    assert (list(cluster.g.lost), list(cluster.state.groups["h"].lost)) == (["b"], [])
    before = cluster.state.incarnation_last
    assert cluster.register("b", node_id=b"new disk", level=1).code == Code.OK
    node = cluster.state.nodes["b"]
    assert (node.node_id, node.disk_lost, node.ended) == (b"new disk", False, False)
    assert node.incarnation == before + 1
    assert list(cluster.g.lost) == ["b"], "until the next configuration"
    assert cluster.register("b", node_id=b"new disk", cluster_id=b"cluster", level=1).code == Code.OK
    cluster.refused(cluster.register("b", level=1), "another disk")


def test_only_an_empty_disk_takes_the_place_of_one_that_is_given_up(cluster):
    cluster.end("b")
    cluster.give_up("b")
    cluster.refused(cluster.register("b", level=1), "given up for good", "empty data directory")
    other = cluster.register("b", node_id=b"disk of d", cluster_id=b"cluster", level=1)
    cluster.refused(other, "under another name", "empty data directory")
    assert cluster.state.nodes["b"].disk_lost


def test_the_disk_of_a_living_node_is_not_given_up(cluster):
    cluster.refused(cluster.give_up("b"), "b is alive")
    assert not cluster.g.lost
    cluster.mark("b", suspected=True)
    incarnation = cluster.state.nodes["b"].incarnation
    assert cluster.give_up("b").code == Code.OK
    node = cluster.state.nodes["b"]
    assert (node.ended, node.incarnation) == (True, incarnation)
    assert cluster.give_up("nobody").code == Code.NOT_FOUND


def test_to_give_up_a_disk_twice_is_no_news(cluster):
    cluster.end("b")
    cluster.give_up("b")
    before = cluster.state.changed
    assert cluster.give_up("b").node.disk_lost
    assert cluster.state.changed == before


def test_a_disk_that_is_given_up_is_lost_in_a_configuration_that_has_just_begun(cluster):
    """d may have started in it, and voted, before anybody heard of it."""
    cluster.change(REPLACE, "c", "d")
    cluster.begin()
    for name in "cd":
        cluster.end(name)
        cluster.give_up(name)
    assert (list(cluster.g.lost), list(cluster.g.starting)) == (["d"], ["a", "b"])
    assert list(cluster.g.previous.lost) == ["c"]


def test_a_newcomer_that_loses_its_copy_is_a_newcomer_still(cluster):
    cluster.change(ADD, to="d")
    cluster.end("d")
    cluster.give_up("d")
    assert (list(cluster.g.lost), list(cluster.g.next.replicas)) == ([], ["a", "b", "c", "d"])
    assert cluster.register("d", node_id=b"new disk", level=1).code == Code.OK


def test_a_newcomer_and_who_still_has_to_hand_over_have_to_serve_the_group(cluster):
    cluster.change(REPLACE, "c", "d")
    cluster.refused(cluster.register("d", ("gateway",), level=1), "sequencer")
    cluster.begin()
    cluster.refused(cluster.register("c", ("gateway",), level=1), "sequencer")
    cluster.started(*"abd")
    assert cluster.register("c", ("gateway",), level=1).code == Code.OK


# ------------------------------------------------------------------------------------------------- levels


def test_a_new_cluster_has_level_0_and_refuses_what_came_later():
    cluster = Changing(raised=False)
    assert cluster.state.level == 0
    before = cluster.g.SerializeToString()
    cluster.end("e")
    for result in (
        cluster.change(ADD),
        cluster.drain("a"),
        cluster.give_up("e"),
        remove_node(cluster, "e"),
        cluster.do(cancel_change=CancelChange(group="g")),
        cluster.lost("a"),
        cluster.started("a"),
        cluster.begin(2),
    ):
        cluster.refused(result, "not all nodes run software that can")
    assert cluster.g.SerializeToString() == before
    assert sorted(cluster.state.nodes) == list("abcde")


def test_an_old_member_and_a_new_one_answer_alike_at_level_0():
    """Answers are remembered by all members, up to so many bytes: with other texts they would forget others."""
    cluster = Changing(raised=False)
    assert cluster.register("a", node_id=b"new", level=1).message == (
        "the name a belongs to a node with another disk; this disk is new: "
        "bring the old disk back, or use another name"
    )


def test_a_level_rises_when_every_node_in_its_present_life_has_said_so():
    cluster = Changing(raised=False)
    present = {name: node.incarnation for name, node in cluster.state.nodes.items()}
    for incarnations in ({}, dict(list(present.items())[1:]), present | {"a": 77}, present | {"x": 1}):
        result = cluster.do(raise_level=RaiseLevel(level=1, incarnations=incarnations))
        cluster.refused(result, "not every node is known to run software of level 1")
    cluster.register("a")
    cluster.refused(cluster.do(raise_level=RaiseLevel(level=1, incarnations=present)))
    assert cluster.state.level == 0
    assert cluster.raise_level().code == Code.OK
    assert (cluster.state.level, cluster.state.changes_since(0).level) == (1, 1)


def test_members_agree_on_a_level_even_if_one_did_not_note_what_nodes_have():
    """It applied their registrations with its old software."""
    new, old = Changing(raised=False), Changing(raised=False)
    for node in old.state.nodes.values():
        node.level = 0
    for member in (new, old):
        assert member.raise_level().code == Code.OK
    assert new.state.level == old.state.level == 1
    levels = [[node.level for node in member.state.nodes.values()] for member in (new, old)]
    assert levels == [[1] * 5] * 2


def test_a_level_never_falls(cluster):
    before = cluster.state.changed
    assert cluster.raise_level(0).code == Code.OK
    assert cluster.raise_level(1).code == Code.OK
    assert (cluster.state.level, cluster.state.changed) == (1, before)


def test_a_node_with_older_software_is_refused_once_the_cluster_relies_on_newer(cluster):
    for name in ("a", "new"):
        cluster.refused(cluster.register(name, level=0), f"the software of {name} is too old", "level 1")
    assert cluster.register("a", level=7).code == Code.OK
    assert cluster.state.nodes["a"].level == 7


def test_a_member_that_does_not_understand_the_level_stops_instead_of_guessing(cluster):
    with pytest.raises(InvariantBroken, match="install what the other nodes run"):
        cluster.raise_level(LEVEL + 1)
    cluster.state.level = LEVEL + 1
    with pytest.raises(InvariantBroken, match="install what the other nodes run"):
        State.from_bytes(cluster.state.to_bytes())


# ------------------------------------------------------------------------------------------------- snapshots


def test_a_snapshot_carries_all_of_it(cluster):
    cluster.change(REPLACE, "c", "d")
    cluster.do(create_group=CreateGroup(name="h", replicas=3))
    cluster.begin()
    cluster.lost("a")
    cluster.started("b")
    cluster.do(change_replicas=ChangeReplicas(group="h", change=ADD))
    cluster.drain("b")
    cluster.register("f", ALL, level=1)
    cluster.end("f")
    remove_node(cluster, "f")
    cluster.end("c")
    cluster.give_up("c")
    loaded = State.from_bytes(cluster.state.to_bytes())
    replayed = State()
    for slot, batch in enumerate(cluster.log):
        replayed.apply(slot, batch)
    assert loaded.to_bytes() == replayed.to_bytes() == cluster.state.to_bytes()
    assert (loaded.level, list(loaded.removed), loaded.changed) == (1, ["f"], cluster.state.changed)
    assert (loaded.groups, loaded.nodes) == (cluster.state.groups, cluster.state.nodes)
    for revision in range(cluster.state.revision + 1):
        assert loaded.changes_since(revision) == cluster.state.changes_since(revision)
