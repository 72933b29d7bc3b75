"""Several groups of a domain whose messages say what they come after, read in causal order, for asyncio.

One stream for each group, and in front of them what decides which entry may come out (`causal_merge`). What has to
wait is bounded: a group of which much waits is read no further, until the others are so far.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from ordercast.client.aio_subscription import AsyncDelivery, Gateways, Subscription
from ordercast.client.causal_merge import CausalMerge, Time
from ordercast.client.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    OrdercastError,
    Unavailable,
)
from ordercast.core.causal import CastPlace, CausalCodec
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.level import LEVEL
from ordercast.v1.gateway_pb2 import DescribeGroupResponse
from ordercast.v1.membership_pb2 import Domain
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, StartAt

#: Messages before the first one that is wanted: they tell what its log has behind it.
LOOK_BACK = 32
#: How long something is waited for that replicas may know of, before they are asked; longer each time.
ASK_S, ASK_S_MAX = 0.1, 5.0
DESCRIBE_AGAIN_S = 0.2


class CausalGateways(Gateways, Protocol):
    """What reading several groups needs of its connection."""

    async def describe_group(self, name: str) -> DescribeGroupResponse: ...

    async def domains(self) -> list[Domain]: ...


@dataclass(frozen=True, slots=True)
class Taken:
    """An entry of a log, for the consumer."""

    deliveries: Sequence[AsyncDelivery]
    session: bytes


class Stream(Subscription):
    """Of one group. What comes is taken entry by entry, and not seen before it is released."""

    def __init__(
        self, gateways: Gateways, group: str, *, start: StartAt, wanted: int, news: asyncio.Event, timeout: float
    ) -> None:
        super().__init__(
            gateways, group, start=start, cursor=None, stop_at_end=False, replica=None, timeout=timeout
        )
        #: The first offset that the consumer wants: reading begins a little before.
        self.wanted = wanted
        #: One for all streams.
        self._news = news

    @property
    def offset(self) -> int:
        assert self._reader.next is not None
        return self._reader.next

    def place(self, codec: CausalCodec) -> CastPlace:
        """Where the entry comes from that was taken last."""
        try:
            return codec.place_of(self._reader.protocol)
        except RemoteProtocolError as error:
            raise Internal(f"a damaged entry in the log of {self._reader.group!r}: {error}") from error

    @property
    def size(self) -> int:
        return self._reader.size

    def take(self) -> Taken | None:
        deliveries = self._reader.take()
        if not deliveries:
            return None
        self._progress.set()
        wanted = [delivery for delivery in deliveries if delivery.offset >= self.wanted]
        return Taken(wanted, self._reader.session)

    def raise_if_over(self) -> None:
        if self._task is None or self._task.done():
            self._raise_trouble()


class CausalSubscription:
    """An async iterator of deliveries: each comes after all that its publisher had seen in these groups.

    Use it with `async with`. A message to several of the groups comes once for each. There is no cursor to
    acknowledge to: `offsets` says where another subscription would go on.
    """

    def __init__(
        self, gateways: CausalGateways, groups: Sequence[str], *, starts: Mapping[str, StartAt], timeout: float
    ) -> None:
        self._gateways = gateways
        self._groups = list(groups)
        self._starts = starts
        self._timeout = timeout
        self._streams: dict[str, Stream] = {}
        self._merge: CausalMerge[Taken] = CausalMerge({})
        #: Of the groups' domain.
        self._codec: CausalCodec
        #: Of the entry that was released last, what the consumer has not got yet.
        self._in_hand: deque[AsyncDelivery] = deque()
        self._paused: dict[str, None] = {}
        #: Something was received or told, or a stream is over.
        self._news = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None
        self._ask_s = ASK_S
        self._stack = contextlib.AsyncExitStack()
        self._is_open = False

    async def __aenter__(self) -> Self:
        if self._streams or self._is_open:
            raise FailedPrecondition("a subscription is entered once")
        try:
            async with asyncio.timeout(self._timeout):
                await self._open()
        except TimeoutError:
            await self._stack.aclose()
            raise DeadlineExceeded("could not subscribe to all groups within the timeout") from None
        except BaseException:
            await self._stack.aclose()
            raise
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
        await self._stack.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AsyncDelivery:
        while not self._in_hand:
            if not self._is_open:
                raise FailedPrecondition("the subscription is not open: use `async with`")
            taken = self._merge.next()
            if taken is not None:
                # Now and not when it was received: what the consumer publishes comes behind what it got.
                self._gateways._see(taken.session)
                self._in_hand.extend(taken.deliveries)
            elif not self._pull():
                for stream in self._streams.values():
                    stream.raise_if_over()
                await self._next_news()
        return self._in_hand.popleft()

    # --------------------------------------------------------------------------------------------- looking on

    def pause(self, group: str) -> None:
        """Take nothing more of this group for now. What comes after its messages, in any group, waits too."""
        self._check_read(group)
        self._paused[group] = None

    def resume(self, group: str) -> None:
        self._check_read(group)
        self._paused.pop(group, None)
        self._news.set()

    @property
    def offsets(self) -> dict[str, int]:
        """By group: where a subscription would start that goes on behind what this one has given out."""
        found = {name: max(offset, self._streams[name].wanted) for name, offset in self._merge.offsets.items()}
        for delivery in self._in_hand:
            found[delivery.group] = min(found[delivery.group], delivery.offset)
        return found

    @property
    def waiting(self) -> dict[str, int]:
        """By group: batches of messages that are here, and held up by what has not come of other groups."""
        return self._merge.waiting

    def _check_read(self, group: str) -> None:
        if group not in self._groups:
            raise InvalidArgument(f"{group!r} is not one of the groups of this subscription")

    # ------------------------------------------------------------------------------------------------ opening

    async def _open(self) -> None:
        described = dict(zip(self._groups, await asyncio.gather(*map(self._describe, self._groups)), strict=True))
        self._codec = await self._codec_of(described)
        self._merge = CausalMerge({name: answer.group.id for name, answer in described.items()})
        for name, answer in described.items():
            start, wanted = place_of(self._starts[name], logs_of(answer))
            stream = Stream(
                self._gateways, name, start=start, wanted=wanted, news=self._news, timeout=self._timeout
            )
            self._streams[name] = await self._stack.enter_async_context(stream)
            self._merge.begin(name, stream.offset)

    async def _describe(self, group: str) -> DescribeGroupResponse:
        """With an answer of one replica at least."""
        while True:
            answer = await self._gateways.describe_group(group)
            if logs_of(answer):
                return answer
            await asyncio.sleep(DESCRIBE_AGAIN_S)

    async def _codec_of(self, described: Mapping[str, DescribeGroupResponse]) -> CausalCodec:
        names = sorted({answer.group.domain for answer in described.values()})
        if len(names) > 1:
            raise InvalidArgument(f"groups of several domains: {', '.join(names)}. No order is kept between those")
        found = [domain for domain in await self._gateways.domains() if domain.name == names[0]]
        if not found:
            raise Unavailable(f"the gateway does not know the domain {names[0]!r}")
        return causal_codec_of(found[0])

    # ------------------------------------------------------------------------------------------------ reading

    def _pull(self) -> bool:
        """One entry of each group for which there is room. Whether there was any."""
        is_any = False
        for name, stream in self._streams.items():
            if name in self._paused or not self._merge.has_room(name):
                continue
            taken = stream.take()
            if taken is None:
                continue
            is_any = True
            place = stream.place(self._codec)
            if taken.deliveries:
                offset = taken.deliveries[0].offset
                self._merge.add(name, place, taken, offset=offset, end=stream.offset, size=stream.size)
            else:
                self._merge.pass_over(name, place, end=stream.offset)
        return is_any

    async def _next_news(self) -> None:
        asks = [name for name in self._merge.asks() if name not in self._paused]
        if not asks:
            self._ask_s = ASK_S
        elif self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(), name="ordercast causal subscription")
        self._news.clear()
        await self._news.wait()

    async def _ask(self) -> None:
        """Most often what is waited for is only late, and comes."""
        try:
            await asyncio.sleep(self._ask_s)
            self._ask_s = min(2 * self._ask_s, ASK_S_MAX)
            for name in self._merge.asks():
                if name not in self._paused:
                    # A description that cannot be read says nothing.
                    with contextlib.suppress(OrdercastError, RemoteProtocolError):
                        await self._ask_about(name)
        finally:
            self._news.set()

    async def _ask_about(self, group: str) -> None:
        """What is in the logs, whether they show it or not."""
        for log in logs_of(await self._gateways.describe_group(group)).values():
            there = self._codec.in_log(group, log.protocol)
            if there is not None:
                self._merge.told(group, Time(there.view, dict(there.counts)), log.next_offset)


def causal_codec_of(domain: Domain) -> CausalCodec:
    """What reads what its messages come after, if they say so."""
    # Here, for whoever does not read causally need not wait for it.
    from ordercast.protocols import catalogue

    try:
        protocol = catalogue.named(domain.protocol)
    except catalogue.UnknownProtocol as unknown:
        message = f"the domain {domain.name!r} has a protocol that is not installed here: {unknown}"
        raise FailedPrecondition(message) from None
    if protocol.causal is None:
        instead = "read each group by itself, and merge by those" if protocol.traits.merges else "read one group"
        causal = [name for name, other in catalogue.protocols().items() if other.traits.causal]
        raise FailedPrecondition(
            f"the domain {domain.name!r} is ordered by {domain.protocol}: messages of its groups do not say "
            f"what they come after, so they cannot be read causally. They have order keys: {instead}. Causal "
            f"reading is for domains of the protocol {' or '.join(causal)}"
        )
    untold = protocol.parse(domain.settings, LEVEL).untold_past
    if untold:
        raise FailedPrecondition(f"the domain {domain.name!r} {untold}")
    return protocol.causal


def logs_of(answer: DescribeGroupResponse) -> dict[str, DescribeReplicaResponse]:
    """By node, of those replicas that answer."""
    return {replica.node: replica.log for replica in answer.replicas if not replica.error}


def place_of(start: StartAt, logs: Mapping[str, DescribeReplicaResponse]) -> tuple[StartAt, int]:
    """Where to begin reading, and the first offset that is wanted."""
    if start.WhichOneof("at") == "earliest":
        return start, 0
    first = max(log.first_offset for log in logs.values())
    wanted = start.offset
    if start.WhichOneof("at") == "latest":
        wanted = max(log.next_offset for log in logs.values())
    return StartAt(offset=min(wanted, max(first, wanted - LOOK_BACK))), wanted
