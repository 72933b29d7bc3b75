"""Subscribe: one group's log from some place on, and acknowledgements that move a cursor."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any, Self
from typing import Protocol as Interface

import grpc

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.protocol import Early, Protocol
from ordercast.core.silence import ALIVE_MS, ALIVE_S
from ordercast.gateway.budgets import SHARE, Budgets
from ordercast.gateway.cursors import Cursors, check_cursor_name
from ordercast.gateway.domains import protocol_of_domain
from ordercast.gateway.freshness import Freshness
from ordercast.gateway.reading import Reading
from ordercast.gateway.translation import Translation
from ordercast.protocols.catalogue import protocols
from ordercast.runtime.process.node import Node
from ordercast.runtime.transport.pauses import with_signs_of_life
from ordercast.runtime.transport.status import Refused
from ordercast.v1.gateway_pb2 import (
    Acked,
    Alive,
    Deliveries,
    SubscribeLiveRequest,
    SubscribeLiveResponse,
    SubscribeRequest,
    SubscribeResponse,
    SubscribeStart,
    SubscribeStarted,
)
from ordercast.v1.membership_pb2 import Cursor, Group
from ordercast.v1.sequencer_pb2 import StartAt

#: Subscriptions are counted: one that never begins must not take another one's place.
START_S_MAX = 10.0


class MergedStreams(Interface):
    """See merging.py."""

    def is_merged(self, start: SubscribeStart) -> bool: ...

    async def stream(self, start: SubscribeStart, context: Any, voice: "Voice") -> None: ...


class Subscribing:
    def __init__(
        self,
        node: Node,
        intake: Translation,
        reading: Reading,
        cursors: Cursors,
        freshness: Freshness,
        budgets: Budgets,
    ) -> None:
        self.budgets = budgets
        self.node = node
        self.intake = intake
        self.freshness = freshness
        self.reading = reading
        self.cursors = cursors
        self.streams = 0
        #: Who looks after a stream that merges several groups.
        self.merged: MergedStreams | None = None

    async def stream(self, context: Any) -> None:
        with self._counted(context):
            start = await self._first(context)
            async with Voice(context, is_alive=start.alive) as voice:
                if self.merged is not None and self.merged.is_merged(start):
                    await self.merged.stream(start, context, voice)
                    return
                group = await self.group(start.group)
                offset = await self._place(start, group, context)
                await Subscription(self, start, group, offset, context, voice).run()

    async def live(
        self, request: SubscribeLiveRequest, context: Any
    ) -> AsyncGenerator[SubscribeLiveResponse, None]:
        """What one replica delivers from now on, if the group's protocol has such a thing."""
        with self._counted(context):
            reading = self._live(request)
            if request.alive:
                reading = with_signs_of_life(reading, SubscribeLiveResponse(alive_ms=ALIVE_MS))
            async with contextlib.aclosing(reading) as responses:
                async for response in responses:
                    yield response

    async def _live(self, request: SubscribeLiveRequest) -> AsyncGenerator[SubscribeLiveResponse, None]:
        group = await self.group(request.group)
        protocol = protocol_of_domain(self.node, group.domain)
        if protocol.traits.early != Early.LIVE:
            live = [name for name, other in protocols().items() if other.traits.early == Early.LIVE]
            message = (
                f"{group.name!r} has no live delivery: its domain {group.domain!r} is ordered by "
                f"{protocol.name}, where nothing is delivered before it has its place in the log. Subscribe to "
                f"the log; live delivery is for domains of the protocol {' or '.join(live)}"
            )
            raise Refused(grpc.StatusCode.FAILED_PRECONDITION, message, "NO_LIVE_DELIVERY")
        self._check_replica(request.replica, group)
        replica = request.replica or self.reading.choose(group)
        async with contextlib.aclosing(self.reading.read_live(group, replica)) as deliveries:
            async for entries in deliveries:
                response = SubscribeLiveResponse(entries=entries, group_id=group.id, replica=replica)
                if entries:
                    seen = seen_in(entries, group, protocol)
                    response.session = self.intake.sign(group.domain, seen)
                yield response

    @contextlib.contextmanager
    def _counted(self, context: Any) -> Iterator[None]:
        streams_max = self.node.settings.limits.subscriptions_max
        if self.streams >= streams_max:
            raise Refused(
                grpc.StatusCode.RESOURCE_EXHAUSTED, "too many subscriptions", "TOO_MANY_STREAMS", retry_after_s=1.0
            )
        with self.budgets.hold(context, "subscriptions", streams_max * SHARE):
            self.streams += 1
            try:
                yield
            finally:
                self.streams -= 1

    async def _first(self, context: Any) -> SubscribeStart:
        try:
            async with asyncio.timeout(START_S_MAX):
                first: SubscribeRequest | Any = await context.read()
        except TimeoutError:
            message = f"no start within {START_S_MAX} seconds"
            raise Refused(grpc.StatusCode.DEADLINE_EXCEEDED, message, "NO_START") from None
        if first is grpc.aio.EOF or first.WhichOneof("step") != "start":
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, "a subscription begins with a start", "WRONG_ORDER")
        start: SubscribeStart = first.start
        return start

    async def group(self, name: str) -> Group:
        await self.freshness.settle([name])
        group = self.node.directory.group_by_name.get(name)
        if group is None:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"unknown group {name!r}", "UNKNOWN_GROUP")
        return self.node.directory.described(group)

    async def _place(self, start: SubscribeStart, group: Group, context: Any) -> int:
        """A cursor's place; or where the caller says, and then the cursor begins to exist there."""
        self._check_replica(start.replica, group)
        if not start.cursor:
            return await self.reading.start_offset(group, start.start)
        check_cursor_name(start.cursor)
        try:
            offset = (await self.cursors.read(group.name, start.cursor))[0].offset
        except Refused as refused:
            if refused.code != grpc.StatusCode.NOT_FOUND or start.start.WhichOneof("at") is None:
                raise
            offset = await self.reading.start_offset(group, start.start)
            self.budgets.set_cursor(context, group.name, start.cursor)
            await self.cursors.move(Cursor(group=group.name, name=start.cursor, offset=offset))
            return offset
        return await self.reading.start_offset(group, StartAt(offset=offset))

    def _check_replica(self, name: str, group: Group) -> None:
        if name and name not in group.replicas:
            raise Refused(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"{name!r} has no replica of {group.name!r}: {', '.join(group.replicas)} have",
                "NO_REPLICA",
            )


