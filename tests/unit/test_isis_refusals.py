"""One wrong message of a member or a gateway is refused and counted; the view, and the group, go on without it."""

from typing import Any

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive
from ordercast.protocols.isis import receiving
from ordercast.protocols.isis.protocol import ISIS
from ordercast.protocols.isis.settings import FlushKind, Settings
from ordercast.protocols.isis.submission import IsisSubmission
from ordercast.sim.isis.stage import Stage
from ordercast.v1.common_pb2 import RangeOutcome
from ordercast.v1.isis_pb2 import (
    Cast,
    CastKey,
    CastStamp,
    Cut,
    CutSynced,
    EpochFlush,
    Flush,
    Forward,
    GroupTime,
    PartsCast,
    Resume,
    Seen,
    SetsOrder,
    Stability,
    Submit,
    SyncedRow,
)
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered
from tests.unit.driving import envelope_of, sent
from tests.unit.fuzzing import state_of
from tests.unit.gateway_host import Host

NOBODY_CAST = CastKey(member=1, number=2**40)
BEYOND = Seen(epoch=2**64 - 1)


def submit(**fields: Any) -> Submit:
    message = Submit(group="a", envelope=envelope_of(0, "a"), stream=9, index=1)
    for name, value in fields.items():
        setattr(message.envelope.header, name, value)
    return message


def refuse(stage: Stage, source: str, to: str, message: Any) -> None:
    """It comes over the connection, is refused, and nothing is as if it had come."""
    process = stage.world.processes[to]
    machine = stage.machine(to)
    before = state_of(machine)
    event = Receive(*process.clock(), source, stage.world.processes[source].incarnation, message)
    with pytest.raises(RemoteProtocolError):
        machine.step(event)
    assert state_of(machine) == before


def stage_with_casts(**settings: Any) -> Stage:
    stage = Stage({"a": ("n1", "n2", "n3")}, spare=("n4",), settings=Settings(**settings))
    for number in range(3):
        stage.publish(f"c{number + 1}", "a", through=f"n{number + 1}")
        stage.run(0.05)
    return stage


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(submit(session=b"\xff\xff"), id="a session that is none"),
        pytest.param(submit(session=Seen(epoch=2**63).SerializeToString()), id="an epoch beyond all limits"),
        pytest.param(submit(id=b"short"), id="an envelope without an id"),
        pytest.param(SetsOrder(group="a", view=1, first_position=9, keys=[NOBODY_CAST]), id="order of nothing"),
        pytest.param(SetsOrder(group="a", view=1, first_position=9, keys=[CastKey()]), id="number 0"),
        pytest.param(
            SetsOrder(group="a", view=1, first_position=9, keys=[CastKey(number=9), CastKey(number=9)]),
            id="one cast at two places",
        ),
        pytest.param(
            SetsOrder(group="a", view=1, first_position=9, keys=[CastKey(number=1)]), id="ordered once more"
        ),
        pytest.param(Resume(group="a", view=1, received=2**40), id="more than was sent"),
        pytest.param(EpochFlush(group="a", view=1, epoch=2**63), id="a promise beyond all limits"),
        pytest.param(EpochFlush(group="a", view=1, sent=2**40), id="a promise behind what is never cast"),
        pytest.param(Stability(group="a", view=1, row=SyncedRow(counts=[1])), id="a row of another view"),
        pytest.param(
            Stability(group="a", view=1, row=SyncedRow(counts=[2, 1, 1], positions=3)),
            id="a row with a cast to come",
        ),
        pytest.param(
            Cast(
                group="a",
                view=1,
                key=CastKey(member=1, number=2),
                envelope=envelope_of(7, "a"),
                row=SyncedRow(counts=[2, 1, 1], positions=3),
            ),
            id="a cast whose row has a cast to come",
        ),
        pytest.param(CutSynced(group="a", view=1), id="somebody else knows our disk"),
        pytest.param(
            Cast(
                group="a",
                view=1,
                key=CastKey(member=1, number=2),
                envelope=envelope_of(7, "a"),
                times=[GroupTime(group="a", view=1, members=[0], counts=[])],
                row=SyncedRow(counts=[9, 9, 9], positions=9),
            ),
            id="a row with a stamp that is none",
        ),
        pytest.param(Cut(group="a", view=2**40), id="a view that is far away"),
        pytest.param(
            PartsCast(group="a", until=GroupTime(group="a", view=1, members=[0], counts=[1]), confirmed=BEYOND),
            id="an answer with an epoch beyond all limits",
        ),
    ],
)
def test_what_no_member_sends_is_refused_without_a_trace(message):
    stage = stage_with_casts()
    refuse(stage, "n2", "n1", message)
    stage.publish("c4", "a", through="n1")
    stage.finish()


