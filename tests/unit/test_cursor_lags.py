"""How far consumers are behind, as a replica measures it and as a gateway lists it."""

import asyncio
from types import SimpleNamespace

import grpc
import pytest

from ordercast.gateway.cursor_lags import AGES_MAX, lags_of
from ordercast.runtime.telemetry.meters import Meters
from ordercast.runtime.transport.status import Refused
from ordercast.sequencer.cursor_lags import CursorLags
from ordercast.telemetry.schema import names
from ordercast.v1.membership_pb2 import Cursor, Group
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, ReadGroupResponse

NOW_S = 100.0
A, SHARED, ELSEWHERE = (
    Group(name="a", id="a#1"),
    Group(name="s", id="s#2", cell="cell-1#3"),
    Group(name="e", id="e#4"),
)


class DirectoryOfCursors(SimpleNamespace):
    def __init__(self, *cursors: Cursor) -> None:
        for group in (A, SHARED, ELSEWHERE):
            group.domain = "d"
        super().__init__(group_by_name={group.name: group for group in (A, SHARED, ELSEWHERE)}, told=list(cursors))

    async def cursors(self) -> list[Cursor]:
        return self.told

    def address_of(self, group: Group) -> str:
        return f"{group.cell}/{group.id}" if group.cell else group.id

    def described(self, group: Group) -> Group:
        return group


async def unread(address: str, offset: int) -> tuple[int, int | None]:
    if offset == 13:
        raise Refused(grpc.StatusCode.DATA_LOSS, "damaged", "DAMAGED")
    return {"a#1": (10 - offset, 40_000), "cell-1#3/s#2": (0, None)}[address]


def measured(*cursors: Cursor) -> tuple[dict, dict]:
    logs = SimpleNamespace(serves={"a#1", "cell-1#3"}.__contains__, unread=unread)
    clock = SimpleNamespace(wall=lambda: NOW_S)
    lags = CursorLags(SimpleNamespace(directory=DirectoryOfCursors(*cursors), logs=logs, clock=clock))  # type: ignore[arg-type]
    asyncio.run(lags.look())
    meters = Meters()
    lags.measure(meters)
    return meters.gauge(names.METRIC_CURSOR_LAG).values, meters.gauge(names.METRIC_CURSOR_AGE).values


def test_a_replica_measures_the_cursors_of_its_own_groups_shared_cells_included():
    lags, ages = measured(
        Cursor(group="a", name="slow", offset=4),
        Cursor(group="s", name="done", offset=9),
        Cursor(group="e", name="of-others", offset=1),
        Cursor(group="gone", name="left", offset=1),
    )
    assert lags == {("d", "a", "slow"): 6, ("d", "s", "done"): 0}
    assert ages == {("d", "a", "slow"): 60.0, ("d", "s", "done"): 0.0}


def test_what_is_damaged_says_nothing_and_holds_nothing_up():
    lags, _ = measured(Cursor(group="a", name="damaged", offset=13), Cursor(group="a", name="b", offset=9))
    assert lags == {("d", "a", "b"): 1}


class ReadingOfTen:
    """A group with the offsets 2 to 9, each stored at its offset in seconds."""

    def __init__(self, *, answers: bool = True) -> None:
        self.answers = answers
        self.read_at: list[int] = []

    async def describe(self, group: Group) -> dict[str, DescribeReplicaResponse | str]:
        behind = DescribeReplicaResponse(first_offset=2, next_offset=7)
        return (
            {"n1": DescribeReplicaResponse(first_offset=4, next_offset=10), "n2": behind}
            if self.answers
            else {"n1": ""}
        )

    async def read(self, group: Group, offset: int, *, stop_at_end: bool, replica: str):
        self.read_at.append(offset)
        if offset == 5:
            raise Refused(grpc.StatusCode.UNAVAILABLE, "nobody there", "NO_REPLICA")
        yield ReadGroupResponse(next_offset=10)
        yield ReadGroupResponse(stored_ms=[offset * 1000])


def listed(reading: ReadingOfTen, *offsets: int) -> list[tuple[int, int | None]]:
    node = SimpleNamespace(clock=SimpleNamespace(wall=lambda: NOW_S), directory=DirectoryOfCursors())
    cursors = [Cursor(group="a", name=f"c{number}", offset=offset) for number, offset in enumerate(offsets)]
    lags = asyncio.run(lags_of(node, reading, A, cursors))  # type: ignore[arg-type]
    return [(lag.messages, lag.age_ms if lag.HasField("age_ms") else None) for lag in lags]


@pytest.mark.parametrize(
    ("offset", "lag"),
    [(10, (0, 0)), (9, (1, 91_000)), (0, (10, 98_000)), (5, (5, None))],
    ids=["at the end", "one behind", "before what is kept", "of which nobody knows the age"],
)
def test_a_gateway_says_how_far_each_cursor_is_behind_the_furthest_replica(offset: int, lag: tuple[int, int]):
    assert listed(ReadingOfTen(), offset) == [lag]


def test_without_replicas_nothing_is_said():
    assert listed(ReadingOfTen(answers=False), 3) == []


def test_cursors_at_one_place_are_one_look_and_there_are_only_so_many_looks():
    reading = ReadingOfTen()
    listed(reading, 3, 3, 9)
    assert reading.read_at == [3, 9]
    assert len(listed(ReadingOfTen(), *([3] * AGES_MAX), 4)) == AGES_MAX + 1
    assert listed(ReadingOfTen(), *([3] * AGES_MAX), 4)[-1] == (6, None)
