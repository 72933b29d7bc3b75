"""Publish streams of a connection to gateways, each shared by the producers that are at that gateway.

One task writes what all of them have, as one frame, and a reader beside it takes the responses. Whatever is
published while a frame is being written goes into the next.

A producer that gives a stream up, since something was refused, takes it from all others, and from then on it has
streams of its own. Its copies on the old stream must not be read any more: a gateway forgets what it refused when
a producer comes on another stream, so one of those could overtake what was refused before it. And the others shall
not be disturbed each time.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import grpc
import grpc.aio

from ordercast.client import transport
from ordercast.client.amounts import FRAME_BYTES_MAX
from ordercast.client.errors import OrdercastError, Unavailable
from ordercast.client.types import TLS
from ordercast.v1.gateway_pb2 import GroupPlace, PublishReply, PublishStreamRequest, PublishStreamResponse
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub


class Member(Protocol):
    """A producer, as its stream sees it."""

    @property
    def _id(self) -> bytes: ...

    def _fill(self, frame: PublishStreamRequest) -> int:
        """Put in what may be written now; how many bytes that is, or more."""
        ...

    def _received(self, response: PublishStreamResponse) -> None:
        """The first response of the stream, or one in which nobody else has replies."""
        ...

    def _told(self, places: Sequence[GroupPlace]) -> None: ...

    def _replied(self, replies: Sequence[PublishReply]) -> None: ...

    def _lost(self, error: OrdercastError) -> None:
        """The stream is over."""
        ...


class Stream:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.members: dict[bytes, Member] = {}
        self.is_over = False
        self._channel = channel
        #: Members that may have something to write.
        self._due: dict[bytes, Member] = {}
        self._work = asyncio.Event()
        self._first: PublishStreamResponse | None = None
        self._call: transport.StreamCall | None = None
        self.task = asyncio.create_task(self._run(), name="ordercast publish")

    def join(self, member: Member) -> None:
        self.members[member._id] = member
        if self._first is not None:
            member._received(self._first)

    def wants_to_write(self, member: Member) -> None:
        self._due[member._id] = member
        self._work.set()

    def leave(self, member: Member) -> None:
        """Nothing of it is under way here, and nothing will be."""
        del self.members[member._id]
        self._due.pop(member._id, None)
        if not self.members:
            self.end(Unavailable("nobody publishes any more"))

    def give_up(self, member: Member) -> None:
        """It goes on elsewhere, and so does everybody."""
        del self.members[member._id]
        self.end(Unavailable("the stream was given up, for something of another producer was refused"))

    def end(self, error: OrdercastError) -> None:
        self.is_over = True
        members, self.members = self.members, {}
        self._due.clear()
        self._work.set()
        if self._call is not None:
            self._call.cancel()
        for member in members.values():
            member._lost(error)

    async def _run(self) -> None:
        async with self._channel:
            if self.is_over:
                return
            call = self._call = GatewayServiceStub(self._channel).PublishStream()
            reader = asyncio.create_task(self._read(call), name="ordercast receipts")
            try:
                while not self.is_over:
                    self._work.clear()
                    frame = self._frame()
                    if not (frame.requests or frame.locate):
                        await self._work.wait()
                    elif not await transport.is_written(call, frame):
                        await asyncio.wait([reader])
            finally:
                call.cancel()
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)

    def _frame(self) -> PublishStreamRequest:
        """As much as one frame takes. Whoever did not have a turn is first in the next."""
        frame = PublishStreamRequest()
        size = 0
        while self._due and size < FRAME_BYTES_MAX:
            id_ = next(iter(self._due))
            size += self._due.pop(id_)._fill(frame)
        if size >= FRAME_BYTES_MAX:
            # It may have more.
            self._due[id_] = self.members[id_]
        return frame

    async def _read(self, call: transport.StreamCall) -> None:
        trouble: OrdercastError = Unavailable("the gateway ended the stream")
        try:
            while isinstance(response := await call.read(), PublishStreamResponse):
                self._received(response)
        except grpc.RpcError as error:
            trouble = transport.to_error(error)
        self.end(trouble)

    def _received(self, response: PublishStreamResponse) -> None:
        if self._first is None:
            self._first = response
        if response is self._first or len(self.members) == 1:
            for member in list(self.members.values()):
                member._received(response)
            return
        if response.places:
            for member in list(self.members.values()):
                member._told(response.places)
        by_producer: dict[bytes, list[PublishReply]] = {}
        for reply in response.replies:
            by_producer.setdefault(reply.producer, []).append(reply)
        for id_, replies in by_producer.items():
            if id_ in self.members:
                self.members[id_]._replied(replies)


class Streams:
    """Of one connection."""

    def __init__(self, tls: TLS | None) -> None:
        self._tls = tls
        #: By the gateway's address, those that others may join.
        self._shared: dict[str, Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def join(self, member: Member, address: str, *, is_alone: bool) -> Stream:
        stream = None if is_alone else self._shared.get(address)
        # A named producer may be there twice, of whom one fences the other.
        if stream is None or stream.is_over or member._id in stream.members:
            stream = Stream(transport.aio_channel(address, self._tls))
            self._tasks.add(stream.task)
            stream.task.add_done_callback(self._tasks.discard)
            if not is_alone:
                self._shared[address] = stream
        stream.join(member)
        return stream

    async def close(self) -> None:
        """Of no producer any more: they are about to end."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
