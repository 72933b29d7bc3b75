"""The attacks: what one client can do to a node over its ports, without knowing anything secret.

Each was once seen to stop or to bloat a node.
"""

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio

from ordercast.local.abuse.target import AttemptTally, Target, hold_connections, repeat, repeat_call
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import (
    CreateGroupRequest,
    PublishRequest,
    PublishStreamRequest,
    SetCursorRequest,
    SubscribeRequest,
    SubscribeStart,
)
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub
from ordercast.v1.sequencer_pb2 import StartAt

MIB = 1 << 20
SERVICE = "/ordercast.v1.GatewayService"
#: The layout of session tokens: a mark, and parts with their lengths (`core/session_token.py`).
TOKEN_MARK, TOKEN_PART_BYTES = b"\xc5", 28
#: Of a process, for the system.
LOWEST_PRIORITY = 19


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    #: For people.
    what: str
    play: Callable[[Target], Awaitable[AttemptTally]]
    #: What a node may keep of it. State that the attacker is entitled to (producers, groups) is not free.
    rss_mb_more_max: float = 50.0
    #: How many attempts are a whole attack; a short run makes a tenth of them.
    attempts: int = 1000


def publish_request(target: Target, **fields: object) -> PublishRequest:
    """One message of a producer that nobody has heard of; `fields` are what is wrong with it."""
    usual = {"producer": os.urandom(16), "groups": [target.group], "first_sequence": 1}
    return PublishRequest(**{**usual, "messages": [Message(payload=b"x")], **fields})  # type: ignore[arg-type]


async def huge_tokens(target: Target) -> AttemptTally:
    part = TOKEN_PART_BYTES.to_bytes(2, "big") + bytes(TOKEN_PART_BYTES)
    tokens = itertools.cycle(TOKEN_MARK + part * (size // len(part)) for size in (2 * MIB, 48 << 10))
    return await repeat(
        target, lambda stub: stub.Publish(publish_request(target, session=next(tokens))), at_once=4
    )


async def compressed_bombs(target: Target) -> AttemptTally:
    request = publish_request(target, messages=[Message(payload=bytes(30 * MIB))])
    return await repeat(target, lambda stub: stub.Publish(request), at_once=3, compression=grpc.Compression.Gzip)


async def refused_publishes(target: Target) -> AttemptTally:
    request = publish_request(target, messages=[Message(payload=bytes(MIB + MIB // 10))])
    return await repeat(target, lambda stub: stub.Publish(request), at_once=4)


async def long_open_tokens(target: Target) -> AttemptTally:
    token = bytes(MIB // 2)
    return await repeat(
        target, lambda stub: stub.Publish(publish_request(target, messages=[], open_token=token + os.urandom(16)))
    )


async def new_producers(target: Target) -> AttemptTally:
    """A stream that takes no notice of credits, and never uses a producer twice."""
    per_frame = 64

    async def flood(stub: GatewayServiceStub) -> None:
        call = stub.PublishStream()
        await call.write(
            PublishStreamRequest(requests=[publish_request(target, unordered=True) for _ in range(per_frame)])
        )
        await call.done_writing()
        async for _ in call:
            pass

    return await repeat(target, flood)


async def unknown_groups(target: Target) -> AttemptTally:
    numbers = itertools.count()

    def names() -> Iterator[list[str]]:
        for number in numbers:
            yield [f"unknown-{number}-{place}" for place in range(32)]
            if number % 100 == 0:
                yield [f"n{place}" for place in range(1_000_000)]

    lists = names()
    return await repeat(target, lambda stub: stub.Publish(publish_request(target, groups=next(lists))))


async def malformed_requests(target: Target) -> AttemptTally:
    """Bytes that are no message, to every method that takes one request."""
    methods = itertools.cycle(
        ("Publish", "CreateGroup", "SetCursor", "DescribeGroup", "ChangeReplicas", "ListCursors")
    )
    async with grpc.aio.insecure_channel(target.clients) as channel:

        def call() -> Awaitable[object]:
            method: Any = channel.unary_unary(f"{SERVICE}/{next(methods)}")
            return method(os.urandom(1 + os.urandom(1)[0]))  # type: ignore[no-any-return]

        return await repeat_call(target, call, at_once=8)


async def cancelled_subscriptions(target: Target) -> AttemptTally:
    start = SubscribeStart(group=target.group, start=StartAt(earliest=True))

    async def subscribe_and_leave(stub: GatewayServiceStub) -> None:
        call = stub.Subscribe()
        await call.write(SubscribeRequest(start=start))
        await call.read()
        call.cancel()

    return await repeat(target, subscribe_and_leave, at_once=32)


async def all_cursors(target: Target) -> AttemptTally:
    numbers = itertools.count()

    def set_cursor(stub: GatewayServiceStub) -> Awaitable[object]:
        name = f"hoarded-{next(numbers)}"
        return stub.SetCursor(SetCursorRequest(group=target.group, name=name, start=StartAt(earliest=True)))

    return await repeat(target, set_cursor, at_once=64)


async def many_groups_at_once(target: Target) -> AttemptTally:
    numbers = itertools.count()
    return await repeat(
        target, lambda stub: stub.CreateGroup(CreateGroupRequest(name=f"heap-{next(numbers)}")), at_once=256
    )


async def idle_connections(target: Target) -> AttemptTally:
    return await hold_connections(target, target.clients, count=4096)


async def strangers_at_the_frames_port(target: Target) -> AttemptTally:
    return await hold_connections(target, target.frames, count=512)


async def slow_readers_of_metrics(target: Target) -> AttemptTally:
    return await hold_connections(target, target.metrics, count=256)


ATTACKS = (
    Attack("huge-tokens", "session tokens of 2 MiB", huge_tokens, attempts=200),
    Attack("compressed-bombs", "29 KiB that inflate to 30 MiB", compressed_bombs, attempts=100),
    Attack("refused-publishes", "payloads that are just too long", refused_publishes, attempts=10_000),
    Attack("long-open-tokens", "open tokens of half a MiB", long_open_tokens, attempts=300),
    Attack("new-producers", "a producer id for each message", new_producers, rss_mb_more_max=150.0, attempts=2000),
    Attack("unknown-groups", "lists of groups that do not exist", unknown_groups),
    Attack("malformed-requests", "bytes that are no request", malformed_requests, attempts=10_000),
    Attack("cancelled-subscriptions", "subscribers that leave at once", cancelled_subscriptions),
    Attack("idle-connections", "4,096 connections that say nothing", idle_connections),
    Attack("frames-strangers", "512 connections without a ticket", strangers_at_the_frames_port),
    Attack("metrics-readers", "256 connections to the port of metrics", slow_readers_of_metrics),
    Attack("all-cursors", "5,000 cursors of one client", all_cursors, attempts=5000),
    Attack("many-groups", "groups created 256 at once", many_groups_at_once, rss_mb_more_max=150.0, attempts=1030),
)


def play(name: str, target: Target) -> AttemptTally:
    """In a process of its own, which runs when nobody else wants to.

    An attacker has a machine of its own. Here it shares one with the nodes, and what it takes from them by being
    busy itself is not what the attack does to them.
    """
    os.nice(LOWEST_PRIORITY)
    attack = next(attack for attack in ATTACKS if attack.name == name)

    async def whole() -> AttemptTally:
        return await attack.play(target)

    return asyncio.run(whole())
