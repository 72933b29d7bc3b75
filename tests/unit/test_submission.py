"""A gateway leaves it to its domain's submission how it sends: here to one that is no protocol's."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Effect, Receive
from ordercast.core.submission import Groups, Seeing, Sender, Submission, Submitted
from ordercast.core.view import View
from ordercast.gateway.machine import Gateway
from ordercast.gateway.settings import GatewaySettings
from ordercast.v1.common_pb2 import Incarnation, Message, Span
from ordercast.v1.gateway_pb2 import PUBLISH_STATUS_INVALID_ARGUMENT, PUBLISH_STATUS_OK, PublishRequest
from ordercast.v1.scalatom_pb2 import EnvelopeDurable
from ordercast.v1.sequencer_pb2 import Disseminate, EnvelopeDelivered
from tests.unit.driving import Driven, key_of, sends
from tests.unit.gateway_host import VIEW, new, replies


class ToTheFirst(Submission):
    """Sends each envelope to the first replica of its first group, and everything again at every tick.

    Others may follow at once. What a producer has seen is a text, and a report finishes an envelope.
    """

    handles = (EnvelopeDurable,)

    def __init__(self, gateway: Sender) -> None:
        self.gateway = gateway
        self.under_way: dict[bytes, Submitted] = {}
        self.durable: dict[bytes, None] = {}
        self.events: list[Any] = []

    def wrong_with(self, groups: Groups) -> str:
        return "c is not for us" if "c" in groups else ""

    def nothing_seen(self) -> str:
        return ""

    def read_session(self, session: bytes) -> str:
        if not session.isalpha():
            raise RemoteProtocolError("not a text")
        return session.decode()

    def see(self, seen: str, presented: str) -> str:
        return seen + presented

    def session_of(self, seen: Iterable[str]) -> bytes:
        return "".join(seen).encode()

    def choose(self, groups: Groups) -> Incarnation | None:
        first = self.gateway.view.groups[groups[0]].replicas[0]
        number = self.gateway.connected.get(first)
        return None if number is None else Incarnation(process=first, number=number)

    def send(self, submitted: Submitted) -> None:
        self.under_way[submitted.envelope.header.id] = submitted
        self._send(submitted)
        self.gateway.may_follow(submitted)

    def _send(self, submitted: Submitted) -> None:
        to = submitted.envelope.header.coordinator.process
        self.gateway.send((to,), Disseminate(envelope=submitted.envelope))

    def on_delivered(self, submitted: Submitted, source: str, delivered: EnvelopeDelivered) -> None:
        self.events.append(("delivered", source))

    def on_report(self, submitted: Submitted, event: Receive) -> None:
        self.durable[submitted.envelope.header.id] = None

    def on_answered(self, submitted: Submitted, producers: Sequence[Seeing]) -> None:
        for producer in producers:
            producer.seen += "!"

    def places_of(self, submitted: Submitted, index: int) -> list[list[Span]]:
        return [list(found.outcomes[index].spans) for found in submitted.delivered.values()]

    def is_finished(self, submitted: Submitted) -> bool:
        return submitted.envelope.header.id in self.durable

    def on_finished(self, submitted: Submitted) -> None:
        del self.under_way[submitted.envelope.header.id]

    def on_tick(self) -> None:
        for submitted in self.under_way.values():
            self._send(submitted)

    def on_connected(self, peer: str) -> None:
        self.events.append(("connected", peer))

    def on_view(self, before: View) -> None:
        self.events.append(("view", len(before.groups), len(self.gateway.view.groups)))


@pytest.fixture
def host() -> Driven:
    driven = Driven("g1", lambda: Gateway("g1", ToTheFirst), VIEW)
    driven.connect("n1")
    return driven


def publish(host: Driven, *groups: str, first: int = 1, session: bytes = b"") -> list[Effect]:
    fields = {"groups": groups, "first_sequence": first, "messages": [Message(payload=b"m")], "session": session}
    return host.receive("c1", PublishRequest(producer=b"p", **fields))


def sent_to(effects: list[Effect]) -> list[list[str]]:
    return [to for to, _ in sends(effects, Disseminate)]


def test_the_machine_handles_what_the_submission_does(host: Driven):
    assert set(host.machine.handles) == {PublishRequest, EnvelopeDelivered, EnvelopeDurable}


def test_what_the_submission_cannot_order_is_refused_in_its_words(host: Driven):
    (reply,) = replies(publish(host, "a", "c"))
    assert (reply.status, reply.detail) == (PUBLISH_STATUS_INVALID_ARGUMENT, "c is not for us")
    (reply,) = replies(publish(host, "a", session=b"12"))
    assert (reply.status, reply.detail) == (PUBLISH_STATUS_INVALID_ARGUMENT, "not a session token")


def test_where_several_groups_cannot_be_ordered_it_says_which_protocols_can():
    settings = GatewaySettings(protocols_across=("one", "other"))
    host = Driven("g1", lambda: Gateway("g1", ToTheFirst, settings), VIEW)
    (reply,) = replies(publish(host, "a", "c"))
    assert reply.detail == "c is not for us. Protocols that order across groups: one, other"
    (reply,) = replies(publish(host, "c"))
    assert reply.detail == "c is not for us"


def test_envelopes_go_where_the_submission_sends_them_and_follow_when_it_says_so(host: Driven):
    assert sent_to(publish(host, "a")) == [["n1"]]
    assert sent_to(publish(host, "a", first=2)) == [["n1"]], "though the first has no answer"


def test_nothing_leaves_while_the_submission_finds_nobody(host: Driven):
    assert sent_to(publish(host, "b")) == []
    assert host.machine.buffers()["waiting"] == 1
    assert sent_to(host.connect("n3")) == [["n3"]]


def test_what_producers_have_seen_is_the_submissions(host: Driven):
    (_, first), *_ = sends(publish(host, "a", session=b"x"), Disseminate)
    assert first.envelope.header.session == b"x"
    envelope = first.envelope
    key = key_of(1, envelope)
    message = EnvelopeDelivered(id=envelope.header.id, group="a", order_key=key, outcomes=[new(1, 1, 7, key)])
    (reply,) = replies(host.receive("n1", message))
    assert (reply.status, reply.session, reply.offsets[0].first_offset) == (PUBLISH_STATUS_OK, b"x!", 7)
    assert ("delivered", "n1") in host.machine.submission.events
    assert host.machine.buffers() == {"waiting": 0, "unanswered": 0, "open": 1}


def test_an_envelope_is_repeated_until_the_submission_says_that_it_is_finished(host: Driven):
    (_, first), *_ = sends(publish(host, "a"), Disseminate)
    id_, key = first.envelope.header.id, key_of(1, first.envelope)
    host.receive("n1", EnvelopeDelivered(id=id_, group="a", order_key=key, outcomes=[new(1, 1, 0, key)]))
    assert sent_to(host.tick()) == [["n1"]]
    host.receive("n2", EnvelopeDurable(id=id_, group="a"))
    assert host.machine.buffers()["open"] == 0
    assert sent_to(host.tick()) == []


def test_the_submission_hears_of_connections_and_views(host: Driven):
    assert host.machine.submission.events == [("view", 0, 3), ("connected", "n1")]


def test_nobody_but_a_replica_of_the_group_reports_to_the_submission(host: Driven):
    (_, first), *_ = sends(publish(host, "a"), Disseminate)
    with pytest.raises(RemoteProtocolError):
        host.receive("n4", EnvelopeDurable(id=first.envelope.header.id, group="a"))
    assert host.machine.submission.durable == {}
