"""Groups that share their cells: when machines say that they need one, and that they forget one that is gone."""

from ordercast.core.cells import put_targets
from ordercast.core.machine import GroupsRemoved, KeepsGroups, Persist
from ordercast.v1.common_pb2 import Envelope
from tests.unit.driving import envelope_of
from tests.unit.isis_host import GATEWAY, Company
from tests.unit.scalatom_host import Host


def shared(envelope: Envelope, *targets: str) -> Envelope:
    """The envelope's one message is for the first of these sets of addresses."""
    header = envelope.header
    put_targets(header, [tuple(target.split()) for target in targets])
    for range_ in header.ranges:
        range_.runs.extend([0, range_.count])
    return envelope


def test_a_group_is_mentioned_until_what_is_for_it_is_delivered_in_every_cell_here():
    host, envelope = Host(), shared(envelope_of(1, "a", "c"), "a/x#7 c/y#8")
    assert not host.machine.mentions("a/x#7")
    host.take(envelope)
    assert host.machine.mentions("a/x#7")
    assert host.machine.mentions("c/y#8")
    assert not host.machine.mentions("a/other#9")
    for peer in ("n2", "n3", "n6"):
        host.stamp(peer, envelope, 12)
    host.decide(envelope, 12)
    assert host.machine.mentions("a/x#7")
    host.gossip("n2", 13)
    assert not host.machine.mentions("a/x#7")


def test_a_group_is_not_held_up_by_what_others_in_its_cell_wait_for():
    host = Host()
    host.gossip("n4", 9, (4, envelope_of(1, "b")))
    host.take(shared(envelope_of(2, "b"), "b/x#7"))
    assert host.machine.mentions("b")
    assert not host.machine.mentions("b/y#8")


def test_where_a_group_ended_is_forgotten_with_it_on_the_disk_as_well():
    host = Host()
    host.order(shared(envelope_of(1, "a", "b"), "a/x#7 a/z#9 b/y#8"), 12)
    assert isinstance(host.machine, KeepsGroups)
    assert sorted(host.machine.kept_groups()) == ["a/x#7", "a/z#9", "b/y#8"]
    host.step(GroupsRemoved, ("a/x#7", "b/y#8", "a/never#1", "nowhere/x#7"))
    assert list(host.machine.kept_groups()) == ["a/z#9"]
    effects = host.step(GroupsRemoved, ("a/x#7",))
    assert not [effect for effect in effects if isinstance(effect, Persist)]
    host.restart()
    assert list(host.machine.kept_groups()) == ["a/z#9"]


def test_a_cast_is_for_a_group_until_every_member_has_it():
    company = Company({"a": "n1 n2", "b": "n1"})
    machine = company.machine("n1")
    assert not machine.mentions("a/x#7")
    company.hold("n1", "n2")
    company.envelopes["m"] = shared(envelope_of(0, "a", gateway=GATEWAY), "a/x#7")
    company.cast("n1", "a", "m")
    assert machine.mentions("a/x#7")
    assert not machine.mentions("a/y#8")
    assert not machine.mentions("b/x#7")
    company.release("n1", "n2")
    company.run()
    company.wait()
    assert not machine.mentions("a/x#7")
    assert sorted(machine.kept_groups()) == ["a/x#7"]
    company.step("n1", GroupsRemoved, ("a/x#7",))
    assert not machine.kept_groups()