def during_a_view_change(stage: Stage, to: str) -> None:
    """n4 joins; what the others say to this member of the new view waits."""
    for other in ("n1", "n2", "n3"):
        if other != to:
            stage.hold(other, to)
    stage.place("a", "n1", "n2", "n3", "n4")
    stage.believe_in("n1", "n2", "n3", "n4")
    stage.tell("n1", "n2", "n3", "n4")
    stage.run(0.05)


FLUSH = {"group": "a", "view": 2, "ends": 1, "settled_counts": [0, 0, 0]}


#: What n2 must not say to n1 while n4 joins.
WRONG_IN_A_VIEW_CHANGE = [
    pytest.param(Flush(**FLUSH, received=[2**40] * 3), id="casts that nobody has"),
    pytest.param(Flush(**FLUSH, received=[1, 1, 1], positions=[9]), id="a place of nothing"),
    pytest.param(Flush(**{**FLUSH, "settled_counts": [1, 1, 1]}, settled=99, received=[1, 1, 1]), id="settled"),
    pytest.param(Cut(group="a", view=2, ends=1, first_position=99), id="beyond what is ordered"),
    pytest.param(Cut(group="a", view=2, ends=1, keys=[NOBODY_CAST, NOBODY_CAST]), id="one cast twice"),
    pytest.param(Cut(group="a", view=2, ends=1), id="before what is visible"),
    pytest.param(Forward(view=2, cast=Cast(group="a", view=1, whole=True)), id="a cast that is none"),
    pytest.param(
        Flush(**FLUSH, received=[0, 0, 0], confirmed=BEYOND), id="a contribution that has seen an epoch beyond"
    ),
    pytest.param(
        Cut(
            group="a",
            view=2,
            ends=1,
            keys=[CastKey(member=member, number=1) for member in range(3)],
            confirmed=BEYOND,
        ),
        id="an end that has seen an epoch beyond",
    ),
    pytest.param(
        Forward(view=2, held=Submit(group="a", envelope=envelope_of(9, "a", "b"), origin=BEYOND)),
        id="an open message with an epoch beyond",
    ),
]


@pytest.mark.parametrize("flush", list(FlushKind))
@pytest.mark.parametrize("message", WRONG_IN_A_VIEW_CHANGE)
def test_a_wrong_message_in_a_view_change_does_not_lose_the_view(flush, message):
    stage = stage_with_casts(flush=flush)
    during_a_view_change(stage, "n1")
    refuse(stage, "n2", "n1", message)
    stage.finish()
    assert stage.machine("n1").replicas["a"].view > 1


@pytest.mark.parametrize("flush", list(FlushKind))
@pytest.mark.parametrize("message", WRONG_IN_A_VIEW_CHANGE)
def test_a_wrong_message_that_came_before_its_view_does_not_lose_the_view(flush, message):
    """It is put aside, and refused when membership's word of the view brings it up again."""
    stage = stage_with_casts(flush=flush)
    process, machine = stage.world.processes["n1"], stage.machine("n1")
    process.tell("isis", Receive(*process.clock(), "n2", stage.world.processes["n2"].incarnation, message))
    assert machine.buffers()["early"] == 1
    before = machine.stale_count
    during_a_view_change(stage, "n1")
    assert machine.replicas["a"].attempt.view == 2
    assert (machine.buffers()["early"], machine.stale_count) == (0, before + 1)
    stage.finish()
    assert machine.replicas["a"].view > 1


def test_an_end_with_casts_that_nobody_has_gives_way_to_the_right_one():
    stage = stage_with_casts(flush=FlushKind.COORDINATOR)
    during_a_view_change(stage, "n2")
    process = stage.world.processes["n2"]
    end = stage.machine("n2").replicas["a"].position
    wrong = Cut(group="a", view=2, ends=1, first_position=end, keys=[CastKey(member=0, number=77)])
    incarnation = stage.world.processes["n3"].incarnation
    process.tell("isis", Receive(*process.clock(), "n3", incarnation, wrong))
    assert stage.machine("n2").replicas["a"].cut is not None
    stage.finish()
    assert stage.machine("n2").replicas["a"].view > 1


