"""The simulated network keeps the promises that machines rely on, and breaks those that nobody made."""

from collections import Counter

import pytest

from ordercast.core.machine import ChannelReset, Receive, Send
from tests.unit.puppets import Theatre, is_rising, number

MANY = range(200)


def test_what_one_process_sends_to_another_arrives_in_order():
    theatre = Theatre(slow=0.5)
    for value in MANY:
        theatre.say("a", "b", value)
        theatre.run(0.001)
    theatre.run(5.0)
    assert theatre.heard("b") == list(MANY)
    assert is_rising(theatre.puppet("b").times)


def test_two_pairs_are_not_in_step_with_each_other():
    """A machine that needed order over several channels would be found out."""
    theatre = Theatre(slow=0.5)
    for value in MANY:
        theatre.say("a" if value % 2 else "b", "c", value)
        theatre.run(0.001)
    theatre.run(5.0)
    heard = theatre.heard("c")
    assert sorted(heard) == list(MANY)
    assert not is_rising(heard)
    assert is_rising([value for value in heard if value % 2])


def test_a_channel_only_delays_what_is_lost_on_the_way():
    ends = []
    for loss in (0.0, 0.5):
        theatre = Theatre(loss=loss)
        theatre.say("a", "b", *MANY)
        theatre.run(60.0)
        assert theatre.heard("b") == list(MANY)
        ends.append(theatre.puppet("b").times[-1])
    assert ends[0] < ends[1]


def test_datagrams_are_lost_doubled_and_overtaken():
    theatre = Theatre(datagrams=True, loss=0.2, duplication=0.2, slow=0.3)
    for value in MANY:
        theatre.say("a", "b", value)
        theatre.run(0.001)
    theatre.run(60.0)
    counts = Counter(theatre.heard("b"))
    assert 20 < len(MANY) - len(counts) < 60, "lost"
    assert 15 < sum(1 for count in counts.values() if count == 2) < 60, "doubled"
    assert max(counts.values()) == 2
    assert not is_rising(list(dict.fromkeys(theatre.heard("b")))), "overtaken"


def test_pairs_that_use_streams_are_spared_even_among_datagrams():
    theatre = Theatre(datagrams=True, loss=0.5)
    theatre.world.network.uses_datagrams = lambda a, b: "c" not in (a, b)
    theatre.say("a", "c", *MANY)
    theatre.run(60.0)
    assert theatre.heard("c") == list(MANY)


def test_an_exact_network_takes_exactly_its_delay():
    theatre = Theatre(exact=True, delay_s=0.25)
    sent_at = theatre.world.now
    theatre.say("a", "b", 1)
    theatre.run(1.0)
    assert theatre.puppet("b").times == [sent_at + 0.25]


def test_what_a_step_has_for_one_peer_travels_in_one_frame():
    theatre = Theatre(slow=0.5)
    before = theatre.world.messages
    theatre.perform("a", *(Send(("b", "c"), number(value)) for value in range(5)))
    theatre.run(5.0)
    assert theatre.world.messages - before == 10, "packets"
    assert len(set(theatre.puppet("b").times)) == 1
    assert theatre.heard("b") == theatre.heard("c") == list(range(5))


def test_a_message_to_oneself_needs_no_network():
    theatre = Theatre()
    before = theatre.world.messages
    theatre.perform("a", Send(("a", "b"), number(7)))
    assert theatre.heard("a") == [7]
    theatre.run(1.0)
    assert theatre.heard("b") == [7]
    assert theatre.world.messages - before == 1


# ------------------------------------------------------------------------------------------------------ blocking


def test_a_direction_can_be_blocked_while_the_other_is_open():
    theatre = Theatre()
    theatre.world.network.block("a", "b")
    theatre.say("a", "b", 1, 2)
    theatre.say("b", "a", 3)
    theatre.say("a", "c", 4)
    theatre.run(5.0)
    assert (theatre.heard("a"), theatre.heard("b"), theatre.heard("c")) == ([3], [], [4])


def test_what_waited_for_a_blocked_direction_comes_in_order_and_before_what_is_sent_later():
    theatre = Theatre(slow=0.5)
    theatre.world.network.block("a", "b")
    theatre.say("a", "b", *range(10))
    theatre.run(5.0)
    theatre.world.network.unblock("a", "b")
    theatre.say("a", "b", *range(10, 20))
    theatre.run(5.0)
    assert theatre.heard("b") == list(range(20))


def test_a_direction_that_two_faults_block_stays_blocked_until_both_are_over():
    theatre = Theatre()
    network = theatre.world.network
    network.block("a", "b")
    network.block("a", "b")
    theatre.say("a", "b", 1)
    network.unblock("a", "b")
    theatre.run(5.0)
    assert theatre.heard("b") == []
    network.unblock("a", "b")
    theatre.run(5.0)
    assert theatre.heard("b") == [1]


def test_a_datagram_into_a_blocked_direction_is_lost():
    theatre = Theatre(datagrams=True)
    theatre.world.network.block("a", "b")
    theatre.say("a", "b", 1)
    theatre.world.network.unblock("a", "b")
    theatre.run(5.0)
    assert theatre.heard("b") == []


