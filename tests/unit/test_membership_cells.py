"""Groups that share cells: where they live, what is done to their cells, and how they go."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from ordercast.core.group_table import GroupTable
from ordercast.membership import settings as limits
from ordercast.membership.cells import cells_wanted
from ordercast.membership.population import Population
from ordercast.membership.state import Code, State
from ordercast.v1.membership_pb2 import (
    GROUP_STATE_DELETED,
    GROUP_STATE_DELETING,
    REPLICA_CHANGE_ADD,
    REPLICA_CHANGE_REPLACE,
    CancelChange,
    CommandResult,
    CreateDomain,
    CreateGroup,
    CreateGroups,
    DeleteGroup,
    DrainNode,
    Group,
    RemoveNode,
    Retention,
)
from tests.unit.test_membership_changes import Changing
from tests.unit.test_membership_machine import Member, answers, founded, kinds


class Sharing(Changing):
    """A cluster in which groups may share cells, and g has one to itself."""

    def __init__(self, names: str = "abcde", **fields: Any) -> None:
        super().__init__(names, **fields)
        for name in names:
            assert self.register(name, level=5).code == Code.OK
        assert self.raise_level(5).code == Code.OK

    def shared(self, *names: str, **fields: Any) -> Group:
        """The cell of the last one."""
        for name in names:
            result = self.group(name, shared=True, **fields)
            assert result.code == Code.OK, result.message
        return self.cell_of(names[-1])

    def cell_of(self, name: str) -> Group:
        found = self.state.population.cell_with(self.state.groups[name].cell)
        assert found is not None
        return found

    def cells(self) -> list[str]:
        return sorted(self.state.population.cells)


@pytest.fixture
def cluster() -> Sharing:
    return Sharing()


def register_all(cluster: Sharing, names: str) -> None:
    for name in names:
        assert cluster.register(name, level=5).code == Code.OK


# ------------------------------------------------------------------------------------------------- where they live


def test_a_group_that_shares_a_cell_is_an_entry_and_its_cell_has_all_the_rest(cluster):
    result = cluster.group("x", shared=True, retention=Retention(age_s=5))
    x, cell = result.group, cluster.cell_of("x")
    assert (x.name, x.domain, x.cell, x.retention.age_s) == ("x", "default", cell.id, 5)
    assert (x.configuration, list(x.replicas), list(x.acceptors)) == (0, [], [])
    assert (cell.name, cell.domain, cell.cell, len(cell.replicas), cell.configuration) == (
        "cell-1",
        "default",
        "",
        3,
        1,
    )
    assert (cluster.g.id, cell.id, x.id) == ("g#1", "cell-1#2", "x#3"), "numbers come from one counter"
    assert not cell.HasField("retention")


def test_groups_share_the_cell_that_has_the_fewest_of_them(cluster):
    register_all(cluster, "fghijk")
    cluster.shared(*(f"x{number}" for number in range(6)))
    assert cluster.cells() == ["cell-1", "cell-2", "cell-3"]
    assert sorted(cluster.state.population.living.values()) == [2, 2, 2]
    assert [cluster.cell_of(f"x{number}").name[-1] for number in range(6)] == ["1", "2", "3", "1", "2", "3"]
    cluster.remove("x1")
    assert cluster.shared("later").name == "cell-2"


def test_how_many_cells_there_should_be_goes_with_the_nodes():
    assert [cells_wanted(nodes, 3) for nodes in (0, 1, 3, 5, 6, 9)] == [1, 1, 1, 1, 2, 3]
    assert cells_wanted(10, 5) == 2


def test_a_cell_fits_if_it_has_what_is_asked_for(cluster):
    first = cluster.shared("x")
    assert cluster.shared("y", replicas=3) == first
    five = cluster.shared("z", replicas=5)
    assert len(five.replicas) == 5
    assert cluster.shared("w", replicas=5) == five
    cluster.do(create_domain=CreateDomain(name="other", protocol="scalatom"))
    other = cluster.shared("o", domain="other")
    assert (other.domain, other.name) == ("other", "cell-3")


def test_groups_with_other_settings_live_elsewhere(cluster):
    cluster.do(create_domain=CreateDomain(name="causal", protocol="isis"))
    usual = cluster.shared("x", domain="causal")
    one = cluster.shared("y", domain="causal", settings={"k_stability": "2"})
    assert one.id != usual.id
    assert cluster.shared("z", domain="causal", settings={"k_stability": "2"}) == one
    assert not cluster.state.groups["z"].settings
    assert list(one.placement) == list(one.replicas)


def test_a_cell_that_lost_too_much_gets_nothing_new(cluster):
    first = cluster.shared("x")
    for name in list(first.replicas)[:2]:
        cluster.end(name)
        cluster.give_up(name)
        assert cluster.register(name, level=5, node_id=b"another").code == Code.OK
    assert len(first.lost) == 2
    assert cluster.shared("y").name == "cell-2"
    assert cluster.shared("z").name == "cell-2"


def test_beside_another_group_means_in_its_cell(cluster):
    cluster.shared("x")
    five = cluster.shared("y", replicas=5)
    assert cluster.group("z", beside="y").code == Code.OK
    assert cluster.cell_of("z") == five
    cluster.do(create_domain=CreateDomain(name="other", protocol="scalatom"))
    cluster.shared("o", domain="other")
    assert cluster.group("p", beside="o").group.domain == "other"


@pytest.mark.parametrize(
    ("wishes", "says"),
    [
        ({"beside": "g"}, "the group g has a cell to itself: nothing else lives there"),
        ({"beside": "x", "domain": "other"}, "the group x is in the domain default"),
        ({"beside": "x", "replicas": 5}, "the group x has 3 replicas"),
    ],
)
def test_what_cannot_live_beside_a_group_is_told_why(cluster, wishes, says):
    cluster.shared("x")
    cluster.do(create_domain=CreateDomain(name="other", protocol="scalatom"))
    cluster.refused(cluster.group("y", **wishes), says)
    assert "y" not in cluster.state.groups


def test_nobody_lives_beside_a_group_that_is_not_there(cluster):
    cluster.refused(cluster.group("y", beside="nobody"), "no group 'nobody'", code=Code.NOT_FOUND)


def test_a_new_cell_is_one_that_others_may_share(cluster):
    cluster.shared("x")
    for number, name in enumerate("yz", 2):
        assert cluster.group(name, new_cell=True).code == Code.OK
        assert cluster.cell_of(name).name == f"cell-{number}"
    assert cluster.group("w", beside="y").code == Code.OK
    assert cluster.cell_of("w").name == "cell-2"


@pytest.mark.parametrize(
    "wishes",
    [{"own_cell": True, "shared": True}, {"beside": "x", "shared": True}, {"new_cell": True, "shared": True}],
)
def test_a_group_lives_in_one_place(cluster, wishes):
    cluster.shared("x")
    cluster.refused(cluster.group("y", **wishes), "one of them", code=Code.INVALID_ARGUMENT)


def test_whoever_says_nothing_gets_a_cell_to_himself(cluster):
    cluster.shared("x")
    for name, wishes in (("y", {}), ("z", {"own_cell": True})):
        group = cluster.group(name, **wishes).group
        assert (group.cell, len(group.replicas)) == ("", 3)


def test_groups_and_cells_never_have_the_same_name(cluster):
    assert cluster.group("cell-1").code == Code.OK
    assert cluster.shared("x").name == "cell-2"
    cluster.refused(cluster.group("cell-2"), "the name of a cell", code=Code.ALREADY_EXISTS)


def test_a_new_cell_is_not_placed_in_a_bad_moment_and_an_old_one_serves(cluster):
    for name in "abc":
        cluster.mark(name, suspected=True)
    assert "wait for those" in (cluster.state.why_not_now(CreateGroup(name="x", shared=True)) or "")
    for name in "abc":
        cluster.mark(name, suspected=False)
    cluster.shared("x")
    for name in "abc":
        cluster.mark(name, suspected=True)
    assert cluster.state.why_not_now(CreateGroup(name="y", shared=True)) is None
    assert cluster.shared("y").name == "cell-1"
    assert "wait for those" in (cluster.state.why_not_now(CreateGroup(name="z")) or "")


def test_where_no_other_cell_can_be_placed_fewer_than_there_should_be_will_do(cluster, monkeypatch):
    first = cluster.shared("x", replicas=5)
    register_all(cluster, "fghij")
    assert cluster.shared("y", replicas=5).id != first.id
    monkeypatch.setattr(limits, "PLACED_MAX", cluster.state.population.placed_count())
    register_all(cluster, "klmno")
    assert cluster.shared("z", replicas=5).id == first.id
    cluster.refused(cluster.group("w", shared=True, replicas=4), "no more fit", code=Code.RESOURCE_EXHAUSTED)


# ------------------------------------------------------------------------------------------------- older software


def test_in_a_cluster_with_older_software_nobody_shares_anything():
    member = founded()
    for name in "abc":
        member.register(name, level=4)
    member.settle(member.tick())
    for wishes in ({"shared": True}, {"beside": "x"}):
        (answer,) = answers(member.execute(create_group=CreateGroup(name="x", **wishes)))
        assert answer.result.code == Code.FAILED_PRECONDITION
        assert "groups share cells: the cluster has level 4, and that takes level 5" in answer.result.message


def test_what_got_into_the_log_all_the_same_is_judged_as_older_software_does():
    cluster = Changing()
    group = cluster.group("x", shared=True, own_cell=True).group
    assert (group.cell, len(group.replicas)) == ("", 3)
    assert not cluster.state.population.cells


# ------------------------------------------------------------------------------------------------- cells change


@pytest.mark.parametrize("called", ["x", "cell-1", "cell-1#2"])
def test_who_changes_the_replicas_of_a_group_changes_its_cell(cluster, called):
    cell = cluster.shared("x")
    to = next(name for name in "abcde" if name not in cell.replicas)
    result = cluster.change(REPLICA_CHANGE_ADD, to=to, group=called)
    assert result.code == Code.OK, result.message
    assert (result.group.id, result.group.next.number) == (cell.id, 2)
    assert not cluster.state.groups["x"].HasField("next")
    again = cluster.change(REPLICA_CHANGE_ADD, to=to, group=called)
    cluster.refused(again, "another change of the cell cell-1 is under way")
    assert cluster.do(cancel_change=CancelChange(group=called)).group.id == cell.id


def test_who_names_a_group_that_is_gone_changes_nothing(cluster):
    cluster.shared("x")
    gone = cluster.state.groups["x"].id
    cluster.remove("x")
    for called in ("x", gone, "cell-2", "cell-1#99"):
        result = cluster.change(REPLICA_CHANGE_ADD, group=called)
        cluster.refused(result, "there is no group", code=Code.NOT_FOUND)


def test_damage_and_lost_disks_and_removed_nodes_are_matters_of_cells(cluster):
    cell = cluster.shared("x", replicas=5)
    cluster.end("a")
    cluster.refused(remove_node(cluster, "a"), "is a member of the cell cell-1")
    cluster.give_up("a")
    assert list(cell.lost) == ["a"]
    cluster.refused(cluster.register("b", ("consensus",), level=5), "holds data of the cell cell-1")


def remove_node(cluster: Sharing, name: str) -> CommandResult:
    return cluster.do(remove_node=RemoveNode(node=name))


def test_a_draining_node_is_relieved_of_its_cells():
    member = sharing()
    member.settle(member.execute(create_group=CreateGroup(name="x", shared=True, replicas=3)))
    cell = member.machine.state.population.cells["cell-1"]
    node = cell.replicas[0]
    member.settle(member.execute(drain_node=DrainNode(node=node, draining=True)))
    done = [command for command in member.wait(1, *"abcd") if command.HasField("change_replicas")]
    assert [(one.change_replicas.group, one.change_replicas.node) for one in done] == [(cell.id, node)]
    assert done[0].change_replicas.change == REPLICA_CHANGE_REPLACE


# ------------------------------------------------------------------------------------------------- they go


def sharing(names: str = "abcd") -> Member:
    member = founded()
    for name in names:
        member.register(name, level=5)
    member.wait(1, *names, level=5)
    assert member.machine.state.level == 5
    return member


def test_a_group_goes_when_nobody_names_it_and_its_cell_stays():
    member = sharing()
    for name in "xy":
        member.settle(member.execute(create_group=CreateGroup(name=name, shared=True)))
    member.settle(member.execute(delete_group=DeleteGroup(name="x")))
    state = member.machine.state
    id_ = state.groups["x"].id
    assert state.groups["x"].state == GROUP_STATE_DELETING
    done = member.wait(2, *"abc", clear_of=[id_])
    assert "remove_group" not in kinds(done), "d has said nothing"
    done = member.wait(2, *"abcd", clear_of=[id_])
    assert "remove_group" in kinds(done)
    assert sorted(state.groups) == ["y"]
    assert state.population.living == {state.population.cells["cell-1"].id: 1}
    tombstone = state.deleted[id_]
    assert (tombstone.state, tombstone.cell) == (GROUP_STATE_DELETED, state.population.cells["cell-1"].id)
    member.settle(member.execute(create_group=CreateGroup(name="x", shared=True)))
    assert state.groups["x"].id != id_
    assert list(state.population.cells) == ["cell-1"]


# ------------------------------------------------------------------------------------------------- many of them


class Unwalkable(GroupTable):
    """Whoever goes through all of it is caught."""

    def __init__(self, groups: GroupTable) -> None:
        super().__init__()
        self._kept = groups._kept

    def walk(self, *args: object) -> Any:
        raise AssertionError("somebody goes through all groups")

    __iter__ = keys = values = items = names_from = as_field = walk


def test_nothing_that_is_done_for_one_group_goes_through_all_of_them():
    member = sharing()
    for name in "vwxyz":
        member.settle(member.execute(create_group=CreateGroup(name=name, shared=True)))
    state = member.machine.state
    state.population.groups = Unwalkable(state.population.groups)
    revision = state.revision
    member.settle(member.execute(create_group=CreateGroup(name="later", shared=True)))
    member.settle(member.execute(delete_group=DeleteGroup(name="x")))
    id_ = state.groups["x"].id
    member.register("e", level=5)
    member.wait(3, *"abcde", clear_of=[id_], level=5)
    assert "x" not in state.groups
    changes = state.changes_since(revision)
    assert [group.name for group in changes.groups] == ["later", "x"]
    assert changes.group_last == state.group_last == 7
    # The check is able to fail:
    with pytest.raises(AssertionError, match="goes through all"):
        state.to_bytes()


def test_groups_are_made_together_all_of_them_or_none(cluster):
    many = partial(CreateGroups, like=CreateGroup(shared=True))
    result = cluster.do(create_groups=many(names=["p", "q", "r"]))
    assert (result.created, result.group.name) == (3, "r")
    assert {cluster.cell_of(name).name for name in "pqr"} == {"cell-1"}
    for names, text, code in (
        (["s", "q"], "there is a group q", Code.ALREADY_EXISTS),
        (["s", "no name"], "no name", Code.INVALID_ARGUMENT),
        ([], "1 to 256 groups", Code.INVALID_ARGUMENT),
        ([f"n{number}" for number in range(257)], "1 to 256 groups", Code.INVALID_ARGUMENT),
    ):
        cluster.refused(cluster.do(create_groups=many(names=names)), text, code=code)
    assert "s" not in cluster.state.groups
    result = cluster.do(create_groups=many(names=["s", "q", "s"], exist_ok=True))
    assert result.created == 1
    apart = CreateGroups(like=CreateGroup(own_cell=True), names=["t"])
    cluster.refused(cluster.do(create_groups=apart), "share cells", code=Code.INVALID_ARGUMENT)
    beside = CreateGroups(like=CreateGroup(beside="p"), names=["t", "u"])
    assert cluster.do(create_groups=beside).created == 2


def test_groups_that_are_made_together_have_a_bound(cluster, monkeypatch):
    monkeypatch.setattr(limits, "GROUPS_MAX", 3)
    create = CreateGroups(like=CreateGroup(shared=True), names=["p", "q", "r"])
    cluster.refused(cluster.do(create_groups=create), "3 more do not fit", code=Code.RESOURCE_EXHAUSTED)
    assert "p" not in cluster.state.groups


def test_what_is_placed_has_a_bound_of_its_own(cluster, monkeypatch):
    monkeypatch.setattr(limits, "PLACED_MAX", 2)
    monkeypatch.setattr("ordercast.membership.cells.PLACED_MAX", 2)
    cluster.shared("x")
    cluster.refused(cluster.group("y"), "there are 2 cells", "may share", code=Code.RESOURCE_EXHAUSTED)
    cluster.shared("y", "z")
    monkeypatch.setattr(limits, "GROUPS_MAX", 4)
    cluster.refused(cluster.group("w", shared=True), "there are 4 groups", code=Code.RESOURCE_EXHAUSTED)


# ------------------------------------------------------------------------------------------------- told and kept


def test_watchers_hear_of_cells_as_of_groups(cluster):
    seen = cluster.state.revision
    cell = cluster.shared("x")
    changes = cluster.state.changes_since(seen)
    assert list(changes.cells) == [cell]
    assert [group.name for group in changes.groups] == ["x"]
    seen = cluster.state.revision
    cluster.shared("y")
    changes = cluster.state.changes_since(seen)
    assert (list(changes.cells), [group.name for group in changes.groups]) == ([], ["y"])
    cluster.change(REPLICA_CHANGE_ADD, group="x")
    changes = cluster.state.changes_since(cluster.state.revision - 1)
    assert ([one.name for one in changes.cells], list(changes.groups)) == (["cell-1"], [])
    everything = cluster.state.changes_since(0)
    assert [group.name for group in everything.groups] == ["g", "x", "y"]
    assert everything.cells == [cell]


def test_a_snapshot_keeps_cells_and_who_lives_where(cluster):
    cluster.shared("x", "y")
    cluster.shared("z", replicas=5)
    cluster.do(delete_group=DeleteGroup(name="y"))
    loaded = State.from_bytes(cluster.state.to_bytes())
    assert loaded.to_bytes() == cluster.state.to_bytes()
    assert loaded.changed == cluster.state.changed
    for seen in range(cluster.state.revision + 1):
        assert loaded.changes_since(seen) == cluster.state.changes_since(seen)
    facts: list[Callable[[Population], object]] = [
        lambda population: population.living,
        lambda population: sorted(population.deleting),
        lambda population: [group.id for group in population.placed()],
    ]
    for fact in facts:
        assert fact(loaded.population) == fact(cluster.state.population)


def test_a_command_that_asks_where_a_group_lives_twice_is_answered_as_the_first_time(cluster):
    create = CreateGroup(name="x", shared=True)
    first = cluster.do(b"r", create_group=create)
    cluster.shared("y")
    assert cluster.do(b"r", create_group=create) == first
