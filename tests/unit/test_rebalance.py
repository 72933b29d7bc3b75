"""Which replicas would move so that nodes and zones are used alike."""

from random import Random

import pytest

from ordercast.membership.placement import PlannedMove, place, rebalance
from ordercast.v1.membership_pb2 import GROUP_STATE_DELETING, Configuration, Group, Node
from tests.unit.test_placement import node, nodes


def group(name: str, replicas: str, acceptors: str | None = None) -> Group:
    return Group(
        name=name, replicas=sorted(replicas), acceptors=sorted(replicas if acceptors is None else acceptors)
    )


def groups(*replicas: str) -> list[Group]:
    return [group(f"g{number}", names) for number, names in enumerate(replicas)]


def after(there: list[Group], moves: list[PlannedMove]) -> dict[str, list[str]]:
    """Who holds what when all is done. Every move has to be possible at its turn."""
    held = {one.name: list(one.replicas) for one in there}
    for move in moves:
        assert move.node in held[move.group]
        assert move.to not in held[move.group]
        held[move.group] = sorted([name for name in held[move.group] if name != move.node] + [move.to])
    return held


def loads(held: dict[str, list[str]], names: str) -> list[int]:
    return [sum(1 for replicas in held.values() if name in replicas) for name in names]


def test_what_is_even_stays():
    assert rebalance(nodes("a", "b", "c"), groups("ab", "bc", "ac")) == []
    assert rebalance(nodes("a", "b", "c", "d"), groups("abc")) == []
    assert rebalance([], []) == []


def test_a_new_node_gets_its_share_and_nobody_moves_twice():
    there = groups("abc", "abc", "abc", "abc")
    moves = rebalance(nodes("a", "b", "c", "d"), there)
    assert len(moves) == 3, "12 replicas on 4 nodes"
    assert {move.to for move in moves} == {"d"}
    assert sorted(move.node for move in moves) == ["a", "b", "c"]
    assert len({move.group for move in moves}) == 3
    assert loads(after(there, moves), "abcd") == [3, 3, 3, 3]


def test_no_more_moves_than_it_takes():
    there = groups("a", "a", "a", "b", "c")
    assert rebalance(nodes("a", "b", "c"), there) == [PlannedMove("g0", "a", "b")]


def test_a_replica_leaves_a_zone_that_has_two_for_one_that_has_none():
    there = [node("a", "x"), node("b", "x"), node("c", "y"), node("d", "z")]
    moves = rebalance(there, groups("abc"))
    assert moves == [PlannedMove("g0", "a", "d")]
    assert rebalance(there, groups("acd")) == []


def test_zones_are_not_given_up_for_even_loads():
    there = [node("a", "x"), node("b", "y"), node("c", "y")]
    many = groups("ab", "ab", "ac", "ac", "ab")
    held = after(many, moves := rebalance(there, many))
    assert all("a" in replicas for replicas in held.values())
    assert loads(held, "abc")[0] == 5
    assert moves == []


@pytest.mark.parametrize("mark", ["suspected", "ended", "read_only", "draining"])
def test_a_node_that_can_take_nothing_new_gets_and_gives_nothing(mark):
    away = [node("a", **{mark: True}), *nodes("b", "c")]
    moves = rebalance(away, groups("a", "a", "a", "b", "b", "b"))
    assert {move.node for move in moves} == {"b"}
    assert {move.to for move in moves} == {"c"}
    assert rebalance([*nodes("b"), node("c", **{mark: True})], groups("b", "b", "b")) == []


def test_a_group_that_is_changing_lost_something_or_is_deleted_does_not_move():
    there = groups("a", "a", "a", "a")
    there[0].next.CopyFrom(Configuration(number=2, replicas=["b"], acceptors=["b"]))
    there[1].previous.CopyFrom(Configuration(number=1, replicas=["b"], acceptors=["b"]))
    there[2].state = GROUP_STATE_DELETING
    there[3].lost.append("a")
    assert rebalance(nodes("a", "b"), there) == []


def test_what_is_on_its_way_to_a_node_counts_as_being_there():
    there = groups("a", "a", "a")
    there[0].next.CopyFrom(Configuration(number=2, replicas=["b"], acceptors=["b"]))
    assert rebalance(nodes("a", "b"), there) == []


def test_a_replica_that_votes_goes_where_it_can_vote():
    there = [*nodes("a"), node("b", services=("sequencer",)), *nodes("c")]
    assert {move.to for move in rebalance(there, groups("a", "a", "a"))} == {"c"}
    apart = [group(f"g{number}", "a", "c") for number in range(3)]
    assert {move.to for move in rebalance(there, apart)} == {"b", "c"}


def test_nodes_without_the_service_get_no_replicas():
    there = [*nodes("a"), node("b", services=("consensus", "gateway"))]
    assert rebalance(there, groups("a", "a", "a")) == []


def test_the_order_in_which_things_are_given_does_not_matter():
    there, many = nodes("a", "b", "c", "d", "e"), groups("abc", "abd", "abc", "ab", "a", "abcd")
    assert rebalance(there, many) == rebalance(there[::-1], many[::-1]) != []


def placed(random: Random) -> tuple[list[Node], list[Group]]:
    """Groups that were created while there were fewer nodes."""
    zones = random.choice(["x", "xy", "xyz"])
    there = [node(f"n{number}", random.choice(zones)) for number in range(random.randrange(3, 12))]
    many: list[Group] = []
    for number in range(random.randrange(1, 40)):
        usable = there[: random.randrange(3, len(there) + 1)]
        placement = place(usable, many, random.choice([1, 2, 3]))
        many.append(Group(name=f"g{number}", replicas=placement.replicas, acceptors=placement.acceptors))
    return there, many


def crowding(there: list[Node], replicas: list[str]) -> int:
    """How many pairs share a zone."""
    zone = {one.name: one.zone for one in there}
    zones = [zone[name] for name in replicas]
    return sum(zones.count(one) - 1 for one in zones)


@pytest.mark.parametrize("seed", range(40))
def test_any_plan_is_possible_worsens_no_group_and_comes_to_an_end(seed):
    there, many = placed(Random(seed))
    names = [one.name for one in there]
    rounds = 0
    while moves := rebalance(there, many):
        rounds += 1
        assert rounds < 20, "a plan that undoes what another did"
        assert len({move.group for move in moves}) == len(moves)
        held = after(many, moves)
        for one in many:
            assert crowding(there, held[one.name]) <= crowding(there, list(one.replicas))
        many = [group_with(one, held[one.name]) for one in many]
    if len({one.zone for one in there}) == 1:
        found = [sum(1 for one in many if name in one.replicas) for name in names]
        assert max(found) - min(found) <= 1


def group_with(old: Group, replicas: list[str]) -> Group:
    return Group(name=old.name, replicas=replicas, acceptors=replicas)


def test_the_largest_cluster_is_planned_in_one_go():
    there = [node(f"n{number:03}", f"zone{number % 3}") for number in range(256)]
    many = [group_with(Group(name=f"g{number}"), ["n000", "n001", "n002"]) for number in range(1024)]
    moves = rebalance(there, many)
    assert len(moves) == 1024
    held = after(many, moves)
    assert all(crowding(there, replicas) == 0 for replicas in held.values())
