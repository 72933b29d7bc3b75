"""Reading stops at the end of a log, and not because nobody says where that is."""

import asyncio
from types import SimpleNamespace

import grpc
import pytest

from ordercast.gateway.reading import Reading
from ordercast.runtime.status import Refused
from ordercast.v1.membership_pb2 import Configuration, Group
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, StartAt

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


# --------------------------------------------------------------------------------------------- behind the end

VIEW = {"name": "a", "id": "a#1", "placement": ["n1", "n2", "n3"]}


@pytest.mark.parametrize(
    ("group", "code"),
    [
        (Group(replicas=["n1", "n2", "n3"], **VIEW), grpc.StatusCode.OUT_OF_RANGE),
        (Group(replicas=["n1", "n2"], **VIEW), grpc.StatusCode.UNAVAILABLE),
        (Group(replicas=["n1", "n2", "n3"], starting=["n3"], **VIEW), grpc.StatusCode.UNAVAILABLE),
        (
            Group(replicas=["n1", "n2", "n3"], previous=Configuration(replicas=["n1"]), **VIEW),
            grpc.StatusCode.UNAVAILABLE,
        ),
    ],
    ids=["all there", "one is left out", "one has not begun", "a view follows another"],
)
def test_an_offset_that_nobody_has_is_none_only_if_everybody_was_asked(group, code):
    """After a restart of all, a reader may have what only one had delivered before: others deliver it again."""

    async def start() -> int:
        reading = Reading(SimpleNamespace(name="gateway"))  # type: ignore[arg-type]

        async def describe(group: Group) -> dict[str, DescribeReplicaResponse | str]:
            return {name: DescribeReplicaResponse(next_offset=7) for name in group.replicas}

        reading.describe = describe  # type: ignore[method-assign]
        return await reading.start_offset(group, StartAt(offset=9))

    with pytest.raises(Refused) as refused:
        asyncio.run(start())
    assert refused.value.code == code
