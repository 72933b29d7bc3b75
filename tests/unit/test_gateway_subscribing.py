"""Subscriptions at the gateway: what a client that reads has seen is signed with what it gets."""

import asyncio
from collections import deque
from types import SimpleNamespace

import grpc
import pytest

from ordercast.core.ids import envelope_id, order_key, pack_u64
from ordercast.gateway.budgets import Budgets
from ordercast.gateway.subscribing import Subscribing, seen_in
from ordercast.gateway.translation import Translation
from ordercast.protocols.catalogue import DEFAULT
from ordercast.runtime.process.settings import LimitSettings
from ordercast.runtime.transport.status import Refused
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.gateway_pb2 import SubscribeRequest, SubscribeResponse, SubscribeStart
from ordercast.v1.membership_pb2 import Group
from ordercast.v1.sequencer_pb2 import LogEntry, ReadGroupResponse, StartAt
from tests.unit.clock_tokens import ClockTokens
from tests.unit.directories import directory_of

KEY = b"the cluster's key"
GROUP = Group(name="a", id="a#1", domain="d", replicas=["s1"])


def entry(sn: int) -> bytes:
    return LogEntry(order_key=order_key(sn, envelope_id(1, sn)), envelope=Envelope(body=b"x")).SerializeToString()


class Client:
    """A stream: what the client sends, and what it is sent."""

    def auth_context(self):
        return {}

    def peer(self):
        return "ipv4:127.0.0.1:1"

    def __init__(self) -> None:
        start = SubscribeStart(group="a", start=StartAt(earliest=True), stop_at_end=True)
        self.requests = deque([SubscribeRequest(start=start)])
        self.responses: list[SubscribeResponse] = []

    async def read(self):
        return self.requests.popleft() if self.requests else grpc.aio.EOF

    async def write(self, response: SubscribeResponse) -> None:
        self.responses.append(response)


class Log:
    """In place of a replica's."""

    def __init__(self, *chunks: list[bytes]) -> None:
        self.chunks = chunks

    async def start_offset(self, group, start):
        return 0

    async def read(self, group, offset, *, stop_at_end, replica):
        for number, entries in enumerate(self.chunks):
            yield ReadGroupResponse(entries=entries, next_offset=number)


def subscribe(*chunks: list[bytes]) -> list[SubscribeResponse]:
    async def settle(names):
        pass

    settings = SimpleNamespace(limits=LimitSettings())
    node = SimpleNamespace(key=KEY, directory=directory_of([GROUP]), settings=settings)
    subscribing = Subscribing(
        node, Translation(node), Log(*chunks), None, SimpleNamespace(settle=settle), Budgets()
    )
    client = Client()
    asyncio.run(subscribing.stream(client))
    return client.responses


def test_deliveries_carry_a_token_for_the_last_of_them():
    started, *others = subscribe([], [entry(3), entry(7)], [entry(9)])
    assert started.started.group_id == "a#1"
    shown = [ClockTokens(KEY).verify("d", response.deliveries.session) for response in others]
    assert shown == [pack_u64(7), pack_u64(9)]
    assert [list(response.deliveries.entries) for response in others] == [[entry(3), entry(7)], [entry(9)]]


@pytest.mark.parametrize("damaged", [b"", b"\xff", LogEntry(order_key=b"short").SerializeToString()])
def test_nothing_is_signed_for_a_damaged_entry(damaged):
    with pytest.raises(Refused, match="damaged") as refused:
        seen_in([damaged], Group(name="a"), DEFAULT)
    assert refused.value.code == grpc.StatusCode.DATA_LOSS
