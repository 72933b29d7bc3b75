"""[BSS91] 6.7, rule by rule: causality without everyone's times, by waiting or by epochs."""

from ordercast.protocols.isis.settings import Causality
from ordercast.v1.isis_pb2 import Cast, EpochFlush, SetsOrder
from tests.unit.isis_host import Company

#: n2 and n3 are in both. n3 and n2 hold the tokens.
OVERLAP = {"a": "n1 n2 n3", "b": "n2 n3 n4"}
#: A cycle: each has two neighbours.
RING = {"a": "n1 n2", "b": "n2 n3", "c": "n1 n3 n4"}
#: No cycle, and no group has two neighbours.
PAIR = {"a": "n1 n2", "b": "n2 n3"}


def conservative(groups: dict[str, str] = OVERLAP, **settings: object) -> Company:
    return Company(groups, causality=Causality.CONSERVATIVE, **settings)


def epochs(groups: dict[str, str], **settings: object) -> Company:
    return Company(groups, causality=Causality.EPOCHS, **settings)


def epochs_of(company: Company) -> dict[str, int]:
    return {name: company.machine(name).epochs.epoch for name in company.members}


# ------------------------------------------------------------------------------------ the conservative rule


def test_6_7_conservative_a_process_waits_until_its_other_groups_are_inactive() -> None:
    """Every member of them has on disk all that it sent or delivered there."""
    company = conservative()
    company.slow_disk("n3")
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    company.wait()
    assert company.era("n2", "b").sent == 0, "two of three are not enough"
    company.sync("n3")
    company.wait()
    assert company.era("n2", "b").sent == 1


def test_6_7_conservative_in_its_only_active_group_it_waits_for_nothing() -> None:
    company = conservative()
    for name in ("n1", "n2", "n3"):
        company.slow_disk(name)
    company.cast("n1", "a", "m1")
    company.cast("n2", "a", "m2")
    assert company.era("n2").sent == 1


def test_6_7_conservative_of_other_groups_no_times_travel() -> None:
    """The number of the view is enough: whoever is in it can deliver what precedes, for it has it."""
    company = conservative()
    company.cast("n1", "a", "m1")
    company.wait()
    company.hold("n2", "n3")
    company.cast("n2", "b", "m2")
    (cast,) = company.on_the_way("n2", "n3", Cast)
    assert [(time.group, time.view, list(time.counts)) for time in cast.times] == [("a", 1, [])]


def test_6_7_conservative_deliveries_go_on_meanwhile() -> None:
    """Otherwise than in the paper, whose processes deliver nothing while they wait: that can deadlock."""
    company = conservative()
    company.slow_disk("n3")
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    company.cast("n4", "b", "m3")
    assert company.era("n2", "b").sent == 0
    assert company.live("n2") == "m1 m3"


def test_6_7_conservative_the_places_of_abcasts_are_everywhere_too() -> None:
    company = conservative()
    company.hold("n3", "n2")
    company.cast("n1", "a", "m1", total=True)
    company.cast("n3", "b", "m2")
    company.wait()
    assert company.era("n3").synced_by((0, 1)) == 3
    assert company.era("n3", "b").sent == 0, "n2 has m1, and does not know when to deliver it"
    company.release("n3", "n2")
    company.wait()
    assert company.live("n2") == "m1 m2"


def test_6_7_conservative_a_holder_says_what_it_has_ordered_in_every_group_before_it_casts_in_any() -> None:
    """n3 has placed m1 in a, and keeps that to itself, to tell it with more. Its cast in b comes behind that."""
    company = conservative(order_batch=9)
    company.hold("n3", "n2")
    company.cast("n1", "a", "m1")
    assert company.on_the_way("n3", "n2", SetsOrder) == []
    company.cast("n3", "b", "m2")
    said = [one for one in company.on_the_way("n3", "n2") if isinstance(one, SetsOrder | Cast)]
    assert [(type(one).__name__, one.group) for one in said] == [("SetsOrder", "a"), ("Cast", "b")]


def test_6_7_conservative_an_order_waits_for_nothing() -> None:
    """n3 has something unstable in b, and orders in a at once."""
    company = conservative()
    company.slow_disk("n4")
    company.cast("n3", "b", "m1")
    company.cast("n3", "a", "m2")
    assert company.era("n3").sent == 0
    company.cast("n1", "a", "m3", total=True)
    assert company.live("n1") == "m3"


# --------------------------------------------------------------------------------------------------- epochs


def test_6_7_epochs_stay_where_no_group_can_lie_in_a_cycle() -> None:
    company = epochs(PAIR)
    for label, (name, group) in {"m1": ("n1", "a"), "m2": ("n2", "b"), "m3": ("n2", "a")}.items():
        company.cast(name, group, label)
        company.wait()
    assert set(epochs_of(company).values()) == {0}


