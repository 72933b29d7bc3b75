"""Multicast epochs: nothing comes behind a cast of a higher epoch than its own, or both would wait for ever."""

from typing import Any

from ordercast.core.machine import Effect, Persist, Receive, Send, Start, ViewChanged
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.settings import Causality, FlushKind, Settings
from ordercast.v1.isis_pb2 import Cast, CastKey, CutSynced, Flush, Part, Seen, Submit
from ordercast.v1.membership_pb2 import Configuration, DomainView, GroupView
from tests.unit.driving import LIVES, envelope_of

#: Somebody was that far before.
HIGH = 7


def view_of(number: int, *, epoch: int = 0, **second: Any) -> DomainView:
    """Of two groups of the same two processes. The first may be in its second view."""
    members = {"replicas": ["n1", "n2"], "incarnations": [LIVES["n1"], LIVES["n2"]]}
    first = GroupView(group="a", configuration=1, epoch=epoch, **members)
    if second:
        first.MergeFrom(GroupView(**second))
    return DomainView(domain="d", number=number, groups=[first, GroupView(group="b", configuration=1, **members)])


def machine_in(view: DomainView, causality: Causality = Causality.EPOCHS) -> Isis:
    machine = Isis("n1", Settings(causality=causality, flush=FlushKind.ALL))
    machine.step(Start(0.0, 0.0, LIVES["n1"], []))
    machine.step(ViewChanged(0.0, 0.0, view))
    return machine


def sent(effects: list[Effect], kind: type) -> list[Any]:
    """At once or behind a sync."""
    sends = [effect for effect in effects if isinstance(effect, Send)]
    sends += [send for effect in effects if isinstance(effect, Persist) for send in effect.then]
    return [send.message for send in sends if isinstance(send.message, kind)]


def hear(machine: Isis, message: Any) -> list[Effect]:
    return machine.step(Receive(1.0, 0.0, "n2", LIVES["n2"], message))


def test_who_hears_of_a_completed_view_is_as_far_as_all_that_came_before_it():
    machine = machine_in(view_of(1))
    machine.step(ViewChanged(1.0, 0.0, view_of(2, epoch=HIGH, configuration=2, starting=["n1", "n2"])))
    assert machine.epochs.epoch >= HIGH


def test_without_epochs_nobody_counts_them():
    machine = machine_in(view_of(1), Causality.TIMESTAMPS)
    machine.step(ViewChanged(1.0, 0.0, view_of(2, epoch=HIGH)))
    assert machine.epochs.epoch == 0


def test_the_epoch_of_a_cut_is_the_highest_that_a_contributor_knows_of():
    machine = machine_in(view_of(1))
    machine.epochs.rise(3)
    change = {
        "configuration": 2,
        "previous": Configuration(number=1, replicas=["n1", "n2"]),
        "starting": ["n1", "n2"],
    }
    effects = machine.step(ViewChanged(1.0, 0.0, view_of(2, **change)))
    mine = sent(effects, Flush)[0]
    assert mine.epoch >= 3
    theirs = Flush()
    theirs.CopyFrom(mine)
    theirs.epoch = HIGH
    effects = hear(machine, theirs)
    for synced in sent(effects, CutSynced):
        machine.step(Receive(1.0, 0.0, "n1", LIVES["n1"], synced))
    progress = machine.progress()["a"]
    assert (progress.started, progress.epoch) == (True, HIGH)


def test_a_part_that_is_handed_on_is_of_no_lower_epoch_than_its_origin():
    machine = machine_in(view_of(1))
    submit = Submit(group="a", envelope=envelope_of(0, "a", "b"), origin=Seen(epoch=HIGH))
    assert [cast.epoch for cast in sent(hear(machine, submit), Cast)] == [HIGH]


def test_so_is_one_that_was_cast_before_and_begins_anew():
    """A gateway has not heard that all of it is cast, and somebody who does not know it either."""
    machine = machine_in(view_of(1))
    envelope = envelope_of(0, "a", "b")
    parts = {name: Part(group=name, view=1, key=CastKey(number=1), epoch=3) for name in ("a", "b")}
    machine.parts.finished[envelope.header.id] = parts
    submit = Submit(group="a", envelope=envelope, origin=Seen(epoch=HIGH), again=True)
    assert [cast.epoch for cast in sent(hear(machine, submit), Cast)] == [HIGH]
