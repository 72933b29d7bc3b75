"""[BSS91] 5.1 and 6.1, rule by rule: when a cast may be delivered, in one group and in several that overlap.

Real machines; the tests choose what arrives when. What we read differently from the paper is in the README of the
protocol, and is named where it is tested.
"""

from itertools import permutations

import pytest

from ordercast.v1.isis_pb2 import Cast, Stability
from tests.unit.isis_host import Company

ONE = {"a": "n1 n2 n3"}
#: Figure 4: p1, p2, p3 in the first group, p2, p3, p4 in the second.
FIGURE_4 = {"a": "n1 n2 n3", "b": "n2 n3 n4"}


# ------------------------------------------------------------------------------------------ 5.1, one group


def test_5_1_step_1_the_caster_counts_its_cast_before_it_sends_it() -> None:
    company = Company(ONE)
    company.hold("n1", "n2")
    company.cast("n2", "a", "m0")
    company.cast("n1", "a", "m1")
    company.cast("n1", "a", "m2")
    first, second = company.on_the_way("n1", "n2", Cast)
    assert [(cast.key.member, cast.key.number) for cast in (first, second)] == [(0, 1), (0, 2)]
    (time,) = first.times
    assert (list(time.members), list(time.counts)) == ([1], [1]), "and says what it has of the others: m0"


def test_5_1_step_2_of_one_caster_each_cast_is_delivered_behind_the_one_before() -> None:
    """A channel is first in, first out: what comes ahead of its predecessor came over a new one."""
    company = Company(ONE)
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1")
    company.lose("n1", "n3")
    company.cast("n1", "a", "m2")
    company.release("n1", "n3")
    assert company.live("n3") == ""
    assert company.era("n3").received[0] == 0, "it is not taken, so nobody is told that it is on disk"
    company.reconnect("n1", "n3")
    assert company.live("n3") == "m1 m2"


def test_5_1_step_2_a_cast_waits_for_what_its_caster_had_delivered() -> None:
    """As in figure 2: n2 answers m1, and n3 has the answer first."""
    company = Company(ONE)
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1")
    company.cast("n2", "a", "m2")
    assert company.era("n3").received == [0, 1, 0]
    assert company.live("n3") == ""
    company.release("n1", "n3")
    assert company.live("n3") == "m1 m2"


def test_5_1_step_2_concurrent_casts_wait_for_nothing() -> None:
    company = Company(ONE)
    company.hold("n1", "n2", "n3")
    company.hold("n2", "n1", "n3")
    company.cast("n1", "a", "m1")
    company.cast("n2", "a", "m2")
    company.release("n2", "n3")
    assert company.live("n3") == "m2"
    company.release("n1", "n3")
    assert company.live("n3") == "m2 m1"


def test_5_1_within_one_group_a_process_does_not_wait_for_itself() -> None:
    company = Company(ONE)
    company.hold("n1", "n2", "n3")
    company.cast("n1", "a", "m1")
    assert company.live("n1") == "m1"


def test_5_1_step_3_a_delivery_counts_and_may_free_all_that_waited() -> None:
    company = Company({"a": "n1 n2 n3 n4"})
    company.hold("n1", "n4")
    company.cast("n1", "a", "m1")
    company.cast("n2", "a", "m2")
    company.cast("n3", "a", "m3")
    company.cast("n2", "a", "m4")
    assert company.live("n4") == ""
    company.release("n1", "n4")
    assert company.live("n4") == "m1 m2 m3 m4", "in one step"
    assert company.era("n4").delivered == [1, 2, 1, 0]


@pytest.mark.parametrize("order", list(permutations(["n1", "n2", "n3"])))
def test_5_1_whatever_comes_first_all_of_it_is_delivered_and_causes_before_effects(order: tuple[str, ...]) -> None:
    company = Company({"a": "n1 n2 n3 n4"})
    for name in order:
        company.hold(name, "n4")
    company.cast("n1", "a", "m1")
    company.cast("n2", "a", "m2")
    company.cast("n3", "a", "m3")
    for name in order:
        company.release(name, "n4")
    assert company.live("n4") == "m1 m2 m3"


# ------------------------------------------------------------------------------------- 6.1, several groups


def test_6_1_casts_are_counted_for_each_group_apart() -> None:
    """Or n4, which is not in a, could not tell how many of n2's casts it has to wait for."""
    company = Company(FIGURE_4, k_stability="1")
    for label in ("m1", "m2"):
        company.cast("n2", "a", label)
    company.cast("n2", "b", "m3")
    assert (company.era("n3", "a").received, company.era("n3", "b").received) == ([0, 2, 0], [1, 0, 0])
    assert company.live("n4") == "m3"


def test_6_1_figure_4() -> None:
    """m1 in the first group comes late to p3. m2 in the second is sent by p2, behind m1, and m3 by p4, behind m2.
    p3 delays both; p4, which is not in the first group, and p2 delay nothing.
    """
    company = Company(FIGURE_4, k_stability="1")
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    company.cast("n4", "b", "m3")
    assert company.live("n4") == "m2 m3"
    assert company.live("n2") == "m1 m2 m3"
    assert company.live("n3") == ""
    company.release("n1", "n3")
    assert company.live("n3") == "m1 m2 m3"


