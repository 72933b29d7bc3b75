"""Publish, as a stream and as a single call."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import grpc

from ordercast.core.machine import Ended
from ordercast.gateway.budgets import SHARE, Budgets
from ordercast.gateway.clients import UNJUDGED_MAX, Client, Clients
from ordercast.gateway.freshness import Freshness
from ordercast.gateway.machine import ROLE
from ordercast.gateway.pressure import RETRY_S_MIN
from ordercast.gateway.rows import count_of, split
from ordercast.gateway.translation import Translation, Wrong, owner_of
from ordercast.runtime.process.node import Node
from ordercast.runtime.transport.status import Refused
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_FENCED,
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_MOVED,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PUBLISH_STATUS_UNAVAILABLE,
    GroupPlace,
    PublishReply,
    PublishRequest,
    PublishResponse,
    PublishStatus,
    PublishStreamRequest,
    PublishStreamResponse,
)

#: A client that does not read its replies is not read from either.
REPLIES_MAX = 8192
#: Nor is one that is refused and goes on writing, for a while: with many such, longer, so that a gateway looks at
#: one of them in so many seconds. A single call that is refused is answered after that time, for the same reason.
PAUSE_S = 0.05
LOOK_S = 0.02

CODE_OF: dict[int, grpc.StatusCode] = {
    PUBLISH_STATUS_INVALID_ARGUMENT: grpc.StatusCode.INVALID_ARGUMENT,
    PUBLISH_STATUS_MOVED: grpc.StatusCode.NOT_FOUND,
    PUBLISH_STATUS_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    PUBLISH_STATUS_SEQUENCE_GAP: grpc.StatusCode.FAILED_PRECONDITION,
    PUBLISH_STATUS_FENCED: grpc.StatusCode.FAILED_PRECONDITION,
}


class Replies:
    """What the machine has for one client; whatever queued up while the last frame was written is the next."""

    def __init__(self, translation: Translation, client: Client, source: str) -> None:
        self.translation = translation
        self.client = client
        self.identity = client.identity
        #: The name that the machine answers to.
        self.source = source
        self.waiting: list[PublishReply] = []
        self.places: list[GroupPlace] = []
        #: Messages that the machine has and has not answered, and whether answers are on their way to the client.
        self.unanswered = 0
        self.is_writing = False
        #: How many requests there were, how many were refused, and when the last of these is worth repeating.
        self.asked = 0
        self.refused = 0
        self.retry_after_s = 0.0
        self._looked = (0, 0)
        self.news = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()

    def __call__(self, reply: PublishReply) -> None:
        """A machine's reply."""
        self.unanswered -= max(reply.count, 1)
        if reply.status == PUBLISH_STATUS_OK:
            self.translation.counts.receipt(self.translation.domain_of(reply), reply.count)
        self.add(self.translation.to_client(reply, self.identity))

    def add(self, reply: PublishReply) -> None:
        if reply.status != PUBLISH_STATUS_OK:
            self.refused += 1
            self.translation.counts.refusal(self.translation.domain_of(reply), reply)
            self.retry_after_s = max(reply.retry_after_ms / 1000, RETRY_S_MIN)
        self.waiting.append(reply)
        self.is_writing = True
        self.news.set()
        if len(self.waiting) >= REPLIES_MAX:
            self.room.clear()

    def tell_places(self, places: list[GroupPlace]) -> None:
        self.places += places
        self.is_writing = True
        self.news.set()

    def is_mostly_refused(self) -> bool:
        """Of what was asked since it was last looked at."""
        asked, refused = self.asked - self._looked[0], self.refused - self._looked[1]
        self._looked = (self.asked, self.refused)
        return refused * 2 > asked

    async def take(self) -> list[PublishReply]:
        await self.news.wait()
        self.news.clear()
        taken, self.waiting = self.waiting, []
        self.room.set()
        return taken


class Publishing:
    def __init__(
        self, node: Node, translation: Translation, freshness: Freshness, clients: Clients, budgets: Budgets
    ) -> None:
        self.node = node
        self.translation = translation
        self.freshness = freshness
        self._present = clients.present
        self._budgets = budgets
        #: Streams and single calls together.
        self.clients = 0
        #: Streams that are not read from for a while, and calls that are not answered.
        self._pausing = 0
        self._numbers = itertools.count(1)

    @contextlib.contextmanager
    def _connected(self, context: Any) -> Iterator[Replies]:
        """With a name for the machine to answer to. Names of processes have no slash."""
        settings = self.node.settings
        if self.clients >= settings.limits.connections_max:
            raise Refused(
                grpc.StatusCode.RESOURCE_EXHAUSTED, "too many clients", "TOO_MANY_STREAMS", retry_after_s=1.0
            )
        share = settings.limits.connections_max * SHARE
        with self._budgets.hold(context, "calls", share), self._present(context) as client:
            if client.identity is None and settings.tls.client_ca is not None:
                # Its producers would be nobody's, and could be given the names of somebody's.
                raise Refused(grpc.StatusCode.UNAUTHENTICATED, "the certificate names nobody", "NO_IDENTITY")
            source = f"{client.name}/{next(self._numbers)}"
            replies = Replies(self.translation, client, source)
            self.node.host.endpoints[source] = replies
            self.clients += 1
            try:
                yield replies
            finally:
                self.clients -= 1
                del self.node.host.endpoints[source]
                if replies.refused:
                    # Machines remember what they refused, so that nothing of this client overtakes it.
                    for domain in self.translation.machines:
                        self.node.host.tell(domain, ROLE, Ended(*self.node.host.clock.read(), source, 0))

    def _submit(self, replies: Replies, request: PublishRequest) -> None:
        replies.asked += 1
        try:
            domain = self.translation.to_machine(request, replies.identity)
        except Wrong as wrong:
            parts = split(request)
            for part in parts:  # A row that is wrong is refused alone.
                self._submit(replies, part)
            if not parts:
                replies.add(self.translation.refusal(request, wrong, replies.source))
            return
        replies.unanswered += max(count_of(request), 1)
        self.node.host.hand_in(domain, replies.source, request)
        replies.client.handed(self.node.host, 1)

    async def stream(self, context: Any) -> None:
        with self._connected(context) as replies:
            credits_ = self.translation.credits(replies.source)
            await context.write(
                PublishStreamResponse(
                    credits=credits_, owner=owner_of(replies.identity), locates=True, batches=True
                )
            )
            tasks = [
                asyncio.create_task(work) for work in (self._read(replies, context), self._write(replies, context))
            ]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, replies: Replies, context: Any) -> None:
        while True:
            await self.node.host.room.wait()
            frame: PublishStreamRequest | Any = await context.read()
            if frame is grpc.aio.EOF:
                # Nothing more is asked, but what was asked is answered.
                while replies.unanswered > 0 or replies.is_writing:
                    await asyncio.sleep(LOOK_S)
                return
            if frame.locate:
                await self._locate(replies, frame.locate)
            for first in range(0, len(frame.requests), UNJUDGED_MAX):
                await self._take(replies, frame.requests[first : first + UNJUDGED_MAX])

    async def _locate(self, replies: Replies, names: Sequence[str]) -> None:
        """How many a frame may ask for is in the table of limits, which it has passed."""
        await self.freshness.settle(names)
        replies.tell_places([self.translation.place_of(name) for name in names])

    async def _take(self, replies: Replies, requests: Sequence[PublishRequest]) -> None:
        """A client that writes on after a refusal costs time, for all of that is refused as well.

        So nothing more is read for a while, and it is the transport that holds the client back.
        """
        await replies.room.wait()
        fitting = [part for request in requests for part in self._fitting(replies, request)]
        for request in fitting:
            await self.freshness.settle(request.groups)
        await replies.client.room(self.node.host, len(fitting))
        for request in fitting:
            self._submit(replies, request)
        if replies.is_mostly_refused():
            await self._pause(replies)

    def _fitting(self, replies: Replies, request: PublishRequest) -> list[PublishRequest]:
        """What has too much of something is refused before anybody looks further: of several rows, each."""
        excess = self.translation.excess(request, replies.source)
        if excess is None:
            return [request]
        if len(request.groups) > self.node.settings.limits.groups_max and (parts := split(request)):
            return [fitting for part in parts for fitting in self._fitting(replies, part)]
        replies.asked += 1
        replies.add(excess)
        return []

    async def _pause(self, replies: Replies) -> None:
        """No longer than the client was told to wait: who does so is read from at once."""
        self._pausing += 1
        try:
            await asyncio.sleep(min(PAUSE_S * self._pausing, replies.retry_after_s))
        finally:
            self._pausing -= 1

    async def _write(self, replies: Replies, context: Any) -> None:
        while True:
            taken = await replies.take()
            places, replies.places = replies.places, []
            await context.write(PublishStreamResponse(replies=taken, places=places))
            replies.is_writing = bool(replies.waiting or replies.places)

    async def call(self, request: PublishRequest, context: Any) -> PublishResponse:
        """One request, and all its receipts. The caller's deadline ends the waiting, not the message."""
        wanted = max(count_of(request), 1)
        response = PublishResponse()
        with self._connected(context) as replies:
            await self.freshness.settle(request.groups)
            await replies.client.room(self.node.host, 1)
            self._submit(replies, request)
            while wanted > 0:
                for reply in await replies.take():
                    if reply.status != PUBLISH_STATUS_OK:
                        await self._pause(replies)
                        raise refused(reply)
                    wanted -= max(reply.count, 1)
                    response.replies.append(reply)
        return response


def refused(reply: PublishReply) -> Refused:
    """With what a client needs that has to go on: the producer's epoch, and its last sequence in these groups."""
    metadata = {}
    # A gap that the gateway itself sees, behind a request that was refused, has no token: nobody asked the groups.
    if reply.status == PUBLISH_STATUS_FENCED or (reply.status == PUBLISH_STATUS_SEQUENCE_GAP and reply.session):
        metadata = {"epoch": str(reply.epoch), "last_sequence": str(reply.last_sequence)}
    return Refused(
        CODE_OF[reply.status],
        reply.detail or PublishStatus.Name(reply.status),
        PublishStatus.Name(reply.status).removeprefix("PUBLISH_STATUS_"),
        metadata,
        retry_after_s=reply.retry_after_ms / 1000 if reply.retry_after_ms else None,
    )
