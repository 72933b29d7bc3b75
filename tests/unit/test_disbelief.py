"""Damaged groups: what machines are told, in which configurations, and until when."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.core.machine import Persist, ResetLog, Start, ViewChanged
from ordercast.protocols.isis import records as isis_records
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.settings import Settings
from ordercast.protocols.scalatom import records
from ordercast.runtime.process.directory import group_view
from ordercast.runtime.storage.disbelief import Disbelief
from ordercast.v1.isis_pb2 import IsisRecord
from ordercast.v1.membership_pb2 import Configuration, DomainView, Group
from tests.unit.driving import LIVES
from tests.unit.test_damage import DOMAIN, STORED, A, Disk

LIFE = 9


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Of n1, with damage in the group A."""
    made = Disk(tmp_path / "data")
    made.fill()
    made.flip(STORED + records.position(A))
    yield made
    made.close()
    made.loop.close()


def group(configuration: int = 1, *, views: bool = False, **fields: object) -> Group:
    record = Group(id=A, name="a", domain=DOMAIN, configuration=configuration, replicas=["n1", "n2", "n3"])
    if views:
        record.placement[:] = ["n1", "n2", "n3"]
    else:
        record.acceptors[:] = ["n1", "n2", "n3"]
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(record, name)[:] = value
        elif isinstance(value, Configuration):
            getattr(record, name).CopyFrom(value)
        else:
            setattr(record, name, value)
    return record


def told(disbelief: Disbelief, record: Group) -> tuple[bool, bool]:
    """Whether n1 has lost what it had, in the configuration and in the one before."""
    view = DomainView(domain=DOMAIN, number=1, groups=[group_view(record)])
    seen = disbelief.overlay(view, {A: record}, LIFE).groups[0]
    return "n1" in seen.lost, "n1" in seen.previous.lost


def test_in_a_configuration_that_began_later_it_is_a_newcomer(disk: Disk):
    before = Configuration(number=1, replicas=["n1", "n2", "n3"])
    later = group(2, incarnation_before=LIFE, previous=before)
    assert told(Disbelief("n1", disk.storage), later) == (False, True)
    assert told(Disbelief("n1", disk.storage), group(2, incarnation_before=LIFE - 1)) == (True, False)


def test_a_view_that_began_later_takes_nothing_from_its_disk_either(disk: Disk):
    assert told(Disbelief("n1", disk.storage), group(2, views=True, incarnation_before=LIFE)) == (True, False)


def test_who_was_left_out_of_a_view_copies_from_the_beginning(disk: Disk):
    disbelief = Disbelief("n1", disk.storage)
    left_out = group(2, views=True, replicas=["n2", "n3"])
    assert told(disbelief, left_out) == (True, False)
    disbelief.forget_what_is_over({A: left_out})
    assert told(disbelief, left_out) == (True, False)
    # It is told so until it is in a view that it has installed.
    back = group(3, views=True, starting=["n1"])
    assert told(disbelief, back) == (False, False)
    disbelief.forget_what_is_over({A: back})
    assert disk.storage.damaged_among(DOMAIN, [A])
    disbelief.forget_what_is_over({A: group(3, views=True)})
    assert not disk.storage.damaged_among(DOMAIN, [A])


def test_a_replica_that_is_only_to_come_is_no_business_of_a_damaged_disk(disk: Disk):
    elsewhere = group(2, replicas=["n2", "n3"], acceptors=["n2", "n3"])
    assert told(Disbelief("n1", disk.storage), elsewhere) == (False, False)


@pytest.mark.parametrize("is_former", [False, True])
def test_a_member_of_a_view_that_has_lost_what_it_had_begins_with_nothing(is_former: bool):
    """Whichever record it is that is gone: the others are there, and cannot be believed."""
    saved = [
        (isis_records.position("a"), IsisRecord(view=1, position=71, offset=145).SerializeToString()),
        (isis_records.copied("a"), bytes(8)),
    ]
    former = Configuration(number=1, replicas=["n1", "n2", "n3"], lost=["n1"])
    view = group_view(group(2, views=True, replicas=["n2", "n3"])) if is_former else group_view(group(views=True))
    view.group = "a"
    view.incarnations[:] = [LIVES[name] for name in view.replicas]
    if is_former:
        view.previous.CopyFrom(former)
    else:
        view.lost[:] = ["n1"]
    machine = Isis("n1", Settings())
    machine.step(Start(0.0, 0.0, LIVES["n1"], saved))
    effects = machine.step(ViewChanged(0.0, 0.0, DomainView(domain="d", number=1, groups=[view])))
    assert ResetLog("a", 0) in effects
    written = {key: value for effect in effects if isinstance(effect, Persist) for key, value in effect.records}
    assert written[saved[1][0]] is None
    assert (machine.replicas["a"].position, machine.replicas["a"].view) == (0, 0)
