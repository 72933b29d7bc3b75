"""Delivery: ABCASTs in their turn, several groups in one step, and what is left of a view that has ended."""

import pytest

from ordercast.v1.isis_pb2 import CastKey, SetsOrder
from tests.unit.isis_host import Company

#: n3 has the token.
ONE = {"a": "n1 n2 n3"}


def order(first: int, *keys: tuple[int, int]) -> SetsOrder:
    listed = [CastKey(member=member, number=number) for member, number in keys]
    return SetsOrder(group="a", view=1, first_position=first, keys=listed, holder=2)


def test_an_abcast_waits_for_its_place_also_at_its_caster():
    company = Company(ONE)
    company.hold("n3", "n1", "n2")
    company.cast("n1", "a", "m1", total=True)
    assert (company.live("n1"), company.live("n2"), company.live("n3")) == ("", "", "m1")
    company.release("n3", "n1")
    assert company.live("n1") == "m1"


def test_abcasts_are_delivered_in_the_order_of_their_places_and_not_of_their_arrival():
    company = Company(ONE)
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1", total=True)
    company.cast("n2", "a", "m2", total=True)
    company.release("n1", "n3")
    assert [company.live(name) for name in company.members] == ["m2 m1"] * 3


def test_an_abcast_waits_for_one_that_is_placed_before_it_and_has_not_come():
    company = Company(ONE)
    company.hold("n1", "n2")
    company.cast("n1", "a", "m1", total=True)
    company.cast("n3", "a", "m2", total=True)
    assert company.era("n2").places == {0: (0, 1), 1: (2, 1)}
    assert company.live("n2") == ""
    company.release("n1", "n2")
    assert company.live("n2") == "m1 m2"


def test_a_cbcast_is_not_held_up_by_an_abcast_that_is_placed_before_it():
    company = Company(ONE)
    company.hold("n1", "n2")
    company.cast("n1", "a", "m1", total=True)
    company.hold("n3", "n2")
    company.cast("n2", "a", "m2")
    assert company.live("n2") == "m2", "they are concurrent"


def test_an_abcast_is_not_held_up_by_a_cbcast_that_is_placed_before_it():
    """m1 is at 0, and n2 lacks m0 before it, of b. Turns are among ABCASTs: m2, at 1, is the first of them."""
    company = Company({"a": "n2 n3 n4", "b": "n1 n2 n3"}, k_stability="1")
    assert company.holder("a") == "n4"
    company.hold("n1", "n2")
    company.cast("n1", "b", "m0")
    company.cast("n3", "a", "m1")
    company.cast("n2", "a", "m2", total=True)
    assert company.era("n2").places == {0: (1, 1), 1: (0, 1)}
    assert company.live("n2") == "m2"
    company.release("n1", "n2")
    assert company.live("n2") == "m2 m0 m1"


def test_a_cbcast_behind_an_abcast_waits_with_it():
    """5.2 step 1: the vector time is not raised before the ABCAST is delivered."""
    company = Company(ONE)
    company.hold("n3", "n2")
    company.cast("n1", "a", "m1", total=True)
    company.cast("n1", "a", "m2")
    assert company.live("n1") == "m1 m2"
    assert company.live("n2") == ""
    company.release("n3", "n2")
    assert company.live("n2") == "m1 m2"


def test_an_abcast_whose_turn_it_is_waits_for_its_past():
    """n4 has m1, of b, and casts m2 in a, where it holds the token: the place is there before m1."""
    company = Company({"a": "n2 n3 n4", "b": "n1 n2 n4"}, k_stability="1")
    assert company.holder("a") == "n4"
    company.hold("n1", "n2")
    company.cast("n1", "b", "m1")
    company.cast("n4", "a", "m2", total=True)
    assert company.era("n2").places == {0: (2, 1)}
    assert company.live("n2") == ""
    company.release("n1", "n2")
    assert company.live("n2") == "m1 m2"


