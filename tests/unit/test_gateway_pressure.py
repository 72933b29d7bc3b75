"""More than a gateway can order: what is refused, when it shall come back, who gets in all the same, and how."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core.machine import Ended
from ordercast.gateway.pressure import (
    FEW,
    HIGH_S,
    LATE_S,
    RETRY_S_MAX,
    RETRY_S_MIN,
    RETRY_S_UNKNOWN,
    SAMPLE_S,
    STUCK_S,
    WINDOW_MESSAGES_LEAST,
    WINDOW_MESSAGES_MIN,
    Pressure,
    Taken,
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


def took(pressure: Pressure, count: int, now: float, client: str = "c", groups: str = "a") -> Taken:
    return pressure.took(client, client.encode(), (groups,), count, now)


def busy(pressure: Pressure, per_second: int, now: float = 0.0, refused_per_second: int = 0) -> float:
    """For a minute there is always something to do, and so much is answered. Returns the time when it ends."""
    for _ in range(60):
        taken = took(pressure, per_second, now)
        pressure.refused("c", refused_per_second, now)
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
        taken = took(pressure, 50, 10.0 * number)
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
    took(pressure, 100, 0.0)
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
    stuck = took(pressure, 5, 0.0)
    pressure.measure(STUCK_S - 0.01)
    assert pressure.messages == 5
    took(pressure, 3, STUCK_S, groups="b")
    pressure.measure(STUCK_S)
    assert pressure.messages == 3
    pressure.gave(stuck, STUCK_S)
    assert pressure.messages == 3


def test_what_merely_waits_long_for_its_turn_counts_as_long_as_others_to_its_set_are_answered():
    pressure = pressure_of(100)
    waiting = took(pressure, 5, 0.0)
    for tenth in range(1, 100):
        pressure.gave(took(pressure, 1, tenth / 10), tenth / 10)
        pressure.measure(tenth / 10)
        assert pressure.messages == 5
    pressure.measure(9.9 + 2 * STUCK_S)
    assert pressure.messages == 0, "and now nothing is answered any more"
    pressure.gave(waiting, 20.0)
    assert pressure.accounts == {}


# ------------------------------------------------------------------------------------------------------ retrying


def test_who_is_refused_comes_back_when_what_is_here_is_answered():
    pressure = pressure_of(10)
    now = busy(pressure, 100)
    took(pressure, 70, now)
    assert pressure.retry_after_s() == pytest.approx(0.7)


def test_when_to_come_back_is_bounded():
    pressure = pressure_of(10)
    assert pressure.retry_after_s() == RETRY_S_UNKNOWN
    now = busy(pressure, 1000)
    assert pressure.retry_after_s() == RETRY_S_MIN
    took(pressure, 10**6, now)
    assert pressure.retry_after_s() == RETRY_S_MAX


def test_the_more_have_to_come_back_the_later_should_each_of_them():
    calm, crowded = pressure_of(10), pressure_of(10)
    took(calm, 40, busy(calm, 100))
    took(crowded, 40, busy(crowded, 100, refused_per_second=200))
    assert crowded.retry_after_s() == pytest.approx(3 * calm.retry_after_s())


# -------------------------------------------------------------------------------------------------------- shares


@given(
    outstanding=st.lists(st.integers(0, 20), min_size=1, max_size=20),
    limit=st.integers(1, 300),
)
def test_credits_together_never_promise_more_than_twice_the_limit(outstanding, limit):
    pressure = pressure_of(limit, producer_messages_max=10**6)
    clients = {f"c{number}": count for number, count in enumerate(outstanding)}
    for client, count in clients.items():
        if count:
            took(pressure, count, 0.0, client)
    present = [client for client, count in clients.items() if count]
    promised = sum(pressure.credits(client, client.encode()) - clients[client] for client in present)
    assert all(pressure.credits(client, client.encode()) >= 1 for client in clients)
    # Each may have one message, however many they are.
    assert pressure.messages + promised <= max(2 * limit, pressure.messages + limit) + len(present)


@given(outstanding=st.integers(0, 200), others=st.integers(0, 500), sharing=st.integers(0, 9))
def test_who_has_only_its_share_gets_in_up_to_twice_the_limit(outstanding, others, sharing):
    others = max(others, sharing) if sharing else 0
    pressure = pressure_of(100)
    if outstanding:
        took(pressure, outstanding, 0.0)
    for number in range(sharing):
        took(pressure, others // sharing + (number < others % sharing), 0.0, f"other {number}")
    total = outstanding + others + 1
    is_within_share = (outstanding + 1) * (sharing + 1) <= 100
    expected = total <= 100 or total == 1 or (is_within_share and total <= 200)
    assert pressure.admits("c", 1) == expected


@given(producers=st.integers(1, 300))
def test_a_client_that_makes_up_producers_gets_no_more_than_one_that_does_not(producers):
    pressure = pressure_of(100)
    for number in range(producers):
        if pressure.admits("many", 1):
            pressure.took("many", b"%d" % number, ("a",), 1, 0.0)
    assert pressure.messages == min(producers, 100)
    assert pressure.admits("one", 50), "its share"
    assert sum(pressure.credits("many", b"%d" % number) for number in range(producers)) <= 2 * 100 + producers


def test_alone_a_request_gets_in_however_large_it_is():
    assert pressure_of(2).admits("c", 1000)


def test_credits_are_all_there_are_while_little_is_here_and_a_share_when_it_is_much():
    host = host_of(100, producer_messages_max=80)
    first = host.submit("a", client="p1", count=50)
    assert host.machine.credits("p1", b"p1") == 80
    host.publish("b", client="p2", count=50)
    assert host.machine.credits() == 100 // 3, "of one that has nothing here"
    (receipt,) = replies(host.deliver(first, 40, "a"))
    assert receipt.credits == 50, "for now it has nothing here, and the other one has its share"


# ------------------------------------------------------------------------------------------------------- refusals


def test_what_is_too_much_is_refused_before_anything_is_stored_and_told_when_to_come_back():
    host = host_of(4)
    host.submit("a", producer=b"p1", count=4)
    before = (host.machine.batching.waiting_bytes, host.machine.pressure.messages, host.machine.buffers())
    effects = host.publish("a", client="p2", count=3)
    (refusal,) = replies(effects)
    assert status(effects) == TOO_MUCH
    assert refusal.retry_after_ms == RETRY_S_UNKNOWN * 1000
    assert refusal.credits == 2, "half of the limit, for they are two"
    assert (host.machine.batching.waiting_bytes, host.machine.pressure.messages, host.machine.buffers()) == before


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


@pytest.mark.parametrize("per_producer", [8, 1])
def test_a_client_that_floods_does_not_keep_out_one_that_keeps_to_its_share(per_producer):
    host = host_of(8)
    for number in range(8 // per_producer):
        host.publish("a", client="flood", producer=b"%d" % number, count=per_producer)
    assert status(host.publish("a", client="flood", producer=b"another")) == TOO_MUCH
    assert replies(host.publish("b", client="polite", count=4)) == [], "half of the limit is its share"
    assert status(host.publish("a", client="flood", producer=b"one more")) == TOO_MUCH
    assert status(host.publish("b", client="polite", first=5)) == TOO_MUCH


def test_all_streams_of_a_client_share_what_is_its():
    host = host_of(8)
    for number in range(8):
        host.publish("a", client=f"client/1/{number}", producer=b"%d" % number)
    assert status(host.publish("a", client="client/1/9", producer=b"9")) == TOO_MUCH
    assert replies(host.publish("b", client="client/2/10", producer=b"10", count=4)) == []


def test_beyond_twice_the_limit_nobody_gets_in():
    host = host_of(8)
    host.publish("a", client="flood", count=8)
    got_in = [
        number
        for number in range(20)
        if PUBLISH_STATUS_RESOURCE_EXHAUSTED
        not in [reply.status for reply in replies(host.publish("a", client=f"p{number}"))]
    ]
    assert len(got_in) == 8
    assert host.machine.pressure.messages == 16


def test_a_group_that_is_stuck_keeps_messages_to_other_groups_out_only_for_a_while():
    host = host_of(2)
    host.publish("a", client="p1", count=2)
    host.publish("a", client="p2")
    host.publish("a", client="p3")
    assert status(host.publish("c", client="p4")) == TOO_MUCH
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
    assert len(host.machine.intake.producers) <= 21
    assert b"p" in host.machine.intake.producers


def test_a_client_that_is_gone_leaves_no_refusal_behind():
    host = host_of(1, producers_idle_max=4)
    host.submit("a", producer=b"p", count=2, client="c2")
    for number in range(10):
        host.publish("a", producer=b"one of many %d" % number, count=2)
    host.step(Ended, "c1", 0)
    assert all(not producer.refused for producer in host.machine.intake.producers.values())
    for _ in range(5):
        host.publish("a", producer=b"another", count=2, client="c2")
    assert len(host.machine.intake.producers) <= 5


# ------------------------------------------------------------------------------------------------------ envelopes


def test_under_pressure_an_envelope_that_is_not_full_waits_for_the_one_before_it():
    """An envelope is as much work as hundreds of messages: better fewer and full ones."""
    host = host_of(8, envelope_messages_max=4)
    first = host.submit("a", producer=b"p1", count=2)
    assert host.submit("a", producer=b"p2", count=2), "as long as nothing is refused they leave at once"
    host.submit("b", producer=b"p2", count=2)
    assert status(host.publish("b", producer=b"p1", count=4)) == TOO_MUCH
    host.deliver(first, 40, "a")
    assert not envelopes(host.publish("a", client="p3", count=1))
    assert not envelopes(host.publish("a", client="p4", count=1))
    assert envelopes(host.publish("c", client="p5")), "nothing is under way to that set"


def test_under_pressure_a_full_envelope_leaves_at_once():
    host = host_of(8, envelope_messages_max=4)
    host.submit("a", client="p1", count=4)
    host.submit("a", client="p2", count=3)
    assert status(host.publish("a", client="p3", count=4)) == TOO_MUCH
    assert not envelopes(host.publish("a", client="p4", count=2))
    assert not envelopes(host.publish("a", client="p5", count=2))
    (full,) = envelopes(host.tick())
    assert [range_.producer for range_ in full.header.ranges] == [b"p4", b"p5"]


def test_what_waited_for_company_leaves_when_the_pressure_is_gone():
    host = host_of(2, resend_s=100.0)
    host.submit("a", client="p1", count=2)
    assert status(host.publish("a", client="p2", count=2)) == TOO_MUCH
    assert not envelopes(host.publish("a", client="p3"))
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


def test_what_a_client_piled_up_does_not_delay_what_another_sends():
    host = Host(envelopes_open_max=1, envelope_messages_max=4)
    under_way = host.submit("a", client="flood", producer=b"first")
    for number in range(100):
        host.publish("a", client="flood", producer=b"%d" % number)
    host.publish("a", client="modest", count=2)
    (envelope,) = envelopes(host.finish(under_way, 40))
    assert [range_.producer for range_ in envelope.header.ranges] == [b"0", b"1", b"modest"]


def test_of_many_sets_that_wait_one_of_the_client_with_least_under_way_leaves_first():
    host = Host(envelopes_open_max=2)
    under_way = [host.submit(group, client="flood", producer=group.encode()) for group in "ab"]
    host.publish("a", "b", client="flood", producer=b"more")
    host.publish("c", client="modest")
    (envelope,) = envelopes(host.finish(under_way[0], 40))
    assert envelope.header.ranges[0].producer == b"modest"


@given(sent=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=40))
def test_however_clients_take_turns_no_message_of_a_producer_overtakes_another(sent):
    host = Host(envelopes_open_max=1, envelope_messages_max=6)
    ends: dict[int, int] = {}
    under_way = host.submit("a", client="other")
    for producer, count in sent:
        first = ends.get(producer, 1)
        # Clients have several producers, and a producer may come back on another connection.
        client = f"client/{producer % 2}/{count}" if producer else f"client/{count}/0"
        host.publish("a", client=client, producer=b"%d" % producer, first=first, count=count)
        ends[producer] = first + count
    left: dict[bytes, int] = {}
    for sn in range(40, 40 + len(sent)):
        for following in envelopes(host.finish(under_way, sn)):
            under_way = following
            for range_ in following.header.ranges:
                assert range_.first_sequence == left.get(range_.producer, 1)
                left[range_.producer] = range_.first_sequence + range_.count
    assert left == {b"%d" % producer: end for producer, end in ends.items()}


# --------------------------------------------------------------------------------------------------------- window


def test_what_is_under_way_is_bounded_but_a_client_has_its_share_of_it():
    pressure = pressure_of(10)
    now = busy(pressure, 1000)
    assert pressure.window == WINDOW_MESSAGES_MIN
    pressure.leaves(took(pressure, WINDOW_MESSAGES_MIN, now, "flood"), now)
    took(pressure, 2, now, "modest")
    assert pressure.under_way_of("flood") is None
    assert pressure.under_way_of("modest") == 0
    assert pressure.may_leave("modest", 0, WINDOW_MESSAGES_MIN // 2)
    assert not pressure.may_leave("modest", 0, WINDOW_MESSAGES_MIN // 2 + 1)


def test_what_is_under_way_for_long_keeps_nobody_from_leaving():
    pressure = pressure_of(10)
    now = busy(pressure, 1000)
    late = took(pressure, WINDOW_MESSAGES_MIN, now)
    pressure.leaves(late, now)
    assert pressure.under_way_of("c") is None
    pressure.measure(now + LATE_S)
    assert pressure.under_way_of("c") == 0
    pressure.gave(late, now + 1.0)
    assert (pressure.under_way, pressure.messages, pressure.accounts) == (0, 0, {})


def exchange(pressure: Pressure, now: float, latency_s: float, **sent: int) -> float:
    for client, count in sent.items():
        pressure.gave(took(pressure, count, now, client), now)
    pressure.delivered(latency_s)
    pressure.measure(now)
    return now + 0.1


def test_where_clients_send_unequally_slow_envelopes_make_the_window_smaller():
    pressure = pressure_of(10)
    now = busy(pressure, 10_000)
    pressure.delivered(0.01)
    took(pressure, 100, now, "others, so that messages wait for each other")
    for _ in range(100):
        now = exchange(pressure, now, 0.3, large=100, small=1)
    assert pressure.window == WINDOW_MESSAGES_LEAST
    for _ in range(100):
        now = exchange(pressure, now, 0.01, large=100, small=1)
    assert pressure.window > WINDOW_MESSAGES_MIN


def test_where_clients_send_alike_slow_envelopes_do_not_cost_throughput():
    pressure = pressure_of(10)
    now = busy(pressure, 10_000)
    pressure.delivered(0.01)
    window = pressure.window
    for _ in range(100):
        now = exchange(pressure, now, 0.3, one=100, other=60)
    assert pressure.window >= window


def test_clients_that_come_one_after_the_other_are_not_unequal():
    """In the second in which one goes and the next comes, one of the two sends less than the other."""
    pressure = pressure_of(10)
    now = busy(pressure, 10_000)
    pressure.delivered(0.01)
    took(pressure, 100, now, "others, so that messages wait for each other")
    for client in ("first", "second", "third"):
        for _ in range(33):
            now = exchange(pressure, now, 0.3, **{client: 100})
            assert not pressure.is_unequal


def test_with_many_sets_the_limit_follows_what_envelopes_take_and_what_is_slow_does_not():
    """Few messages fit into each envelope then, and only with more of them here do envelopes become fuller."""
    pressure = pressure_of(10)
    now = busy(pressure, 10_000)
    pressure.delivered(0.01)
    limit = pressure.limit
    took(pressure, FEW + 1, now)
    for _ in range(100):
        pressure.delivered(0.3)
    assert pressure.limit == pytest.approx(limit + 10_000 * 0.29, rel=0.01)
    assert pressure.alone_s == 0.01
