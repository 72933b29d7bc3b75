"""Speaking: what is cast when, in which order, with which stamp, and what is dropped instead."""

import pytest

from ordercast.core.machine import Ended, Receive
from ordercast.protocols.causal import times
from ordercast.protocols.isis import past
from ordercast.protocols.isis.settings import Causality
from ordercast.v1.isis_pb2 import Cast, GroupTime, Seen, Submit
from tests.unit.driving import LIVES, envelope_of
from tests.unit.isis_host import Company

#: n2 and n3 are in both.
OVERLAP = {"a": "n1 n2 n3", "b": "n2 n3 n4"}


def submit(company: Company, stream: int, index: int, life: int = LIVES["g1"]) -> bool:
    """Through n1; whether it was taken."""
    label = f"{life} {stream} {index} {len(company.envelopes)}"
    company.envelopes[label] = envelope_of(len(company.envelopes), "a")
    message = Submit(group="a", envelope=company.envelopes[label], stream=stream, index=index)
    company.step("n1", Receive, "g1", life, message)
    company.run()
    return ("a", label) in company.members["n1"].live


def stamp(cast: Cast) -> dict[str, tuple[int, dict[int, int]]]:
    found = {**times.decode(cast.times), **times.decode(cast.carried)}
    return {group: (time.view, time.counts) for group, time in found.items()}


# ------------------------------------------------------------------------------------------------- streams


def test_what_does_not_follow_in_its_stream_is_not_taken():
    company = Company({"a": "n1 n2 n3"})
    assert submit(company, 1, 1)
    assert not submit(company, 1, 3), "the second is missing"
    assert not submit(company, 1, 1), "it was there"
    assert submit(company, 1, 2)
    assert submit(company, 2, 1), "another stream begins"
    assert not submit(company, 1, 3), "and the one before is over"
    assert not submit(company, 3, 2), "a stream begins with its first"


def test_another_life_of_a_gateway_begins_anew_and_an_earlier_one_is_over():
    company = Company({"a": "n1 n2 n3"})
    assert submit(company, 5, 1)
    assert submit(company, 1, 1, LIVES["g1"] + 100)
    assert not submit(company, 6, 1)


def test_of_a_gateway_that_has_ended_nothing_is_remembered():
    company = Company({"a": "n1 n2 n3"})
    submit(company, 1, 1)
    company.step("n1", Ended, "g1", LIVES["g1"])
    assert company.machine("n1").speaking.streams == {}


def test_what_is_submitted_again_is_cast_once():
    company = Company({"a": "n1 n2 n3"})
    company.cast("n1", "a", "m1")
    company.cast("n1", "a", "m1")
    company.hold("n1", "n2", "n3")
    company.cast("n2", "a", "m2")
    company.cast("n1", "a", "m2")
    assert company.era("n1").sent == 1, "somebody else has cast m2, and n1 has it"


# -------------------------------------------------------------------------------------------------- stamps


def test_a_cast_is_stamped_when_it_is_submitted():
    """m3 is delivered while m2 waits, and is none of its past."""
    company = Company(OVERLAP)
    company.slow_disk("n1")
    company.slow_disk("n3")
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    company.cast("n4", "b", "m3")
    company.hold("n2", "n4")
    company.sync("n1")
    company.sync("n3")
    company.wait()
    (cast,) = company.on_the_way("n2", "n4", Cast)
    assert stamp(cast) == {"a": (1, {0: 1})}


def test_what_the_caster_had_said_before_does_not_travel_again():
    company = Company(OVERLAP, k_stability="1")
    company.cast("n1", "a", "m1")
    company.hold("n2", "n4")
    company.cast("n2", "b", "m2")
    company.cast("n2", "b", "m3")
    first, second = company.on_the_way("n2", "n4", Cast)
    assert (stamp(first), stamp(second)) == ({"a": (1, {0: 1})}, {})
    company.release("n2", "n4")
    kept = list(company.era("n4", "b").casts.values())
    assert [stamp(cast) for cast in kept] == [stamp(first), stamp(first)], "receivers put it back"


def test_the_casters_own_entry_is_left_out():
    company = Company({"a": "n1 n2 n3"})
    company.cast("n1", "a", "m1")
    company.hold("n1", "n2")
    company.cast("n1", "a", "m2")
    (cast,) = company.on_the_way("n1", "n2", Cast)
    assert stamp(cast) == {}


