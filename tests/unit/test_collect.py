"""Who starts in a configuration: whom it asks, who counts, and what is enough. Of replicas, and of acceptors."""

from typing import Any

import pytest

from ordercast.core.view import OtherConfiguration, View
from ordercast.protocols.celllog.collect import Collect, Part
from ordercast.v1.membership_pb2 import DomainView
from tests.unit.driving import edited, next_view, view_of, without_previous

FIRST = view_of({"a": "n1 n2 n3"}, acceptors={"a": "n7 n8 n9"})
#: n4 comes for n3, and n6 for n9.
SECOND = next_view(FIRST, "a", "n1 n2 n4", "n6 n7 n8")


def losing(view: DomainView, node: str) -> DomainView:
    """A disk, after the configuration has begun, as membership writes it: in both, as far as it is a member."""
    found = edited(view, "a")
    group = found.groups[0]
    for there in (group, group.previous):
        if node in (*there.replicas, *there.acceptors):
            there.lost.append(node)
    return found


def collect(process: str = "n4", view: DomainView = SECOND, *, is_acceptor: bool = False) -> Collect[Part]:
    return Collect(process, View(view).groups["a"], Part, is_acceptor=is_acceptor)


def hear(there: Collect[Part], *sources: str, is_whole: bool = False, is_idle: bool = False) -> list[str]:
    """All of it. Who is started from, then."""
    for source in sources:
        there.part(source, is_whole=is_whole, is_idle=is_idle).is_complete = True
    return sorted(there.enough(there.complete()))


def asked(there: Collect[Part]) -> list[str]:
    return [source for source, _ in there.missing()]


@pytest.mark.parametrize(
    ("process", "is_acceptor", "sources"),
    [
        ("n4", False, ["n1", "n2", "n3"]),
        ("n1", False, ["n1", "n2", "n3", "n4"]),
        ("n6", True, ["n7", "n8", "n9"]),
        ("n8", True, ["n7", "n8", "n9", "n6"]),
    ],
)
def test_the_sealed_are_asked_and_the_fellows_and_oneself_if_one_is_sealed(process, is_acceptor, sources):
    assert asked(collect(process, is_acceptor=is_acceptor)) == sources


def test_only_those_are_asked_again_who_have_not_answered_to_the_end():
    there = collect()
    hear(there, "n1")
    part = there.part("n2", is_whole=False, is_idle=False)
    part.after = b"half"
    assert there.missing() == [("n2", b"half"), ("n3", b"")]
    assert there.part("n2", is_whole=False, is_idle=False) is part


def test_a_majority_of_the_sealed_is_enough():
    there = collect()
    assert hear(there, "n3") == []
    assert hear(there, "n1") == ["n1", "n3"]


def test_who_never_started_belongs_to_a_majority_and_says_nothing():
    there = collect()
    assert hear(there, "n1", "n2", is_idle=True) == [], "one that started has to be among them"
    assert hear(there, "n3") == ["n3"]


def test_one_fellow_that_has_started_is_enough():
    there = collect()
    hear(there, "n1")
    assert hear(there, "n2", is_whole=True) == ["n2"]


def test_some_of_those_that_are_complete_may_be_left_out():
    there = collect()
    hear(there, "n1", "n2", "n3")
    parts = there.complete()
    assert list(there.enough({name: parts[name] for name in ("n1", "n2")})) == ["n1", "n2"]
    assert there.enough({"n3": parts["n3"]}) == {}


def test_who_has_started_since_begins_from_the_beginning():
    there = collect()
    hear(there, "n2")
    there.parts["n2"].after = b"last"
    assert there.part("n2", is_whole=True, is_idle=False).after == b""
    assert asked(there) == ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    ("source", "is_whole", "is_acceptor"),
    [
        ("n4", False, False),  # is none of the sealed
        ("n3", True, False),  # is not in this configuration
        ("n9", False, False),  # is sealed as an acceptor
        ("n1", False, True),
        ("n5", True, False),
    ],
)
def test_who_is_no_member_has_nothing_to_hand_over(source, is_whole, is_acceptor):
    there = collect("n2", is_acceptor=is_acceptor)
    with pytest.raises(OtherConfiguration):
        there.part(source, is_whole=is_whole, is_idle=False)
    assert there.parts == {}


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize(("process", "lost", "is_acceptor"), [("n4", "n2", False), ("n6", "n8", True)])
def test_who_lost_its_disk_is_not_asked_and_does_not_count(process, lost, is_acceptor, is_whole):
    there = collect(process, losing(SECOND, lost), is_acceptor=is_acceptor)
    assert lost not in asked(there)
    with pytest.raises(OtherConfiguration):
        there.part(lost, is_whole=is_whole, is_idle=False)


def test_who_lost_its_disk_before_is_asked_as_a_fellow_alone():
    there = collect(view=next_view(edited(FIRST, "a", lost="n2"), "a", "n1 n2 n4", "n6 n7 n8"))
    assert asked(there) == ["n1", "n3", "n2"]
    with pytest.raises(OtherConfiguration):
        there.part("n2", is_whole=False, is_idle=True)
    assert hear(there, "n2", is_whole=True) == ["n2"]


@pytest.mark.parametrize("fields", [{"is_whole": False}, {"is_whole": True}, {"is_whole": False, "is_idle": True}])
def test_what_somebody_said_who_lost_its_disk_since_is_dropped(fields: dict[str, Any]):
    there = collect()
    hear(there, "n2", **fields)
    there.follow(View(losing(SECOND, "n2")).groups["a"])
    assert hear(there, "n1") == []
    assert hear(there, "n3") == ["n1", "n3"], "of all three they are still a majority"


def test_when_a_majority_has_started_only_those_who_have_count():
    there = collect("n1")
    hear(there, "n2")
    hear(there, "n4", is_whole=True)
    there.follow(View(without_previous(SECOND, "a", "n1")).groups["a"])
    assert list(there.parts) == ["n4"]
    assert asked(there) == ["n2"]
    with pytest.raises(OtherConfiguration):
        there.part("n3", is_whole=False, is_idle=False)
