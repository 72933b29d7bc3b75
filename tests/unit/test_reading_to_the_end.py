"""Reading stops at the end of a log, and not because nobody says where that is."""

import asyncio
from types import SimpleNamespace

import grpc
import pytest

from ordercast.gateway.reading import Reading
from ordercast.runtime.transport.status import Refused
from ordercast.v1.membership_pb2 import Configuration, Group
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, StartAt

GROUP = Group(name="a", id="a#1", replicas=["n1", "n2"])


def read_to_the_end(described: dict[str, DescribeReplicaResponse | str]) -> None:
    async def describe(group: Group, stored_ms: int | None = None) -> dict[str, DescribeReplicaResponse | str]:
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


# ---------------------------------------------------------------------------------------------- where to begin


def start_at(start: StartAt, *described: DescribeReplicaResponse) -> int:
    async def main() -> int:
        reading = Reading(SimpleNamespace(name="gateway"))  # type: ignore[arg-type]
        asked = []

        async def describe(group: Group, stored_ms: int | None = None) -> dict[str, DescribeReplicaResponse | str]:
            asked.append(stored_ms)
            return {str(number): found for number, found in enumerate(described)}

        reading.describe = describe  # type: ignore[method-assign]
        found = await reading.start_offset(GROUP, start)
        assert asked == [start.stored_ms if start.HasField("stored_ms") else None]
        return found

    return asyncio.run(main())


@pytest.mark.parametrize(("last", "offset"), [(0, 30), (1, 29), (20, 10), (25, 5), (26, 5), (1 << 63, 5)])
def test_the_last_so_many_begin_before_the_end_and_not_before_the_log(last, offset):
    log = DescribeReplicaResponse(first_offset=5, next_offset=30)
    behind = DescribeReplicaResponse(first_offset=6, next_offset=28)
    assert start_at(StartAt(last=last), behind, log) == offset


@pytest.mark.parametrize(
    ("found", "offset"), [([7], 7), ([9, 7], 7), ([9, 7, 8], 8), ([0, 8, 8], 8), ([30, 8, 8], 8)]
)
def test_where_a_time_is_the_replica_in_the_middle_says(found, offset):
    """One may have copied the log a moment ago, and one may have a clock that is wrong."""
    logs = [DescribeReplicaResponse(next_offset=30, stored_offset=offset) for offset in found]
    assert start_at(StartAt(stored_ms=1), *logs) == offset


def test_replicas_of_an_early_version_do_not_find_times():
    early = DescribeReplicaResponse(next_offset=30)
    assert start_at(StartAt(stored_ms=1), early, DescribeReplicaResponse(next_offset=30, stored_offset=9)) == 9
    with pytest.raises(Refused) as refused:
        start_at(StartAt(stored_ms=1), early)
    assert refused.value.code == grpc.StatusCode.FAILED_PRECONDITION


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

        async def describe(group: Group, stored_ms: int | None = None) -> dict[str, DescribeReplicaResponse | str]:
            return {name: DescribeReplicaResponse(next_offset=7) for name in group.replicas}

        reading.describe = describe  # type: ignore[method-assign]
        return await reading.start_offset(group, StartAt(offset=9))

    with pytest.raises(Refused) as refused:
        asyncio.run(start())
    assert refused.value.code == code
