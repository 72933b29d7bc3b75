"""Views: acting in them, entering, leaving and coming back, and what a process knows again from its disk."""

from ordercast.protocols.causal.times import Time
from ordercast.protocols.isis import records
from tests.unit.isis_host import Company

ONE = {"a": "n1 n2 n3"}


def test_nobody_acts_in_a_view_before_it_hears_that_it_is_complete():
    company = Company(ONE)
    company.define("a", "n1 n2 n3")
    assert all(company.replica(name).current is None for name in company.members)
    company.complete("a", told="n1")
    assert company.era("n1").view == 2
    assert company.replica("n2").current is None
    company.cast("n1", "a", "m1")
    assert (company.live("n1"), company.live("n2")) == ("m1", "")
    company.tell("n2")
    assert company.live("n2") == "m1", "what came before its view was kept"


def test_completion_without_the_cut_is_nothing_to_act_on():
    company = Company(ONE)
    company.hold("n1", "n3")
    company.define("a", "n1 n2 n3")
    company.complete("a")
    assert company.replica("n3").current is None
    company.release("n1", "n3")
    assert company.era("n3").view == 2


def test_in_a_new_view_casts_are_counted_from_the_beginning_and_the_log_goes_on():
    company = Company(ONE)
    for label in ("m1", "m2"):
        company.cast("n1", "a", label)
    company.change("a", "n1 n2 n3")
    era = company.era("n2")
    assert (era.received, era.delivered, era.sent, era.start) == ([0, 0, 0], [0, 0, 0], 0, 2)
    company.cast("n1", "a", "m3")
    assert company.era("n2").received == [1, 0, 0]
    company.wait()
    assert company.log("n2") == "m1 m2 m3"


def test_casts_of_a_view_that_is_over_are_dropped_and_counted():
    company = Company(ONE)
    company.hold("n3", "n2")
    company.cast("n3", "a", "m1")
    company.crash("n1")
    company.define("a", "n2 n3")
    before = company.machine("n2").stale_count
    company.release("n3", "n2")
    assert company.machine("n2").stale_count > before
    company.complete("a")
    assert company.live("n2") == "m1", "from the flush"


def test_another_life_of_a_member_is_not_listened_to_in_its_view():
    company = Company(ONE)
    company.crash("n1")
    company.restart("n1")
    assert company.replica("n1").current is None, "a view means lives"
    before = company.machine("n2").stale_count
    cast = company.era("n2")
    assert cast.index_of("n1", company.members["n1"].incarnation) is None
    company.change("a", "n1 n2 n3")
    company.cast("n1", "a", "m1")
    assert company.live("n2") == "m1"
    assert company.machine("n2").stale_count == before


def test_who_restarts_contributes_what_was_on_its_disk():
    """m1 is with n2 alone, n1 is gone for good, and n2 comes back in another life."""
    company = Company(ONE)
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1")
    company.crash("n1", "n2")
    company.restart("n2")
    company.change("a", "n2 n3")
    assert company.live("n3") == "m1"
    assert company.log("n2") == company.log("n3") == "m1"


def test_what_was_not_on_its_disk_is_gone():
    company = Company(ONE)
    company.slow_disk("n2")
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1")
    assert company.live("n2") == "m1"
    company.crash("n1", "n2")
    company.restart("n2")
    company.change("a", "n2 n3")
    assert company.log("n2") == company.log("n3") == ""


def test_a_cut_on_disk_is_known_again_after_a_restart():
    company = Company(ONE)
    company.hold("n1", "n3")
    company.cast("n1", "a", "m1")
    company.crash("n1")
    company.define("a", "n2 n3")
    company.crash("n3")
    company.hold("n2", "n3")  # who would say it again
    company.restart("n3")
    assert company.replica("n3").cut is not None
    company.release("n2", "n3")
    company.complete("a")
    assert company.log("n3") == "m1"


def test_who_is_left_out_drops_what_is_beyond_its_log():
    """n3 has placed m2, unheard. When it hears that a view is complete without it, that is gone from its disk."""
    company = Company(ONE)
    company.hold("n3", "n1", "n2")
    company.cast("n3", "a", "m2")
    company.define("a", "n1 n2", told="n1 n2")
    company.complete("a", told="n1 n2")
    kinds = {key[:1] for key in company.members["n3"].disk}
    assert {records.CAST, records.ORDER} <= kinds
    company.groups["a"].learners[:] = ["n3"]
    company.announce("n3")
    kinds = {key[:1] for key in company.members["n3"].disk}
    assert not {records.CAST, records.ORDER} & kinds
    assert company.machine("n3").buffers()["casts"] == 0


