"""What a machine reads from membership's view, and what it refuses because of it."""

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.view import FIRST, LateView, OtherConfiguration, UnknownGroup, View, names_of
from ordercast.v1.common_pb2 import Destination
from tests.unit.driving import CONFIGURATION, destinations, edited, next_view, view_of, without_previous

VIEW = View(view_of({"a": "n1 n2 n3", "b": "n3 n4 n5", "c": "n6"}, acceptors={"a": "n7", "b": "n4 n7"}))


def test_destinations_that_are_sorted_known_and_current_give_their_names():
    assert VIEW.checked_names(destinations("a", "b")) == ("a", "b")
    assert VIEW.checked_names(destinations("c")) == ("c",)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param([], id="empty"),
        pytest.param(destinations("b", "a"), id="unsorted"),
        pytest.param(destinations("a", "a"), id="a group twice"),
        pytest.param(destinations("a", "d"), id="unknown"),
        pytest.param(destinations(""), id="without a name"),
        pytest.param(destinations("a", configuration=CONFIGURATION + 1), id="a configuration to come"),
    ],
)
def test_other_destinations_are_refused(wrong):
    with pytest.raises(RemoteProtocolError):
        VIEW.checked_names(wrong)


def test_a_group_that_is_not_in_the_view_is_named():
    with pytest.raises(UnknownGroup) as refused:
        VIEW.checked_names(destinations("a", "d"))
    assert refused.value.group == "d"


def test_names_can_be_read_without_knowing_the_groups():
    assert names_of(destinations("a", "x")) == ("a", "x")
    for wrong in ([], destinations("x", "a"), destinations("x", "x")):
        with pytest.raises(RemoteProtocolError):
            names_of(wrong)


def test_a_group_that_is_gone_has_no_replicas_and_no_acceptors():
    assert VIEW.replicas_of(("c", "x")) == ("n6",)
    assert VIEW.acceptors_of(("a", "x")) == ("n7",)
    assert VIEW.replicas_of(("x",)) == ()
    assert VIEW.known(("a", "x")) == ("a",)


def test_each_destination_gets_the_configuration_of_its_own_group():
    view = view_of({"a": "n1", "b": "n2"})
    view.groups[1].configuration = 9
    named = View(view).destinations(("a", "b"))
    assert [(d.group, d.configuration) for d in named] == [("a", CONFIGURATION), ("b", 9)]
    assert View(view).checked_names(named) == ("a", "b")


def test_replicas_of_several_groups_are_named_once_and_in_order():
    assert VIEW.replicas_of(("a", "b")) == ("n1", "n2", "n3", "n4", "n5")
    assert VIEW.replicas_of(("c",)) == ("n6",)


def test_acceptors_are_not_taken_for_replicas():
    assert VIEW.acceptors_of(("a", "b")) == ("n4", "n7")
    assert "n7" not in VIEW.hosts


# ------------------------------------------------------------------------------------------------ configurations

FOUNDED = view_of({"a": "n1 n2 n3"}, acceptors={"a": "n4 n5 n6"})
SECOND = next_view(FOUNDED, "a", "n1 n2 n7", "n4 n5 n7")


def group_in(view):
    return View(view).groups["a"]


def test_what_is_addressed_in_an_earlier_configuration_is_taken_and_in_a_later_one_is_not():
    view = View(SECOND)
    assert view.checked_names(destinations("a", configuration=FIRST)) == ("a",)
    assert view.checked_names(destinations("a", configuration=FIRST + 1)) == ("a",)
    with pytest.raises(OtherConfiguration) as refused:
        view.checked_names(destinations("a", configuration=FIRST + 2))
    assert refused.value.group == "a"


def test_a_view_that_is_late_is_nobodys_mistake_but_refused_like_one():
    for late in (UnknownGroup, OtherConfiguration):
        assert issubclass(late, LateView)
        assert issubclass(late, RemoteProtocolError)


def test_a_group_is_in_one_configuration_alone():
    group = group_in(SECOND)
    group.check(2)
    for other in (0, 1, 3):
        with pytest.raises(OtherConfiguration):
            group.check(other)


def test_only_what_all_of_its_groups_are_still_in_is_as_it_was_addressed():
    view = view_of({"a": "n1 n2 n3", "b": "n4"})
    assert View(view).is_as_addressed(destinations("a", "b"))
    assert not View(next_view(view, "b", "n5")).is_as_addressed(destinations("a", "b"))
    assert not View(view).is_as_addressed(destinations("a", "x")), "it is gone"
    assert not View(view).is_as_addressed([Destination(group="a")])


def test_the_configurations_of_groups_are_told_in_their_order():
    view = next_view(view_of({"a": "n1", "b": "n2"}), "b", "n3")
    assert View(view).configurations(("a", "b")) == (1, 2)
    assert View(view).configurations(("a", "x")) == (1, 0)


def test_a_view_names_the_configuration_before_and_who_has_not_started():
    group = group_in(SECOND)
    assert (group.configuration, group.replicas, group.starting) == (
        2,
        ("n1", "n2", "n7"),
        ("n1", "n2", "n4", "n5", "n7"),
    )
    assert group.former is not None
    assert (group.former.number, group.former.replicas) == (1, ("n1", "n2", "n3"))
    assert group.former.acceptors == ("n4", "n5", "n6")
    assert group_in(without_previous(SECOND, "a", "n7")).former is None


def test_members_of_the_first_configuration_have_started_in_it_without_a_record():
    group = group_in(FOUNDED)
    assert [group.began_here(name, is_acceptor=False) for name in ("n1", "n4", "n7")] == [FIRST, 0, 0]
    assert [group.began_here(name, is_acceptor=True) for name in ("n1", "n4", "n7")] == [0, FIRST, 0]


def test_who_hears_of_the_first_configuration_when_it_is_over_had_started_in_it():
    group = group_in(SECOND)
    assert [group.began_here(name, is_acceptor=False) for name in ("n1", "n3", "n7")] == [FIRST, FIRST, 0]
    assert [group.began_here(name, is_acceptor=True) for name in ("n4", "n6", "n7")] == [FIRST, FIRST, 0]


def test_nobody_has_started_in_a_later_configuration_without_a_record():
    for view in (without_previous(SECOND, "a"), next_view(without_previous(SECOND, "a"), "a", "n1 n2 n7")):
        assert group_in(view).began_here("n1", is_acceptor=False) == 0


def test_who_lost_its_disk_has_started_in_nothing():
    lost = edited(FOUNDED, "a", lost="n1 n4")
    for view in (lost, next_view(lost, "a", "n1 n2 n7", "n4 n5 n7")):
        assert group_in(view).began_here("n1", is_acceptor=False) == 0
        assert group_in(view).began_here("n4", is_acceptor=True) == 0
        assert group_in(view).began_here("n2", is_acceptor=False) == FIRST