class Voice:
    """Writes to one stream, one response at a time, and gives signs of life if they are wanted.

    A client that does not read holds up at most one sign of life: it waits for its turn like everything else.
    """

    def __init__(self, context: Any, *, is_alive: bool) -> None:
        self._context = context
        self._is_alive = is_alive
        self._lock = asyncio.Lock()
        self._spoke_at = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._is_alive:
            self._task = asyncio.create_task(self._stay_alive())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def say(self, response: SubscribeResponse) -> None:
        async with self._lock:
            await self._context.write(response)
            self._spoke_at = asyncio.get_running_loop().time()

    async def _stay_alive(self) -> None:
        """At once, for the start may take a while, and then whenever nothing else was said for long."""
        loop = asyncio.get_running_loop()
        sign = SubscribeResponse(alive=Alive(alive_ms=ALIVE_MS))
        await self.say(sign)
        while True:
            await asyncio.sleep(max(self._spoke_at + ALIVE_S - loop.time(), 0.0))
            if loop.time() >= self._spoke_at + ALIVE_S:
                await self.say(sign)


class Subscription:
    def __init__(
        self,
        subscribing: Subscribing,
        start: SubscribeStart,
        group: Group,
        offset: int,
        context: Any,
        voice: Voice,
    ) -> None:
        self.subscribing = subscribing
        self.start = start
        self.group = group
        self.offset = offset
        self.context = context
        self.voice = voice
        #: The latest place that the client acknowledged, and the latest that it was told to be durable.
        self._acked: int | None = None
        self._confirmed: int | None = None
        self._ack_news = asyncio.Event()
        #: The client has sent its last acknowledgement.
        self._is_read = False

    async def run(self) -> None:
        started = SubscribeStarted(offset=self.offset, group_id=self.group.id)
        await self.voice.say(SubscribeResponse(started=started))
        delivering, *others = [
            asyncio.create_task(work) for work in (self._deliver(), self._take_acks(), self._move_cursor())
        ]
        # With a cursor, what was acknowledged on the way to the log's end is still confirmed.
        awaited = {delivering, *others} if self.start.cursor else {delivering}
        try:
            pending = {delivering, *others}
            while awaited & pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in (delivering, *others):
                task.cancel()
            await asyncio.gather(delivering, *others, return_exceptions=True)

    async def _deliver(self) -> None:
        reading = self.subscribing.reading.read(
            self.group, self.offset, stop_at_end=self.start.stop_at_end, replica=self.start.replica
        )
        protocol = protocol_of_domain(self.subscribing.node, self.group.domain)
        async with contextlib.aclosing(reading) as responses:
            async for response in responses:
                if response.entries:
                    before = self.offset
                    # Before it is written: the acknowledgement may be here before the write returns.
                    self.offset = max(self.offset, response.next_offset)
                    seen = seen_in(response.entries, self.group, protocol, response.besides)
                    session = self.subscribing.intake.sign(self.group.domain, seen)
                    deliveries = Deliveries(
                        entries=response.entries, session=session, stored_ms=response.stored_ms
                    )
                    await self.voice.say(SubscribeResponse(deliveries=deliveries))
                    self.subscribing.intake.counts.delivered += max(response.next_offset - before, 0)

    async def _take_acks(self) -> None:
        try:
            while True:
                frame: SubscribeRequest | Any = await self.context.read()
                if frame is grpc.aio.EOF:
                    return
                self._take(frame)
        finally:
            self._is_read = True
            self._ack_news.set()

    def _take(self, frame: SubscribeRequest) -> None:
        if frame.WhichOneof("step") != "ack":
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, "after the start come acknowledgements", "WRONG_ORDER")
        if not self.start.cursor:
            raise Refused(grpc.StatusCode.FAILED_PRECONDITION, "a subscription without a cursor", "NO_CURSOR")
        if frame.ack.offset > self.offset:
            raise Refused(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"offset {frame.ack.offset} was not delivered yet",
                "ACK_BEYOND_DELIVERED",
            )
        self._acked = frame.ack.offset
        self._ack_news.set()

    async def _move_cursor(self) -> None:
        """One move at a time; what is acknowledged meanwhile is one move again."""
        while not (self._is_read and self._acked == self._confirmed):
            await self._ack_news.wait()
            self._ack_news.clear()
            offset = self._acked
            if offset is not None and offset != self._confirmed:
                cursor = Cursor(group=self.group.name, name=self.start.cursor, offset=offset)
                await self.subscribing.cursors.move(cursor)
                self._confirmed = offset
                await self.voice.say(SubscribeResponse(acked=Acked(offset=offset)))


def seen_in(entries: Sequence[bytes], group: Group, protocol: Protocol, besides: bytes = b"") -> bytes:
    """What whoever reads these serialised entries has seen, as the protocol's machine takes it.

    Nothing that is damaged is signed: it would count as what somebody has seen, everywhere and for good.
    """
    try:
        return protocol.seen.of_entries(group.cell or group.id, entries, besides)
    except RemoteProtocolError:
        message = f"a damaged entry in the log of {group.name!r}"
        raise Refused(grpc.StatusCode.DATA_LOSS, message, "DAMAGED") from None
