"""What a gateway lets in: credits, repetitions, refusals that keep the order, and bad input."""

import pytest

from ordercast.core.ids import pack_u64
from ordercast.core.machine import GroupsClosed, NodesJudged, ViewChanged
from ordercast.gateway.machine import Gateway
from ordercast.gateway.refused import REFUSED_MAX
from ordercast.protocols.scalatom.submission import ScalatomSubmission
from ordercast.v1.common_pb2 import REFUSAL_GAP, Message, RangeOutcome
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PublishReply,
    PublishRequest,
)
from tests.unit.driving import Driven, sends, view_of
from tests.unit.gateway_host import REPLICAS, VIEW, Host, envelopes, payloads, replies, status


def test_a_producer_out_of_credits_is_told_to_come_back():
    host = Host(producer_messages_max=3)
    envelope = host.submit("a", count=2)
    effects = host.publish("a", first=3, count=2)
    assert status(effects) == PUBLISH_STATUS_RESOURCE_EXHAUSTED
    assert replies(effects)[0].credits == 3
    assert host.machine.buffers()["waiting"] == 0
    assert host.submit("a", client="c2", count=3), "credits are each producer's own"
    host.decide(envelope, 40)
    assert status(host.publish("a", first=3, count=2)) == PUBLISH_STATUS_RESOURCE_EXHAUSTED, (
        "decided is no receipt"
    )
    host.deliver(envelope, 40, "a")
    assert host.submit("a", first=3, count=2)


def test_credits_come_back_with_a_refusal_at_delivery_too():
    host = Host(producer_messages_max=2)
    envelope = host.submit("a", first=7, count=2)
    host.deliver(envelope, 40, "a", RangeOutcome(refusal=REFUSAL_GAP))
    assert host.submit("b", count=2)


def test_after_a_refusal_nothing_overtakes_that_request_until_it_comes_again():
    """Otherwise a pipelined client's later messages would come before the refused one."""
    host = Host(producer_messages_max=2)
    envelope = host.submit("a", count=2)
    assert status(host.publish("a", "b", count=2)) == PUBLISH_STATUS_RESOURCE_EXHAUSTED
    host.deliver(envelope, 40, "a")
    for later in (("b",), ("a",), ("a", "b")):
        assert status(host.publish(*later, first=3)) == PUBLISH_STATUS_SEQUENCE_GAP
    assert host.submit("c"), "shares no group with it"
    assert host.machine.buffers()["waiting"] == 0


def test_what_was_refused_comes_in_when_it_is_repeated_in_its_order():
    host = Host(producer_messages_max=2)
    envelope = host.submit("a", count=2)
    assert status(host.publish("b")) == PUBLISH_STATUS_RESOURCE_EXHAUSTED
    assert status(host.publish("b", first=2)) == PUBLISH_STATUS_SEQUENCE_GAP
    host.deliver(envelope, 40, "a")
    assert status(host.publish("b", first=2)) == PUBLISH_STATUS_SEQUENCE_GAP, "its turn is second"
    first = host.submit("b")
    host.decide(first, 41)
    assert host.submit("b", first=2)


def test_an_unordered_message_may_pass_a_refused_one_to_another_set():
    host = Host(producer_messages_max=2)
    envelope = host.submit("a", count=2)
    host.publish("a", "b")
    host.deliver(envelope, 40, "a")
    assert host.submit("b", unordered=True)


def test_a_new_stream_of_the_client_starts_afresh():
    host = Host(producer_messages_max=2)
    envelope = host.submit("a", count=2)
    host.publish("b")
    host.deliver(envelope, 40, "a")
    host.connect("c2")
    assert status(host.publish("b", first=2)) == PUBLISH_STATUS_SEQUENCE_GAP, "another client's stream"
    host.connect("c1")
    assert host.submit("b", first=2)


def test_what_all_producers_have_waiting_is_bounded():
    host = Host(waiting_bytes_max=30, envelopes_open_max=1)
    host.submit("a")
    refused = [reply for n in range(10) for reply in replies(host.publish("a", producer=b"%d" % n))]
    assert {reply.status for reply in refused} == {PUBLISH_STATUS_RESOURCE_EXHAUSTED}
    assert 0 < host.machine.batching.waiting_bytes <= 30


