"""A gateway driven by hand, and what clients and replicas would say to it."""

from typing import Any

from ordercast.core.machine import Effect, Receive
from ordercast.core.submission import MakeSubmission
from ordercast.gateway.machine import Gateway
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.scalatom.submission import ScalatomSubmission
from ordercast.v1.common_pb2 import Batch, Envelope, Message, RangeOutcome, Span
from ordercast.v1.gateway_pb2 import PublishReply, PublishRequest
from ordercast.v1.scalatom_pb2 import EnvelopeDecided, EnvelopeDurable
from ordercast.v1.sequencer_pb2 import Disseminate, EnvelopeDelivered
from tests.unit.driving import Driven, key_of, sent, view_of

VIEW = view_of({"a": "n1 n2 n3", "b": "n3 n4 n5", "c": "n6"})
REPLICAS = {group.group: list(group.replicas) for group in VIEW.groups}
RESEND_S = GatewaySettings().resend_s


class Host(Driven):
    def __init__(
        self,
        *,
        connected: str = "n1 n2 n3 n4 n5 n6",
        submission: MakeSubmission = ScalatomSubmission,
        **limits: Any,
    ) -> None:
        settings = GatewaySettings(**{"finished_every": 1, **limits})
        super().__init__("g1", lambda: Gateway("g1", submission, settings), VIEW)
        for peer in connected.split():
            self.connect(peer)
        self.now += 1.0

    def publish(
        self, *groups: str, first: int = 1, count: int = 1, client: str = "c1", **fields: Any
    ) -> list[Effect]:
        messages = [Message(payload=b"%d" % (first + index)) for index in range(count)]
        fields = {"producer": client.encode(), "messages": messages, **fields}
        request = PublishRequest(groups=groups, first_sequence=first, **fields)
        return self.step(Receive, client, 0, request)

    def submit(self, *groups: str, **fields: Any) -> Envelope:
        """For a message that leaves at once."""
        (envelope,) = envelopes(self.publish(*groups, **fields))
        return envelope

    def decide(self, envelope: Envelope, sn: int, source: str = "n3") -> list[Effect]:
        return self.receive(source, EnvelopeDecided(id=envelope.header.id, order_key=key_of(sn, envelope)))

    def deliver(
        self, envelope: Envelope, sn: int, group: str, *outcomes: RangeOutcome, offset: int = 0
    ) -> list[Effect]:
        """As the group's first replica tells it; without outcomes, everything is new, from the offset on."""
        key = key_of(sn, envelope)
        if not outcomes:
            outcomes = tuple(new(r.first_sequence, r.count, offset, key) for r in envelope.header.ranges)
        message = EnvelopeDelivered(id=envelope.header.id, group=group, order_key=key, outcomes=outcomes)
        return self.receive(REPLICAS[group][0], message)

    def durable(self, envelope: Envelope, group: str, *sources: str) -> None:
        for source in sources:
            self.receive(source, EnvelopeDurable(id=envelope.header.id, group=group))

    def finish(self, envelope: Envelope, sn: int) -> list[Effect]:
        """Delivered and durable everywhere; the effects of the last word."""
        effects: list[Effect] = []
        for destination in envelope.header.destinations:
            group = destination.group
            self.deliver(envelope, sn, group)
        for destination in envelope.header.destinations:
            for source in REPLICAS[destination.group]:
                message = EnvelopeDurable(id=envelope.header.id, group=destination.group)
                effects += self.receive(source, message)
        return effects


def new(first: int, count: int, offset: int, key: bytes) -> RangeOutcome:
    span = Span(first_sequence=first, count=count, first_offset=offset, order_key=key)
    return RangeOutcome(spans=[span], last_sequence=first + count - 1)


def envelopes(effects: list[Effect]) -> list[Envelope]:
    return [message.envelope for message in sent(effects, Disseminate)]


def replies(effects: list[Effect]) -> list[PublishReply]:
    return sent(effects, PublishReply)


def status(effects: list[Effect]) -> int:
    (reply,) = replies(effects)
    assert not envelopes(effects)
    return reply.status


def payloads(envelope: Envelope) -> list[bytes]:
    return [message.payload for message in Batch.FromString(envelope.body).messages]
