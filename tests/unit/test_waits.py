"""What machines say that envelopes waited for, and what they say that envelopes wait for now."""

from typing import Any

from ordercast.core.ids import pack_u64
from ordercast.core.machine import Decided, Effect, Observe, TimerFired
from ordercast.protocols.scalatom.implied import STAMPS_TIMER
from ordercast.v1.common_pb2 import Envelope
from tests.unit import gateway_host, scalatom_host
from tests.unit.driving import envelope_of
from tests.unit.isis_host import Company


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


# --------------------------------------------------------------------------------------- what waits now


def held_up(machine: Any, count_max: int = 100) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Stage, groups and whom it waits for, the oldest first."""
    return [(each.stage, each.groups, each.blocked_on) for each in machine.held_up(count_max)]


def message(envelope: Envelope) -> str:
    return f"message:{envelope.header.id.hex()}"


def test_an_envelope_without_a_number_names_whose_stamps_a_majority_lacks():
    host, envelope = scalatom_host.Host(), envelope_of(0, "a")
    host.take(envelope)
    assert held_up(host.machine) == [("decide", ("a",), ("replica:n2", "replica:n3"))]


def test_an_envelope_that_a_majority_has_stamped_waits_for_its_coordinator():
    host, envelope = scalatom_host.Host(), envelope_of(0, "a", coordinator="n2")
    host.take(envelope)
    host.stamp("n3", envelope, 0)
    assert held_up(host.machine) == [("decide", ("a",), ("replica:n2",))]


def test_an_envelope_with_a_number_waits_for_histories_or_for_what_is_before_it():
    host, first, second = scalatom_host.Host(), envelope_of(0, "a"), envelope_of(1, "a")
    host.take(first)
    host.stamp("n2", first, 0)
    host.decide(first, 0)
    assert held_up(host.machine) == [("predecessors", ("a",), ("replica:n2", "replica:n3"))]
    host.now += 1.0
    host.take(second)
    host.stamp("n2", second, 1)
    host.decide(second, 1)
    assert held_up(host.machine)[1] == ("deliver", ("a",), (message(first),))
    assert len(held_up(host.machine, 1)) == 1
    host.gossip("n2", 2)
    assert held_up(host.machine) == []


def test_an_undecided_envelope_that_may_come_first_is_named_and_asking_changes_nothing():
    host, first, second = scalatom_host.Host(), envelope_of(0, "a"), envelope_of(1, "a")
    host.take(first)
    host.take(second)
    host.stamp("n2", second, 1)
    host.decide(second, 1)
    before = host.machine.buffers()
    assert ("predecessors", ("a",), (message(first),)) in held_up(host.machine)
    assert host.machine.buffers() == before


def test_a_cast_waits_for_the_token_or_for_a_cast_that_is_not_here():
    company = Company({"a": "n1 n2 n3"})
    company.hold("n3", "n1", "n2")
    company.cast("n1", "a", "m1")
    assert held_up(company.machine("n1")) == [("order", ("a",), ("token:n3",))]
    company.hold("n1", "n2")
    company.cast("n1", "a", "m2")
    company.cast("n3", "a", "m3")
    company.arrive("n3", "n2", len(company.on_the_way("n3", "n2")))
    assert ("causal", ("a",), ("replica:n1",)) in held_up(company.machine("n2"))
    company.release("n1", "n2")
    company.release("n3", "n1", "n2")
    company.wait()
    assert held_up(company.machine("n1")) == []


def test_a_gateway_names_the_groups_that_have_not_delivered_and_the_envelope_that_holds_others_back():
    host = gateway_host.Host()
    envelope = host.submit("a", "b")
    host.now += 1.0
    host.publish("a")
    assert held_up(host.machine) == [
        ("publish", ("a", "b"), ("group:a", "group:b")),
        ("submit", ("a",), (message(envelope),)),
    ]
