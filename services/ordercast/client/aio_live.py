"""Live delivery for asyncio: one stream from one replica, which is not replaced when it ends."""

import asyncio
import contextlib
import random
from collections import deque
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio

from ordercast.client import transport
from ordercast.client.aio_silence import attended
from ordercast.client.aio_subscription import Gateways
from ordercast.client.backoff import wait_s
from ordercast.client.errors import DeadlineExceeded, FailedPrecondition, OrdercastError, Unavailable
from ordercast.client.live import LiveDelivery, LiveReader
from ordercast.v1.gateway_pb2 import SubscribeLiveResponse
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub


class LiveSubscription:
    """An async iterator of what is delivered from when `async with` is entered.

    If the replica or the gateway fails, it ends with `Unavailable`: another replica delivers in another causal
    order, and what comes in between is missing. Subscribe again to go on; the log has everything.
    """

    def __init__(self, gateways: Gateways, group: str, *, replica: str | None, timeout: float) -> None:
        self._gateways = gateways
        self._wanted_replica = replica or ""
        self._reader = LiveReader(group)
        self._timeout = timeout
        self._stack = contextlib.AsyncExitStack()
        self._call: Any = None
        self._in_hand: deque[LiveDelivery] = deque()
        self._address = ""
        #: The node whose deliveries these are.
        self.replica = ""

    async def __aenter__(self) -> Self:
        if self._call is not None:
            raise FailedPrecondition("a subscription is entered once")
        trouble: OrdercastError = Unavailable("no answer")
        attempt = 0
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    try:
                        await self._open(attempt)
                        return self
                    except OrdercastError as error:
                        if not isinstance(error, Unavailable):
                            raise
                        trouble = error
                    await asyncio.sleep(wait_s(attempt, trouble, random.random()))
                    attempt += 1
        except TimeoutError:
            raise DeadlineExceeded(f"could not subscribe within the timeout: {trouble.message}") from None

    async def _open(self, gateway: int) -> None:
        address = self._gateways._gateway(gateway)
        async with contextlib.AsyncExitStack() as stack:
            channel = await stack.enter_async_context(self._gateways._channel(address))
            self._call = GatewayServiceStub(channel).SubscribeLive(self._reader.request(self._wanted_replica))
            stack.callback(self._call.cancel)
            self._address = address
            self.replica = (await self._read()).replica
            self._stack = stack.pop_all()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LiveDelivery:
        if self._call is None:
            raise FailedPrecondition("the subscription is not open: use `async with`")
        while not self._in_hand:
            await self._read()
        return self._in_hand.popleft()

    async def _read(self) -> SubscribeLiveResponse:
        """The next that is more than a sign of life; what it brings is in hand then."""
        while True:
            try:
                response = await attended(self._call.read(), self._reader.silence)
            except grpc.RpcError as error:
                raise transport.to_error(error) from None
            except Unavailable:
                self._gateways._avoid(self._address)
                raise
            if not isinstance(response, SubscribeLiveResponse):
                raise Unavailable("the gateway ended the stream")
            deliveries = self._reader.received(response)
            if deliveries is not None:
                self._in_hand.extend(deliveries)
                self._gateways._see(response.session)
                return response