def test_a_client_that_comes_under_another_name_starts_afresh():
    host = Host(producer_messages_max=2)
    envelope = host.submit("a", count=2)
    host.publish("b")
    host.deliver(envelope, 40, "a")
    assert status(host.publish("b", first=2)) == PUBLISH_STATUS_SEQUENCE_GAP
    assert envelopes(host.publish("b", first=2, client="c2", producer=b"c1"))


def test_a_new_stream_has_no_new_credits():
    host = Host(producer_messages_max=2)
    host.submit("a", count=2)
    host.connect("c1")
    assert status(host.publish("b")) == PUBLISH_STATUS_RESOURCE_EXHAUSTED


def test_gaps_and_repetitions_are_left_for_delivery_to_tell():
    """Only the groups know what came through other gateways."""
    host = Host()
    first = host.submit("a", count=3)
    host.decide(first, 40)
    second = host.submit("a", first=2, count=1)
    host.decide(second, 41)
    assert host.submit("a", first=9)


def test_a_request_that_is_here_already_is_not_sent_twice():
    host = Host()
    first = host.submit("a", count=2)
    assert host.publish("a", count=2) == []
    host.publish("a", first=3)
    assert host.publish("a", first=3) == []
    (second,) = envelopes(host.decide(first, 40))
    assert payloads(second) == [b"3"]
    assert len(replies(host.deliver(first, 40, "a"))) == 1


def test_a_request_repeated_over_another_stream_is_answered_there():
    host = Host()
    envelope = host.submit("a")
    host.publish("a", client="c2", producer=b"c1")
    assert [to for to, _ in sends(host.deliver(envelope, 40, "a"), PublishReply)] == [["c2"]]


def test_each_request_of_a_range_is_answered_to_whoever_repeated_it():
    host = Host()
    first = host.submit("a")
    host.publish("a", first=2)
    host.publish("a", first=3)
    (second,) = envelopes(host.decide(first, 40))
    host.publish("a", first=2, client="c2", producer=b"c1")
    answered = [to for to, _ in sends(host.deliver(second, 41, "a"), PublishReply)]
    assert any("c2" in to for to in answered)


def test_the_same_sequence_in_a_new_epoch_is_another_request():
    """What its first life sent waits here and will be fenced; its second opened the producer elsewhere."""
    host = Host()
    first = host.submit("a", epoch=1)
    host.publish("a", epoch=2, messages=[Message(payload=b"second life")])
    (second,) = envelopes(host.decide(first, 40))
    assert payloads(second) == [b"second life"]


def test_after_opening_a_producer_its_next_sequence_is_accepted():
    for last in (0, 17):
        host = Host()
        envelope = host.submit("a", first=0, count=0, open_token=b"token")
        host.deliver(envelope, 40, "a", RangeOutcome(epoch=1, last_sequence=last))
        assert host.submit("a", first=last + 1, epoch=1)


def test_requests_without_messages_are_bounded_too():
    host = Host(connected="", producer_messages_max=4)
    for number in range(20):
        host.publish("a", first=0, count=0, open_token=b"token %d" % number)
    assert host.machine.buffers()["waiting"] <= 5


def test_idle_producers_are_forgotten_though_one_waits_for_a_group_without_a_quorum():
    host = Host(producers_idle_max=4)
    host.submit("a")
    for number in range(20):
        host.finish(host.submit("c", producer=b"p%d" % number), 40 + number)
    assert len(host.machine.intake.producers) <= 6


def test_a_producer_that_waits_is_not_forgotten():
    host = Host(producers_idle_max=2)
    envelope = host.submit("a")
    for number in range(5):
        host.finish(host.submit("c", producer=b"p%d" % number), 40 + number)
    assert len(replies(host.deliver(envelope, 90, "a"))) == 1


def test_replicas_that_connected_before_the_first_view_are_known_to_be_up():
    host = Driven("g1", lambda: Gateway("g1", ScalatomSubmission), None)
    for peer in REPLICAS["a"]:
        host.connect(peer)
    host.step(ViewChanged, VIEW)
    request = PublishRequest(producer=b"p", groups=["a"], first_sequence=1, messages=[Message()])
    assert len(envelopes(host.receive("c1", request))) == 1