def test_what_is_for_views_of_groups_that_nobody_knows_is_kept_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(receiving, "EARLY_TOTAL_MAX", 50)
    stage = stage_with_casts()
    process, machine = stage.world.processes["n1"], stage.machine("n1")

    def say(number: int) -> None:
        message = Flush(group=f"x{number}", view=number + 1)
        machine.step(Receive(*process.clock(), "n2", stage.world.processes["n2"].incarnation, message))

    for number in range(50):
        say(number)
    for number in range(50, 60):
        with pytest.raises(RemoteProtocolError):
            say(number)
    assert machine.buffers()["early"] == 50
    stage.place("a", "n1", "n2", "n3", "n4")
    stage.finish()
    assert stage.machine("n1").buffers()["early"] == 0, "membership has told us since which groups there are"


def test_parts_with_numbers_beyond_all_limits_are_refused():
    stage = Stage({"a": ("n1", "n2"), "b": ("n2", "n3")}, settings=Settings())
    stage.hold("n2", "n1")
    stage.hold("n3", "n1")
    stage.publish("c1", "a", "b", through="n1")
    stage.run(0.05)
    (id_,) = stage.machine("n1").parts.spreads
    wrong = PartsCast(id=id_, group="a", parts=[{"group": "a", "view": 2**63}, {"group": "b", "view": 1}])
    refuse(stage, "n2", "n1", wrong)
    stage.finish()


def test_a_message_that_is_known_has_no_part_in_another_group():
    """n1 is in a and b, and holds a part of m, which is for a and c. Somebody hands it an envelope with its
    id that is for a and b. If n1 kept that, it would look for it among m's parts when all of them are cast."""
    stage = Stage({"a": ("n1", "n2"), "b": ("n1", "n3"), "c": ("n3", "n4")}, settings=Settings())
    stage.hold("n1", "n3", "n4")
    stage.publish("c1", "a", "c", through="n1")
    stage.run(0.05)
    (known,) = stage.machine("n1").parts.spreads.values()
    other = envelope_of(0, "a", "b")
    other.header.id = known.envelope.header.id
    refuse(stage, "n2", "n1", Submit(group="b", envelope=other, origin=Seen(epoch=1)))
    stage.finish()


def test_a_contribution_cannot_call_settled_what_is_ordered_and_has_not_come():
    stage = stage_with_casts()
    machine = stage.machine("n1")
    (era,) = machine.replicas["a"].eras
    coming = CastKey(member=1, number=era.received[1] + 1)
    order = SetsOrder(group="a", view=1, first_position=era.ordered, keys=[coming])
    teller = stage.world.processes["n2"]
    machine.step(Receive(*teller.clock(), "n2", teller.incarnation, order))
    assert era.ordered == 4, "the order is here, and the cast is not"
    during_a_view_change(stage, "n1")
    counts = era.counts_below(4)
    refuse(stage, "n2", "n1", Flush(**{**FLUSH, "settled_counts": counts}, settled=4, received=counts))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"protocol": b"\xff"},
        {"protocol": CastStamp(view=1, key=CastKey(number=2**63)).SerializeToString()},
        {"protocol": CastStamp(view=1, key=CastKey(number=1)).SerializeToString(), "besides": b"\xff"},
        {
            "protocol": CastStamp(view=1, key=CastKey(number=1)).SerializeToString(),
            "besides": BEYOND.SerializeToString(),
        },
    ],
    ids=["no stamp", "no such message", "a number beyond limits", "besides it no message", "besides it too much"],
)
def test_a_gateway_refuses_a_delivery_that_says_nothing_to_read(fields: dict[str, bytes]) -> None:
    host = Host(submission=IsisSubmission)
    (submit,) = sent(host.publish("a"), Submit)
    delivered = EnvelopeDelivered(id=submit.envelope.header.id, group="a", outcomes=[RangeOutcome()], **fields)
    before = state_of(host.machine)
    with pytest.raises(RemoteProtocolError):
        host.receive("n1", delivered)
    assert state_of(host.machine) == before


@pytest.mark.parametrize(
    "protocol",
    [b"\xff", CastStamp(view=1, times=[GroupTime(group="b", view=1, members=[1])]).SerializeToString()],
    ids=["no such message", "no vector time"],
)
def test_where_an_entry_comes_from_is_refused_if_it_cannot_be_read(protocol: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        ISIS.causal.place_of(protocol)
