"""Changing replicas and nodes from the SDK through a gateway to membership: typed answers, typed refusals."""

import grpc
import pytest

import ordercast
from ordercast import errors
from ordercast.core.members import learners_of
from ordercast.gateway.reassignment import explained
from ordercast.membership.placement import PlannedMove
from ordercast.v1.gateway_pb2 import ChangeReplicasRequest, DrainNodeRequest, GiveUpDiskRequest
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub
from ordercast.v1.membership_pb2 import (
    REPLICA_CHANGE_ADD,
    REPLICA_CHANGE_REMOVE,
    REPLICA_CHANGE_REPLACE,
    Configuration,
    EndIncarnation,
    Group,
    Node,
)
from tests.unit.admin_gateway import AdminGateway, running

ID = bytes(16)


@pytest.fixture
def gateway():
    """Four nodes, and the group a on the first three."""
    with running() as started:
        for number in range(1, 5):
            started.register(f"n{number}", zone=f"z{number}")
        started.create("a")
        yield started


@pytest.fixture
def client(gateway):
    with ordercast.connect_sync(gateway.address) as connection:
        yield connection


@pytest.fixture
def stub(gateway):
    with grpc.insecure_channel(gateway.address) as channel:
        yield GatewayServiceStub(channel)


def end(gateway: AdminGateway, name: str) -> None:
    incarnation = gateway.member.state.nodes[name].incarnation
    gateway.do(end_incarnation=EndIncarnation(name=name, incarnation=incarnation))


# ------------------------------------------------------------------------------------------------- replicas


def test_a_change_is_answered_with_the_group_as_it_begins(gateway, client):
    gateway.begins = False
    group = client.change_replicas("a", "add", to="n4")
    assert (group.configuration, group.next.number) == (1, 2)
    assert list(group.next.replicas) == ["n1", "n2", "n3", "n4"]


def test_this_gateway_knows_of_the_change_when_it_is_answered(gateway, client):
    gateway.begins = False
    client.change_replicas("a", "replace", node="n1", to="n4")
    (group,) = client.groups()
    assert list(group.next.replicas) == ["n2", "n3", "n4"]


def test_a_removal_needs_nobody_to_copy_anything_and_has_begun(gateway, client):
    gateway.starts = False
    group = client.change_replicas("a", "remove", node="n2")
    assert (group.configuration, list(group.replicas)) == (2, ["n1", "n3"])
    assert list(group.previous.replicas) == ["n1", "n2", "n3"]


def test_a_change_can_be_cancelled_while_it_is_prepared(gateway, client):
    gateway.begins = False
    client.change_replicas("a", "add")
    group = client.cancel_change("a")
    assert not group.HasField("next")
    with pytest.raises(errors.FailedPrecondition):
        client.cancel_change("a")


def test_there_is_one_change_at_a_time(gateway, client):
    gateway.begins = False
    client.change_replicas("a", "add", to="n4")
    with pytest.raises(errors.FailedPrecondition):
        client.change_replicas("a", "remove", node="n1")


def test_a_change_that_is_repeated_with_its_id_is_made_once(gateway, stub):
    gateway.register("n5")
    request = ChangeReplicasRequest(group="a", change=REPLICA_CHANGE_ADD, request_id=ID)
    first, again = (stub.ChangeReplicas(request, timeout=10).group for _ in range(2))
    assert first == again
    assert len(again.next.replicas) == 4


