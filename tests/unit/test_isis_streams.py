"""What a gateway submits to a group is numbered, and remembered as long as that gateway lives."""

import pytest

from ordercast.core.machine import ChannelReset, Ended, Receive, Start, ViewChanged
from ordercast.protocols.isis.machine import Isis
from ordercast.v1.isis_pb2 import Submit
from ordercast.v1.membership_pb2 import DomainView, GroupView
from tests.unit.driving import LIVES, envelope_of

GATEWAY = "g1"


@pytest.fixture
def machine() -> Isis:
    made = Isis("n1")
    groups = [
        GroupView(group=name, configuration=1, replicas=["n1"], incarnations=[LIVES["n1"]]) for name in ("a", "b")
    ]
    made.step(Start(0.0, 0.0, LIVES["n1"], []))
    made.step(ViewChanged(0.0, 0.0, DomainView(domain="d", number=1, groups=groups)))
    return made


def submit(machine: Isis, life: int, number: int, group: str = "a", *, index: int = 1) -> None:
    message = Submit(group=group, envelope=envelope_of(number, group), stream=1, index=index)
    machine.step(Receive(1.0, 0.0, GATEWAY, life, message))


def test_a_gateway_that_is_over_is_forgotten_in_every_group(machine: Isis):
    submit(machine, 5, 0, "a")
    submit(machine, 5, 1, "b")
    assert len(machine.speaking.streams) == 2
    machine.step(ChannelReset(1.0, 0.0, GATEWAY, 5))
    machine.step(Ended(2.0, 0.0, GATEWAY, 5))
    assert machine.speaking.streams == {}
    assert list(machine.current) == ["n1"]


def test_its_next_life_goes_on_where_it_is(machine: Isis):
    """Membership tells of the end when the next life may have begun to speak."""
    submit(machine, 6, 0)
    machine.step(Ended(2.0, 0.0, GATEWAY, 5))
    assert machine.speaking.streams == {("a", GATEWAY): (6, 1, 1)}
    submit(machine, 6, 2, index=3)
    assert machine.speaking.streams == {("a", GATEWAY): (6, 1, 1)}, "the second is missing"
    submit(machine, 6, 1, index=2)
    assert machine.speaking.streams == {("a", GATEWAY): (6, 1, 2)}


def test_other_gateways_are_not_concerned(machine: Isis):
    submit(machine, 5, 0)
    machine.step(Ended(2.0, 0.0, "g2", 9))
    assert machine.speaking.streams == {("a", GATEWAY): (5, 1, 1)}