def test_a_process_that_was_connected_before_a_view_gave_it_a_replica_is_known_to_be_up():
    host = Driven("g1", lambda: Gateway("g1", ScalatomSubmission), view_of({"a": "n1 n2 n3"}))
    host.connect("n6")
    host.step(ViewChanged, VIEW)
    request = PublishRequest(producer=b"p", groups=["c"], first_sequence=1, messages=[Message()])
    assert len(envelopes(host.receive("c1", request))) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"groups": []}, id="no group"),
        pytest.param({"groups": ["a", "a"]}, id="a group twice"),
        pytest.param({"groups": [""]}, id="a group without a name"),
        pytest.param({"groups": ["a", "b", "c"]}, id="too many groups"),
        pytest.param({"producer": b""}, id="no producer"),
        pytest.param({"messages": []}, id="no message"),
        pytest.param({"open_token": b"token"}, id="messages and a token"),
        pytest.param({"first_sequence": 0}, id="sequence 0"),
        pytest.param({"messages": [Message(payload=bytes(101))]}, id="a payload too long"),
        pytest.param({"messages": [Message(key=bytes(400_000))]}, id="a request too long"),
        pytest.param({"session": b"1234567"}, id="a session too short"),
        pytest.param({"session": b"123456789"}, id="a session too long"),
        pytest.param({"session": pack_u64(2**62 + 1)}, id="a session from the future"),
    ],
)
def test_bad_input_is_an_invalid_argument_and_nothing_is_stored(wrong):
    host = Host(groups_max=2, envelope_messages_max=4, payload_bytes_max=100, envelope_bytes_max=1000)
    fields = {"producer": b"p", "groups": ["a"], "first_sequence": 1, "messages": [Message()], **wrong}
    effects = host.receive("c1", PublishRequest(**fields))
    assert status(effects) == PUBLISH_STATUS_INVALID_ARGUMENT
    assert replies(effects)[0].detail
    assert host.machine.buffers() == {"waiting": 0, "unanswered": 0, "open": 0}
    assert host.machine.intake.producers == {}
    assert host.submit("b", producer=b"p"), "and nothing has to be repeated"


def test_texts_have_the_names_of_groups_and_not_their_ids():
    """They are for users, and nobody changes them on their way."""
    view = view_of({"a#1": "n1", "b#22": "n2"})
    host = Driven("g1", lambda: Gateway("g1", ScalatomSubmission), view)
    host.connect("n1")

    def detail(*groups: str) -> str:
        request = PublishRequest(producer=b"p", groups=groups, first_sequence=1, messages=[Message()])
        (reply,) = replies(host.receive("c1", request))
        assert list(reply.groups) == list(groups), "which have ids: a name may be used again"
        return reply.detail

    host.step(NodesJudged, frozenset({"n1"}), frozenset({"n1"}))
    assert detail("b#22") == "group 'b' has no quorum"
    assert detail("a#1") == "the disks under group 'a' are full"
    assert detail("a#2") == "unknown group 'a'"
    host.step(GroupsClosed, ("b#22",))
    assert detail("a#1", "b#22") == "group 'b' is being deleted"


def test_nothing_overtakes_messages_that_come_again_one_by_one():
    """c1 sends five to {a} in one request, and behind them one to {a, b}. So many at once are refused, but each of
    them is all right, and a client that sends them alone means them to come first.
    """
    host = Host(envelope_messages_max=4)
    assert status(host.publish("a", count=5)) == PUBLISH_STATUS_INVALID_ARGUMENT
    assert status(host.publish("a", "b")) == PUBLISH_STATUS_SEQUENCE_GAP
    assert host.submit("c"), "shares no group with them"
    assert host.submit("a")
    for first in (2, 3, 4):
        host.publish("a", first=first)
    assert status(host.publish("a", "b")) == PUBLISH_STATUS_SEQUENCE_GAP, "the fifth is still to come"
    host.publish("a", first=5)
    host.publish("a", "b")
    assert host.machine.buffers()["waiting"] == 5, "behind what is under way to a"


