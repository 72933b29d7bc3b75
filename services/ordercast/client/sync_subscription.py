"""Subscriptions for threads: one reads ahead, within bounds, and finds another gateway when one is lost."""

import random
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import grpc

from ordercast.client import transport
from ordercast.client.backoff import wait_s
from ordercast.client.call_threads import JOIN_S, CallThreads
from ordercast.client.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    OrdercastError,
    OutcomeUnknown,
    Unavailable,
)
from ordercast.client.stream_reader import StreamReader
from ordercast.client.subscription import Reader
from ordercast.client.sync_silence import SilenceWatch
from ordercast.client.types import Delivery
from ordercast.v1.gateway_pb2 import SubscribeRequest
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub
from ordercast.v1.sequencer_pb2 import StartAt


class SyncDelivery(Delivery):
    __slots__ = ()

    def ack(self) -> None:
        """This message and all before it are processed: the cursor moves behind it, soon."""
        self._source.ack(self.offset)


P = TypeVar("P")
D = TypeVar("D")


class SyncGateways(Protocol):
    """What a subscription needs of its connection."""

    def _gateway(self, turn: int) -> str: ...

    def _channel(self, address: str) -> grpc.Channel: ...

    def _avoid(self, address: str) -> None: ...

    def _call(self, name: str, request: Any) -> Any: ...

    def _see(self, token: bytes) -> None: ...


class DrivenSyncSubscription(Generic[P, D]):
    """What reads for an iterator of deliveries, whatever they are of."""

    _reader: StreamReader[P, D, Any]

    def __init__(self, gateways: SyncGateways, timeout: float) -> None:
        self._gateways = gateways
        self._timeout = timeout
        self._entry: Iterator[D] = iter(())
        #: Guards the reader and everything below.
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stream_call: Any = None
        self._call_threads = CallThreads()
        #: Of the stream in use; a writer of an earlier one ends.
        self._number = 0
        self._has_started = self._has_ended = self._is_over = self._is_stopping = False
        self._trouble: OrdercastError | None = None

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise FailedPrecondition("a subscription is entered once")
        self._thread = threading.Thread(target=self._run, name="ordercast subscription", daemon=True)
        self._thread.start()
        try:
            is_told = self._wait(lambda: self._has_started or self._is_over, self._timeout)
            if not is_told:
                reason = self._trouble.message if self._trouble else "no answer"
                raise DeadlineExceeded(f"could not subscribe within the timeout: {reason}")
            if not self._has_started:
                self._raise_trouble()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self._confirm() and kind is None:
                raise OutcomeUnknown("the cursor's last move was not confirmed: some messages may come again")
        finally:
            self._stop()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> D:
        while True:
            for delivery in self._entry:
                return delivery
            with self._changed:
                deliveries = self._reader.take()
                if deliveries:
                    # Now and not when it was read ahead: the consumer gets the first of them in this very call.
                    # The connection's lock is taken within ours, never the other way round.
                    self._gateways._see(self._reader.session)
                    self._entry = iter(deliveries)
                    self._changed.notify_all()
                    continue
                if self._thread is None:
                    raise FailedPrecondition("the subscription is not open: use `with`")
                if self._is_over:
                    if self._has_ended:
                        raise StopIteration
                    self._raise_trouble()
                self._changed.wait()

    def _ack(self, position: P) -> None:
        with self._changed:
            self._reader.ack(position)
            self._changed.notify_all()

    def _raise_trouble(self) -> None:
        raise self._trouble.copy() if self._trouble else Unavailable("the subscription is closed")

    def _wait(self, is_so: Callable[[], bool], timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(is_so, timeout)

    # ------------------------------------------------------------------------------------------- reading

    def _run(self) -> None:
        """One stream after the other, until the end of the log or an error that repeating does not mend."""
        failures = gateway = 0
        while True:
            trouble = self._stream(gateway)
            with self._changed:
                self._trouble = trouble
                self._stream_call = None
                self._changed.notify_all()
            self._call_threads.join()
            with self._changed:
                if self._reader.started is not None:
                    failures = 0
                delay = wait_s(failures, trouble, random.random())
                self._is_over = self._has_ended or self._is_stopping or not trouble.is_retryable
                self._changed.notify_all()
                if not self._is_over:
                    self._is_over = self._changed.wait_for(lambda: self._is_stopping, delay)
                if self._is_over:
                    return
            failures += 1
            gateway += 1

    def _stream(self, gateway: int) -> OrdercastError:
        """Why it ended."""
        silence = self._reader.new_stream()
        address = self._gateways._gateway(gateway)
        try:
            with self._gateways._channel(address) as channel:
                with self._changed:
                    self._number += 1
                    call = GatewayServiceStub(channel).Subscribe(self._requests(self._number))
                    self._stream_call = call
                    self._call_threads.watch(call)
                    if self._is_stopping:
                        call.cancel()
                try:
                    with SilenceWatch(call, silence):
                        self._read(call)
                finally:
                    call.cancel()
        except grpc.RpcError as error:
            if silence.is_too_long:
                self._gateways._avoid(address)
                return Unavailable(transport.SILENT)
            return transport.to_error(error)
        except OrdercastError as error:
            return error
        self._has_ended = self._reader.ends
        return Unavailable("the gateway ended the stream")

    def _read(self, call: Any) -> None:
        for response in call:
            with self._changed:
                self._reader.received(response)
                self._has_started = self._has_started or self._reader.started is not None
                self._changed.notify_all()
                self._reader.silence.is_listening = False
                self._changed.wait_for(lambda: self._reader.has_room or self._is_stopping)
                self._reader.silence.is_listening = True

    def _requests(self, number: int) -> Iterator[SubscribeRequest]:
        """Taken by gRPC: the start, then acknowledgements."""
        self._call_threads.note()
        with self._changed:
            request: SubscribeRequest | None = self._reader.start_request()
        while request is not None:
            yield request
            if not self._reader.takes_acks:
                return
            with self._changed:
                request = self._next_ack(number)

    def _next_ack(self, number: int) -> SubscribeRequest | None:
        """None when the stream is over. The lock is held."""
        while not (self._is_stopping or self._is_over or self._number != number or self._stream_call is None):
            request = self._reader.ack_request()
            if request is not None:
                return request
            self._changed.wait()
        return None

    # ------------------------------------------------------------------------------------------- leaving

    def _confirm(self) -> bool:
        """Whether the cursor is where it was acknowledged to be."""
        with self._changed:
            self._reader.leave()
            self._changed.notify_all()
        is_told = self._wait(lambda: not self._reader.may_confirm or self._is_over, transport.LAST_ACK_S)
        with self._changed:
            is_confirmed = self._reader.unconfirmed is None
        if not is_told:
            return False
        if not is_confirmed:
            try:
                self._gateways._call("SetCursor", self._reader.confirm_request())
            except OrdercastError:
                return False
        return True

    def _stop(self) -> None:
        with self._changed:
            self._is_stopping = True
            if self._stream_call is not None:
                self._stream_call.cancel()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(JOIN_S)


class SyncSubscription(DrivenSyncSubscription[int, SyncDelivery]):
    """An iterator of deliveries. Use it with `with`: leaving waits for the cursor's last move."""

    def __init__(
        self,
        gateways: SyncGateways,
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
            SyncDelivery,
            source=self,
            start=start,
            cursor=cursor,
            stop_at_end=stop_at_end,
            replica=replica,
        )

    def ack(self, offset: int) -> None:
        """The message at this offset and all before it are processed."""
        self._ack(offset)
