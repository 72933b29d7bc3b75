"""Live delivery for threads: see `aio_live`."""

import contextlib
import random
import time
from collections import deque
from types import TracebackType
from typing import Any, Self

import grpc

from ordercast.client import transport
from ordercast.client.backoff import wait_s
from ordercast.client.call_threads import CallThreads
from ordercast.client.errors import DeadlineExceeded, FailedPrecondition, Unavailable
from ordercast.client.live import LiveDelivery, LiveReader
from ordercast.client.sync_silence import SilenceWatch
from ordercast.client.sync_subscription import SyncGateways
from ordercast.v1.gateway_pb2 import SubscribeLiveResponse
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub


class SyncLiveSubscription:
    """An iterator of what is delivered from when `with` is entered. See `LiveSubscription`."""

    def __init__(self, gateways: SyncGateways, group: str, *, replica: str | None, timeout: float) -> None:
        self._gateways = gateways
        self._wanted_replica = replica or ""
        self._reader = LiveReader(group)
        self._timeout = timeout
        self._stack = contextlib.ExitStack()
        self._call: Any = None
        self._in_hand: deque[LiveDelivery] = deque()
        self._address = ""
        #: The node whose deliveries these are.
        self.replica = ""

    def __enter__(self) -> Self:
        if self._call is not None:
            raise FailedPrecondition("a subscription is entered once")
        until = time.monotonic() + self._timeout
        attempt = 0
        while True:
            try:
                self._open(attempt)
                return self
            except Unavailable as trouble:
                wait = wait_s(attempt, trouble, random.random())
                if time.monotonic() + wait >= until:
                    message = f"could not subscribe within the timeout: {trouble.message}"
                    raise DeadlineExceeded(message) from None
            attempt += 1
            time.sleep(wait)

    def _open(self, gateway: int) -> None:
        address = self._gateways._gateway(gateway)
        with contextlib.ExitStack() as stack:
            threads = CallThreads()
            stack.callback(threads.join)
            channel = stack.enter_context(self._gateways._channel(address))
            self._call = GatewayServiceStub(channel).SubscribeLive(self._reader.request(self._wanted_replica))
            threads.watch(self._call)
            stack.callback(self._call.cancel)
            stack.enter_context(SilenceWatch(self._call, self._reader.silence))
            self._address = address
            self.replica = self._read().replica
            self._stack = stack.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> LiveDelivery:
        if self._call is None:
            raise FailedPrecondition("the subscription is not open: use `with`")
        while not self._in_hand:
            self._read()
        return self._in_hand.popleft()

    def _read(self) -> SubscribeLiveResponse:
        """The next that is more than a sign of life; what it brings is in hand then."""
        silence = self._reader.silence
        silence.is_listening = True
        try:
            while True:
                response: SubscribeLiveResponse = next(self._call)
                deliveries = self._reader.received(response)
                if deliveries is not None:
                    self._in_hand.extend(deliveries)
                    self._gateways._see(response.session)
                    return response
        except grpc.RpcError as error:
            if silence.is_too_long:
                self._gateways._avoid(self._address)
                raise Unavailable(transport.SILENT) from None
            raise transport.to_error(error) from None
        except StopIteration:
            raise Unavailable("the gateway ended the stream") from None
        finally:
            silence.is_listening = False
