"""Reading stops at the end of a log, and not because nobody says where that is."""

import asyncio
from types import SimpleNamespace

import grpc
import pytest

from ordercast.gateway.reading import Reading
from ordercast.runtime.status import Refused
from ordercast.v1.membership_pb2 import Group
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse

GROUP = Group(name="a", id="a#1", replicas=["n1", "n2"])


def read_to_the_end(described: dict[str, DescribeReplicaResponse | str]) -> None:
    async def describe(group: Group) -> dict[str, DescribeReplicaResponse | str]:
        return described

    async def read() -> None:
        reading = Reading(SimpleNamespace(name="gateway"))  # type: ignore[arg-type]
        reading.describe = describe  # type: ignore[method-assign]
        async for _ in reading.read(GROUP, 7, stop_at_end=True, replica=""):
            raise AssertionError("there is nothing to read")

    asyncio.run(read())


def test_who_is_at_the_end_of_the_furthest_replica_gets_nothing_more():
    read_to_the_end({"n1": "UNAVAILABLE: away", "n2": DescribeReplicaResponse(next_offset=7)})


def test_if_no_replica_says_where_it_ends_that_is_no_end():
    """Whoever reads would take an empty answer for an empty log."""
    with pytest.raises(Refused) as refused:
        read_to_the_end({"n1": "UNAVAILABLE: away", "n2": "DEADLINE_EXCEEDED: late"})
    assert refused.value.code == grpc.StatusCode.UNAVAILABLE
