"""[BSS91] 6.5, rule by rule: before a process speaks in another group, what it knows must survive what it says."""

import pytest

from ordercast.v1.isis_pb2 import Cast, Stability
from tests.unit.isis_host import Company

#: p1 is in the first group, p2 in both; q is n3, in both, and q' is n4, in the second alone. n3 holds a's token.
OVERLAP = {"a": "n1 n2 n3", "b": "n2 n3 n4"}


def spoken(company: Company, group: str = "b", name: str = "n2") -> int:
    """How many casts it has sent there."""
    return company.era(name, group).sent


def test_6_5_a_process_waits_until_k_have_what_it_delivered_in_the_other_group() -> None:
    company = Company(OVERLAP)
    company.hold("n1", "n3")
    for name in ("n1", "n2"):
        company.slow_disk(name)
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    assert company.live("n2") == "m1"
    assert spoken(company) == 0, "m1 may be lost"
    company.sync("n2")
    assert spoken(company) == 0, "its own disk is one of two"
    company.sync("n1")
    company.wait()
    assert spoken(company) == 1
    assert company.live("n4") == "m2"


def test_6_5_and_what_it_sent_there_itself() -> None:
    company = Company(OVERLAP)
    company.hold("n2", "n1", "n3")
    company.cast("n2", "a", "m1")
    company.cast("n2", "b", "m2")
    assert spoken(company) == 0
    company.release("n2", "n1")
    assert spoken(company) == 1


def test_6_5_the_example_p1_and_p2_fail_and_nothing_is_said_that_has_lost_its_cause() -> None:
    """m1 is with p1 and p2 alone, and both fail. What p2 was to say in the second group nobody has heard, so q is
    not to choose between causality and atomicity.
    """
    company = Company({"a": "n1 n2 n3 n5 n6", "b": "n2 n3 n4"})
    company.hold("n1", "n3", "n5", "n6")
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    company.wait()
    assert company.live("n4") == ""
    company.crash("n1", "n2")
    company.define("a", "n3 n5 n6")
    company.define("b", "n3 n4")
    company.complete("a")
    company.complete("b")
    assert company.live("n3") == company.live("n4") == ""
    company.cast("n4", "b", "m3")
    assert company.live("n3") == company.live("n4") == "m3"


@pytest.mark.parametrize(("k", "disks"), [("1", 1), ("majority", 2), ("3", 3), ("all", 3)])
def test_6_5_k_is_chosen_for_the_domain(k: str, disks: int) -> None:
    company = Company(OVERLAP, k_stability=k)
    for name in ("n1", "n2", "n3"):
        company.slow_disk(name)
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    for number, name in enumerate(("n2", "n1", "n3"), 1):
        company.sync(name)
        company.wait()
        assert spoken(company) == (1 if number >= disks else 0)


def test_6_5_or_for_a_group_that_was_created_with_its_own() -> None:
    company = Company(OVERLAP, k_stability="all")
    company.groups["a"].settings["k_stability"] = "1"
    company.announce()
    company.hold("n1", "n3")
    company.slow_disk("n4")
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    assert spoken(company) == 1, "a is content with one disk"
    company.cast("n2", "a", "m3")
    assert spoken(company, "a") == 0, "b wants all"
    company.sync("n4")
    assert spoken(company, "a") == 1


def test_6_5_within_a_group_nobody_waits() -> None:
    company = Company(OVERLAP, k_stability="all")
    for name in ("n1", "n2", "n3"):
        company.slow_disk(name)
    company.cast("n1", "a", "m1")
    company.cast("n2", "a", "m2")
    assert spoken(company, "a") == 1


def test_6_5_a_view_that_ended_took_along_what_its_members_had() -> None:
    """n1 fails. m1 is on fewer than k disks, but the next view begins with it, and it need not be waited for."""
    company = Company(OVERLAP, k_stability="all")
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    assert spoken(company) == 0
    company.crash("n1")
    company.define("a", "n2 n3")
    assert spoken(company) == 0, "it has not ended"
    company.complete("a")
    assert spoken(company) == 1
    assert company.live("n3") == "m1 m2"


def test_6_5_it_waits_for_what_it_knew_when_it_was_to_speak_and_for_nothing_later() -> None:
    company = Company(OVERLAP)
    for name in ("n1", "n2", "n3"):
        company.slow_disk(name)
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    row = company.era("n1").rows[0].message()
    row.counts[0] = 1
    company.cast("n1", "a", "m3")
    for name in ("n1", "n3"):
        company.say(name, "n2", Stability(group="a", view=1, row=row))
    assert spoken(company) == 1, "m1 is on two disks; m3 is on none"
    (cast,) = company.era("n4", "b").casts.values()
    assert [(time.group, list(time.counts)) for time in cast.times] == [("a", [1])]


def test_6_5_casts_of_one_group_leave_in_the_order_in_which_they_were_submitted() -> None:
    company = Company(OVERLAP)
    company.hold("n1", "n3")
    company.hold("n1", "n2")
    company.cast("n1", "a", "m1")
    company.arrive("n1", "n2")
    company.cast("n2", "b", "m2")
    company.cast("n2", "b", "m3")
    assert spoken(company) == 0
    company.release("n1", "n2", "n3")
    company.wait()
    assert company.live("n4") == "m2 m3"


def test_6_5_its_own_abcasts_must_be_delivered_first() -> None:
    """Ours: or two token holders order against each other's causality. m1 is everywhere, and has no place yet."""
    company = Company(OVERLAP, order_batch=9)
    assert company.holder("a") == "n3"
    company.cast("n2", "a", "m1", total=True)
    company.hold("n3", "n2")
    company.cast("n2", "b", "m2")
    company.wait()
    assert company.live("n2") == ""
    assert spoken(company) == 0
    company.release("n3", "n2")
    company.wait()
    assert company.live("n2") == "m1 m2"


def test_6_5_and_the_places_of_abcasts_must_be_on_k_disks() -> None:
    """Ours: what has no place when its holder dies, the cut orders by key, whatever was said since. n3, which has
    the token of a, delivers m1 at once, and says so in b when somebody else has its place.
    """
    company = Company(OVERLAP)
    company.hold("n3", "n1", "n2")
    company.cast("n1", "a", "m1", total=True)
    company.cast("n3", "b", "m2")
    assert company.live("n3") == "m1"
    assert company.era("n3").synced_by((0, 1)) == 3, "the cast is on all disks"
    assert spoken(company, "b", "n3") == 0
    company.release("n3", "n1")
    assert spoken(company, "b", "n3") == 1


def test_6_5_times_of_a_view_that_is_over_are_stale_and_ignored() -> None:
    """m3 names m1, of a's first view. When it comes to n3, that is in the second, and has no first any more."""
    company = Company(OVERLAP, k_stability="1")
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    company.hold("n4", "n3")
    company.cast("n4", "b", "m3")
    (cast,) = company.on_the_way("n4", "n3", Cast)
    assert ("a", 1, [1]) in [(time.group, time.view, list(time.counts)) for time in cast.times]
    company.crash("n1")
    company.change("a", "n2 n3")
    assert company.live("n3") == "m1 m2"
    company.release("n4", "n3")
    assert company.live("n3") == "m1 m2 m3"


def test_6_5_a_message_to_several_groups_speaks_in_another_group_whichever_they_are() -> None:
    company = Company(OVERLAP)
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1")
    company.cast("n2", "a b", "m2")
    assert (spoken(company, "a"), spoken(company, "b")) == (0, 0)
    company.release("n1", "n3")
    company.wait()
    assert company.live("n2") == "m1 m2 m2"