def test_who_is_left_out_copies_the_log_and_comes_back_in_a_later_view():
    company = Company(ONE)
    company.hold("n3", "n1", "n2")
    company.cast("n3", "a", "m1")
    company.define("a", "n1 n2", learners="n3")
    company.complete("a")
    company.installed("a")
    company.held.clear()
    for other in ("n1", "n2"):
        company.reconnect("n3", other)
    company.cast("n1", "a", "m2")
    for _ in range(3):
        company.wait()
    assert company.machine("n3").progress()["a"].caught_up
    company.define("a", "n1 n2 n3")
    company.wait()
    company.complete("a")
    company.cast("n3", "a", "m3")
    company.wait()
    assert [company.log(name) for name in company.members] == ["m2 m3"] * 3


def test_a_newcomer_begins_with_a_log_and_delivers_only_what_is_cast_from_then_on():
    company = Company({"a": "n1 n2"}, spare="n3")
    company.cast("n1", "a", "m1")
    company.define("a", "n1 n2 n3")
    for _ in range(3):
        company.wait()
    company.complete("a")
    company.cast("n3", "a", "m2")
    company.wait()
    assert company.live("n3") == "m2"
    assert company.log("n3") == "m1 m2"


def test_a_process_that_has_no_part_in_a_group_any_more_keeps_nothing_of_it():
    company = Company(ONE)
    company.cast("n1", "a", "m1")
    company.change("a", "n1 n2", leaving="n3")
    assert "a" not in company.machine("n3").replicas
    assert company.members["n3"].disk == {}


def test_progress_is_the_cut_first_and_installation_then():
    company = Company({"a": "n1 n2 n3", "b": "n2 n3 n4"}, k_stability="1")
    company.hold("n4", "n3")
    company.cast("n4", "b", "m1")
    company.cast("n2", "a", "m2")
    company.define("a", "n1 n2 n3")
    progress = company.machine("n3").progress()["a"]
    assert (progress.configuration, progress.started, progress.caught_up) == (2, True, False)
    company.complete("a")
    assert not company.machine("n3").progress()["a"].caught_up, "m2 waits for m1"
    assert company.machine("n2").progress()["a"].caught_up
    company.release("n4", "n3")
    assert company.machine("n3").progress()["a"].caught_up


def test_times_of_a_view_that_is_over_shrink_and_go_when_all_have_installed_the_next():
    """6.4, and not by age. n4 is not in a, and knows of it from n2."""
    company = Company({"a": "n1 n2 n3", "b": "n2 n4"}, k_stability="1")
    company.cast("n1", "a", "m1")
    company.cast("n2", "b", "m2")
    assert company.machine("n4").known.times["a"] == Time(1, {0: 1})
    company.define("a", "n1 n2 n3")
    assert company.machine("n4").known.times["a"] == Time(1, {0: 1}), "it may never be complete"
    company.complete("a")
    assert company.machine("n4").known.times["a"] == Time(2, {}), "somebody may not have installed it"
    company.installed("a")
    assert "a" not in company.machine("n4").known.times


def test_nothing_is_dropped_from_logs_while_a_view_begins():
    company = Company(ONE)
    company.cast("n1", "a", "m1")
    company.wait()
    assert company.replica("n1").retained_from() == 1
    company.define("a", "n1 n2 n3")
    company.complete("a")
    assert company.replica("n1").retained_from() == 0, "who has not installed it may need m1 from a log"
    company.installed("a")
    assert company.replica("n1").retained_from() == 1


def test_a_group_that_is_deleted_leaves_nothing_behind():
    company = Company({"a": "n1 n2 n3", "b": "n1 n2"})
    company.cast("n1", "a", "m1")
    del company.groups["a"]
    company.announce()
    for name in ("n1", "n2", "n3"):
        assert "a" not in company.machine(name).replicas
        assert not [key for key in company.members[name].disk if key[1:2] == b"a"]
