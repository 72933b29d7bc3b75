"""Clients without an SDK, so that a few of them can offer more than a cluster can order.

They run in a process of their own. The messages of a request are prepared once, as bytes, and only its numbers are
put before them each time. There are two kinds:

* **in a closed loop**: a producer keeps so many messages in flight, as many as its credits allow at most. If it is
  refused all the same, it waits as long as it was told, and repeats.
* **in an open loop**: requests come at a rate, whatever becomes of those before. Each is of a producer that has
  nothing else under way, so that none waits for another; there are as many producers as that takes. What is
  refused is not repeated: there is more where it came from. If the transport does not take more, since the gateway
  does not read, then what was due by that time still counts as offered.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PublishReply,
    PublishRequest,
    PublishStreamResponse,
)

PUBLISH_STREAM = "/ordercast.v1.GatewayService/PublishStream"
#: Messages in a request, which is also a frame.
BATCH = 256
#: Streams to each gateway, in an open loop.
STREAMS = 8
#: How often an open loop looks what is due.
LOOK_S = 0.005
#: When it is over, a write may still wait for the transport: so long.
END_S_MAX = 1.0

#: Tags of fields: PublishStreamRequest.requests, PublishRequest.first_sequence and .messages.
REQUEST_TAG, FIRST_SEQUENCE_TAG, MESSAGE_TAG = b"\x0a", b"\x20", b"\x2a"


@dataclass(frozen=True, slots=True)
class Offer:
    gateways: tuple[str, ...]
    groups: tuple[str, ...]
    #: Of a payload, in bytes.
    size: int
    #: By the wall clock, for it is the same in other processes: what happens in between is counted.
    counted_from: float
    counted_until: float

    @property
    def seconds(self) -> float:
        return self.counted_until - self.counted_from


@dataclass(slots=True)
class FloodOutcome:
    """All counts are of messages."""

    offered: int = 0
    acknowledged: int = 0
    refused: int = 0
    refused_with_retry_info: int = 0
    #: Of requests with a receipt, from when they were handed to the transport.
    latencies: list[float] = field(default_factory=list)


@dataclass(slots=True)
class FloodProducer:
    #: The request without its first sequence and its messages.
    head: bytes
    next_sequence: int = 1
    #: When each request without an answer was sent, by its first sequence.
    sent: dict[int, float] = field(default_factory=dict)


class FloodStream:
    def __init__(self, address: str, offer: Offer, outcome: FloodOutcome) -> None:
        self.address = address
        self.offer = offer
        self.outcome = outcome
        message = Message(payload=os.urandom(offer.size)).SerializeToString()
        self.messages = delimited(MESSAGE_TAG, message) * BATCH
        self.producers: dict[bytes, FloodProducer] = {}
        #: Those of which nothing is under way.
        self.free: list[FloodProducer] = []
        self.credits = 0
        self.resume_at = 0.0
        self.answered = asyncio.Event()

    @property
    def is_counted(self) -> bool:
        return self.offer.counted_from <= time.time() < self.offer.counted_until

    def producer(self) -> FloodProducer:
        if self.free:
            return self.free.pop()
        id_ = os.urandom(16)
        made = FloodProducer(PublishRequest(producer=id_, groups=self.offer.groups).SerializeToString())
        self.producers[id_] = made
        return made

    def frame(self, producer: FloodProducer) -> bytes:
        """The producer's next request. On the wire, the parts of a message make a message when they are joined."""
        first = producer.next_sequence
        producer.next_sequence += BATCH
        producer.sent[first] = time.perf_counter()
        request = producer.head + FIRST_SEQUENCE_TAG + varint(first) + self.messages
        return delimited(REQUEST_TAG, request)

    async def closed_loop(self, in_flight: int) -> None:
        async with self._connected() as call:
            producer = self.producer()
            while time.time() < self.offer.counted_until:
                self.answered.clear()
                wait_s = self.resume_at - time.perf_counter()
                room = min(in_flight, self.credits) - len(producer.sent) * BATCH
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                elif room >= BATCH or not producer.sent:
                    await call.write(self.frame(producer))
                else:
                    await self.answered.wait()

    async def open_loop(self, messages_per_second: float) -> None:
        async with self._connected() as call:
            begun = time.perf_counter()
            sent = 0
            while time.time() < self.offer.counted_until:
                while sent + BATCH <= (time.perf_counter() - begun) * messages_per_second:
                    sent += BATCH
                    await call.write(self.frame(self.producer()))
                await asyncio.sleep(LOOK_S)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        """A connection of its own for each stream, as clients have."""
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(self.address, options=options) as channel:
            parse = PublishStreamResponse.FromString
            call: Any = channel.stream_stream(PUBLISH_STREAM, response_deserializer=parse)()
            self.credits = (await call.read()).credits
            reader = asyncio.create_task(self._read(call))
            try:
                yield call
            finally:
                call.cancel()
                (ended,) = await asyncio.gather(reader, return_exceptions=True)
                if isinstance(ended, Exception):
                    raise ended

    async def _read(self, call: Any) -> None:
        while True:
            for reply in (await call.read()).replies:
                self._on_reply(reply)
            self.answered.set()

    def _on_reply(self, reply: PublishReply) -> None:
        self.credits = reply.credits
        producer = self.producers[reply.producer]
        if reply.status == PUBLISH_STATUS_OK:
            self._on_receipt(producer, reply)
        else:
            self._on_refusal(producer, reply)
        if not producer.sent:
            self.free.append(producer)

    def _on_receipt(self, producer: FloodProducer, reply: PublishReply) -> None:
        """It may be about several requests that were delivered together."""
        now = time.perf_counter()
        begun = [producer.sent.pop(first) for first in range(*span_of(reply))]
        if self.is_counted:
            self.outcome.acknowledged += reply.count
            self.outcome.latencies += [now - at for at in begun]

    def _on_refusal(self, producer: FloodProducer, reply: PublishReply) -> None:
        """Nothing of it is stored, nor of what was sent behind it: that is refused as well."""
        producer.sent.pop(reply.first_sequence)
        producer.next_sequence = min(producer.next_sequence, reply.first_sequence)
        if reply.status == PUBLISH_STATUS_RESOURCE_EXHAUSTED:
            self.resume_at = time.perf_counter() + reply.retry_after_ms / 1000
            if self.is_counted:
                self.outcome.refused += reply.count
                self.outcome.refused_with_retry_info += reply.count if reply.retry_after_ms else 0