@pytest.mark.parametrize("causality", list(Causality))
def test_what_a_client_has_seen_elsewhere_travels_under_every_rule(causality: Causality):
    """n1 has it from the client alone: no waiting of n1's covers it."""
    company = Company({"a": "n1 n3", "b": "n2 n3 n4"}, causality=causality)
    company.hold("n1", "n3")
    company.hold("n2", "n3")
    company.cast("n2", "b", "m1")
    company.wait()
    company.cast("n1", "a", "m2", seen=past.seen_from(company.machine("n2").known, 0))
    (cast,) = company.on_the_way("n1", "n3", Cast)
    assert stamp(cast)["b"] == (1, {0: 1})
    company.release("n1", "n3")
    assert company.live("n3") == ""
    company.release("n2", "n3")
    assert company.live("n3") == "m1 m2"


def test_who_answers_what_was_carried_along_carries_it_on():
    """n3 is not in c. It has delivered m2, whose client has seen something of c, and speaks elsewhere."""
    company = Company({"a": "n1 n3", "b": "n3 n4", "c": "n5"}, causality=Causality.CONSERVATIVE)
    seen = Seen(times=[GroupTime(group="c", view=1, members=[0], counts=[4])])
    company.cast("n1", "a", "m2", seen=seen)
    company.wait()
    company.hold("n3", "n4")
    company.cast("n3", "b", "m3")
    (cast,) = company.on_the_way("n3", "n4", Cast)
    assert stamp(cast)["c"] == (1, {0: 4})


# ------------------------------------------------------------------------------------------- what waits


def test_casts_of_a_group_wait_behind_each_other_and_those_of_another_group_do_not():
    company = Company({**OVERLAP, "c": "n2 n5"})
    company.hold("n1", "n3")
    company.slow_disk("n1")
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    company.cast("n2", "a", "m3")
    assert company.machine("n2").buffers()["waiting"] == 1
    assert company.era("n2", "a").sent == 1


def test_a_process_that_leaves_a_group_drops_what_was_to_be_cast_there():
    company = Company(OVERLAP)
    company.hold("n1", "n3")
    company.slow_disk("n1")
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    company.define("b", "n3 n4", leaving="n2")
    company.complete("b")
    company.installed("b")
    assert company.machine("n2").buffers()["waiting"] == 0
    assert company.machine("n2").speaking.ids == {}


def test_who_is_left_out_says_nothing_that_comes_behind_what_it_may_have_lost():
    """n2 has delivered m1, and is left out of a. Its answer in b is dropped: whoever submitted it comes again."""
    company = Company(OVERLAP)
    company.hold("n1", "n3")
    company.slow_disk("n1")
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    company.define("a", "n1 n3", told="n1 n3")
    company.release("n1", "n3")
    company.sync("n1")
    company.complete("a", told="n1 n3")
    company.tell("n2", "n4")
    assert company.machine("n2").buffers()["waiting"] == 0
    company.wait()
    assert company.live("n4") == ""


def test_nothing_is_cast_in_a_view_that_ends_and_it_is_cast_in_the_next():
    company = Company({"a": "n1 n2 n3"})
    company.define("a", "n1 n2 n3")
    company.cast("n1", "a", "m1")
    assert company.live("n1") == ""
    company.complete("a")
    assert company.live("n1") == "m1"
    assert [cast.view for cast in company.era("n2").casts.values()] == [2]


def test_until_all_of_a_message_is_cast_nobody_who_delivered_a_part_speaks_in_another_group():
    company = Company({"a": "n1 n2 n3", "b": "n2 n4 n5"})
    company.hold("n1", "n4", "n5")
    company.cast("n1", "a b", "m1")
    company.cast("n2", "b", "m2")
    company.cast("n3", "a", "m3")
    assert company.machine("n2").buffers()["waiting"] == 1
    assert "m3" in company.live("n2"), "in the same group nobody waits"
    company.release("n1", "n4", "n5")
    company.wait()
    assert company.log("n4", "b") == "m1 m2"


def test_a_part_that_is_handed_on_waits_behind_nothing():
    """n2 is to cast m1's part in b, and has something that waits there."""
    company = Company({"a": "n1 n2 n3", "b": "n2 n4 n5", "c": "n2 n6"})
    company.hold("n6", "n2")
    company.slow_disk("n6")
    company.cast("n2", "c", "m0")
    company.cast("n2", "b", "m2")
    assert company.era("n2", "b").sent == 0
    company.say("n1", "n2", Submit(group="b", envelope=_several(company, "m1"), origin=Seen()))
    assert company.live("n4") == "m1"


def _several(company: Company, label: str):
    company.envelopes[label] = envelope_of(len(company.envelopes), "a", "b")
    return company.envelopes[label]
