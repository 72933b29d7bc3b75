"""What one client may have of what there is only so much of, and what is left for others."""

import asyncio
import contextlib

import pytest

from ordercast.gateway import budgets
from ordercast.gateway.budgets import COMMANDS_MAX, CURSORS_MAX, Budgets
from ordercast.runtime.transport.status import Refused
from tests.unit.gateway_calls import context_of

ONE, SAME, OTHER = (context_of(f"ipv4:10.0.0.{host}:{port}") for host, port in ((1, 5), (1, 6), (2, 5)))


def test_all_addresses_that_one_host_is_given_share_a_budget():
    shared = Budgets()
    one, same, other = (context_of(f"ipv6:%5B2001:db8:0:{host}%5D:5") for host in ("1::1", "1::2", "2::1"))
    with shared.hold(one, "calls", 1):
        with (
            pytest.raises(Refused, match="address 2001:db8:0:1::/64 has 1 calls here"),
            shared.hold(same, "calls", 1),
        ):
            pass
        with shared.hold(other, "calls", 1):
            pass


def test_a_client_has_no_more_than_its_share_over_however_many_connections_and_others_have_theirs():
    shared = Budgets()
    with contextlib.ExitStack() as held:
        for context in (ONE, SAME):
            held.enter_context(shared.hold(context, "calls", 2))
        with pytest.raises(Refused, match="has 2 calls here"):
            held.enter_context(shared.hold(ONE, "calls", 2))
        held.enter_context(shared.hold(ONE, "subscriptions", 2))
        held.enter_context(shared.hold(OTHER, "calls", 2))
        held.enter_context(shared.hold(context_of("ipv4:10.0.0.1:7", "me"), "calls", 2))
    assert not shared._budgets, "nothing is remembered of who has nothing"
    with shared.hold(ONE, "calls", 2):
        pass


def test_few_commands_of_a_client_are_under_way_and_others_do_not_wait_for_them(monkeypatch):
    monkeypatch.setattr(budgets, "COMMANDS_WAITING_MAX", 4)

    async def story():
        shared, done, under_way = Budgets(), asyncio.Event(), []

        async def command(context):
            async with shared.command(context):
                under_way.append(context)
                await done.wait()

        flood = [asyncio.create_task(command(ONE)) for _ in range(COMMANDS_MAX + 10)]
        other = asyncio.create_task(command(OTHER))
        while OTHER not in under_way:
            await asyncio.sleep(0)
        assert under_way.count(ONE) == COMMANDS_MAX
        done.set()
        ended = await asyncio.gather(*flood, return_exceptions=True)
        await other
        assert sum(isinstance(one, Refused) for one in ended) == 10 - 4
        assert under_way.count(ONE) == COMMANDS_MAX + 4

    asyncio.run(story())


def test_a_client_sets_so_many_cursors_and_more_when_some_were_deleted():
    shared = Budgets()
    for number in range(CURSORS_MAX):
        shared.set_cursor(ONE, "a", f"c{number}")
    shared.set_cursor(ONE, "a", "c0")
    with pytest.raises(Refused, match="delete some"):
        shared.set_cursor(SAME, "a", "one-more")
    shared.set_cursor(OTHER, "a", "one-more")
    shared.delete_cursor("a", "c0")
    shared.set_cursor(ONE, "a", "one-more")


def test_what_is_remembered_of_clients_is_bounded(monkeypatch):
    monkeypatch.setattr(budgets, "REMEMBERED_MAX", 3)
    shared = Budgets()
    for number in range(10):
        shared.set_cursor(context_of(f"ipv4:10.0.0.{number}:1"), "a", "c")
    assert list(shared._cursors) == [f"address 10.0.0.{number}/32" for number in (7, 8, 9)]
