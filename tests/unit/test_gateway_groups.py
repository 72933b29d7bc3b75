"""A gateway while groups come and go: what is closed takes nothing new, and what was taken is finished."""

import pytest

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import envelope_id
from ordercast.core.machine import ChannelReset, GroupsClosed, Receive, ViewChanged
from ordercast.core.view import UnknownGroup
from ordercast.gateway.machine import Gateway
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.isis.submission import IsisSubmission
from ordercast.protocols.scalatom.submission import ScalatomSubmission
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PublishRequest,
)
from ordercast.v1.isis_pb2 import Submit
from ordercast.v1.scalatom_pb2 import EnvelopeDecided, EnvelopeDurable
from tests.unit.driving import LIVES, Driven, sent, view_of
from tests.unit.gateway_host import RESEND_S, Host, envelopes, payloads, replies, status

WITHOUT_C = view_of({"a": "n1 n2 n3", "b": "n3 n4 n5"})
WITH_D = view_of({"a": "n1 n2 n3", "b": "n3 n4 n5", "c": "n6", "d": "n1"})


def test_what_is_for_a_new_group_is_sent_again_soon_since_its_replicas_may_not_know_it_yet():
    """Nobody is taken for down because of it: the group would count as one without a quorum."""
    host = Host()
    host.step(ViewChanged, view_of({"a": "n1 n2 n3", "b": "n3 n4 n5", "c": "n6", "d": "n1 n2"}))
    new, old = host.submit("d"), host.submit("a", client="c2")
    assert [envelopes(host.tick(0.11)) for _ in range(4)] == [[new], [new], [], [new]]
    assert not host.machine.suspected
    assert envelopes(host.tick(0.11)) == [old], "for which the usual time is over"
    assert list(host.machine.suspected) == ["n1", "n2", "n3"]


def test_a_member_of_a_new_group_with_views_is_sent_everything_again_soon_and_not_left():
    host = Host(submission=IsisSubmission)
    host.step(ViewChanged, view_of({"a": "n1 n2 n3", "b": "n3 n4 n5", "c": "n6", "d": "n1 n2"}))
    (first,) = sent(host.publish("d"), Submit)
    assert [len(sent(host.tick(0.11), Submit)) for _ in range(4)] == [1, 0, 1, 0]
    assert not host.machine.suspected
    (again,) = sent(host.tick(2 * RESEND_S), Submit)
    assert again.again
    assert again.envelope.header.id == first.envelope.header.id
    assert list(host.machine.suspected) == ["n2"], "for which the usual time is over"


def test_a_member_of_a_group_with_views_that_all_know_has_the_usual_time():
    host = Host(submission=IsisSubmission)
    host.publish("a")
    assert not sent(host.tick(RESEND_S - 0.01), Submit)
    assert sent(host.tick(0.02), Submit)
    assert list(host.machine.suspected) == ["n3"]


def test_who_never_answers_for_a_new_group_is_taken_for_down_in_the_end():
    host = Host()
    host.step(ViewChanged, WITH_D)
    host.submit("d")
    host.tick(GatewaySettings().tick_s)
    assert not host.machine.suspected
    host.tick(RESEND_S)
    assert list(host.machine.suspected) == ["n1"]


def test_a_group_is_new_for_a_moment_only():
    host = Host()
    host.step(ViewChanged, WITH_D)
    host.now += RESEND_S
    host.submit("d")
    assert not envelopes(host.tick(GatewaySettings().tick_s))


def test_the_first_group_of_all_is_new_and_those_that_a_gateway_finds_are_not():
    for first in ({}, {"d": "n1 n2"}):
        gateway = Driven("g1", lambda: Gateway("g1", ScalatomSubmission, GatewaySettings()), view_of(first))
        gateway.step(ViewChanged, view_of({"d": "n1 n2"}))
        gateway.step(ChannelReset, "n1", 1)
        request = PublishRequest(groups=["d"], first_sequence=1, producer=b"p", messages=[Message()])
        gateway.step(Receive, "c1", 0, request)
        assert bool(envelopes(gateway.tick(GatewaySettings().tick_s))) == (not first)


def test_nothing_new_is_taken_for_a_group_that_is_being_deleted():
    host = Host()
    host.step(GroupsClosed, ("c",))
    (reply,) = replies(host.publish("a", "c"))
    assert (reply.status, reply.detail) == (PUBLISH_STATUS_NOT_FOUND, "group 'c' is being deleted")
    assert (list(reply.groups), reply.first_sequence, reply.count) == (["a", "c"], 1, 1)
    assert host.submit("a"), "and nothing waits for it to come again"


