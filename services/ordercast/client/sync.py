"""The SDK for threads, on the synchronous gRPC stack: the same names as with asyncio, and they block.

A connection may be shared by threads. One lock guards the session. Two threads drive it: one dials and takes the
responses, one keeps the time; gRPC's own thread takes the frames.
"""

import random
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from types import TracebackType
from typing import Any, Self, Unpack, overload

import grpc

from ordercast.client import transport
from ordercast.client.addresses import Addresses
from ordercast.client.admin import SyncAdmin
from ordercast.client.amounts import IN_FLIGHT_MAX
from ordercast.client.backoff import wait_s
from ordercast.client.call_threads import JOIN_S, CallThreads
from ordercast.client.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    OrdercastError,
    Unavailable,
)
from ordercast.client.merged_reader import check_merged, checked_choice, checked_merged_start
from ordercast.client.merged_types import Cut, place_of
from ordercast.client.publication import Publication, PublishOptions, checked, checked_many
from ordercast.client.session import Session
from ordercast.client.sync_live import SyncLiveSubscription
from ordercast.client.sync_merged import SyncMergedSubscription
from ordercast.client.sync_silence import answered
from ordercast.client.sync_subscription import SyncSubscription
from ordercast.client.tracing import current_context
from ordercast.client.types import TLS, Receipt, Start, checked_start, checked_timeout
from ordercast.core.silence import Silence
from ordercast.v1.gateway_pb2 import CutRequest, PublishStreamRequest
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub

ReceiptFuture = Future[Receipt]


def connect_sync(
    *addresses: str,
    producer: str | None = None,
    in_flight_max: int = IN_FLIGHT_MAX,
    tls: TLS | None = None,
    session_token: bytes | None = None,
    timeout: float = transport.TIMEOUT_S,
) -> "SyncConnection":
    """As `connect`, for code without asyncio.

    >>> import ordercast
    >>> with ordercast.connect_sync("127.0.0.1:7400") as oc:
    ...     receipt = oc.publish(b"transfer 10 from a to b", to=["a", "b"], key="a")
    >>> sorted(receipt.offsets)
    ['a', 'b']
    """
    return SyncConnection(
        transport.parse_addresses(addresses),
        transport.new_session(producer, in_flight_max, session_token),
        tls=tls,
        timeout=checked_timeout(timeout),
    )