# ---------------------------------------------------------------------------------------------------- connections


def test_the_first_connection_is_announced_with_the_incarnation_at_the_other_end():
    theatre = Theatre()
    lives = {name: process.incarnation for name, process in theatre.world.processes.items()}
    for name in "abc":
        assert dict(theatre.puppet(name).resets) == {n: i for n, i in lives.items() if n != name}


def test_a_break_loses_what_is_in_flight_and_both_ends_hear_of_it():
    theatre = Theatre(exact=True, delay_s=0.1)
    for name in "ab":
        theatre.puppet(name).resets.clear()
    theatre.say("a", "b", 1)
    theatre.say("b", "a", 2)
    theatre.run(0.05)
    theatre.world.network.break_connection("a", "b")
    theatre.say("a", "b", 3)
    theatre.run(1.0)
    theatre.say("a", "b", 4)
    theatre.run(1.0)
    assert (theatre.heard("a"), theatre.heard("b")) == ([], [4])
    assert [peer for peer, _ in theatre.puppet("a").resets] == ["b"]
    assert [peer for peer, _ in theatre.puppet("b").resets] == ["a"]


def test_what_was_sent_over_a_broken_connection_does_not_come_over_the_next():
    theatre = Theatre(exact=True, delay_s=10.0)
    theatre.run(60.0)
    theatre.say("a", "b", 1)
    theatre.world.network.settings.delay_s = 0.01
    theatre.world.network.break_connection("a", "b")
    theatre.run(1.0)
    theatre.say("a", "b", 2)
    theatre.run(60.0)
    assert theatre.heard("b") == [2]


def test_a_break_does_not_touch_other_connections():
    theatre = Theatre(exact=True, delay_s=0.1)
    theatre.say("a", "c", 1)
    theatre.world.network.break_connection("a", "b")
    theatre.run(1.0)
    assert theatre.heard("c") == [1]


def test_what_waited_for_a_blocked_direction_is_lost_with_its_connection():
    theatre = Theatre()
    theatre.world.network.block("a", "b")
    theatre.say("a", "b", 1)
    theatre.world.network.break_connection("a", "b")
    theatre.world.network.unblock("a", "b")
    theatre.run(5.0)
    theatre.say("a", "b", 2)
    theatre.run(5.0)
    assert theatre.heard("b") == [2]


@pytest.mark.parametrize("direction", [("a", "b"), ("b", "a")])
def test_no_connection_comes_about_while_a_direction_is_blocked(direction):
    theatre = Theatre()
    network = theatre.world.network
    theatre.puppet("a").resets.clear()
    network.block(*direction)
    network.break_connection("a", "b")
    theatre.run(5.0)
    assert theatre.puppet("a").resets == []
    network.unblock(*direction)
    theatre.run(5.0)
    assert [peer for peer, _ in theatre.puppet("a").resets] == ["b"]


def test_who_does_not_talk_to_each_other_is_not_connected():
    theatre = Theatre()
    theatre.world.network.connects = lambda a, b: "c" not in (a, b)
    theatre.process("c").crash()
    theatre.process("c").start()
    theatre.run(5.0)
    theatre.say("a", "c", 1)
    theatre.run(5.0)
    assert theatre.puppet("c").resets == []
    assert theatre.heard("c") == []


def test_a_crash_loses_what_is_in_flight_in_both_directions():
    theatre = Theatre(exact=True, delay_s=0.1)
    theatre.say("a", "b", 1)
    theatre.say("b", "a", 2)
    theatre.run(0.05)
    theatre.process("b").crash()
    theatre.say("a", "b", 3)
    theatre.process("b").start()
    theatre.run(1.0)
    assert theatre.heard("a") == theatre.heard("b") == []


def test_a_restarted_process_is_announced_as_a_new_incarnation():
    theatre = Theatre()
    theatre.puppet("a").resets.clear()
    first = theatre.process("b").incarnation
    theatre.process("b").crash()
    theatre.process("b").start()
    theatre.run(5.0)
    ((peer, second),) = theatre.puppet("a").resets
    assert (peer, second) == ("b", theatre.process("b").incarnation)
    assert second > first


# ------------------------------------------------------------------------------------------------------- pausing


def test_a_paused_process_does_everything_later_and_in_order():
    theatre = Theatre()
    theatre.puppet("b").events.clear()
    theatre.process("b").paused_until = theatre.world.now + 10.0
    theatre.say("a", "b", 1)
    theatre.run(1.0)
    theatre.world.network.break_connection("a", "b")
    theatre.run(1.0)
    theatre.say("a", "b", 2)
    theatre.run(7.9)
    assert theatre.puppet("b").events == []
    theatre.run(0.2)
    events = [type(event) for event in theatre.puppet("b").events]
    assert events == [Receive, ChannelReset, Receive]
    assert theatre.heard("b") == [1, 2]


def test_a_seed_is_a_run():
    digests = []
    for seed in (1, 1, 2):
        theatre = Theatre(seed, loss=0.2, slow=0.5)
        theatre.say("a", "b", *range(20))
        theatre.run(5.0)
        digests.append(theatre.world.digest())
    assert digests[0] == digests[1] != digests[2]
