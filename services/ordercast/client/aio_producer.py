"""A producer for asyncio: it publishes with an id and numbers of its own, over streams that it may share."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self, Unpack

from ordercast.client.addresses import Addresses
from ordercast.client.aio_streams import Stream, Streams
from ordercast.client.errors import DeadlineExceeded, FailedPrecondition, OrdercastError, Unavailable
from ordercast.client.publication import Publication, PublishOptions, checked, checked_many
from ordercast.client.session import Session
from ordercast.client.tracing import current_context
from ordercast.client.types import Receipt
from ordercast.v1.gateway_pb2 import GroupPlace, PublishReply, PublishStreamRequest, PublishStreamResponse

ReceiptFuture = asyncio.Future[Receipt]


class Producer:
    """What `Connection.producer` returns. Use it with `async with`: leaving waits for the receipts to come."""

    def __init__(
        self, session: Session[ReceiptFuture], addresses: Addresses, streams: Streams, *, timeout: float
    ) -> None:
        self._session = session
        self._addresses = addresses
        self._streams = streams
        self._timeout = timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stream: Stream | None = None
        #: The session's number of that stream.
        self._stream_number = 0
        #: It gave a stream up that others shared, and shares none any more.
        self._is_alone = False
        self._timer: asyncio.TimerHandle | None = None
        #: Publish calls at the bound, in order: size, and how to go on.
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        if self._loop is not None or self._is_closed:
            raise FailedPrecondition("a connection is entered once, and so is a producer")
        self._loop = asyncio.get_running_loop()
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
        """What this connection (or this producer) has receipts for or has read.

        Hand it to another with `connect(session_token=...)` or `after=...`.
        """
        return self._session.token

    # ----------------------------------------------------------------------------------------- publishing

    async def publish(self, payload: bytes, to: str | Iterable[str], **options: Unpack[PublishOptions]) -> Receipt:
        """Publish one message to a set of groups and wait for its receipt.

        Options are `key`, `headers`, `ordered`, `timeout` and `after`. `ordered=False` gives up the order towards
        this producer's messages to other sets. `after` is a session token: the message comes behind all that its
        owner has seen. A cancelled wait withdraws nothing.
        """
        soon = await self.publish_soon(payload, to, **options)
        return await soon

    async def publish_soon(
        self, payload: bytes, to: str | Iterable[str], **options: Unpack[PublishOptions]
    ) -> ReceiptFuture:
        """Publish, and get the receipt as a future. Waits only while `in_flight_max` messages are under way."""
        return await self._publish(checked(payload, to, self._timeout, **options))

    async def publish_many(
        self, payloads: Iterable[bytes], to: str | Iterable[str], *, timeout: float | None = None
    ) -> list[Receipt]:
        """Publish many messages to one set of groups, in order, and wait for all receipts.

        If some fail, all are waited for, and the first error is raised.
        """
        soon = []
        try:
            for publication in checked_many(payloads, to, self._timeout, timeout):
                soon.append(await self._publish(publication))
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

    async def _publish(self, publication: Publication) -> ReceiptFuture:
        message, groups, within, unordered, after = publication
        loop = self._loop
        if loop is None or self._is_closed:
            raise FailedPrecondition("the connection is not open: use `async with`")
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
        self._go_on()
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
        if self._stream is not None and session.stream != self._stream_number:
            given_up, self._stream = self._stream, None
            self._is_alone = self._is_alone or len(given_up.members) > 1
            given_up.give_up(self)
        self._go_on()
        self._keep_time()

    def _go_on(self) -> None:
        """Write what is there to be written, if need be on a new stream."""
        if self._stream is not None:
            self._stream.wants_to_write(self)
        elif not self._is_closed and self._session.dial_due(_now()):
            self._dial()

    def _dial(self) -> None:
        self._stream_number = self._session.dialed(_now())
        try:
            address = self._addresses.choose(self._session.gateway, _now())
            self._stream = self._streams.join(self, address, is_alone=self._is_alone)
        except OrdercastError as error:
            self._lost(error)
            return
        self._after_change()

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

    # ------------------------------------------------------------------------------------------ its stream

    @property
    def _id(self) -> bytes:
        return self._session.producer

    def _fill(self, frame: PublishStreamRequest) -> int:
        before = len(frame.requests) + len(frame.locate)
        size = self._session.fill(frame, _now())
        if len(frame.requests) + len(frame.locate) > before:
            self._keep_time()
        return size

    def _received(self, response: PublishStreamResponse) -> None:
        self._session.received(self._stream_number, response, _now(), random.random())
        self._after_change()

    def _told(self, places: Sequence[GroupPlace]) -> None:
        self._session.told(self._stream_number, places)
        self._after_change()

    def _replied(self, replies: Sequence[PublishReply]) -> None:
        self._session.replied(self._stream_number, replies, _now(), random.random())
        self._after_change()

    def _lost(self, error: OrdercastError) -> None:
        self._stream = None
        self._session.lost(self._stream_number, error, _now(), random.random())
        self._after_change()

    async def _close(self) -> None:
        self._is_closed = True
        if self._stream is not None and self._session.leaves_nothing:
            left, self._stream = self._stream, None
            left.leave(self)
        self._session.close()
        self._after_change()
        while self._waiting:
            self._waiting.popleft()[1]()
        if self._timer is not None:
            self._timer.cancel()


def _now() -> float:
    return asyncio.get_running_loop().time()