def span_of(reply: PublishReply) -> tuple[int, int, int]:
    return reply.first_sequence, reply.first_sequence + reply.count, BATCH


def varint(number: int) -> bytes:
    """
    >>> varint(300)
    b'\\xac\\x02'
    """
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def delimited(tag: bytes, content: bytes) -> bytes:
    return tag + varint(len(content)) + content


def keep_in_flight(offer: Offer, in_flight: int) -> FloodOutcome:
    """One producer at each gateway, in a closed loop."""
    outcome = FloodOutcome()
    streams = [FloodStream(address, offer, outcome) for address in offer.gateways]
    asyncio.run(_run(offer, [stream.closed_loop(in_flight) for stream in streams]))
    outcome.offered = outcome.acknowledged + outcome.refused
    return outcome


def offer_at_rate(offer: Offer, messages_per_second: float) -> FloodOutcome:
    """Many producers at each gateway, in an open loop."""
    outcome = FloodOutcome()
    streams = [FloodStream(address, offer, outcome) for address in offer.gateways for _ in range(STREAMS)]
    asyncio.run(_run(offer, [stream.open_loop(messages_per_second / len(streams)) for stream in streams]))
    outcome.offered = round(messages_per_second * offer.seconds)
    return outcome


async def _run(offer: Offer, loops: Sequence[Coroutine[Any, Any, None]]) -> None:
    tasks = [asyncio.create_task(loop) for loop in loops]
    await asyncio.wait(tasks, timeout=max(offer.counted_until - time.time(), 0.0) + END_S_MAX)
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended
