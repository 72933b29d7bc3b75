"""Gateways that a session is tried against: they lose streams, refuse, and answer late, in parts and out of order.

Acceptance is the real gateway's (`gateway/producer.py`), and verdicts are the real ones of delivery. Everything
else is in the hands of the test: which stream is read, which request is ordered next, what gets lost.
"""

from collections import deque
from dataclasses import dataclass, field

from ordercast.client.errors import OrdercastError, Unavailable
from ordercast.client.session import Session
from ordercast.client.types import Receipt
from ordercast.core.ids import envelope_id, order_key, pack_u64, unpack_u64
from ordercast.gateway.producer import Producer, WaitingRequest
from ordercast.gateway.rows import messages_of, rows_of
from ordercast.protocols.celllog.idempotence import ProducerTable
from ordercast.v1.common_pb2 import REFUSAL_FENCED, REFUSAL_UNSPECIFIED, Batch, Message, ProducerRange
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_FENCED,
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PublishReply,
    PublishRequest,
    PublishStreamResponse,
)
from tests.unit.clock_tokens import ClockTokens

GROUPS = ("a", "b", "c")
BAD = b"bad"
TOKENS = ClockTokens(b"the cluster's key")
DOMAIN = "d"


def token_of(clock: int, domain: str = DOMAIN) -> bytes:
    return TOKENS.sign(domain, pack_u64(clock))


@dataclass
class Stream:
    number: int
    gateway: "GatewayModel"
    #: Written and not read; and answered and not received.
    requests: deque[PublishRequest] = field(default_factory=deque)
    replies: deque[PublishStreamResponse] = field(default_factory=deque)
    #: Costs of what was read and not answered.
    owed: int = 0


@dataclass
class Accepted:
    item: WaitingRequest
    stream: Stream


class GatewayModel:
    def __init__(self, world: "World", credits: int) -> None:
        self.world = world
        self.credits = credits
        self.producers: dict[bytes, Producer] = {}
        self.accepted: list[Accepted] = []
        #: Refuse so many of the next requests, and how; and when to come back.
        self.refusals: deque[int] = deque()
        self.retry_after_ms = 40
        #: Of one request.
        self.messages_max = 1 << 30

    def producer(self, id_: bytes) -> Producer:
        return self.producers.setdefault(id_, Producer(id_, "client", "client"))

    def read(self, stream: Stream) -> None:
        request = stream.requests.popleft()
        groups = tuple(request.groups)
        producer = self.producer(request.producer)
        item = WaitingRequest(
            str(stream.number),
            request.producer,
            request.epoch,
            groups,
            request.first_sequence,
            rows_of(request, groups, messages_of(request)),
            request.unordered,
            request.open_token,
            b"",
            request.ByteSize(),
        )
        stream.owed += item.cost
        assert stream.owed <= self.credits, "more outstanding than there are credits"
        missing = [group for group in groups if group not in self.world.logs]
        if missing:
            self.reply(stream, item, PUBLISH_STATUS_NOT_FOUND)
        elif len(request.messages) > self.messages_max or any(m.payload.startswith(BAD) for m in request.messages):
            if len(request.messages) > 1:
                producer.refuse(item)
            else:
                producer.refused.never_comes(groups, request.epoch, request.first_sequence, 1)
            self.reply(stream, item, PUBLISH_STATUS_INVALID_ARGUMENT)
        elif item.key in producer.requests:
            repeated = next(a for a in self.accepted if a.item.key == item.key)
            repeated.stream = stream
        elif producer.is_behind_refused(item):
            producer.refuse(item)
            self.reply(stream, item, PUBLISH_STATUS_SEQUENCE_GAP)
        elif self.refusals or producer.outstanding + item.cost > self.credits:
            producer.refuse(item)
            status = self.refusals.popleft() if self.refusals else PUBLISH_STATUS_RESOURCE_EXHAUSTED
            self.reply(stream, item, status, retry_after_ms=self.retry_after_ms)
        else:
            producer.accept(item)
            self.accepted.append(Accepted(item, stream))

    def ready(self) -> list[Accepted]:
        """A request stays behind earlier ones that share a group with it."""
        result, busy = [], set()
        for accepted in self.accepted:
            if not busy.intersection(accepted.item.groups):
                result.append(accepted)
            busy.update(accepted.item.groups)
        return result

    def order(self, accepted: Accepted) -> None:
        """Delivered, in all groups at once."""
        self.accepted.remove(accepted)
        item = accepted.item
        producer = self.producers[item.producer]
        producer.outstanding -= item.cost
        producer.waiting.remove(item)
        del producer.requests[item.key]
        outcomes = self.world.deliver(item)
        first = outcomes[item.groups[0]]
        session = token_of(self.world.sn)
        known = {"epoch": first.epoch, "last_sequence": first.last_sequence, "session": session}
        if first.refusal != REFUSAL_UNSPECIFIED:
            fenced = first.refusal == REFUSAL_FENCED
            status = PUBLISH_STATUS_FENCED if fenced else PUBLISH_STATUS_SEQUENCE_GAP
            self.reply(accepted.stream, item, status, **known)
        elif item.open_token:
            self.reply(accepted.stream, item, PUBLISH_STATUS_OK, **known)
        for number, span in enumerate(first.spans):
            reply = self._base(item, PUBLISH_STATUS_OK, **known)
            reply.first_sequence, reply.count = span.first_sequence, span.count
            reply.order_key, reply.duplicate = span.order_key, span.duplicate
            for group in item.groups:
                reply.offsets.add(group=group, first_offset=outcomes[group].spans[number].first_offset)
            accepted.stream.replies.append(PublishStreamResponse(replies=[reply]))
        if first.spans:
            accepted.stream.owed -= item.cost

    def _base(self, item: WaitingRequest, status: int, **more: int | bytes) -> PublishReply:
        return PublishReply(
            producer=item.producer,
            groups=item.groups,
            first_sequence=item.first_sequence,
            count=item.rows.messages,
            status=status,
            credits=self.credits,
            open_token=item.open_token,
            **more,
        )

    def reply(self, stream: Stream, item: WaitingRequest, status: int, **more: int | bytes) -> None:
        stream.owed -= item.cost
        stream.replies.append(PublishStreamResponse(replies=[self._base(item, status, **more)]))


