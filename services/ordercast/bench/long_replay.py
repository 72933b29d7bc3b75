"""A long log: how fast one subscriber reads it, and whether the nodes' memory grows with it."""

import asyncio

from ordercast.bench import own
from ordercast.bench.client import in_process_of_its_own
from ordercast.bench.meter import Meter
from ordercast.bench.plan import SAME, BenchPlan, Pattern, pattern_named
from ordercast.bench.rows import Replay
from ordercast.bench.servers import BenchError, Servers
from ordercast.bench.systems import OWN
from ordercast.bench.trial import Say, empty_directory
from ordercast.local.usage import rss_anon_mb

IN_FLIGHT = 1024


def run(plan: BenchPlan, messages: int, say: Say) -> list[Replay]:
    """At half of the messages, and at all."""
    pattern = pattern_named(SAME, plan)
    replays = []
    with empty_directory(OWN) as directory, own.running(directory, plan, pattern) as servers:
        half = messages // 2
        for count in (half, messages - half):
            say(f"{OWN} replay: {count:,} messages are published")
            in_process_of_its_own(publish, servers, plan, pattern, count)
            say(f"{OWN} replay: a subscriber reads from the beginning")
            replays.append(in_process_of_its_own(replay, servers, pattern))
    return replays


def publish(servers: Servers, plan: BenchPlan, pattern: Pattern, count: int) -> None:
    meter = Meter()
    asyncio.run(
        own.produce_alone(servers.addresses, plan, pattern.sets[0], IN_FLIGHT, meter, asyncio.Event(), count)
    )
    if meter.acknowledged != count:
        raise BenchError(f"{count - meter.acknowledged} messages were refused: {meter.last_error!r}")


def replay(servers: Servers, pattern: Pattern) -> Replay:
    """One subscriber reads the first group from the beginning."""
    count, elapsed_s = asyncio.run(own.read_all(servers, pattern.groups[0]))
    memory = [round(rss_anon_mb(pid), 1) for pid in servers.pids]
    return Replay(count, round(count / elapsed_s, 1), memory)
