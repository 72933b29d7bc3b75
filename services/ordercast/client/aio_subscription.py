"""Subscriptions for asyncio: a task reads ahead, within bounds, and finds another gateway when one is lost."""

import asyncio
import random
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import grpc
import grpc.aio

from ordercast.client import transport
from ordercast.client.aio_silence import attended
from ordercast.client.backoff import wait_s
from ordercast.client.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    OrdercastError,
    OutcomeUnknown,
    Unavailable,
)
from ordercast.client.stream_reader import StreamReader
from ordercast.client.subscription import Reader
from ordercast.client.types import Delivery
from ordercast.v1.gateway_pb2 import SubscribeResponse
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub
from ordercast.v1.sequencer_pb2 import StartAt


class AsyncDelivery(Delivery):
    __slots__ = ()

    async def ack(self) -> None:
        """This message and all before it are processed: the cursor moves behind it, soon."""
        await self._source.ack(self.offset)


P = TypeVar("P")
D = TypeVar("D")


class Gateways(Protocol):
    """What a subscription needs of its connection."""

    def _gateway(self, turn: int) -> str: ...

    def _channel(self, address: str) -> grpc.aio.Channel: ...

    def _avoid(self, address: str) -> None: ...

    async def _call(self, name: str, request: Any) -> Any: ...

    def _see(self, token: bytes) -> None: ...


class DrivenSubscription(Generic[P, D]):
    """What reads for an async iterator of deliveries, whatever they are of."""

    _reader: StreamReader[P, D, Any]

    def __init__(self, gateways: Gateways, timeout: float) -> None:
        self._gateways = gateways
        self._timeout = timeout
        self._entry: Iterator[D] = iter(())
        self._task: asyncio.Task[None] | None = None
        #: Something was received, or the reading is over.
        self._news = asyncio.Event()
        #: Something was used, or there is something to acknowledge.
        self._progress = asyncio.Event()
        self._acks = asyncio.Event()
        self._has_ended = False
        self._has_started = False
        self._trouble: OrdercastError | None = None

    async def __aenter__(self) -> Self:
        if self._task is not None:
            raise FailedPrecondition("a subscription is entered once")
        self._task = asyncio.create_task(self._run(), name="ordercast subscription")
        try:
            async with asyncio.timeout(self._timeout):
                while not self._has_started and not self._task.done():
                    await self._next_news()
        except TimeoutError:
            await self._stop()
            reason = self._trouble.message if self._trouble else "no answer"
            raise DeadlineExceeded(f"could not subscribe within the timeout: {reason}") from None
        except BaseException:
            await self._stop()
            raise
        if not self._has_started:
            self._raise_trouble()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not await self._confirm() and kind is None:
                raise OutcomeUnknown("the cursor's last move was not confirmed: some messages may come again")
        finally:
            await self._stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> D:
        while True:
            for delivery in self._entry:
                return delivery
            deliveries = self._reader.take()
            if deliveries:
                # Now and not when it was read ahead: the consumer gets the first of them in this very call.
                self._gateways._see(self._reader.session)
                self._entry = iter(deliveries)
                self._progress.set()
                continue
            if self._task is None:
                raise FailedPrecondition("the subscription is not open: use `async with`")
            if self._task.done():
                if self._has_ended:
                    raise StopAsyncIteration
                self._raise_trouble()
            await self._next_news()

    async def _ack(self, position: P) -> None:
        self._reader.ack(position)
        self._acks.set()

    # ------------------------------------------------------------------------------------------- reading

    def _raise_trouble(self) -> None:
        raise self._trouble.copy() if self._trouble else Unavailable("the subscription is closed")

    async def _next_news(self) -> None:
        self._news.clear()
        await self._news.wait()

    async def _run(self) -> None:
        """One stream after the other, until the end of the log or an error that repeating does not mend."""
        failures = gateway = 0
        try:
            while True:
                self._trouble = await self._stream(gateway)
                if self._reader.started is not None:
                    failures = 0
                if self._has_ended or not self._trouble.is_retryable:
                    return
                delay = wait_s(failures, self._trouble, random.random())
                failures += 1
                gateway += 1
                await asyncio.sleep(delay)
        finally:
            self._news.set()

    async def _stream(self, gateway: int) -> OrdercastError:
        """Why it ended."""
        silence = self._reader.new_stream()
        address = self._gateways._gateway(gateway)
        try:
            async with self._gateways._channel(address) as channel:
                call = GatewayServiceStub(channel).Subscribe()
                acks = asyncio.create_task(self._write(call), name="ordercast acknowledgements")
                try:
                    await attended(self._read(call), silence)
                finally:
                    call.cancel()
                    acks.cancel()
                    await asyncio.gather(acks, return_exceptions=True)
        except grpc.RpcError as error:
            return transport.to_error(error)
        except OrdercastError as error:
            if silence.is_too_long:
                self._gateways._avoid(address)
            return error
        self._has_ended = self._reader.ends
        return Unavailable("the gateway ended the stream")

    async def _read(self, call: transport.StreamCall) -> None:
        while isinstance(response := await call.read(), SubscribeResponse):
            self._reader.received(response)
            self._has_started = self._has_started or self._reader.started is not None
            self._news.set()
            self._acks.set()
            self._reader.silence.is_listening = False
            while not self._reader.has_room:
                self._progress.clear()
                await self._progress.wait()
            self._reader.silence.is_listening = True

    async def _write(self, call: transport.StreamCall) -> None:
        request = self._reader.start_request()
        while await transport.is_written(call, request):
            if not self._reader.takes_acks:
                await call.done_writing()
                return
            while (ack := self._reader.ack_request()) is None:
                self._acks.clear()
                await self._acks.wait()
            request = ack

    # ------------------------------------------------------------------------------------------- leaving

    async def _confirm(self) -> bool:
        """Whether the cursor is where it was acknowledged to be."""
        self._reader.leave()
        self._progress.set()
        self._acks.set()
        try:
            async with asyncio.timeout(transport.LAST_ACK_S):
                while self._reader.may_confirm and self._task is not None and not self._task.done():
                    await self._next_news()
                if self._reader.unconfirmed is not None:
                    await self._gateways._call("SetCursor", self._reader.confirm_request())
        except (TimeoutError, OrdercastError):
            return False
        return True

    async def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class Subscription(DrivenSubscription[int, AsyncDelivery]):
    """An async iterator of deliveries. Use it with `async with`: leaving waits for the cursor's last move."""

    _reader: Reader[AsyncDelivery]

    def __init__(
        self,
        gateways: Gateways,
        group: str,
        *,
        start: StartAt | None,
        cursor: str | None,
        stop_at_end: bool,
        replica: str | None,
        timeout: float,
    ) -> None:
        super().__init__(gateways, timeout)
        self._reader = Reader(
            group,
            AsyncDelivery,
            source=self,
            start=start,
            cursor=cursor,
            stop_at_end=stop_at_end,
            replica=replica,
        )

    async def ack(self, offset: int) -> None:
        """The message at this offset and all before it are processed."""
        await self._ack(offset)
