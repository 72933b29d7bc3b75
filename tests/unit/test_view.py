"""What a machine reads from membership's view, and what it refuses because of it."""

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.view import UnknownGroup, View, names_of
from ordercast.v1.common_pb2 import Destination
from tests.unit.driving import CONFIGURATION, destinations, view_of

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
        pytest.param(destinations("a", configuration=CONFIGURATION - 1), id="an old configuration"),
        pytest.param(destinations("a", configuration=CONFIGURATION + 1), id="a configuration to come"),
        pytest.param([*destinations("a"), Destination(group="b")], id="one without its configuration"),
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
    assert VIEW.hosted_by("n7") == ()


def test_a_process_hosts_every_group_that_lists_it():
    assert VIEW.hosted_by("n3") == ("a", "b")
    assert VIEW.hosted_by("n6") == ("c",)
