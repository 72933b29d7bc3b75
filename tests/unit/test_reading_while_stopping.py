"""Who reads through a gateway that stops is told to go elsewhere, whatever the node has given up already."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from ordercast.gateway.reading import Reading
from ordercast.runtime.transport.status import Refused
from ordercast.v1.membership_pb2 import Group
from tests.unit.directories import directory_of

NODE = "n1"
GROUP = Group(name="a", id="a#1", replicas=[NODE, "n2"])

READINGS: list[Callable[[Reading], AsyncIterator[Any]]] = [
    lambda reading: reading.read(GROUP, 7, stop_at_end=False, replica=""),
    lambda reading: reading.read(GROUP, 7, stop_at_end=False, replica=NODE),
    lambda reading: reading.read_live(GROUP, NODE),
]


@pytest.mark.parametrize("read", READINGS, ids=["a group", "one replica of it", "live"])
def test_a_node_that_left_its_groups_and_stops_does_not_say_that_they_are_not_there(read):
    """That would end a subscription for good. Virtually synchronous groups are left before the gateway stops."""

    async def read_while_stopping() -> None:
        directory = directory_of([GROUP], nodes=[NODE])
        reading = Reading(SimpleNamespace(name=NODE, directory=directory))  # type: ignore[arg-type]

        async def left(*_: object) -> AsyncGenerator[Any, None]:
            reading._is_stopped = True
            raise Refused(grpc.StatusCode.NOT_FOUND, "no replica here", "NO_REPLICA")
            yield

        reading._open = reading._open_live = left  # type: ignore[method-assign, assignment]
        reading._choose = lambda group, turn: NODE  # type: ignore[method-assign]
        async for _ in read(reading):
            raise AssertionError("there is nothing to read")

    with pytest.raises(Refused) as refused:
        asyncio.run(read_while_stopping())
    assert refused.value.code == grpc.StatusCode.UNAVAILABLE
    assert refused.value.reason == "STOPPING"
