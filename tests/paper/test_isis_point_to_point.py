"""[BSS91] 7.2, rule by rule: a message to one process, in causal order, at the price of silence meanwhile."""

from ordercast.v1.isis_pb2 import Tell
from tests.unit.isis_host import Company

GROUPS = {"a": "n1 n2 n3"}


def told(company: Company, name: str) -> str:
    return b" ".join(company.members[name].told).decode()


def test_7_2_its_sender_casts_nothing_until_it_is_acknowledged() -> None:
    company = Company(GROUPS)
    company.hold("n1", "n2")
    company.tell_one("n1", "n2", "p1")
    company.cast("n1", "a", "m1")
    assert company.live("n1") == company.live("n3") == ""
    company.release("n1", "n2")
    assert told(company, "n2") == "p1"
    assert company.live("n1") == company.live("n3") == "m1"


def test_7_2_others_cast_and_it_delivers_meanwhile() -> None:
    company = Company(GROUPS)
    company.hold("n1", "n2")
    company.tell_one("n1", "n2", "p1")
    company.cast("n3", "a", "m1")
    assert company.live("n1") == "m1"


def test_7_2_it_is_delivered_behind_what_its_sender_had_seen() -> None:
    company = Company(GROUPS, k_stability="1")
    company.hold("n3", "n2")
    company.cast("n3", "a", "m1")
    company.tell_one("n1", "n2", "p1")
    assert told(company, "n2") == ""
    assert company.era("n1").sent == 0
    company.release("n3", "n2")
    assert told(company, "n2") == "p1"


def test_7_2_the_sender_stays_inhibited_while_the_receiver_waits_for_what_precedes() -> None:
    company = Company(GROUPS, k_stability="1")
    company.hold("n3", "n2")
    company.cast("n3", "a", "m1")
    company.tell_one("n1", "n2", "p1")
    company.cast("n1", "a", "m2")
    assert company.era("n1").sent == 0, "it has arrived, and is not delivered"
    company.release("n3", "n2")
    assert company.live("n2") == "m1 m2"


def test_7_2_it_counts_for_nothing_in_vector_time() -> None:
    company = Company(GROUPS)
    company.tell_one("n1", "n2", "p1")
    company.cast("n1", "a", "m1")
    assert company.era("n3").received == [1, 0, 0]
    assert company.machine("n2").known.times["a"].counts == {0: 1}


def test_7_2_what_the_receiver_says_next_comes_behind_what_the_sender_had_seen() -> None:
    """n4 is not in a: only from the message does it know of m1. n3, in both, waits for m1."""
    company = Company({"a": "n1 n2 n3", "b": "n3 n4"}, k_stability="1")
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1")
    company.tell_one("n1", "n4", "p1")
    assert told(company, "n4") == "p1"
    company.cast("n4", "b", "m2")
    assert company.live("n3") == ""
    company.release("n1", "n3")
    assert company.live("n3") == "m1 m2"


def test_7_2_several_to_one_process_arrive_one_after_the_other_in_order() -> None:
    company = Company(GROUPS)
    company.hold("n1", "n2")
    for payload in ("p1", "p2", "p3"):
        company.tell_one("n1", "n2", payload)
    assert [tell.payload for tell in company.on_the_way("n1", "n2", Tell)] == [b"p1"]
    company.release("n1", "n2")
    assert told(company, "n2") == "p1 p2 p3"


def test_7_2_a_new_connection_brings_it_again_and_it_is_delivered_once() -> None:
    company = Company(GROUPS)
    company.hold("n1", "n2")
    company.tell_one("n1", "n2", "p1")
    company.held.clear()
    company.reconnect("n1", "n2")
    assert told(company, "n2") == "p1"
    company.hold("n2", "n1")
    company.tell_one("n1", "n2", "p2")
    assert told(company, "n2") == "p1 p2"
    company.held.clear()
    company.reconnect("n1", "n2")
    assert told(company, "n2") == "p1 p2", "the acknowledgement was lost, not the message"
    assert not company.machine("n1").telling.is_inhibited


def test_7_2_a_receiver_that_fails_is_waited_for_no_longer_than_its_life() -> None:
    company = Company(GROUPS)
    company.hold("n1", "n2")
    company.tell_one("n1", "n2", "p1")
    company.cast("n1", "a", "m1")
    assert company.live("n3") == ""
    company.crash("n2")
    company.held.clear()
    company.restart("n2")
    assert company.live("n3") == "m1"
    assert told(company, "n2") == "", "it was for the life before"


def test_7_2_it_counts_as_speaking_elsewhere_whoever_it_is_for() -> None:
    """6.5: what it speaks of is on k disks before it leaves."""
    company = Company(GROUPS)
    for name in ("n1", "n2", "n3"):
        company.slow_disk(name)
    company.cast("n1", "a", "m1")
    company.tell_one("n1", "n2", "p1")
    assert told(company, "n2") == ""
    company.sync("n1")
    company.sync("n3")
    assert told(company, "n2") == "p1"