def test_6_7_epochs_rise_when_a_process_passes_from_one_group_to_another_that_may_lie_in_a_cycle() -> None:
    company = epochs(RING)
    company.hold("n1", "n2", "n3", "n4")
    company.cast("n1", "c", "m1")
    before = company.machine("n1").epochs.epoch
    company.cast("n1", "c", "m2")
    assert company.machine("n1").epochs.epoch == before, "it is safe in the group that it was in"
    company.cast("n1", "a", "m3")
    assert company.machine("n1").epochs.epoch == before + 1


def test_6_7_epochs_rise_once_for_what_was_sent_or_delivered_before() -> None:
    """The condition is about what happened since the epoch last rose."""
    company = epochs(RING)
    company.cast("n1", "c", "m1")
    company.wait()
    company.cast("n1", "a", "m2")
    risen = company.machine("n1").epochs.epoch
    company.cast("n1", "a", "m3")
    assert company.machine("n1").epochs.epoch == risen


def test_6_7_epochs_whoever_hears_of_a_higher_one_takes_it_and_tells_all_its_groups() -> None:
    """Also those that the message was not for: n2 hears it in a, and says so in b."""
    company = epochs(RING)
    company.cast("n1", "c", "m1")
    company.wait()
    company.hold("n1", "n3", "n4")
    company.hold("n2", "n3")
    company.cast("n1", "a", "m2")
    risen = company.machine("n1").epochs.epoch
    assert company.machine("n2").epochs.epoch == risen
    assert [(flush.group, flush.epoch) for flush in company.on_the_way("n2", "n3", EpochFlush)] == [("b", risen)]


def test_6_7_epochs_a_cast_waits_until_nobody_here_sends_of_a_lower_epoch() -> None:
    """In any group of the receiver: n2 hears m2 in a, and waits for n3's word in b."""
    company = epochs(RING)
    company.cast("n1", "c", "m1")
    company.wait()
    company.hold("n3", "n2")
    company.cast("n1", "a", "m2")
    assert company.live("n2") == ""
    company.release("n3", "n2")
    assert company.live("n2") == "m2"


def test_6_7_epochs_and_until_what_came_of_a_lower_one_is_delivered() -> None:
    """n2 has m1, of the lower epoch, and lacks m0 before it. m3 is of the higher one, and names neither. That
    nobody sends of the lower one any more says nothing of what has come.
    """
    company = epochs({**RING, "d": "n2 n5 n6"}, k_stability="1")
    company.hold("n5", "n2")
    company.cast("n5", "d", "m0")
    company.cast("n6", "d", "m1")
    company.cast("n1", "c", "m2")
    company.cast("n1", "a", "m3")
    era = company.era("n2", "d")
    (waiting,) = era.casts.values()
    assert waiting.epoch < company.machine("n1").epochs.epoch
    era.epochs[1] = company.machine("n1").epochs.epoch  # as if n5 had given its word on its own
    company.cast("n3", "b", "m4")
    assert company.live("n2") == ""
    company.release("n5", "n2")
    assert company.live("n2") == "m0 m1 m3 m4"


def test_6_7_epochs_casts_carry_times_of_the_senders_own_groups_alone() -> None:
    company = epochs(RING, k_stability="1")
    company.cast("n1", "c", "m1")
    company.cast("n1", "a", "m2")
    company.hold("n2", "n3")
    company.cast("n2", "b", "m3")
    (cast,) = company.on_the_way("n2", "n3", Cast)
    counted = {time.group for time in cast.times if time.counts}
    assert counted == {"a"}, "n2 is not in c"
    assert cast.epoch > 0


def test_6_7_epochs_order_the_ring_that_times_of_own_groups_do_not() -> None:
    """m1 comes late to n3, and m3, which is two steps behind it, names nothing of c."""
    company = epochs(RING, k_stability="1")
    company.hold("n1", "n3")
    company.cast("n1", "c", "m1")
    company.cast("n1", "a", "m2")
    company.cast("n2", "b", "m3")
    assert company.live("n3") == ""
    company.release("n1", "n3")
    assert company.live("n3") == "m1 m3"


def test_6_7_epochs_rise_when_a_process_leaves_a_group() -> None:
    """It takes along what it saw there, and no overlap shows that."""
    company = epochs({"a": "n1 n2 n3", "b": "n3 n4"})
    company.cast("n1", "a", "m1")
    company.wait()
    before = company.machine("n1").epochs.epoch
    company.change("a", "n2 n3", leaving="n1")
    assert company.machine("n1").epochs.epoch == before + 1


def test_6_7_epochs_orders_carry_none() -> None:
    """An order is acted on at receipt, also of a cast whose epoch has to wait."""
    company = epochs(RING, k_stability="1")
    company.hold("n3", "n1")
    company.cast("n4", "c", "m1")
    company.cast("n1", "a", "m2")
    company.cast("n1", "c", "m3")
    assert "m3" not in company.live("n1")
    company.say("n4", "n1", SetsOrder(group="c", view=1, first_position=1, keys=[{"member": 0, "number": 1}]))
    assert company.era("n1", "c").place_of[(0, 1)] == 1
