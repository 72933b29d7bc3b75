"""What a member of membership answers by itself, without its log."""

import asyncio
from types import SimpleNamespace

from ordercast.membership.cursors import cursors_told
from ordercast.membership.server import MembershipServer
from ordercast.membership.state import State
from ordercast.v1.membership_pb2 import WatchRequest, WatchResponse


def test_a_member_says_its_revision_at_once_and_executes_nothing_for_it():
    machine = SimpleNamespace(state=SimpleNamespace(revision=12, cluster_id=b"c"))
    server = MembershipServer(None, machine)

    async def run():
        request = WatchRequest(revision=12, only_revision=True)
        return [response async for response in server.Watch(request, None)]

    assert asyncio.run(run()) == [WatchResponse(revision=12, cluster_id=b"c")]


def test_a_member_says_where_cursors_stand_in_the_order_of_names_and_not_more_than_so_many():
    state = State()
    state.cluster_id = b"c"
    state.cursors = {("b", "x"): 7, ("a", "y"): 3, ("a", "x"): 5}
    server = MembershipServer(None, SimpleNamespace(state=state))

    async def run():
        return [response async for response in server.Watch(WatchRequest(only_cursors=True), None)]

    (response,) = asyncio.run(run())
    assert [(each.group, each.name, each.offset) for each in response.cursors] == [
        ("a", "x", 5),
        ("a", "y", 3),
        ("b", "x", 7),
    ]
    assert [each.name for each in cursors_told(state, 2)] == ["x", "y"]