class SyncConnection(SyncAdmin):
    """What `connect_sync` returns. Use it with `with`: leaving waits for the receipts that are still to come."""

    def __init__(
        self, addresses: list[str], session: Session[ReceiptFuture], *, tls: TLS | None, timeout: float
    ) -> None:
        self._addresses = Addresses(addresses)
        self._session = session
        self._tls = tls
        self._timeout = timeout
        #: Guards the session; everything that changes it wakes everyone who waits for a change.
        self._changed = threading.Condition()
        #: Publish calls, in their order: only the first waits for room.
        self._turn = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._stream_call: Any = None
        self._call_threads = CallThreads()
        self._is_closed = False

    def __enter__(self) -> Self:
        if self._threads or self._is_closed:
            raise FailedPrecondition("a connection is entered once")
        for target in (self._run, self._keep_time):
            thread = threading.Thread(target=target, name=f"ordercast {target.__name__}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self._close()

    @property
    def session_token(self) -> bytes:
        """What this connection has receipts for or has read.

        Hand it to another with `connect(session_token=...)` or `after=...`.
        """
        with self._changed:
            return self._session.token

    # ----------------------------------------------------------------------------------------- publishing

    def publish(self, payload: bytes, to: str | Iterable[str], **options: Unpack[PublishOptions]) -> Receipt:
        """Publish one message to a set of groups and wait for its receipt. See `Connection.publish`."""
        return self.publish_soon(payload, to, **options).result()

    def publish_soon(
        self, payload: bytes, to: str | Iterable[str], **options: Unpack[PublishOptions]
    ) -> ReceiptFuture:
        """Publish, and get the receipt as a future. Blocks only while `in_flight_max` messages are under way."""
        return self._publish(checked(payload, to, self._timeout, **options))

    def publish_many(
        self, payloads: Iterable[bytes], to: str | Iterable[str], *, timeout: float | None = None
    ) -> list[Receipt]:
        """Publish many messages to one set of groups, in order, and wait for all receipts.

        If some fail, all are waited for, and the first error is raised.
        """
        soon: list[ReceiptFuture] = []
        try:
            for publication in checked_many(payloads, to, self._timeout, timeout):
                soon.append(self._publish(publication))
        finally:
            wait_for(soon)
        return [future.result() for future in soon]

    def flush(self) -> None:
        """Wait until all that was published has its receipt or its error. Those are for its own callers."""
        with self._changed:
            items = (*self._session.sent.values(), *self._session.queue)
            pending = [item.handle for item in items if item.handle is not None]
        wait_for(pending)

    def _publish(self, publication: Publication) -> ReceiptFuture:
        message, groups, within, unordered, after = publication
        deadline = time.monotonic() + within
        soon: ReceiptFuture = Future()
        size = message.ByteSize()
        if not self._turn.acquire(timeout=within):
            raise DeadlineExceeded("too much was in flight for the whole timeout")
        try:
            with self._changed:
                while not (self._is_closed or self._session.fenced or self._session.has_room(size)):
                    if not self._changed.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                        raise DeadlineExceeded("too much was in flight for the whole timeout")
                if self._is_closed or not self._threads:
                    raise FailedPrecondition("the connection is not open: use `with`")
                self._session.publish(
                    message,
                    groups,
                    size=size,
                    handle=soon,
                    deadline=deadline,
                    unordered=unordered,
                    after=after,
                    trace=current_context(),
                )
                self._after_change()
        finally:
            self._turn.release()
        return soon

    # --------------------------------------------------------------------------------------- the session

    def _after_change(self) -> None:
        """Tell callers their outcomes, and wake everyone. The lock is held."""
        for soon, outcome in self._session.take_settled():
            if not soon.set_running_or_notify_cancel():
                continue  # its caller went away
            if isinstance(outcome, Receipt):
                soon.set_result(outcome)
            else:
                soon.set_exception(outcome)
        if self._stream_call is not None and self._session.stream == 0:
            self._stream_call.cancel()
            self._stream_call = None
        self._changed.notify_all()

    def _keep_time(self) -> None:
        with self._changed:
            while not self._is_closed:
                now = time.monotonic()
                at = self._session.wake_at()
                if at is not None and at <= now:
                    self._session.tick(now, random.random())
                    self._after_change()
                    at = self._session.wake_at()
                    if at is not None and at <= now:
                        # Dialling is due, and the other thread's task.
                        self._changed.wait()
                else:
                    self._changed.wait(None if at is None else at - now)

    def _run(self) -> None:
        """A stream whenever the session wants one."""
        while True:
            with self._changed:
                while not (self._is_closed or self._session.dial_due(time.monotonic())):
                    self._wait_to_dial()
                if self._is_closed:
                    return
                number = self._session.dialed(time.monotonic())
                address = self._gateway(0)
            trouble = self._stream(address, number)
            with self._changed:
                self._session.lost(number, trouble, time.monotonic(), random.random())
                self._after_change()
            self._call_threads.join()

    def _wait_to_dial(self) -> None:
        at = self._session.retry_at if self._session.stream == 0 else None
        is_idle = at is None or not (self._session.queue or self._session.opening)
        self._changed.wait(None if is_idle or at is None else max(at - time.monotonic(), 0.0))

    def _stream(self, address: str, number: int) -> OrdercastError:
        """Why it ended."""
        try:
            with transport.sync_channel(address, self._tls) as channel:
                call = GatewayServiceStub(channel).PublishStream(self._frames(number))
                self._call_threads.watch(call)
                with self._changed:
                    self._stream_call = call
                    self._after_change()
                try:
                    for response in call:
                        with self._changed:
                            self._session.received(number, response, time.monotonic(), random.random())
                            self._after_change()
                finally:
                    call.cancel()
        except grpc.RpcError as error:
            return transport.to_error(error)
        except OrdercastError as error:
            return error
        return Unavailable("the gateway ended the stream")

    def _frames(self, number: int) -> Iterator[PublishStreamRequest]:
        """Taken by gRPC, which asks for the next frame when the last one is written."""
        self._call_threads.note()
        while True:
            with self._changed:
                frame = None
                while frame is None:
                    # First of all: a frame of another stream is not for this one to take.
                    if self._session.stream != number:
                        return
                    frame = self._session.frame(time.monotonic())
                    if frame is None:
                        self._changed.wait()
                # Silence is counted from here.
                self._changed.notify_all()
            yield frame

    def _close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._session.close()
            self._after_change()
        for thread in self._threads:
            thread.join(JOIN_S)

    # ------------------------------------------------------------------------------- subscriptions, calls

    @overload
    def subscribe(
        self,
        group: str,
        start: Start | None = None,
        *,
        last: int | None = None,
        cursor: str | None = None,
        stop_at_end: bool = False,
        replica: str | None = None,
    ) -> SyncSubscription: ...

    @overload
    def subscribe(
        self,
        group: list[str] | tuple[str, ...],
        start: str | Cut | None = None,
        *,
        cursor: str | None = None,
        stop_at_end: bool = False,
        until: Cut | None = None,
    ) -> SyncMergedSubscription: ...

    def subscribe(
        self,
        group: str | list[str] | tuple[str, ...],
        start: Start | Cut | None = None,
        *,
        last: int | None = None,
        cursor: str | None = None,
        stop_at_end: bool = False,
        replica: str | None = None,
        until: Cut | None = None,
    ) -> SyncSubscription | SyncMergedSubscription:
        """Read a group's log. See `Connection.subscribe`.

        >>> import ordercast
        >>> with ordercast.connect_sync("127.0.0.1:7400") as oc:
        ...     receipt = oc.publish(b"hello", to=["c"])
        ...     with oc.subscribe("c", start=receipt.offsets["c"]) as deliveries:
        ...         delivery = next(deliveries)
        >>> delivery.payload, delivery.message_id == receipt.message_id
        (b'hello', True)
        """
        if not isinstance(group, str):
            check_merged(last, replica)
            merged_start: Any = start
            return self.subscribe_merged(group, merged_start, cursor=cursor, until=until, stop_at_end=stop_at_end)
        if isinstance(start, Cut) or until is not None:
            raise InvalidArgument("a cut is a place in several groups: name them as a list, even if it is one")
        return SyncSubscription(
            self,
            group,
            start=checked_start(start, last),
            cursor=cursor,
            stop_at_end=stop_at_end,
            replica=replica,
            timeout=self._timeout,
        )

    def subscribe_merged(
        self,
        groups: Iterable[str] | None = None,
        start: str | Cut | None = None,
        *,
        domain: str | None = None,
        pattern: str | None = None,
        cursor: str | None = None,
        until: Cut | None = None,
        stop_at_end: bool = False,
    ) -> SyncMergedSubscription:
        """Read several groups as one stream in the domain's order. See `Connection.subscribe_merged`."""
        return SyncMergedSubscription(
            self,
            checked_choice(groups, domain=domain, pattern=pattern),
            start=checked_merged_start(start),
            cursor=cursor,
            until=until,
            stop_at_end=stop_at_end,
            timeout=self._timeout,
        )

    def cut(
        self, groups: Iterable[str] | None = None, *, domain: str | None = None, pattern: str | None = None
    ) -> Cut:
        """A place behind all that was acknowledged in these groups, and before all that is published later."""
        choice = checked_choice(groups, domain=domain, pattern=pattern)
        request = CutRequest(groups=choice.groups, domain=choice.domain, pattern=choice.pattern)
        return Cut.of(place_of(self._call("Cut", request).place))

    def subscribe_live(
        self, group: str, *, replica: str | None = None, timeout: float | None = None
    ) -> SyncLiveSubscription:
        """What a replica delivers before the log shows it. See `Connection.subscribe_live`."""
        return SyncLiveSubscription(
            self, group, replica=replica, timeout=self._timeout if timeout is None else checked_timeout(timeout)
        )

    def _see(self, token: bytes) -> None:
        """The application has read what this stands for."""
        with self._changed:
            self._session.see(token)

    def _gateway(self, turn: int) -> str:
        """The address of the gateway in use, or of one so many behind it."""
        return self._addresses.choose(self._session.gateway + turn, time.monotonic())

    def _channel(self, address: str) -> grpc.Channel:
        return transport.sync_channel(address, self._tls)

    def _avoid(self, address: str) -> None:
        """The gateway there hangs: whoever looks for one takes another first."""
        self._addresses.avoid(address, time.monotonic())

    def _call(self, name: str, request: Any) -> Any:
        until = time.monotonic() + self._timeout
        attempt = 0
        while True:
            try:
                return self._call_at(self._gateway(attempt), name, request, until)
            except grpc.RpcError as failure:
                error = transport.to_error(failure)
            except Unavailable as silent:
                error = silent
            wait = wait_s(attempt, error, random.random())
            if not isinstance(error, Unavailable) or time.monotonic() + wait >= until:
                raise error
            attempt += 1
            time.sleep(wait)

    def _call_at(self, address: str, name: str, request: Any, until: float) -> Any:
        """A gateway that hangs is left where another one is known."""
        timeout = max(until - time.monotonic(), 0.001)
        silence = Silence()
        threads = CallThreads()
        try:
            with self._channel(address) as channel:
                method = getattr(GatewayServiceStub(channel), name)
                if len(self._addresses) == 1:
                    return method(request, timeout=timeout)
                call = method.future(request, timeout=timeout)
                threads.watch(call)
                return answered(channel, call, silence, threads)
        finally:
            threads.join()
            if silence.is_too_long:
                self._avoid(address)
