"""What a member of membership answers by itself, without its log."""

import asyncio
from types import SimpleNamespace

from ordercast.membership.server import MembershipServer
from ordercast.v1.membership_pb2 import WatchRequest, WatchResponse


def test_a_member_says_its_revision_at_once_and_executes_nothing_for_it():
    machine = SimpleNamespace(state=SimpleNamespace(revision=12, cluster_id=b"c"))
    server = MembershipServer(None, machine)

    async def run():
        request = WatchRequest(revision=12, only_revision=True)
        return [response async for response in server.Watch(request, None)]

    assert asyncio.run(run()) == [WatchResponse(revision=12, cluster_id=b"c")]
