"""How calls begin: few in a turn of the loop, and clients take turns."""

import asyncio
from collections.abc import Awaitable, Callable

from ordercast.runtime.transport.turnstile import Turnstile


def play(story: Callable[[Turnstile, list[str]], Awaitable[None]]) -> list[str]:
    """The clients whose calls began, in order, with a dot for each turn of the loop."""

    async def whole() -> list[str]:
        begun: list[str] = []
        await story(Turnstile(calls_per_turn=2), begun)
        return begun

    return asyncio.run(whole())


async def enter(turnstile: Turnstile, client: str, begun: list[str]) -> None:
    await turnstile.enter(client)
    begun.append(client)


async def turn_until_all_began(tasks: list[asyncio.Task[None]], begun: list[str]) -> None:
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        begun.append(".")


def test_a_call_alone_begins_at_once():
    async def story(turnstile: Turnstile, begun: list[str]) -> None:
        for _ in range(5):
            entering = turnstile.enter("a")
            # Whoever waits for nothing ends a coroutine at its first step.
            try:
                entering.send(None)
            except StopIteration:
                begun.append("a")
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    assert play(story) == ["a"] * 5


def test_few_calls_begin_in_a_turn():
    async def story(turnstile: Turnstile, begun: list[str]) -> None:
        tasks = [asyncio.create_task(enter(turnstile, "a", begun)) for _ in range(20)]
        await turn_until_all_began(tasks, begun)

    turns = "".join(play(story)).split(".")
    assert sum(map(len, turns)) == 20
    assert max(map(len, turns)) <= 2


def test_a_client_with_one_call_does_not_wait_for_those_of_a_client_with_many():
    async def story(turnstile: Turnstile, begun: list[str]) -> None:
        tasks = [asyncio.create_task(enter(turnstile, "many", begun)) for _ in range(50)]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(enter(turnstile, "one", begun)))
        await turn_until_all_began(tasks, begun)

    begun = [client for client in play(story) if client != "."]
    assert begun.count("many") == 50
    # Two began at once, two may have been let in before it came, and one is let in beside it.
    assert begun.index("one") <= 5


def test_a_call_whose_caller_has_gone_takes_nobody_s_place():
    async def story(turnstile: Turnstile, begun: list[str]) -> None:
        gone = [asyncio.create_task(enter(turnstile, "gone", begun)) for _ in range(30)]
        await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        begun.clear()
        tasks = [asyncio.create_task(enter(turnstile, "here", begun)) for _ in range(6)]
        await turn_until_all_began(tasks, begun)

    assert [client for client in play(story) if client != "."] == ["here"] * 6
