"""Where replicas and acceptors of a new group go, and which names there can be."""

import pytest

from ordercast.membership.names import (
    InvalidName,
    check_address,
    check_name,
    check_zone,
    checked_services,
)
from ordercast.membership.placement import NotEnoughNodes, passing_shortage, place
from ordercast.v1.membership_pb2 import Group, Node

BOTH = ("consensus", "sequencer")


def node(name: str, zone: str = "", services: tuple[str, ...] = BOTH, **marks: bool) -> Node:
    return Node(name=name, zone=zone, services=services, **marks)


def nodes(*names: str) -> list[Node]:
    return [node(name) for name in names]


def test_without_a_number_a_group_has_three_replicas_or_as_many_as_there_are_nodes():
    assert place(nodes("a", "b", "c", "d"), [], 0).replicas == ("a", "b", "c")
    assert place(nodes("a", "b"), [], 0).replicas == ("a", "b")


@pytest.mark.parametrize("mark", ["suspected", "ended", "read_only"])
def test_a_node_that_cannot_take_anything_new_gets_nothing(mark):
    placement = place([node("a", **{mark: True}), *nodes("b", "c", "d")], [], 3)
    assert placement.replicas == placement.acceptors == ("b", "c", "d")


def test_too_few_nodes_are_an_error_that_says_which_service_is_missing():
    with pytest.raises(NotEnoughNodes, match="3 nodes with the service sequencer"):
        place(nodes("a", "b"), [], 3)
    with pytest.raises(NotEnoughNodes, match="3 nodes with the service consensus"):
        place([*nodes("a", "b"), node("c", services=("sequencer",))], [], 3)
    with pytest.raises(NotEnoughNodes, match="1 nodes with the service sequencer"):
        place([], [], 0)


@pytest.mark.parametrize("mark", ["suspected", "read_only"])
def test_who_may_be_back_in_a_moment_is_waited_for(mark):
    away = node("c", **{mark: True})
    assert "of 3 nodes with the service sequencer only 2" in str(passing_shortage([*nodes("a", "b"), away]))
    acceptor = node("c", services=("consensus",), **{mark: True})
    assert "of 3 nodes with the service consensus only 2" in str(passing_shortage([*nodes("a", "b"), acceptor]))
    assert passing_shortage([*nodes("a", "b"), acceptor], with_acceptors=False) is None
    assert passing_shortage([*nodes("a", "b", "d"), away]) is None


@pytest.mark.parametrize("mark", ["ended", "draining"])
def test_who_is_not_to_come_back_is_not_waited_for(mark):
    assert passing_shortage([*nodes("a", "b"), node("c", **{mark: True})]) is None


def test_replicas_go_to_sequencers_and_acceptors_to_consensus_nodes():
    sequencers = [node(name, services=("sequencer",)) for name in "abc"]
    acceptors = [node(name, services=("consensus",)) for name in "xyz"]
    placement = place([*acceptors, *sequencers], [], 0)
    assert placement.replicas == ("a", "b", "c")
    assert placement.acceptors == ("x", "y", "z")


def test_zones_come_before_load():
    there = [Group(replicas=["c"], acceptors=["c"])] * 5
    placement = place([node("a", "z1"), node("b", "z1"), node("c", "z2")], there, 2)
    assert placement.replicas == ("a", "c")


def test_the_nodes_with_the_least_on_them_come_first():
    there = [Group(replicas=["a", "b"], acceptors=["a", "d"])]
    assert place(nodes("a", "b", "c", "d"), there, 1).replicas == ("c",)
    assert place(nodes("a", "b", "c", "d"), there, 3).replicas == ("b", "c", "d")


def test_acceptors_prefer_the_nodes_of_the_replicas():
    busy = [Group(acceptors=["a", "b", "c"])] * 3
    there = [node(name, services=("sequencer", "consensus")) for name in "abc"]
    placement = place([*there, *(node(name, services=("consensus",)) for name in "xyz")], busy, 3)
    assert placement.acceptors == placement.replicas == ("a", "b", "c")


def test_the_order_in_which_nodes_are_given_does_not_matter():
    there = [node(name, zone) for name, zone in zip("abcdef", "xxyyzz", strict=True)]
    assert place(there, [], 4) == place(there[::-1], [], 4)


def test_many_groups_are_spread_evenly():
    there = nodes("a", "b", "c", "d", "e")
    groups: list[Group] = []
    for _ in range(10):
        placement = place(there, groups, 3)
        groups.append(Group(replicas=placement.replicas, acceptors=placement.acceptors))
    replicas = [name for group in groups for name in group.replicas]
    assert {replicas.count(name) for name in "abcde"} == {6}


# ------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("name", ["a", "0", "orders", "eu-west_1.orders", "a" * 63])
def test_a_plain_name_is_accepted(name):
    check_name("group", name)


@pytest.mark.parametrize("name", ["", "A", "a#1", "-a", "a-", "a b", "a\n", "ä", "a" * 64, "a" * 10_000])
def test_another_name_is_refused_with_a_short_explanation(name):
    with pytest.raises(InvalidName, match="no name for a group") as caught:
        check_name("group", name)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("address", ["localhost:7400", "10.0.0.1:1", "[::1]:65535", "n-0.peers.svc:80"])
def test_a_host_with_a_port_is_an_address(address):
    check_address("peer", address)


@pytest.mark.parametrize("address", ["", "host", "host:", ":1", "host:0", "host:65536", "a b:1", "x" * 300 + ":1"])
def test_anything_else_is_no_address(address):
    with pytest.raises(InvalidName, match="host:port"):
        check_address("peer", address)


def test_services_are_sorted_and_an_unknown_one_is_named():
    assert checked_services(["sequencer", "gateway", "gateway"]) == ["gateway", "sequencer"]
    with pytest.raises(InvalidName, match="'telepathy'"):
        checked_services(["gateway", "telepathy"])
    with pytest.raises(InvalidName, match="at least one"):
        checked_services([])


def test_a_zone_is_short_and_printable():
    check_zone("")
    check_zone("eu-west-1a")
    for zone in ("x" * 64, "a\nb"):
        with pytest.raises(InvalidName, match="no zone"):
            check_zone(zone)