def test_messages_that_come_again_one_by_one_keep_all_of_their_place():
    """c1 sends two to {a, b} in one request, and behind them three to {a} in another. Each request has too many,
    and all comes again one by one. Were only the place of the first remembered, the second to {a, b} would be
    taken for news, and be refused since {a} is still to come; and then the first to {a} would overtake it.
    """
    host = Host(envelope_messages_max=1)
    assert status(host.publish("a", "b", first=2, count=2)) == PUBLISH_STATUS_INVALID_ARGUMENT
    assert status(host.publish("a", first=2, count=3)) == PUBLISH_STATUS_INVALID_ARGUMENT
    assert payloads(host.submit("a", "b", first=2)) == [b"2"]
    assert status(host.publish("a", first=2)) == PUBLISH_STATUS_SEQUENCE_GAP, "its place is behind all of {a, b}"
    assert host.publish("a", "b", first=3) == []
    for first in (2, 3, 4):
        assert host.publish("a", first=first) == []
    assert host.machine.buffers()["waiting"] == 4


def test_one_of_several_that_is_refused_again_keeps_its_place():
    host = Host(envelope_messages_max=2, producer_messages_max=3)
    full = host.submit("c", count=2)
    assert status(host.publish("a", "b", count=3)) == PUBLISH_STATUS_INVALID_ARGUMENT
    assert status(host.publish("a", count=3)) == PUBLISH_STATUS_INVALID_ARGUMENT
    first = host.submit("a", "b")
    assert status(host.publish("a", "b", first=2)) == PUBLISH_STATUS_RESOURCE_EXHAUSTED
    host.finish(full, 40)
    assert status(host.publish("a", "b", first=3)) == PUBLISH_STATUS_SEQUENCE_GAP
    assert status(host.publish("a")) == PUBLISH_STATUS_SEQUENCE_GAP
    host.finish(first, 41)
    assert payloads(host.submit("a", "b", first=2, count=2)) == [b"2", b"3"], "in other company than before"
    assert host.publish("a") == []


def test_what_had_to_go_again_comes_before_what_was_refused_behind_it():
    """m1 to {a, c} and m2 to {a} wait here, and m3 to {a, b} is refused: too much. Then c is closed, so m1 is
    given up, and m2 has to come again. It is earlier than m3, though it was refused later.
    """
    host = Host(producer_messages_max=3)
    host.submit("a", first=7)
    host.publish("a", "c")
    host.publish("a")
    assert status(host.publish("a", "b")) == PUBLISH_STATUS_RESOURCE_EXHAUSTED
    assert len(replies(host.step(GroupsClosed, ("c",)))) == 2
    assert status(host.publish("a", "b")) == PUBLISH_STATUS_SEQUENCE_GAP
    assert host.publish("a") == []
    assert host.publish("a", "b") == []
    assert host.machine.buffers()["waiting"] == 2


def test_a_gateway_that_remembers_as_many_places_as_it_can_takes_nothing_new():
    host = Host(producer_messages_max=1)
    under_way = host.submit("c")
    for number in range(REFUSED_MAX + 1):
        assert status(host.publish("a", first=2 * number + 1)) != PUBLISH_STATUS_OK
    host.finish(under_way, 40)
    assert status(host.publish("b")) == PUBLISH_STATUS_SEQUENCE_GAP, "it shares no group with what is remembered"
    host.finish(host.submit("a"), 41)
    assert host.submit("b"), "since there is room again"


def test_a_message_that_is_wrong_by_itself_holds_nothing_up():
    host = Host(payload_bytes_max=10)
    wrong = {"messages": [Message(payload=b"x" * 11)]}
    assert status(host.publish("a", **wrong)) == PUBLISH_STATUS_INVALID_ARGUMENT
    assert host.submit("a", "b")
    assert status(host.publish("c", messages=[*wrong["messages"], Message()])) == PUBLISH_STATUS_INVALID_ARGUMENT
    assert status(host.publish("c", **wrong)) == PUBLISH_STATUS_INVALID_ARGUMENT, "it comes again alone"
    assert status(host.publish("b", "c")) == PUBLISH_STATUS_SEQUENCE_GAP, "behind what was sent with it"
    assert host.submit("c", messages=[Message()]), "and that closes up"
    assert host.publish("b", "c") == []
