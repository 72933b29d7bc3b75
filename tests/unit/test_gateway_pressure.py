"""More than a gateway can order: what is refused, when it shall come back, who gets in all the same, and how."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core.machine import Ended
from ordercast.gateway.pressure import (
    HIGH_S,
    RETRY_S_MAX,
    RETRY_S_MIN,
    RETRY_S_UNKNOWN,
    SAMPLE_S,
    STUCK_S,
    Pressure,
)
from ordercast.gateway.settings import GatewaySettings
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PUBLISH_STATUS_UNAVAILABLE,
)
from tests.unit.gateway_host import RESEND_S, Host, envelopes, payloads, replies, status

TOO_MUCH = PUBLISH_STATUS_RESOURCE_EXHAUSTED


def pressure_of(limit: int, **settings) -> Pressure:
    """With a limit that grows with the rate, if there is one."""
    return Pressure(GatewaySettings(backlog_messages_min=limit, backlog_messages_first=limit, **settings))


def host_of(limit: int, **settings) -> Host:
    return Host(backlog_messages_min=limit, backlog_messages_first=limit, **settings)


def busy(pressure: Pressure, per_second: int, now: float = 0.0, refused_per_second: int = 0) -> float:
    """For a minute there is always something to do, and so much is answered. Returns the time when it ends."""
    for _ in range(60):
        taken = pressure.took(per_second, now)
        pressure.refused(refused_per_second, now)
        now += 1.0
        pressure.gave(taken, now)
        pressure.measure(now)
    return now


# ------------------------------------------------------------------------------------------------ rate and limit


def test_the_rate_is_what_is_answered_in_a_second_and_follows_when_that_changes():
    pressure = pressure_of(40)
    now = busy(pressure, 100)
    assert pressure.rate == pytest.approx(100)
    busy(pressure, 30, now)
    assert pressure.rate == pytest.approx(30)


def test_time_in_which_there_was_nothing_to_answer_does_not_count():
    pressure = pressure_of(40)
    for number in range(100):
        taken = pressure.took(50, 10.0 * number)
        pressure.measure(10.0 * number + SAMPLE_S / 2)
        pressure.gave(taken, 10.0 * number + SAMPLE_S / 2)
        pressure.measure(10.0 * number + 5.0)
    assert pressure.rate == pytest.approx(50 / (SAMPLE_S / 2))


def test_what_was_answered_while_there_was_little_to_do_says_nothing_about_what_can_be():
    pressure = pressure_of(40)
    now = busy(pressure, 10)
    assert pressure.rate == 0.0
    now = busy(pressure, 100, now)
    now = busy(pressure, 10, now)
    assert pressure.rate == pytest.approx(100)
    pressure.latency_s = 10.0
    busy(pressure, 200, now)
    assert pressure.rate == pytest.approx(200), "but it can be more than was known"


def test_the_limit_is_what_is_answered_while_a_message_is_under_way_and_a_while_longer():
    pressure = pressure_of(10, backlog_s_max=0.5)
    assert pressure.limit == 10
    busy(pressure, 100)
    pressure.delivered(0.3)
    assert pressure.limit == pytest.approx(100 * (0.3 + 0.5))


def test_until_a_rate_is_known_the_limit_is_a_guess():
    pressure = Pressure(GatewaySettings(backlog_messages_first=50, backlog_messages_min=5, backlog_s_max=0.25))
    assert pressure.limit == 50
    now = busy(pressure, 40)
    assert pressure.limit == pytest.approx(10)
    busy(pressure, 6, now)
    assert pressure.limit == 5


def test_waiting_for_others_does_not_count_as_the_time_that_a_message_has_to_take():
    pressure = pressure_of(100)
    pressure.delivered(0.01)
    pressure.took(100, 0.0)
    for _ in range(1000):
        pressure.delivered(1.0)
    assert pressure.latency_s == 0.01


def test_a_network_that_became_slower_is_noticed_while_little_is_under_way():
    pressure = pressure_of(100)
    pressure.delivered(0.01)
    for _ in range(1000):
        pressure.delivered(0.2)
        pressure.delivered(STUCK_S)
    assert pressure.latency_s == pytest.approx(0.2), "and what was stuck has nothing to do with it"


def test_what_is_stuck_stops_to_count_and_is_not_counted_twice():
    pressure = pressure_of(100)
    stuck = pressure.took(5, 0.0)
    pressure.measure(STUCK_S - 0.01)
    assert pressure.messages == 5
    pressure.took(3, STUCK_S)
    pressure.measure(STUCK_S)
    assert pressure.messages == 3
    pressure.gave(stuck, STUCK_S)
    assert pressure.messages == 3


# ------------------------------------------------------------------------------------------------------ retrying


def test_who_is_refused_comes_back_when_what_is_here_is_answered():
    pressure = pressure_of(10)
    now = busy(pressure, 100)
    pressure.took(70, now)
    assert pressure.retry_after_s() == pytest.approx(0.7)


def test_when_to_come_back_is_bounded():
    pressure = pressure_of(10)
    assert pressure.retry_after_s() == RETRY_S_UNKNOWN
    now = busy(pressure, 1000)
    assert pressure.retry_after_s() == RETRY_S_MIN
    pressure.took(10**6, now)
    assert pressure.retry_after_s() == RETRY_S_MAX


def test_the_more_have_to_come_back_the_later_should_each_of_them():
    calm, crowded = pressure_of(10), pressure_of(10)
    calm.took(40, busy(calm, 100))
    crowded.took(40, busy(crowded, 100, refused_per_second=200))
    assert crowded.retry_after_s() == pytest.approx(3 * calm.retry_after_s())


# -------------------------------------------------------------------------------------------------------- shares


@given(
    outstanding=st.lists(st.integers(0, 20), min_size=1, max_size=20),
    limit=st.integers(1, 300),
)
def test_credits_together_never_promise_more_than_twice_the_limit(outstanding, limit):
    pressure = pressure_of(limit, producer_messages_max=10**6)
    for count in outstanding:
        if count:
            pressure.took(count, 0.0)
            pressure.producers += 1
    present = [count for count in outstanding if count]
    promised = sum(pressure.credits(count) - count for count in present)
    assert all(pressure.credits(count) >= 1 for count in outstanding)
    # Each may have one message, however many they are.
    assert pressure.messages + promised <= max(2 * limit, pressure.messages + limit) + len(present)


@given(outstanding=st.integers(0, 200), others=st.integers(0, 500), sharing=st.integers(0, 9))
def test_who_has_only_its_share_gets_in_up_to_twice_the_limit(outstanding, others, sharing):
    pressure = pressure_of(100)
    pressure.took(outstanding + others, 0.0)
    pressure.producers = sharing + (1 if outstanding else 0)
    total = outstanding + others + 1
    is_within_share = (outstanding + 1) * (sharing + 1) <= 100
    expected = total <= 100 or total == 1 or (is_within_share and total <= 200)
    assert pressure.admits(outstanding, 1) == expected


def test_alone_a_request_gets_in_however_large_it_is():
    assert pressure_of(2).admits(0, 1000)


def test_credits_are_all_there_are_while_little_is_here_and_a_share_when_it_is_much():
    host = host_of(100, producer_messages_max=80)
    first = host.submit("a", producer=b"p1", count=50)
    assert host.machine.credits(b"p1") == 80
    host.publish("b", producer=b"p2", count=50)
    assert host.machine.credits() == 100 // 3, "of one that has nothing here"
    (receipt,) = replies(host.deliver(first, 40, "a"))
    assert receipt.credits == 50, "for now it has nothing here, and the other one has its share"


# ------------------------------------------------------------------------------------------------------- refusals


def test_what_is_too_much_is_refused_before_anything_is_stored_and_told_when_to_come_back():
    host = host_of(4)
    host.submit("a", producer=b"p1", count=4)
    before = (host.machine.waiting_bytes, host.machine.pressure.messages, host.machine.buffers())
    effects = host.publish("a", producer=b"p2", count=3)
    (refusal,) = replies(effects)
    assert status(effects) == TOO_MUCH
    assert refusal.retry_after_ms == RETRY_S_UNKNOWN * 1000
    assert refusal.credits == 2, "half of the limit, for they are two"
    assert (host.machine.waiting_bytes, host.machine.pressure.messages, host.machine.buffers()) == before


def test_what_was_too_much_comes_in_in_its_order_when_there_is_room():
    host = host_of(4)
    first = host.submit("a", count=4)
    assert status(host.publish("b", count=2)) == TOO_MUCH
    assert status(host.publish("b", first=3)) == PUBLISH_STATUS_SEQUENCE_GAP
    host.deliver(first, 40, "a")
    assert status(host.publish("b", first=3)) == PUBLISH_STATUS_SEQUENCE_GAP, "its turn is second"
    again = host.submit("b", count=2)
    host.deliver(again, 41, "b")
    assert payloads(host.submit("b", first=3)) == [b"3"]


def test_a_repetition_of_what_is_here_is_not_too_much():
    host = host_of(4)
    envelope = host.submit("a", count=4)
    assert host.publish("a", count=4) == []
    assert {reply.status for reply in replies(host.deliver(envelope, 40, "a"))} == {PUBLISH_STATUS_OK}


def test_a_producer_that_floods_does_not_keep_out_one_that_keeps_to_its_share():
    host = host_of(8)
    host.publish("a", producer=b"flood", count=8)
    assert status(host.publish("a", producer=b"flood", first=9)) == TOO_MUCH
    assert replies(host.publish("a", producer=b"polite", count=4)) == [], "half of the limit is its share"
    assert status(host.publish("a", producer=b"flood", first=9)) == TOO_MUCH
    assert status(host.publish("a", producer=b"polite", first=5)) == TOO_MUCH


def test_beyond_twice_the_limit_nobody_gets_in():
    host = host_of(8)
    host.publish("a", producer=b"flood", count=8)
    got_in = [
        number
        for number in range(20)
        if PUBLISH_STATUS_RESOURCE_EXHAUSTED
        not in [reply.status for reply in replies(host.publish("a", producer=b"p%d" % number))]
    ]
    assert len(got_in) == 8
    assert host.machine.pressure.messages == 16


def test_a_group_that_is_stuck_keeps_messages_to_other_groups_out_only_for_a_while():
    host = host_of(2)
    host.publish("a", producer=b"p1", count=2)
    host.publish("a", producer=b"p2")
    host.publish("a", producer=b"p3")
    assert status(host.publish("c", producer=b"p4")) == TOO_MUCH
    host.tick(STUCK_S)
    assert host.submit("c", producer=b"p5")


def test_a_group_without_a_quorum_is_worth_trying_again_after_a_while():
    host = Host()
    host.submit("a")
    host.tick(RESEND_S)
    (refusal,) = replies(host.publish("a", producer=b"p2"))
    assert (refusal.status, refusal.retry_after_ms) == (PUBLISH_STATUS_UNAVAILABLE, RETRY_S_UNKNOWN * 1000)


def test_what_is_remembered_of_producers_that_were_refused_is_bounded():
    host = host_of(1, producers_idle_max=4, producers_refused_max=20)
    host.submit("a", producer=b"p", count=2)
    for number in range(200):
        host.publish("a", producer=b"one of many %d" % number, count=2)
    assert len(host.machine.producers) <= 21
    assert b"p" in host.machine.producers


def test_a_client_that_is_gone_leaves_no_refusal_behind():
    host = host_of(1, producers_idle_max=4)
    host.submit("a", producer=b"p", count=2, client="c2")
    for number in range(10):
        host.publish("a", producer=b"one of many %d" % number, count=2)
    host.step(Ended, "c1", 0)
    assert all(not producer.refused for producer in host.machine.producers.values())
    for _ in range(5):
        host.publish("a", producer=b"another", count=2, client="c2")
    assert len(host.machine.producers) <= 5


# ------------------------------------------------------------------------------------------------------ envelopes


def test_under_pressure_an_envelope_that_is_not_full_waits_for_the_one_before_it():
    """An envelope is as much work as hundreds of messages: better fewer and full ones."""
    host = host_of(8, envelope_messages_max=4)
    first = host.submit("a", producer=b"p1", count=2)
    assert host.submit("a", producer=b"p2", count=2), "as long as nothing is refused they leave at once"
    host.submit("b", producer=b"p2", count=2)
    assert status(host.publish("b", producer=b"p1", count=4)) == TOO_MUCH
    host.deliver(first, 40, "a")
    assert not envelopes(host.publish("a", producer=b"p3", count=1))
    assert not envelopes(host.publish("a", producer=b"p4", count=1))
    assert envelopes(host.publish("c", producer=b"p5")), "nothing is under way to that set"


def test_under_pressure_a_full_envelope_leaves_at_once():
    host = host_of(8, envelope_messages_max=4)
    host.submit("a", producer=b"p1", count=4)
    host.submit("a", producer=b"p2", count=3)
    assert status(host.publish("a", producer=b"p3", count=4)) == TOO_MUCH
    assert not envelopes(host.publish("a", producer=b"p4", count=2))
    assert not envelopes(host.publish("a", producer=b"p5", count=2))
    (full,) = envelopes(host.tick())
    assert [range_.producer for range_ in full.header.ranges] == [b"p4", b"p5"]


def test_what_waited_for_company_leaves_when_the_pressure_is_gone():
    host = host_of(2, resend_s=100.0)
    host.submit("a", producer=b"p1", count=2)
    assert status(host.publish("a", producer=b"p2", count=2)) == TOO_MUCH
    assert not envelopes(host.publish("a", producer=b"p3"))
    assert not envelopes(host.tick(HIGH_S / 2))
    assert envelopes(host.tick(HIGH_S / 2))


def test_who_had_a_turn_waits_until_the_others_had_theirs():
    """With one envelope at a time, and one message in it: the first would else always be first again."""
    host = Host(envelopes_open_max=1, envelope_messages_max=1)
    under_way = host.submit("a", producer=b"greedy", first=1)
    for first in (2, 3):
        host.publish("a", producer=b"greedy", first=first)
    host.publish("a", producer=b"modest")
    order = []
    for sn in (40, 41, 42):
        (under_way,) = envelopes(host.finish(under_way, sn))
        order.append(under_way.header.ranges[0].producer)
    assert order == [b"greedy", b"modest", b"greedy"]
