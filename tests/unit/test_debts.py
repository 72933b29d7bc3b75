"""Calls that come to nothing: so many are free, and then a client's calls begin at intervals."""

import asyncio
from collections.abc import Callable

import pytest

from ordercast.runtime.transport.debts import COST_S, FREE_CALLS, REMEMBERED_MAX, Debts
from ordercast.runtime.transport.status import Entrance


class Clock:
    """Time passes only when somebody sleeps, and then at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.slept: list[float] = []
        monkeypatch.setattr(asyncio, "get_running_loop", lambda: self)
        monkeypatch.setattr(asyncio, "sleep", self.sleep)

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[[], None]) -> None:
        callback()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def begin(debts: Debts, client: str) -> None:
    """Drives the coroutine by hand: the clock above never really waits."""
    waiting = debts.wait(client)
    with pytest.raises(StopIteration):
        waiting.send(None)


def fail(debts: Debts, client: str, count: int) -> None:
    for _ in range(count):
        debts.came_to_nothing(client)


def test_so_many_calls_that_come_to_nothing_are_free(clock: Clock):
    debts = Debts()
    fail(debts, "a", FREE_CALLS)
    begin(debts, "a")
    assert clock.slept == []


def test_after_that_calls_begin_one_after_the_other(clock: Clock):
    debts = Debts()
    fail(debts, "a", FREE_CALLS + 1)
    for _ in range(3):
        begin(debts, "a")
    assert clock.slept == pytest.approx([COST_S, 2 * COST_S, 3 * COST_S])


def test_nobody_else_waits(clock: Clock):
    debts = Debts()
    fail(debts, "a", 10 * FREE_CALLS)
    begin(debts, "b")
    assert clock.slept == []


def test_after_a_while_without_them_a_client_is_as_free_as_before(clock: Clock):
    debts = Debts()
    fail(debts, "a", 2 * FREE_CALLS)
    clock.now += 2 * FREE_CALLS * COST_S
    begin(debts, "a")
    fail(debts, "a", FREE_CALLS)
    begin(debts, "a")
    assert clock.slept == []


def test_only_so_many_clients_are_remembered(clock: Clock):
    debts = Debts()
    fail(debts, "first", FREE_CALLS + 1)
    for number in range(REMEMBERED_MAX):
        fail(debts, f"client-{number}", 1)
    begin(debts, "first")
    assert clock.slept == [], "the one that was longest away is forgotten"


class Call:
    def peer(self) -> str:
        return "a"


@pytest.mark.parametrize("end", [ValueError, asyncio.CancelledError, GeneratorExit])
def test_a_call_that_fails_or_is_given_up_counts(clock: Clock, end: type[BaseException]):
    entrance = Entrance(lambda context: None)

    async def call() -> None:
        async with entrance.passed(Call()):
            raise end

    for _ in range(FREE_CALLS + 1):
        with pytest.raises(end):
            call().send(None)
    assert clock.slept == []
    with pytest.raises(end):
        call().send(None)
    assert clock.slept == pytest.approx([COST_S])
