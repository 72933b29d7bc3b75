"""What machines say that envelopes waited for."""

from ordercast.core.ids import pack_u64
from ordercast.core.machine import Decided, Effect, Observe, TimerFired
from ordercast.protocols.scalatom.implied import STAMPS_TIMER
from tests.unit import scalatom_host
from tests.unit.driving import envelope_of


def waited(effects: list[Effect]) -> list[tuple[str, str]]:
    return [(effect.stage, effect.blocked_on) for effect in effects if isinstance(effect, Observe)]


def observing(**settings: float) -> scalatom_host.Host:
    host = scalatom_host.Host(**settings)
    host.machine.observe = True
    return host


def test_a_number_waits_for_the_replica_whose_stamp_came_last():
    host, envelope = observing(), envelope_of(0, "a")
    host.take(envelope)
    host.stamp("n2", envelope, 0)
    assert waited(host.decide(envelope, 0)) == [("decided", "replica:n2")]


def test_where_acceptors_vote_a_number_waits_for_the_last_vote():
    for last in ("n3", "n1"):  # n1 is the machine's own process, whose disk may be the slowest
        host, envelope = observing(), envelope_of(0, "a")
        host.take(envelope)
        host.stamp("n2", envelope, 0)
        decided = host.step(Decided, envelope.header.id, pack_u64(0), last)
        assert waited(decided) == [("decided", f"replica:{last}")]


def test_a_replica_that_was_waited_for_in_vain_is_to_blame_and_one_that_was_not_is_not():
    host, first, second = observing(stamps_wait_s=0.01), envelope_of(0, "a"), envelope_of(1, "a")
    host.take(first)
    host.stamp("n2", first, 0)
    host.now += 1.0
    host.step(TimerFired, STAMPS_TIMER, 0)
    decided = host.step(Decided, first.header.id, pack_u64(0), "n2")
    assert waited(decided)[0] == ("decided", "replica:n3")
    host.take(second)
    host.stamp("n2", second, 1)
    decided = host.step(Decided, second.header.id, pack_u64(1), "n2")
    assert waited(decided)[0] == ("decided", "replica:n2")


def test_predecessors_wait_for_the_replica_whose_history_completed_a_majority():
    host, envelope = observing(), envelope_of(0, "a")
    host.take(envelope)
    host.stamp("n2", envelope, 0)
    host.decide(envelope, 0)
    assert waited(host.gossip("n2", 1)) == [("predecessors", "replica:n2"), ("delivered", "")]


def test_a_delivery_waits_for_the_undecided_envelope_before_it():
    host, first, second = observing(), envelope_of(0, "a"), envelope_of(1, "a")
    host.take(first)
    host.take(second)
    host.stamp("n2", second, 1)
    host.decide(second, 1)
    assert ("delivered", "") not in waited(host.gossip("n2", 2))
    host.stamp("n2", first, 0)
    found = waited(host.decide(first, 0))
    assert found[-1] == ("delivered", f"message:{first.header.id.hex()}")


def test_nothing_is_said_to_who_does_not_ask():
    host, envelope = scalatom_host.Host(), envelope_of(0, "a")
    assert waited(host.order(envelope, 0)) == []
    assert not host.machine.waits.heads