@pytest.mark.parametrize(
    "request_",
    [
        ChangeReplicasRequest(group="a"),
        ChangeReplicasRequest(group="a", change=9),
        ChangeReplicasRequest(change=REPLICA_CHANGE_ADD),
        ChangeReplicasRequest(group="a", change=REPLICA_CHANGE_ADD, node="n1"),
        ChangeReplicasRequest(group="a", change=REPLICA_CHANGE_REMOVE, to="n4"),
        ChangeReplicasRequest(group="a", change=REPLICA_CHANGE_REPLACE, request_id=b"short"),
        DrainNodeRequest(draining=True),
        GiveUpDiskRequest(),
        GiveUpDiskRequest(node="n1", request_id=bytes(17)),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_before_membership_hears_of_it(gateway, stub, request_):
    before = gateway.member.state.revision
    method = getattr(stub, type(request_).__name__.removesuffix("Request"))
    with pytest.raises(grpc.RpcError) as refused:
        method(request_, timeout=10)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert gateway.member.state.revision == before


def test_a_change_that_there_is_not_is_refused_by_the_sdk(client):
    with pytest.raises(errors.InvalidArgument, match="add, remove, replace"):
        client.change_replicas("a", "swap")


def test_what_there_is_not_is_not_found(client):
    calls = [
        lambda: client.change_replicas("nowhere", "add"),
        lambda: client.cancel_change("nowhere"),
        lambda: client.drain_node("nobody"),
        lambda: client.remove_node("nobody"),
        lambda: client.give_up_disk("nobody"),
    ]
    for call in calls:
        with pytest.raises(errors.NotFound):
            call()


@pytest.mark.parametrize(
    ("change", "nodes"),
    [
        ("add", {"to": "nobody"}),
        ("add", {"to": "n1"}),
        ("remove", {"node": "n4"}),
        ("replace", {"node": "n1", "to": "n2"}),
    ],
)
def test_a_node_that_does_not_fit_the_change_is_in_the_way(client, change, nodes):
    with pytest.raises(errors.FailedPrecondition, match=next(reversed(nodes.values()))):
        client.change_replicas("a", change, **nodes)


def test_who_copies_the_log_is_described_apart_from_the_replicas(gateway, client):
    gateway.begins = False
    gateway.logs.positions = {"n1": 30, "n2": 30, "n3": 29, "n4": 12}
    client.change_replicas("a", "add", to="n4")
    answer = client.describe_group("a")
    assert [replica.node for replica in answer.replicas] == ["n1", "n2", "n3"]
    assert [(learner.node, learner.log.position) for learner in answer.learners] == [("n4", 12)]


def test_a_replica_that_lost_its_log_copies_it_again():
    group = Group(
        replicas=["n1", "n2", "n3"], lost=["n2"], next=Configuration(replicas=["n1", "n2", "n4"], number=2)
    )
    assert learners_of(group) == ["n2", "n4"]
    assert learners_of(Group(replicas=["n1"], lost=["n1"])) == []


# ---------------------------------------------------------------------------------------------------- nodes


def test_a_node_is_drained_and_used_again(gateway, client):
    gateway.moves = False
    assert client.drain_node("n1").draining is True
    assert [node.name for node in client.nodes() if node.draining] == ["n1"]
    assert client.drain_node("n1", draining=False).draining is False


def test_a_node_that_holds_nothing_is_removed_and_one_that_does_is_not(gateway, client):
    with pytest.raises(errors.FailedPrecondition):
        client.remove_node("n1")
    client.drain_node("n4")
    client.remove_node("n4")
    assert "n4" not in gateway.member.state.nodes
    assert [node.name for node in client.nodes()] == ["n1", "n2", "n3"]


def test_the_disk_of_a_living_node_is_not_given_up(gateway, client):
    with pytest.raises(errors.FailedPrecondition):
        client.give_up_disk("n1")
    end(gateway, "n1")
    assert client.give_up_disk("n1").disk_lost is True
    assert list(gateway.group("a").lost) == ["n1"]


def test_the_sdk_with_asyncio_does_the_same(gateway):
    gateway.begins = False

    async def main():
        async with ordercast.connect(gateway.address) as oc:
            changed = await oc.change_replicas("a", "replace", node="n3", to="n4")
            cancelled = await oc.cancel_change("a")
            drained = await oc.drain_node("n4")
            moves = await oc.plan_rebalance()
            names = [node.name for node in await oc.nodes()]
            removed = await oc.remove_node("n4")
            with pytest.raises(errors.FailedPrecondition):
                await oc.give_up_disk("n1")
            return changed, cancelled, drained, moves, names, removed

    changed, cancelled, drained, moves, names, removed = gateway.run(main())
    assert list(changed.next.replicas) == ["n1", "n2", "n4"]
    assert not cancelled.HasField("next")
    assert drained.draining
    assert moves == []
    assert names == ["n1", "n2", "n3", "n4"]
    assert removed.name == "n4"


# ------------------------------------------------------------------------------------------------- planning


def test_a_plan_says_what_moves_where_and_why(gateway, client):
    for name in ("b", "c", "d"):
        gateway.create(name, replicas=1)
    gateway.register("n5", zone="z5")
    moves = client.plan_rebalance()
    assert moves
    assert all(move.group and move.node != move.to for move in moves)
    assert all("holds" in move.why for move in moves)


def test_a_reason_is_that_of_the_moment_when_the_move_is_due():
    nodes = [Node(name="n1", zone="z"), Node(name="n2", zone="z")]
    groups = [Group(name=name, replicas=["n1"]) for name in ("a", "b", "c", "d")]
    moves = explained([PlannedMove("a", "n1", "n2"), PlannedMove("b", "n1", "n2")], nodes, groups)
    assert [move.why for move in moves] == ["n1 holds 4 replicas, n2 0", "n1 holds 3 replicas, n2 1"]


def test_zones_are_a_reason_of_their_own():
    nodes = [Node(name="n1", zone="east"), Node(name="n2", zone="east"), Node(name="n3", zone="west")]
    (move,) = explained([PlannedMove("a", "n1", "n3")], nodes, [Group(name="a", replicas=["n1", "n2"])])
    assert move.why == "more replicas of the group are in zone 'east' than in 'west'"


def test_a_gateway_that_cannot_plan_says_so():
    with (
        running(is_planning=False) as alone,
        ordercast.connect_sync(alone.address) as client,
        pytest.raises(errors.Unimplemented, match="ordercast serve"),
    ):
        client.plan_rebalance()
