"""The gateway: what it puts into envelopes, when they leave, and whom it answers."""

import pytest

from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.ids import counter_of, envelope_id, pack_u64
from ordercast.core.machine import Observe
from ordercast.core.tracing import CONTEXT_BYTES, KEPT
from ordercast.gateway.machine import Gateway
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.scalatom.submission import ScalatomSubmission
from ordercast.v1.common_pb2 import REFUSAL_FENCED, REFUSAL_GAP, Message, RangeOutcome, Span
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_FENCED,
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PUBLISH_STATUS_UNAVAILABLE,
    GroupOffset,
    PublishReply,
    PublishRequest,
)
from ordercast.v1.scalatom_pb2 import EnvelopeDecided, EnvelopeDurable
from ordercast.v1.sequencer_pb2 import Disseminate, EnvelopeDelivered
from tests.unit.driving import LIVES, Driven, destinations, key_of, range_of, sends, sent
from tests.unit.gateway_host import RESEND_S, VIEW, Host, envelopes, new, payloads, replies, status

#: Of a client's own trace.
CONTEXT = bytes(range(CONTEXT_BYTES))

# ------------------------------------------------------------------------------------------------------ envelopes


def test_a_message_leaves_at_once_for_every_replica_of_its_groups():
    host = Host()
    effects = host.publish("b", "a", trace=CONTEXT)
    ((to, message),) = sends(effects, Disseminate)
    assert to == ["n1", "n2", "n3", "n4", "n5"]
    assert not message.again
    header = message.envelope.header
    assert header.id == envelope_id(LIVES["g1"], 0)
    assert list(header.destinations) == destinations("a", "b")
    assert (header.gateway, header.trace) == ("g1", CONTEXT)
    assert list(header.ranges) == [range_of(b"c1", 1, 1)]
    assert payloads(message.envelope) == [b"1"]


def test_a_share_of_envelopes_is_marked_for_telemetry_and_says_when_it_was_accepted():
    for share, marks in ((0.0, {b""}), (1.0, {KEPT}), (0.5, {b"", KEPT})):
        host = Host(sampling=share, tells_time=True)
        headers = []
        for number in range(40):
            envelope = host.submit("a", producer=b"%d" % number)
            headers.append(envelope.header)
            host.finish(envelope, number)
        assert {header.trace for header in headers} == marks
        assert all(header.accepted_ns for header in headers)
    header = Host().submit("a").header
    assert (header.trace, header.accepted_ns) == (b"", 0)


def test_messages_to_different_sets_leave_in_different_envelopes():
    host = Host(envelopes_open_max=1)
    first = host.submit("c")
    host.publish("a", client="c2")
    host.publish("b")
    host.publish("a", "b", producer=b"other")
    groups = []
    while first is not None:
        effects = host.finish(first, 5)
        first = next(iter(envelopes(effects)), None)
        if first is not None:
            groups.append([d.group for d in first.header.destinations])
    assert sorted(groups) == [["a"], ["a", "b"], ["b"]]


def test_messages_of_several_producers_to_one_set_share_an_envelope():
    host = Host(envelopes_open_max=1)
    first = host.submit("a")
    host.publish("a", first=2)
    host.publish("a", client="c2", count=2)
    (envelope,) = envelopes(host.finish(first, 5))
    assert list(envelope.header.ranges) == [range_of(b"c1", 2, 1), range_of(b"c2", 1, 2)]
    assert payloads(envelope) == [b"2", b"1", b"2"]