def test_6_1_rule_2_1_and_2_2_hold_within_the_casts_own_group() -> None:
    company = Company(FIGURE_4, k_stability="1")
    company.hold("n2", "n3")
    company.cast("n2", "b", "m1")
    company.cast("n4", "b", "m2")
    assert company.live("n3") == "", "n4 had delivered m1 [2.2']"
    company.lose("n2", "n3")
    company.cast("n2", "b", "m3")
    company.release("n2", "n3")
    assert company.live("n3") == "", "m3 is not n2's next [2.1']"
    company.reconnect("n2", "n3")
    assert company.live("n3") == "m1 m2 m3"


def test_6_1_rule_2_3_leaves_out_the_casts_own_group() -> None:
    """As printed, 2.3' asks for the cast itself in the group of the cast, and nothing is ever delivered."""
    company = Company(FIGURE_4, k_stability="1")
    company.cast("n2", "a", "m1")
    company.cast("n2", "b", "m2")
    company.cast("n2", "a", "m3")
    assert company.live("n3") == "m1 m2 m3"


def test_6_1_times_travel_through_processes_that_are_not_in_the_group() -> None:
    """n2 is not in c, and its cast in b comes behind what n1 said in c all the same."""
    company = Company({"a": "n1 n2", "b": "n2 n3", "c": "n1 n3"}, k_stability="1")
    company.hold("n1", "n3")
    company.cast("n1", "c", "m1")
    company.cast("n1", "a", "m2")
    company.cast("n2", "b", "m3")
    assert company.live("n2") == "m2 m3"
    assert company.live("n3") == ""
    company.release("n1", "n3")
    assert company.live("n3") == "m1 m3"


def test_6_1_own_casts_obey_the_rule_too() -> None:
    """Otherwise than in the paper. n2 lacks m1, of b, and casts m2 in a for a client that has read m1."""
    company = Company({"a": "n2 n3", "b": "n1 n2 n3"})
    company.hold("n1", "n2")
    company.cast("n1", "b", "m1")
    company.wait()
    company.cast("n2", "a", "m2", seen=company.seen_at("n3", "b"))
    assert company.live("n3") == "m1 m2", "it is sent at once"
    assert company.live("n2") == "", "and not delivered"
    company.release("n1", "n2")
    assert company.live("n2") == "m1 m2"


def test_6_1_own_casts_that_wait_are_counted_as_sent() -> None:
    """What is sent is counted apart from what is delivered, so the next one has the next number."""
    company = Company({"a": "n2 n3", "b": "n1 n2 n3"})
    company.hold("n1", "n2")
    company.cast("n1", "b", "m1")
    company.wait()
    company.cast("n2", "a", "m2", seen=company.seen_at("n3", "b"))
    company.cast("n2", "a", "m3")
    assert (company.era("n2").sent, company.era("n2").delivered) == (2, [0, 0])
    company.release("n1", "n2")
    assert company.live("n2") == company.live("n3") == "m1 m2 m3"


def test_6_1_a_time_of_a_view_that_is_over_is_satisfied() -> None:
    """5.5 and 6.5: its flush delivered all of it. n4 was not there, and has nothing to wait for."""
    company = Company({"a": "n1 n2 n3", "b": "n2 n4"}, k_stability="1")
    company.cast("n1", "a", "m1")
    company.wait()
    company.hold("n2", "n4")
    company.cast("n2", "b", "m2")
    company.define("a", "n1 n2 n3 n4")
    company.complete("a")
    company.wait()
    company.wait()
    assert company.era("n4").delivered == [0, 0, 0, 0]
    company.release("n2", "n4")
    assert company.live("n4") == "m2"


def test_6_1_a_time_of_a_view_that_is_not_here_yet_is_waited_for() -> None:
    """n2 is in a's second view, speaks there and then in b. n3 has not heard that this view is complete."""
    company = Company({"a": "n1 n2 n3", "b": "n2 n3"}, k_stability="1")
    company.define("a", "n1 n2 n3")
    company.complete("a", told="n1 n2")
    company.cast("n2", "a", "m1")
    company.cast("n2", "b", "m2")
    assert company.live("n2") == "m1 m2"
    assert company.live("n3") == ""
    company.tell("n3")
    assert company.live("n3") == "m1 m2"


def test_6_1_a_newer_views_time_is_waited_for_also_when_the_view_is_known_to_be_complete() -> None:
    """n3 knows that, and lacks the cut: it delivers m1, with which the first view ended, before what n2 says."""
    company = Company({"a": "n1 n2 n3", "b": "n2 n3"}, k_stability="1")
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1")
    company.define("a", "n1 n2 n3")
    company.complete("a")
    company.cast("n2", "b", "m2")
    assert company.live("n3") == ""
    company.release("n1", "n3")
    assert company.live("n3") == "m1 m2"


def test_6_1_what_a_group_is_told_of_others_rows_says_nothing_about_delivery() -> None:
    """Stability is told outside of vector time: n3 hears who has m1 on disk, and delivers nothing for that."""
    company = Company(FIGURE_4, k_stability="1")
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    row = company.era("n2").rows[1].message()
    company.say("n2", "n3", Stability(group="a", view=1, row=row))
    assert company.live("n3") == ""