class World:
    """The session, the gateways, the order, and what the caller was told."""

    def __init__(
        self, *, is_named: bool = False, credits: tuple[int, ...] = (8, 4), in_flight_max: int = 12
    ) -> None:
        self.session: Session[int] = Session(
            b"name" if is_named else b"\xff" * 16,
            b"i" * 16,
            is_named=is_named,
            in_flight_max=in_flight_max,
            cell_of=str,
        )
        self.gateways = [GatewayModel(self, amount) for amount in credits]
        self.streams: dict[int, Stream] = {}
        self.logs: dict[str, list[bytes]] = {group: [] for group in GROUPS}
        self.tables = self._new_tables()
        self.sn = 0
        #: By the session's instance: the highest clock that it was told of.
        self.seen: dict[bytes, int] = {}
        self.now = 0.0
        self.published: list[tuple[tuple[str, ...], bytes]] = []
        self.outcomes: dict[int, Receipt | OrdercastError] = {}

    def _new_tables(self) -> dict[str, ProducerTable]:
        return {group: ProducerTable(group, 10**12, 1024) for group in GROUPS}

    def deliver(self, item: WaitingRequest) -> dict:
        self.sn += 1
        key = order_key(self.sn, envelope_id(1, self.sn))
        range_ = ProducerRange(
            producer=item.producer,
            epoch=item.epoch,
            first_sequence=item.first_sequence,
            count=item.rows.messages,
            open_token=item.open_token,
        )
        outcomes = {}
        for group in item.groups:
            log = self.logs[group]
            outcome = self.tables[group].judge(range_, item.groups, self.sn, key, len(log))
            for span in outcome.spans:
                if not span.duplicate:
                    start = span.first_sequence - item.first_sequence
                    messages = Batch.FromString(item.rows.batch).messages
                    log.extend(m.payload for m in messages[start : start + span.count])
            outcomes[group] = outcome
        return outcomes

    # -------------------------------------------------------------------------------- what may happen

    def publish(
        self, groups: tuple[str, ...], *, bad: bool = False, timeout: float = 1e6, **options
    ) -> int | None:
        if not self.session.has_room(10) or self.session.fenced:
            return None
        number = len(self.published)
        payload = (BAD if bad else b"") + str(number).encode()
        self.published.append((groups, payload))
        message = Message(payload=payload)
        deadline = self.now + timeout
        self.session.publish(message, groups, size=message.ByteSize(), handle=number, deadline=deadline, **options)
        return number

    def see(self, clock: int) -> None:
        """The application read something from a log."""
        self._told(clock)
        self.session.see(token_of(clock))

    def _told(self, clock: int) -> None:
        instance = self.session.instance
        self.seen[instance] = max(self.seen.get(instance, 0), clock)

    def dial(self) -> bool:
        if not self.session.dial_due(self.now):
            return False
        gateway = self.gateways[self.session.gateway % len(self.gateways)]
        stream = Stream(self.session.dialed(self.now), gateway)
        stream.replies.append(PublishStreamResponse(credits=gateway.credits))
        self.streams[stream.number] = stream
        for producer in gateway.producers.values():
            producer.refused.clear()
        return True

    @property
    def current(self) -> Stream | None:
        return self.streams.get(self.session.stream)

    def write(self) -> list[PublishRequest]:
        frame = self.session.frame(self.now)
        if frame is None:
            return []
        assert self.current is not None
        requests = [PublishRequest.FromString(request.SerializeToString()) for request in frame.requests]
        for request in requests:
            shown = unpack_u64(TOKENS.verify(DOMAIN, request.session))
            assert shown >= self.seen.get(self.session.instance, 0), "not behind all that was seen"
        self.current.requests.extend(requests)
        return requests

    def read(self, choice: int = 0) -> bool:
        """Also of streams that the client gave up: what it wrote may still arrive."""
        unread = [stream for stream in self.streams.values() if stream.requests]
        if unread:
            stream = unread[choice % len(unread)]
            stream.gateway.read(stream)
        return bool(unread)

    def order(self, choice: int = 0) -> bool:
        ready = [(gateway, accepted) for gateway in self.gateways for accepted in gateway.ready()]
        if ready:
            gateway, accepted = ready[choice % len(ready)]
            gateway.order(accepted)
        return bool(ready)

    def receive(self, chance: float = 0.5) -> bool:
        if self.current is None or not self.current.replies:
            return False
        response = self.current.replies.popleft()
        for reply in response.replies:
            self._told(unpack_u64(TOKENS.verify(DOMAIN, reply.session)))
        self.session.received(self.current.number, response, self.now, chance)
        self.settle()
        return True

    def lose(self, *, unread_lost: int = 0) -> None:
        if self.current is None:
            return
        stream = self.current
        for _ in range(min(unread_lost, len(stream.requests))):
            stream.requests.pop()
        self.session.lost(stream.number, Unavailable("lost"), self.now, 0.5)
        self.settle()

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.session.tick(self.now, 0.5)
        self.settle()

    def forget(self) -> None:
        """The groups' memory of producers expires. It outlives whatever a client still repeats."""
        under_way = any(gateway.accepted for gateway in self.gateways)
        unread = any(stream.requests for stream in self.streams.values())
        repeated = any(item.doubts for item in (*self.session.sent.values(), *self.session.queue))
        if not (under_way or unread or repeated):
            self.tables = self._new_tables()

    def settle(self) -> None:
        for handle, outcome in self.session.take_settled():
            assert handle not in self.outcomes, "told twice"
            self.outcomes[handle] = outcome

    def heal(self) -> None:
        """Everything works from now on: until nothing is left to do."""
        for gateway in self.gateways:
            gateway.refusals.clear()
        for _ in range(10_000):
            self.settle()
            moved = self.dial() or bool(self.write()) or self.read() or self.order() or self.receive()
            if moved:
                continue
            if not self.session.pending and not self.session.opening:
                return
            at = self.session.wake_at()
            assert at is not None, "it waits for nothing"
            self.wait(max(at - self.now, 0.0))
        raise AssertionError("no end")
