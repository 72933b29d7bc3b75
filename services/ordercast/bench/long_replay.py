"""A long log: how fast one subscriber reads it, and whether the nodes' memory grows with it."""

import asyncio

from ordercast.bench import own
from ordercast.bench.client import in_process_of_its_own
from ordercast.bench.meter import Meter
from ordercast.bench.plan import SAME, Pattern, Plan, pattern_named
from ordercast.bench.rows import Replay
from ordercast.bench.servers import BenchError, Servers
from ordercast.bench.systems import OWN
from ordercast.bench.trial import Say, empty_directory, replay

IN_FLIGHT = 1024


def run(plan: Plan, messages: int, say: Say) -> list[Replay]:
    """At half of the messages, and at all."""
    pattern = pattern_named(SAME, plan)
    replays = []
    with empty_directory(OWN) as directory, own.running(directory, plan, pattern) as servers:
        half = messages // 2
        for count in (half, messages - half):
            say(f"{OWN} replay: {count:,} messages are published")
            in_process_of_its_own(publish, servers, plan, pattern, count)
            say(f"{OWN} replay: a subscriber reads from the beginning")
            replays.append(in_process_of_its_own(replay, servers, pattern, IN_FLIGHT))
    return replays


def publish(servers: Servers, plan: Plan, pattern: Pattern, count: int) -> None:
    meter = Meter()
    asyncio.run(
        own.produce_alone(servers.addresses, plan, pattern.sets[0], IN_FLIGHT, meter, asyncio.Event(), count)
    )
    if meter.acknowledged != count:
        raise BenchError(f"{count - meter.acknowledged} messages were refused: {meter.last_error!r}")