def test_other_groups_are_open_again_when_the_list_says_so():
    host = Host()
    host.step(GroupsClosed, ("a", "c"))
    host.step(GroupsClosed, ("c",))
    assert host.submit("a")


def test_what_waits_for_a_group_that_is_closed_is_refused_and_what_waited_behind_it_has_to_come_again():
    host = Host()
    first = host.submit("a")
    host.publish("a", "c", count=2)
    host.publish("a", first=2)
    effects = host.step(GroupsClosed, ("c",))
    assert [(reply.status, list(reply.groups), reply.count) for reply in replies(effects)] == [
        (PUBLISH_STATUS_NOT_FOUND, ["a", "c"], 2),
        (PUBLISH_STATUS_SEQUENCE_GAP, ["a"], 1),
    ]
    assert host.machine.intake.producers[b"c1"].outstanding == 1
    assert host.publish("a", first=2) == []
    assert [payloads(envelope) for envelope in envelopes(host.decide(first, 9))] == [[b"2"]]


def test_an_opening_that_waits_is_refused_by_its_token():
    host = Host()
    host.submit("c")
    host.publish("c", count=0, open_token=b"token")
    (reply,) = replies(host.step(GroupsClosed, ("c",)))
    assert (reply.status, reply.open_token) == (PUBLISH_STATUS_NOT_FOUND, b"token")


def test_what_is_in_an_envelope_is_finished_and_a_repetition_gets_its_receipt():
    host = Host()
    envelope = host.submit("c")
    host.step(GroupsClosed, ("c",))
    assert host.machine.mentions("c")
    assert host.publish("c") == []
    assert [reply.status for reply in replies(host.deliver(envelope, 7, "c"))] == [PUBLISH_STATUS_OK]
    assert host.machine.mentions("c"), "a receipt finishes nothing"
    host.durable(envelope, "c", "n6")
    assert not host.machine.mentions("c")


def test_what_waits_is_mentioned():
    host = Host()
    host.submit("a")
    host.publish("a", "c")
    assert host.machine.mentions("c")
    assert not host.machine.mentions("b")


def test_a_refusal_that_would_have_been_repeated_holds_nothing_up_once_the_group_is_closed():
    host = Host(producer_messages_max=2)
    host.submit("b", count=2)
    assert status(host.publish("a", "c")) != PUBLISH_STATUS_OK
    assert status(host.publish("a")) == PUBLISH_STATUS_SEQUENCE_GAP
    host.step(GroupsClosed, ("c",))
    assert len(host.machine.intake.producers[b"c1"].refused) == 1, "only what is for a alone"


def test_a_group_that_is_gone_is_forgotten():
    host = Host()
    host.finish(host.submit("c"), 7)
    host.step(GroupsClosed, ("c",))
    host.step(ViewChanged, WITHOUT_C)
    assert "c" not in host.machine.batching.open_by_cell
    assert host.machine.closed == {}
    assert host.submit("a", "b")


def test_a_group_that_is_gone_while_an_envelope_to_it_is_open_stops_the_process():
    host = Host()
    host.submit("a", "c")
    with pytest.raises(InvariantBroken):
        host.step(ViewChanged, WITHOUT_C)


def test_what_waits_for_a_group_that_went_without_a_word_is_refused():
    host = Host()
    host.submit("a")
    host.publish("a", "c")
    assert status(host.step(ViewChanged, WITHOUT_C)) == PUBLISH_STATUS_NOT_FOUND


def test_what_is_refused_for_want_of_a_view_is_not_overtaken():
    """Its producer sends it again, and what came later must stay behind it."""
    host = Host()
    assert status(host.publish("a", "d")) == PUBLISH_STATUS_INVALID_ARGUMENT
    assert status(host.publish("a")) == PUBLISH_STATUS_SEQUENCE_GAP
    host.step(ViewChanged, WITH_D)
    assert host.submit("a", "d")


def test_old_news_of_a_group_that_is_gone_is_refused_by_its_name_or_ignored():
    host = Host()
    host.step(ViewChanged, WITHOUT_C)
    id_ = envelope_id(LIVES["g1"], 77)
    with pytest.raises(UnknownGroup):
        host.receive("n6", EnvelopeDurable(id=id_, group="c"))
    assert host.receive("n6", EnvelopeDecided(id=id_)) == []
