"""Groups that a gateway has not heard of: the members are asked, all at once, and nothing is written for it."""

import asyncio
from types import SimpleNamespace

import pytest

from ordercast.gateway.freshness import Freshness


class Membership:
    """As much of a node as is asked; `newest` is what the members have, `follow` makes the gateway hear of it."""

    def __init__(self):
        self.questions = 0
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.directory = SimpleNamespace(
            group_by_name={"known": object()}, revision=7, newest_revision=self.newest_revision
        )
        self.newest = 7
        self.changed = asyncio.Event()

    async def newest_revision(self):
        self.questions += 1
        newest = self.newest
        await self.go_on.wait()
        return newest

    async def wait_for_change(self):
        await self.changed.wait()

    def follow(self):
        self.directory.revision = self.newest
        self.changed.set()


@pytest.mark.parametrize("names", [["known"], [], ["known", "Not A Name"], ["", "x" * 64], ["a#1"], ["-a"]])
def test_nobody_is_asked_for_what_is_known_or_no_name(names):
    async def run():
        node = Membership()
        await Freshness(node).settle(names)
        assert node.questions == 0

    asyncio.run(run())


def test_many_names_are_one_question():
    async def run():
        node = Membership()
        await Freshness(node).settle([f"g{number}" for number in range(64)])
        assert node.questions == 1

    asyncio.run(run())


def test_who_asks_waits_until_the_gateway_has_what_the_members_have():
    async def run():
        node = Membership()
        node.newest = 9
        waiting = asyncio.ensure_future(Freshness(node).settle(["new"]))
        while node.questions == 0:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        node.follow()
        await waiting

    asyncio.run(run())


def test_those_who_come_while_a_question_is_under_way_share_the_next_one():
    """What they ask for may be newer than what the first one hears."""

    async def run():
        node = Membership()
        freshness = Freshness(node)
        node.go_on.clear()
        first = asyncio.ensure_future(freshness.settle(["a"]))
        while node.questions == 0:
            await asyncio.sleep(0)
        others = [asyncio.ensure_future(freshness.settle([f"b{number}"])) for number in range(100)]
        await asyncio.sleep(0)
        node.go_on.set()
        await asyncio.gather(first, *others)
        assert node.questions == 2

    asyncio.run(run())