def test_requests_that_follow_on_each_other_become_one_range():
    host = Host()
    first = host.submit("a")
    for number in (2, 3, 5):
        host.publish("a", first=number, count=2 if number == 3 else 1)
    (envelope,) = envelopes(host.decide(first, 5))
    assert list(envelope.header.ranges) == [range_of(b"c1", 2, 4)]
    assert payloads(envelope) == [b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize(
    "other",
    [{"epoch": 1}, {"first": 4}, {"client": "c2", "producer": b"c1"}],
    ids=["another epoch", "a gap", "another client"],
)
def test_requests_that_do_not_follow_on_each_other_keep_ranges_of_their_own(other):
    host = Host()
    first = host.submit("a")
    host.publish("a", first=2)
    host.publish("a", **{"first": 3, **other})
    (envelope,) = envelopes(host.decide(first, 5))
    assert [(r.first_sequence, r.count) for r in envelope.header.ranges] == [(2, 1), (other.get("first", 3), 1)]


def test_opening_a_producer_is_a_range_of_its_own_without_messages():
    host = Host()
    envelope = host.submit("a", first=0, count=0, open_token=b"token")
    assert list(envelope.header.ranges) == [range_of(b"c1", 0, 0, open_token=b"token")]
    assert payloads(envelope) == []


def test_an_envelope_is_full_at_its_limit_of_messages_and_nothing_overtakes():
    host = Host(envelope_messages_max=3)
    first = host.submit("a")
    for number in range(2, 7):
        host.publish("a", first=number)
    left = []
    while first is not None:
        left.append(payloads(first))
        first = next(iter(envelopes(host.decide(first, 5))), None)
    assert left == [[b"1"], [b"2", b"3", b"4"], [b"5", b"6"]]


def test_an_envelope_is_full_at_its_limit_of_bytes():
    host = Host(envelope_bytes_max=1000)
    first = host.submit("a")
    for number in range(2, 5):
        host.publish("a", first=number, messages=[Message(payload=bytes(400))])
    (second,) = envelopes(host.decide(first, 5))
    (third,) = envelopes(host.decide(second, 6))
    assert [r.count for e in (second, third) for r in e.header.ranges] == [2, 1]


def test_no_more_envelopes_are_open_than_the_limit_says():
    host = Host(envelopes_open_max=2)
    sets = [("a",), ("b",), ("c",)]
    left = [e for groups in sets for e in envelopes(host.publish(*groups))]
    assert len(left) == 2
    host.decide(left[0], 5)
    assert host.machine.buffers() == {"waiting": 1, "unanswered": 2, "open": 2}
    (third,) = envelopes(host.finish(left[0], 5))
    assert list(third.header.destinations) == destinations("c")


# ------------------------------------------------------------------------------------------------ coordinators


def test_the_coordinator_is_a_replica_of_as_many_groups_as_possible_in_its_current_life():
    host = Host()
    host.connect("n3", 303)
    coordinator = host.submit("a", "b").header.coordinator
    assert (coordinator.process, coordinator.number) == ("n3", 303)


def test_a_process_that_is_not_connected_does_not_become_coordinator():
    assert Host(connected="n1 n2").submit("a", "b").header.coordinator.process == "n2"


def test_a_process_that_is_silent_does_not_become_coordinator_again():
    host = Host()
    envelope = host.submit("a")
    assert envelope.header.coordinator.process == "n3"
    host.durable(envelope, "a", "n1", "n2")
    host.tick(RESEND_S)
    assert host.submit("a", client="c2").header.coordinator.process == "n2"


def test_a_replica_in_the_gateways_own_process_needs_no_channel():
    host = Driven("n1", lambda: Gateway("n1", ScalatomSubmission), VIEW)
    request = PublishRequest(producer=b"p", groups=["a"], first_sequence=1, messages=[Message()])
    (envelope,) = envelopes(host.receive("c1", request))
    assert (envelope.header.coordinator.process, envelope.header.coordinator.number) == ("n1", host.incarnation)


def test_messages_wait_until_somebody_is_there_to_coordinate():
    host = Host(connected="n4")
    assert envelopes(host.publish("a")) == []
    assert host.machine.buffers()["waiting"] == 1
    (envelope,) = envelopes(host.connect("n2"))
    assert envelope.header.coordinator.process == "n2"


# --------------------------------------------------------------------------------------------------- chaining


def test_the_next_envelope_of_a_producer_waits_until_the_last_one_is_decided():
    host = Host()
    first = host.submit("a")
    assert envelopes(host.publish("a", "b")) == []
    assert envelopes(host.publish("c")) != [], "shares no group with what is under way"
    assert [list(e.header.destinations) for e in envelopes(host.decide(first, 40))] == [destinations("a", "b")]


def test_a_third_message_does_not_ride_past_the_second():
    host = Host()
    first = host.submit("a")
    host.publish("a", "b")
    host.publish("a", first=2)
    (second,) = envelopes(host.decide(first, 40))
    assert list(second.header.destinations) == destinations("a", "b")
    (third,) = envelopes(host.decide(second, 41))
    assert payloads(third) == [b"2"]


def test_what_waits_to_be_submitted_waits_for_its_producers_last_envelope():
    host = Host()
    host.machine.observe = True
    first = host.submit("a")
    host.now += 1.0
    host.publish("a", first=2)
    host.now += 1.0
    effects = [*host.decide(first, 40), *host.publish("c")]
    submitted = [effect for effect in effects if isinstance(effect, Observe) and effect.stage == "submit"]
    assert [effect.blocked_on for effect in submitted] == [f"message:{first.header.id.hex()}", ""]


def test_a_delivery_says_as_well_that_an_envelope_is_decided():
    host = Host()
    first = host.submit("a")
    host.publish("a", first=2)
    (second,) = envelopes(host.deliver(first, 40, "a"))
    assert second.header.session == pack_u64(40)


def test_another_producer_does_not_wait():
    host = Host()
    host.publish("a")
    assert envelopes(host.publish("a", client="c2"))


def test_an_unordered_message_does_not_wait_for_other_sets():
    host = Host()
    host.publish("a")
    assert envelopes(host.publish("a", "b", unordered=True))


def test_an_envelope_carries_the_highest_sn_its_producers_have_seen():
    host = Host()
    first = host.submit("a")
    assert first.header.session == b"", "nothing was seen yet"
    host.decide(first, 40)
    assert host.submit("a", first=2).header.session == pack_u64(40)
    assert host.submit("b", session=pack_u64(70)).header.session == pack_u64(70)
    assert host.submit("c", session=pack_u64(50)).header.session == pack_u64(70), "seen is seen"
    assert host.submit("b", client="c2").header.session == b"", "others have not seen it"


def test_producers_in_one_envelope_share_the_highest_clock():
    host = Host(envelopes_open_max=1)
    first = host.submit("a")
    host.publish("a", first=2)
    host.publish("a", client="c2", session=pack_u64(70))
    assert [e.header.session for e in envelopes(host.finish(first, 40))] == [pack_u64(70)]


# ------------------------------------------------------------------------------------------- what is finished


def test_an_envelope_names_what_is_finished_and_what_is_open():
    host = Host()
    one, two = host.submit("a"), host.submit("c")
    host.decide(one, 40)
    three = host.submit("a", first=2)
    host.finish(two, 41)
    four = host.submit("c", first=2)
    finished = [(counter_of(e.header.id), e.header.done, list(e.header.open)) for e in (one, two, three, four)]
    assert finished == [(0, 0, []), (1, 1, [0]), (2, 2, [0, 1]), (3, 3, [0, 2])]


def test_an_envelope_is_finished_when_it_is_durable_at_a_majority_of_each_group():
    host = Host()
    envelope = host.submit("a", "b")
    host.deliver(envelope, 40, "a")
    host.deliver(envelope, 40, "b")
    assert host.machine.buffers() == {"waiting": 0, "unanswered": 0, "open": 1}, "a receipt finishes nothing"
    host.durable(envelope, "a", "n1", "n2", "n3")
    host.durable(envelope, "b", "n3")
    assert host.machine.buffers()["open"] == 1, "n1 and n2 are no replicas of b"
    host.durable(envelope, "b", "n5")
    assert host.machine.buffers()["open"] == 0


def test_an_envelope_stays_open_until_its_clients_are_answered():
    host = Host()
    envelope = host.submit("a")
    host.durable(envelope, "a", "n1", "n2", "n3")
    assert host.machine.buffers()["open"] == 1
    host.deliver(envelope, 40, "a")
    assert host.machine.buffers()["open"] == 0


# ------------------------------------------------------------------------------------------------------ receipts


def test_a_receipt_waits_for_one_delivery_in_each_group():
    host = Host()
    envelope = host.submit("a", "b", count=2)
    assert replies(host.decide(envelope, 40)) == []
    assert replies(host.deliver(envelope, 40, "a", offset=7)) == []
    assert replies(host.deliver(envelope, 40, "a", offset=7)) == [], "twice in one group is not in both"
    ((to, reply),) = sends(host.deliver(envelope, 40, "b", offset=9), PublishReply)
    assert to == ["c1"]
    assert reply == PublishReply(
        producer=b"c1",
        groups=["a", "b"],
        first_sequence=1,
        count=2,
        status=PUBLISH_STATUS_OK,
        order_key=key_of(40, envelope),
        offsets=[GroupOffset(group="a", first_offset=7), GroupOffset(group="b", first_offset=9)],
        last_sequence=2,
        session=pack_u64(40),
        credits=GatewaySettings().producer_messages_max,
    )


def test_a_receipt_is_given_once():
    host = Host()
    envelope = host.submit("a")
    host.deliver(envelope, 40, "a")
    again = EnvelopeDelivered(
        id=envelope.header.id,
        group="a",
        order_key=key_of(40, envelope),
        outcomes=[new(1, 1, 0, key_of(40, envelope))],
    )
    assert replies(host.receive("n2", again)) == []


def test_every_client_in_the_envelope_gets_its_own_receipt():
    host = Host(envelopes_open_max=1)
    first = host.submit("c")
    host.publish("a", client="c2", count=3)
    host.publish("a")
    (envelope,) = envelopes(host.finish(first, 5))
    assert sorted((to, r.producer, r.count) for to, r in sends(host.deliver(envelope, 6, "a"), PublishReply)) == [
        (["c1"], b"c1", 1),
        (["c2"], b"c2", 3),
    ]


def test_messages_that_were_delivered_apart_get_receipts_of_their_own():
    host = Host()
    envelope = host.submit("a", count=3)
    spans = [
        Span(first_sequence=1, count=1, first_offset=4, order_key=b"first", duplicate=True),
        Span(first_sequence=2, count=2, first_offset=9, order_key=b"second"),
    ]
    receipts = replies(host.deliver(envelope, 40, "a", RangeOutcome(spans=spans, last_sequence=3)))
    assert [(r.first_sequence, r.count, r.order_key, r.duplicate) for r in receipts] == [
        (1, 1, b"first", True),
        (2, 2, b"second", False),
    ]
    assert [r.offsets[0].first_offset for r in receipts] == [4, 9]


@pytest.mark.parametrize(
    ("refusal", "expected"), [(REFUSAL_FENCED, PUBLISH_STATUS_FENCED), (REFUSAL_GAP, PUBLISH_STATUS_SEQUENCE_GAP)]
)
def test_what_delivery_refused_is_refused_to_the_client(refusal, expected):
    host = Host()
    envelope = host.submit("a", first=4, count=2)
    outcome = RangeOutcome(refusal=refusal, epoch=3, last_sequence=1)
    (reply,) = replies(host.deliver(envelope, 40, "a", outcome))
    assert (reply.status, reply.first_sequence, reply.count) == (expected, 4, 2)
    assert (reply.epoch, reply.last_sequence) == (3, 1)
    assert list(reply.offsets) == []


def test_whoever_opens_a_producer_learns_its_epoch_and_last_sequence():
    host = Host()
    envelope = host.submit("a", first=0, count=0, open_token=b"token")
    (reply,) = replies(host.deliver(envelope, 40, "a", RangeOutcome(epoch=2, last_sequence=17)))
    assert (reply.status, reply.open_token, reply.epoch, reply.last_sequence) == (
        PUBLISH_STATUS_OK,
        b"token",
        2,
        17,
    )


def test_groups_that_disagree_about_what_is_new_stop_the_process():
    host = Host()
    envelope = host.submit("a", "b", messages=[Message(), Message()])
    host.deliver(envelope, 40, "a")
    spans = [Span(first_sequence=1, count=1, duplicate=True), Span(first_sequence=2, count=1)]
    with pytest.raises(InvariantBroken):
        host.deliver(envelope, 40, "b", RangeOutcome(spans=spans))


@pytest.mark.parametrize(
    "wrong",
    [
        {"group": "b"},
        {"group": ""},
        {"outcomes": []},
        {"outcomes": [RangeOutcome(), RangeOutcome()]},
        {"outcomes": [RangeOutcome()]},
        {"outcomes": [RangeOutcome(spans=[Span(first_sequence=2, count=1)])]},
        {"outcomes": [RangeOutcome(spans=[Span(first_sequence=1, count=1, first_offset=2**63)])]},
        {"order_key": b"short"},
    ],
    ids=[
        "another group",
        "no group",
        "no outcome",
        "too many",
        "no place",
        "another message",
        "no offset",
        "no order key",
    ],
)
def test_a_delivery_that_does_not_fit_its_envelope_is_refused(wrong):
    host = Host()
    envelope = host.submit("a")
    key = key_of(40, envelope)
    fields = {"id": envelope.header.id, "group": "a", "order_key": key, "outcomes": [new(1, 1, 0, key)], **wrong}
    before = host.machine.buffers()
    with pytest.raises(RemoteProtocolError):
        host.receive("n1", EnvelopeDelivered(**fields))
    assert host.machine.buffers() == before
    assert len(replies(host.deliver(envelope, 40, "a"))) == 1


def test_news_of_an_unknown_envelope_is_ignored():
    host = Host()
    id_ = envelope_id(LIVES["g1"] - 1, 0)
    assert host.receive("n1", EnvelopeDecided(id=id_, order_key=b"")) == []
    assert host.receive("n1", EnvelopeDelivered(id=id_, group="a")) == []
    assert host.receive("n1", EnvelopeDurable(id=id_, group="a")) == []


def test_a_delivery_told_by_a_process_that_is_no_replica_of_the_group_is_refused():
    host = Host()
    envelope = host.submit("a")
    key = key_of(40, envelope)
    told = EnvelopeDelivered(id=envelope.header.id, group="a", order_key=key, outcomes=[new(1, 1, 0, key)])
    for source in ("c2", "n4"):
        with pytest.raises(RemoteProtocolError):
            host.receive(source, told)
    assert host.machine.buffers()["unanswered"] == 1


@pytest.mark.parametrize("sn", [2**62 + 1, 2**64 - 1])
def test_a_decision_that_no_session_could_carry_is_refused(sn):
    """Replicas refuse sessions above 2**62, so the producer's next envelope would never be taken."""
    host = Host()
    envelope = host.submit("a")
    with pytest.raises(RemoteProtocolError):
        host.decide(envelope, sn)
    host.decide(envelope, 40)
    assert host.submit("a", first=2).header.session == pack_u64(40)


# ------------------------------------------------------------------------------------------------------ silence


def test_silence_is_met_with_the_identical_envelope():
    host = Host()
    first = host.submit("a", "b")
    host.connect("n3", 303)
    host.publish("c")
    host.tick(RESEND_S - 0.01)
    ((to, message),) = [s for s in sends(host.tick(0.02), Disseminate) if "n3" in s[0]]
    assert to == ["n1", "n2", "n3", "n4", "n5"]
    assert message.again
    assert message.envelope.SerializeToString(deterministic=True) == first.SerializeToString(deterministic=True)


def test_only_those_are_asked_again_who_owe_an_answer():
    host = Host()
    envelope = host.submit("a", "b")
    for group in "ab":
        host.deliver(envelope, 40, group)
    host.durable(envelope, "a", "n1", "n3")
    host.durable(envelope, "b", "n4")
    ((to, _),) = sends(host.tick(RESEND_S), Disseminate)
    assert to == ["n2", "n3", "n5"], "n3 has not said it of b"


def test_a_lost_delivery_is_asked_for_again_even_if_everyone_has_it_on_disk():
    host = Host()
    envelope = host.submit("a")
    host.durable(envelope, "a", "n1", "n2", "n3")
    assert [to for to, _ in sends(host.tick(RESEND_S), Disseminate)] == [["n1", "n2", "n3"]]


def test_it_asks_less_and_less_often():
    host = Host()
    host.submit("a")
    asked = [bool(sent(host.tick(0.25), Disseminate)) for _ in range(24)]
    assert [index for index, was in enumerate(asked) if was] == [1, 3, 7, 15, 23]


def test_what_envelopes_take_anyway_is_no_silence():
    """With much to do they take longer than any fixed patience, and to send them again is still more to do."""
    host = Host()
    for number in range(4):
        envelope = host.submit("a", first=number + 1)
        host.now += 1.5 * RESEND_S
        host.finish(envelope, 40 + number)
    late = host.submit("a", first=5)
    assert not sent(host.tick(1.4 * RESEND_S), Disseminate)
    assert envelopes(host.tick(GatewaySettings().resend_s_max)) == [late], "but it is not waited for any longer"


def test_patience_returns_with_quick_envelopes():
    host = Host()
    slow = host.submit("a")
    host.now += 4 * RESEND_S
    host.finish(slow, 40)
    for number in range(30):
        host.finish(host.submit("a", first=number + 2), 41 + number)
    late = host.submit("a", first=32)
    assert envelopes(host.tick(RESEND_S)) == [late]


def test_a_new_channel_gets_what_the_peer_owes_at_once():
    host = Host()
    one, two = host.submit("a"), host.submit("c")
    host.deliver(one, 40, "a")
    host.durable(one, "a", "n1")
    assert host.connect("n1") == []
    assert envelopes(host.connect("n2")) == [one]
    assert envelopes(host.connect("n6")) == [two]


def test_a_group_that_lost_its_quorum_is_unavailable():
    host = Host()
    host.submit("a")
    host.tick(RESEND_S)
    assert status(host.publish("a", client="c2")) == PUBLISH_STATUS_UNAVAILABLE
    assert status(host.publish("b", "a", client="c2")) == PUBLISH_STATUS_SEQUENCE_GAP, "behind the refused one"
    assert host.machine.buffers()["waiting"] == 0
    assert host.submit("c")


def test_one_silent_replica_of_three_takes_nothing_away():
    host = Host()
    envelope = host.submit("a")
    host.durable(envelope, "a", "n1", "n2")
    host.tick(RESEND_S)
    assert host.submit("a", client="c2")


def test_a_group_is_available_again_with_the_first_word_or_connection_of_a_majority():
    host = Host()
    envelope = host.submit("a")
    host.tick(RESEND_S)
    host.decide(envelope, 40, source="n1")
    assert status(host.publish("a", client="c2")) == PUBLISH_STATUS_UNAVAILABLE
    host.connect("n2")
    assert envelopes(host.publish("a", client="c2"))


def test_one_envelope_in_so_many_to_each_group_says_what_is_finished():
    host = Host(finished_every=3)
    told = []
    for number in range(1, 9):
        group = "a" if number % 2 else "b"
        envelope = host.submit(group, first=(number + 1) // 2)
        told.append((group, envelope.header.done))
        host.finish(envelope, 40 + number)
    assert told == [("a", 0), ("b", 0), ("a", 0), ("b", 0), ("a", 4), ("b", 5), ("a", 0), ("b", 0)]
