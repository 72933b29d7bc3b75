"""The SDK for asyncio.

One task keeps the publish stream: it writes what the session has, as one frame, and a reader beside it takes the
responses. Whatever is published while a frame is being written goes into the next.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio

from ordercast.client import transport
from ordercast.client.addresses import Addresses
from ordercast.client.admin import AsyncAdmin
from ordercast.client.aio_causal import CausalSubscription
from ordercast.client.aio_live import LiveSubscription
from ordercast.client.aio_silence import answered
from ordercast.client.aio_subscription import Subscription
from ordercast.client.errors import DeadlineExceeded, FailedPrecondition, OrdercastError, Unavailable
from ordercast.client.session import IN_FLIGHT_MAX, Session, wait_s
from ordercast.client.tracing import current_context
from ordercast.client.types import (
    TLS,
    Groups,
    Receipt,
    Start,
    checked_groups,
    checked_message,
    checked_start,
    checked_starts,
    checked_timeout,
    checked_token,
)
from ordercast.core.silence import Silence
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import PublishStreamResponse
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub

ReceiptFuture = asyncio.Future[Receipt]


def connect(
    *addresses: str,
    producer: str | None = None,
    in_flight_max: int = IN_FLIGHT_MAX,
    tls: TLS | None = None,
    session_token: bytes | None = None,
    timeout: float = transport.TIMEOUT_S,
) -> "Connection":
    """A connection to the gateways at these addresses; one is used, the others when it fails.

    A named producer goes on where its latest instance ended, and fences it. `timeout` is the default of all calls.

    >>> import asyncio, ordercast
    >>> async def main():
    ...     async with ordercast.connect("127.0.0.1:7400") as oc:
    ...         receipt = await oc.publish(b"transfer 10 from a to b", to=["a", "b"], key="a")
    ...         return sorted(receipt.offsets)
    >>> asyncio.run(main())
    ['a', 'b']
    """
    return Connection(
        transport.parse_addresses(addresses),
        transport.new_session(producer, in_flight_max, session_token),
        tls=tls,
        timeout=checked_timeout(timeout),
    )


class Connection(AsyncAdmin):
    """What `connect` returns. Use it with `async with`: leaving waits for the receipts that are still to come."""

    def __init__(
        self, addresses: list[str], session: Session[ReceiptFuture], *, tls: TLS | None, timeout: float
    ) -> None:
        self._addresses = Addresses(addresses)
        self._session = session
        self._tls = tls
        self._timeout = timeout
        #: Set when there may be something to dial or write.
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stream_call: transport.StreamCall | None = None
        self._timer: asyncio.TimerHandle | None = None
        #: Publish calls at the bound, in order: size, and how to go on.
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        if self._task is not None or self._is_closed:
            raise FailedPrecondition("a connection is entered once")
        self._task = asyncio.create_task(self._run(), name="ordercast publish")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.flush()
        finally:
            await self._close()

    @property
    def session_token(self) -> bytes:
        """What this connection has receipts for or has read.

        Hand it to another with `connect(session_token=...)` or `after=...`.
        """
        return self._session.token

    # ----------------------------------------------------------------------------------------- publishing

    async def publish(
        self,
        payload: bytes,
        to: str | Iterable[str],
        *,
        key: bytes | str = b"",
        headers: Mapping[str, bytes | str] | None = None,
        ordered: bool = True,
        timeout: float | None = None,
        after: bytes | None = None,
    ) -> Receipt:
        """Publish one message to a set of groups and wait for its receipt.

        `ordered=False` gives up the order towards this producer's messages to other sets. `after` is a session
        token: the message comes behind all that its owner has seen. A cancelled wait withdraws nothing.
        """
        soon = await self.publish_soon(
            payload, to, key=key, headers=headers, ordered=ordered, timeout=timeout, after=after
        )
        return await soon

    async def publish_soon(
        self,
        payload: bytes,
        to: str | Iterable[str],
        *,
        key: bytes | str = b"",
        headers: Mapping[str, bytes | str] | None = None,
        ordered: bool = True,
        timeout: float | None = None,
        after: bytes | None = None,
    ) -> ReceiptFuture:
        """Publish, and get the receipt as a future. Waits only while `in_flight_max` messages are under way."""
        groups = checked_groups(to)
        message = checked_message(payload, key, headers)
        within = self._timeout if timeout is None else checked_timeout(timeout)
        return await self._publish(message, groups, within, unordered=not ordered, after=checked_token(after))

    async def publish_many(
        self, payloads: Iterable[bytes], to: str | Iterable[str], *, timeout: float | None = None
    ) -> list[Receipt]:
        """Publish many messages to one set of groups, in order, and wait for all receipts.

        If some fail, all are waited for, and the first error is raised.
        """
        groups = checked_groups(to)
        messages = [checked_message(payload) for payload in payloads]
        within = self._timeout if timeout is None else checked_timeout(timeout)
        soon = []
        try:
            for message in messages:
                soon.append(await self._publish(message, groups, within))
        finally:
            outcomes = await asyncio.gather(*soon, return_exceptions=True)
        receipts = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            receipts.append(outcome)
        return receipts

    async def flush(self) -> None:
        """Wait until all that was published has its receipt or its error. Those are for its own callers."""
        items = (*self._session.sent.values(), *self._session.queue)
        pending = [item.handle for item in items if item.handle is not None and not item.handle.done()]
        if pending:
            await asyncio.wait(pending)

    async def _publish(
        self, message: Message, groups: Groups, within: float, *, unordered: bool = False, after: bytes = b""
    ) -> ReceiptFuture:
        if self._task is None or self._is_closed:
            raise FailedPrecondition("the connection is not open: use `async with`")
        loop = self._task.get_loop()
        deadline = loop.time() + within
        soon: ReceiptFuture = loop.create_future()
        size = message.ByteSize()
        trace = current_context()

        def admit() -> None:
            if self._is_closed:
                raise Unavailable("the connection was closed")
            self._session.publish(
                message,
                groups,
                size=size,
                handle=soon,
                deadline=deadline,
                unordered=unordered,
                after=after,
                trace=trace,
            )

        if self._waiting or not self._session.has_room(size):
            await self._wait_for_room(size, admit, within)
        else:
            admit()
        self._work.set()
        if self._timer is None or deadline < self._timer.when() or self._session.retry_at is not None:
            self._keep_time()
        return soon

    async def _wait_for_room(self, size: int, admit: Callable[[], None], within: float) -> None:
        """Calls are admitted in their order, each in the moment when there is room for it."""
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def go_on() -> None:
            try:
                admit()
            except OrdercastError as error:
                admitted.set_exception(error)
            else:
                admitted.set_result(None)

        entry = (size, go_on)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(within):
                await admitted
        except TimeoutError:
            raise DeadlineExceeded("too much was in flight for the whole timeout") from None
        finally:
            if not admitted.done() or admitted.cancelled():
                self._waiting.remove(entry)

    # --------------------------------------------------------------------------------------- the session

    def _after_change(self) -> None:
        """Tell callers their outcomes, let waiting ones in, and see what is to be done when."""
        session = self._session
        for soon, outcome in session.take_settled():
            if soon.done():
                continue  # its caller went away
            if isinstance(outcome, Receipt):
                soon.set_result(outcome)
            else:
                soon.set_exception(outcome)
        while self._waiting and (session.fenced is not None or session.has_room(self._waiting[0][0])):
            self._waiting.popleft()[1]()
        if self._stream_call is not None and session.stream == 0:
            self._stream_call.cancel()
        self._work.set()
        self._keep_time()

    def _keep_time(self) -> None:
        """Wake up when the session has something to do, if nothing happens before."""
        at = self._session.wake_at()
        if self._timer is not None and (at is None or at < self._timer.when()):
            self._timer.cancel()
            self._timer = None
        if self._timer is None and at is not None and not self._is_closed:
            self._timer = asyncio.get_running_loop().call_at(at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._session.tick(_now(), random.random())
        self._after_change()

    async def _run(self) -> None:
        """Until it is cancelled: a stream whenever the session wants one."""
        while True:
            self._work.clear()
            if self._session.dial_due(_now()):
                await self._stream()
            else:
                await self._work.wait()

    async def _stream(self) -> None:
        """Write until the session is done with this stream; the reader hears how it ends."""
        session = self._session
        number = session.dialed(_now())
        try:
            channel = transport.aio_channel(self._gateway(0), self._tls)
        except OrdercastError as error:
            session.lost(number, error, _now(), random.random())
            self._after_change()
            return
        async with channel:
            call = self._stream_call = GatewayServiceStub(channel).PublishStream()
            reader = asyncio.create_task(self._read(call, number), name="ordercast receipts")
            try:
                self._after_change()
                while session.stream == number:
                    self._work.clear()
                    frame = session.frame(_now())
                    if frame is None:
                        await self._work.wait()
                        continue
                    self._keep_time()
                    if not await transport.is_written(call, frame):
                        await asyncio.wait([reader])
            finally:
                self._stream_call = None
                call.cancel()
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)

    async def _read(self, call: transport.StreamCall, number: int) -> None:
        trouble: OrdercastError = Unavailable("the gateway ended the stream")
        try:
            while isinstance(response := await call.read(), PublishStreamResponse):
                self._session.received(number, response, _now(), random.random())
                self._after_change()
        except grpc.RpcError as error:
            trouble = transport.to_error(error)
        self._session.lost(number, trouble, _now(), random.random())
        self._after_change()

    async def _close(self) -> None:
        self._is_closed = True
        self._session.close()
        self._after_change()
        while self._waiting:
            self._waiting.popleft()[1]()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # ------------------------------------------------------------------------------- subscriptions, calls

    def subscribe(
        self,
        group: str,
        start: Start | None = None,
        *,
        last: int | None = None,
        cursor: str | None = None,
        stop_at_end: bool = False,
        replica: str | None = None,
    ) -> Subscription:
        """Read a group's log from `"earliest"`, `"latest"`, an offset, or where the cursor stands.

        Or from a `datetime` on, or a `timedelta` ago: at about the first message that was stored then, by the
        clocks of the replicas. Or the `last` so many messages, and all that follow.

        With a cursor, this says where it begins if it does not exist yet, and acknowledging moves it. `replica`
        reads the copy on that node and no other.

        >>> import asyncio, ordercast
        >>> async def main():
        ...     async with ordercast.connect("127.0.0.1:7400") as oc:
        ...         await oc.publish(b"hello", to=["c"])
        ...         async with oc.subscribe("c", start="earliest", cursor="example") as deliveries:
        ...             async for delivery in deliveries:
        ...                 await delivery.ack()
        ...                 return delivery.group
        >>> asyncio.run(main())
        'c'
        """
        return Subscription(
            self,
            group,
            start=checked_start(start, last),
            cursor=cursor,
            stop_at_end=stop_at_end,
            replica=replica,
            timeout=self._timeout,
        )

    def subscribe_causal(
        self,
        groups: Iterable[str],
        start: str | Mapping[str, str | int] = "earliest",
        *,
        timeout: float | None = None,
    ) -> CausalSubscription:
        """Read several groups of a domain as one stream, in causal order, if its protocol is causal.

        Whatever a publisher had read or published before, in any of these groups, comes before what it published
        then. `start` is `"earliest"` or `"latest"`, or for each group one of these or an offset. `timeout` is for
        the beginning. `FailedPrecondition` in a domain whose messages do not say what they come after.
        """
        names = checked_groups(groups)
        return CausalSubscription(
            self,
            names,
            starts=checked_starts(start, names),
            timeout=self._timeout if timeout is None else checked_timeout(timeout),
        )

    def subscribe_live(
        self, group: str, *, replica: str | None = None, timeout: float | None = None
    ) -> LiveSubscription:
        """What a replica delivers from now on, before the log shows it, if the protocol has live delivery.

        In causal order, and fast: nobody waits for a disk, a majority, or a place in the log. A crash may take it
        back. `replica` is the node to read from. `timeout` is for the beginning.
        """
        return LiveSubscription(
            self, group, replica=replica, timeout=self._timeout if timeout is None else checked_timeout(timeout)
        )

    def _see(self, token: bytes) -> None:
        """The application has read what this stands for."""
        self._session.see(token)

    def _gateway(self, turn: int) -> str:
        """The address of the gateway in use, or of one so many behind it."""
        return self._addresses.choose(self._session.gateway + turn, _now())

    def _channel(self, address: str) -> grpc.aio.Channel:
        return transport.aio_channel(address, self._tls)

    def _avoid(self, address: str) -> None:
        """The gateway there hangs: whoever looks for one takes another first."""
        self._addresses.avoid(address, _now())

    async def _call(self, name: str, request: Any) -> Any:
        until = _now() + self._timeout
        attempt = 0
        while True:
            try:
                return await self._call_at(self._gateway(attempt), name, request, until)
            except grpc.RpcError as failure:
                error = transport.to_error(failure)
            except Unavailable as silent:
                error = silent
            wait = wait_s(attempt, error, random.random())
            if not isinstance(error, Unavailable) or _now() + wait >= until:
                raise error
            attempt += 1
            await asyncio.sleep(wait)

    async def _call_at(self, address: str, name: str, request: Any, until: float) -> Any:
        """A gateway that hangs is left where another one is known."""
        async with self._channel(address) as channel:
            method = getattr(GatewayServiceStub(channel), name)
            call = method(request, timeout=max(until - _now(), 0.001))
            if len(self._addresses) == 1:
                return await call
            silence = Silence()
            try:
                return await answered(channel, call, silence)
            finally:
                if silence.is_too_long:
                    self._avoid(address)


def _now() -> float:
    return asyncio.get_running_loop().time()