def test_a_holder_that_lacks_what_was_placed_before_its_turn_delivers_no_abcast_of_its_own():
    company = Company(ONE)
    company.hold("n1", "n2")
    company.cast("n1", "a", "m1", total=True)
    moved = order(0, (0, 1))
    moved.holder, moved.turn, moved.since = 1, 1, 1
    company.say("n3", "n2", moved)
    company.cast("n2", "a", "m2", total=True)
    assert company.live("n2") == ""
    company.release("n1", "n2")
    assert company.live("n2") == "m1 m2"


def test_one_arrival_frees_what_waits_in_turns_in_two_groups():
    """m1 in a, m2 in b behind it, m3 in a behind that, m4 in b: all of it comes before m1."""
    company = Company({"a": "n1 n2 n3", "b": "n2 n3 n4"}, k_stability="1")
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1")
    for label, group in {"m2": "b", "m3": "a", "m4": "b"}.items():
        company.cast("n2", group, label)
    assert company.live("n3") == ""
    company.release("n1", "n3")
    assert company.live("n3") == "m1 m2 m3 m4"


def test_what_names_a_later_domain_view_waits_for_it():
    """Its caster knew of groups that we may be in without knowing it."""
    company = Company(ONE)
    company.announce(told="n1")
    company.cast("n1", "a", "m1")
    assert company.machine("n2").receiving.early_count() == 1
    assert (company.live("n2"), company.era("n2").received) == ("", [0, 0, 0])
    company.tell("n2")
    assert company.live("n2") == "m1"


def test_a_view_is_installed_when_what_is_left_of_the_last_one_is_delivered():
    """n3 has the cut, with m2 in it, and lacks m1 of b before that: it takes no part in the next view yet."""
    company = Company({"a": "n1 n2 n3", "b": "n2 n3 n4"}, k_stability="1")
    company.hold("n4", "n3")
    company.cast("n4", "b", "m1")
    company.cast("n2", "a", "m2")
    company.crash("n1")
    company.define("a", "n2 n3")
    company.complete("a")
    replica = company.replica("n3")
    assert (replica.view, len(replica.eras), replica.installed) == (2, 2, None)
    company.cast("n2", "a", "m3")
    assert company.live("n3") == ""
    company.release("n4", "n3")
    assert company.live("n3") == "m1 m2 m3"
    assert replica.installed is not None


def test_whoever_leaves_delivers_what_is_left_and_says_that_nothing_more_comes():
    """n3 leaves a. m2, with which a ends, is behind m1, of b, which n3 lacks."""
    company = Company({"a": "n1 n2 n3", "b": "n2 n3 n4"}, k_stability="1")
    company.hold("n4", "n3")
    company.cast("n4", "b", "m1")
    company.cast("n2", "a", "m2")
    company.define("a", "n1 n2", leaving="n3")
    company.complete("a")
    assert company.live("n3") == ""
    assert ("interrupted", "n3", "a") not in company.history
    company.release("n4", "n3")
    assert company.live("n3") == "m1 m2"
    assert ("interrupted", "n3", "a") in company.history


@pytest.mark.parametrize("total", [False, True])
def test_nothing_is_delivered_twice_though_a_flush_brings_it_again(total: bool):
    company = Company(ONE)
    company.cast("n1", "a", "m1", total=total)
    company.hold("n1", "n3")
    company.cast("n1", "a", "m2", total=total)
    company.crash("n1")
    company.change("a", "n2 n3")
    assert company.live("n2") == company.live("n3") == "m1 m2"


def test_who_is_left_out_delivers_nothing_more():
    """n3 has m2, which waits for m1, when it hears that a view is complete without it."""
    company = Company(ONE)
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1")
    company.cast("n2", "a", "m2")
    company.define("a", "n1 n2", told="n1 n2")
    company.complete("a", told="n1 n2")
    company.tell("n3")
    assert ("interrupted", "n3", "a") in company.history
    company.release("n1", "n3")
    assert company.live("n3") == ""
