"""The state at a position of a log: who gives it, who takes it, and what is refused as none."""

import zlib
from typing import Any

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, order_key
from ordercast.core.machine import ResetLog
from ordercast.protocols.celllog.snapshots import KEPT_S
from ordercast.protocols.scalatom import records
from ordercast.v1.scalatom_pb2 import HandOver, HandOverAsk, StartedRecord
from ordercast.v1.sequencer_pb2 import DeliveredRecord, DoneRecord, FetchLog, LogEntry, Snapshot, SnapshotAsk
from tests.unit.copying_host import LEARNING, asked, copier, copy, fetched, learner, part_of, source
from tests.unit.driving import (
    CONFIGURATION,
    LIVES,
    delivered,
    edited,
    envelope_of,
    key_of,
    next_view,
    range_of,
    sends,
    talk,
    without_previous,
)
from tests.unit.scalatom_host import SILENCE_S, VIEW, Host, chunk_of, log_entry, snapshot_of

# ------------------------------------------------------------------------------------------------ giving the state


def test_all_parts_are_of_one_moment():
    giver = source(log_chunk_bytes=50)
    first = asked(giver)
    giver.order(envelope_of(9, "a"), 40)
    rest = [asked(giver, token=first.token, part=part) for part in range(1, first.parts)]
    data = b"".join(part.data for part in [first, *rest])
    assert {(part.token, part.parts, part.checksum) for part in rest} == {
        (first.token, first.parts, zlib.crc32(data))
    }
    assert Snapshot.FromString(data).position == 5
    assert asked(giver).token != first.token, "whoever begins gets the present"


def test_a_state_that_nobody_asks_for_any_more_is_dropped_and_made_anew():
    giver = source(log_chunk_bytes=50)
    first = asked(giver)
    giver.tick(KEPT_S / 2)
    assert asked(giver, token=first.token, part=1).token == first.token
    giver.tick(KEPT_S * 0.75)
    assert asked(giver, token=first.token, part=1).token == first.token, "it was used since"
    giver.tick(KEPT_S)
    again = asked(giver, token=first.token, part=2)
    assert again.token != first.token
    assert again.part == 0


def test_a_state_of_an_earlier_life_is_not_continued():
    giver = source(log_chunk_bytes=50)
    first = asked(giver)
    giver.restart()
    again = asked(giver, token=first.token, part=1)
    assert (again.token != first.token, again.part) == (True, 0)


def test_who_copies_itself_has_nothing_to_give():
    _, host = copier()
    host.change(next_view(LEARNING, "a", "n1 n2 n6"))
    assert host.receive("n1", FetchLog(group="a", configuration=2)) == []
    assert host.receive("n1", SnapshotAsk(group="a", configuration=2)) == []


# ----------------------------------------------------------------------------------------------- members that copy


def test_a_member_that_was_away_too_long_copies_too_and_then_goes_on():
    giver, host = source(5, begins=2), Host()
    held = envelope_of(0, "a")
    host.take(held)
    host.gossip("n2", 15, position=5, base=0)
    host.tick(SILENCE_S)
    copy(giver, host)
    assert host.replica().position == 5
    assert host.machine.buffers()["undelivered"] == 0, "what it held is in the state"
    later = envelope_of(9, "a", ranges=[range_of(b"p", 5, 2)])
    assert delivered(host.order(later, 2000)) == [("a", 5, later.header.id)]
    span, fresh = host.logs["a"].entries[-1].outcomes[0].spans
    assert (span.duplicate, span.first_offset, fresh.first_offset) == (True, 4, 5), "it knows the producer"


def test_what_other_groups_here_have_forgotten_goes_when_the_state_has_it_as_finished():
    """n1 is in a, and copies c. It delivers m in both, and a hears that m is finished. What was kept of m for the
    copy of c alone stayed for good when a state of c came in which m is finished, too: n1 had no stamp of m there.
    """
    host = Host(view=edited(VIEW, "c", learners="n1"))
    m = envelope_of(1, "a", "c")
    host.order(m, 5)
    host.receive("n6", chunk_of(log_entry(5, m), group="c"))
    later = envelope_of(2, "a", done=2)
    host.order(later, 7)
    assert (m.header.id in host.replica("a").delivered, m.header.id in host.replica("c").delivered) == (
        False,
        True,
    )
    host.receive("n6", chunk_of(group="c", position=1, head=2, begins=2))
    finished = Snapshot(
        group="c",
        position=2,
        order_key=key_of(8, envelope_of(3, "c")),
        done=[DoneRecord(incarnation=LIVES["g1"], done=2)],
    )
    host.receive("n6", part_of(finished, group="c"))
    assert host.replica("c").position == 2
    assert m.header.id not in host.machine.held


def test_nothing_is_delivered_while_a_member_copies():
    giver, host = source(5, begins=2), Host()
    later = envelope_of(9, "a", coordinator="n2")
    fetched(giver, host)
    host.take(later)
    effects = host.told("n2", later, 40) + host.gossip("n2", 50, base=0) + host.gossip("n3", 50, base=0)
    assert delivered(effects) == []
    copy(giver, host)
    assert host.logs["a"].entries[-1].envelope == later
    assert host.replica().position == 6


def test_a_member_does_not_start_in_a_configuration_before_it_has_copied():
    giver, host = copier()
    second = next_view(LEARNING, "a", "n1 n2 n6")
    for one in (giver, host):
        one.change(second)
    for name in ("n1", "n2"):
        host.receive(name, HandOver(group="a", configuration=2, clock=30, position=0))
    assert not host.replica().is_active
    host.receive("n2", part_of(snapshot_of(giver, "a", "n6"), configuration=2))
    assert host.replica().is_active
    assert host.replica().position == 5


# ------------------------------------------------------------------------------------------------------ lost disks


LOST = edited(VIEW, "a", lost="n1")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_member_that_lost_its_disk_begins_with_nothing(restarts):
    host = source(name="n1")
    host.take(envelope_of(9, "a"))
    if restarts:
        host.view = LOST
        effects = host.restart()
    else:
        effects = host.change(LOST)
    assert [(e.group, e.position) for e in effects if isinstance(e, ResetLog)] == [("a", 0)]
    left = {key[:1] for key in host.disk if key[:1] in records.OF_GROUPS and records.group_of(key) == "a"}
    assert left == {records.STARTED}, "the mark that what comes now is new"
    assert StartedRecord.FromString(host.disk[records.started("a")]).configuration == 0
    assert (host.replica().position, host.replica().is_active) == (0, False)
    assert "b" in host.machine.replicas
    assert host.machine.replicas["b"].is_active


def test_what_it_copies_after_that_is_copied_again_after_a_restart():
    """As long as the group counts it as lost: the disk may have been damaged once more."""
    giver, host = source(), source(name="n1")
    host.change(edited(LOST, "a", learners="n1"))
    giver.change(edited(LOST, "a", learners="n1"))
    fetched(giver, host)
    assert host.replica().position == 5
    assert [effect.position for effect in host.restart() if isinstance(effect, ResetLog)] == [0]
    assert host.replica().position == 0


def test_it_takes_part_again_in_the_next_configuration_under_the_same_name():
    giver, host = source(), source(name="n1")
    host.change(LOST)
    giver.change(LOST)
    second = next_view(LOST, "a", "n1 n2 n3")
    asks = sends(host.change(second), HandOverAsk)
    assert [to for to, _ in asks] == [["n2"], ["n3"]], "it has nothing to hand over itself"
    talk({"n1": host, "n2": giver}, "n2", giver.change(second))
    assert not host.replica().is_active, "n2 alone is no majority of three, and it does not count itself"
    host.receive("n3", HandOver(group="a", configuration=2, clock=20, position=5))
    for _ in range(3):
        talk({"n1": host, "n2": giver}, "n1", host.tick(SILENCE_S))
    assert host.replica().is_active
    assert host.logs["a"] == giver.logs["a"]
    host.change(without_previous(second, "a"))
    host.restart()
    assert host.replica().started == 2


# ------------------------------------------------------------------------------------------------------- bad input


TO_COME = envelope_of(5, "a", configuration=2)


def late(counter: int = 5, sn: int = 20, **fields: Any) -> LogEntry:
    return log_entry(sn, envelope_of(counter, "a"), **fields)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(chunk_of(late(), position=5, checksum=1), id="a checksum that is wrong"),
        pytest.param(chunk_of(late(), position=5, checksum=0), id="a checksum of nothing"),
        pytest.param(chunk_of(late(order_key=b"short"), position=5), id="no order key"),
        pytest.param(chunk_of(late(sn=CLOCK_MAX + 1), position=5), id="a key beyond all clocks"),
        pytest.param(chunk_of(late(6, 21), late(7, 20), position=5), id="falling keys"),
        pytest.param(chunk_of(log_entry(20, envelope_of(5, "b")), position=5), id="an entry of another group"),
        pytest.param(chunk_of(log_entry(20, TO_COME), position=5), id="an entry of a configuration to come"),
    ],
)
def test_a_bad_piece_of_a_log_changes_nothing_in_a_copy(wrong):
    giver, host = copier()
    disk, log = dict(host.disk), list(host.logs["a"].entries)
    with pytest.raises(RemoteProtocolError):
        host.receive("n2", wrong)
    assert (host.replica().copied, host.disk, host.logs["a"].entries) == (5, disk, log)
    copy(giver, host)
    assert host.replica().position == 5


def test_a_piece_of_an_early_version_which_has_no_checksum_is_taken():
    host = learner()
    chunk = chunk_of(late())
    chunk.ClearField("checksum")
    assert delivered(host.receive("n2", chunk)) == [("a", 0, envelope_of(5).header.id)]


@pytest.mark.parametrize("begins", [6, 2**64 - 1])
def test_a_log_begins_at_its_end_at_the_latest(begins):
    _, host = copier()
    wrong = chunk_of(log_entry(20, envelope_of(5, "a")), position=begins, begins=begins, head=5)
    with pytest.raises(RemoteProtocolError):
        host.receive("n2", wrong)
    assert (host.replica().copied, host.logs["a"].begins) == (5, 2)


def state(**fields: Any) -> Snapshot:
    """Of five envelopes; what is said otherwise is wrong."""
    last = envelope_of(4, "a")
    defaults = {"group": "a", "configuration": CONFIGURATION, "position": 5, "order_key": key_of(14, last)}
    return Snapshot(**{**defaults, "offset": 5, **fields})


def record(**fields: Any) -> list[DeliveredRecord]:
    envelope = envelope_of(4, "a")
    return [
        DeliveredRecord(**{"id": envelope.header.id, "order_key": key_of(14, envelope), "position": 4, **fields})
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(part_of(state(), checksum=1), id="a checksum that is wrong"),
        pytest.param(part_of(state(), data=state().SerializeToString()[:-1]), id="cut off"),
        pytest.param(part_of(state(), data=b"\xff\xff", checksum=zlib.crc32(b"\xff\xff")), id="no snapshot"),
        pytest.param(part_of(state(group="b")), id="of another group"),
        pytest.param(part_of(state(order_key=b"short")), id="no key"),
        pytest.param(part_of(state(order_key=order_key(CLOCK_MAX + 1, b"\0" * 16))), id="a key beyond all clocks"),
        pytest.param(part_of(state(retired=CLOCK_MAX + 1)), id="no incarnation"),
        pytest.param(part_of(state(delivered=record(id=b"short"))), id="a record of no envelope"),
        pytest.param(part_of(state(delivered=record(order_key=b"short"))), id="a record without a key"),
        pytest.param(part_of(state(delivered=record(order_key=b"\xff" * 24))), id="a record beyond all clocks"),
        pytest.param(
            part_of(state(delivered=record(order_key=key_of(15, envelope_of(4, "a"))))),
            id="a record behind its end",
        ),
        pytest.param(part_of(state(delivered=record(position=5))), id="a record at its end"),
    ],
)
def test_a_state_that_cannot_be_one_is_refused_and_asked_for_again(wrong):
    giver, host = copier()
    before, disk = host.machine.buffers(), dict(host.disk)
    with pytest.raises(RemoteProtocolError):
        host.receive("n2", wrong)
    assert (host.machine.buffers(), host.disk) == (before, disk)
    assert (host.replica().position, host.replica().copied) == (0, 5)
    copy(giver, host)
    assert host.replica().position == 5


def test_a_state_that_is_further_than_the_log_and_behind_it_at_once_is_refused():
    giver, host = source(5, begins=2), Host()
    host.order(envelope_of(90, "a"), 80)
    host.receive("n2", chunk_of(position=1, begins=2, head=5))
    fetched(giver, host)
    with pytest.raises(RemoteProtocolError):
        host.receive("n2", part_of(state()))
    assert host.replica().position == 1


def test_a_state_may_name_groups_that_the_view_lacks():
    _, host = copier()
    envelope = envelope_of(4, "a", "x")
    host.receive("n2", part_of(state(delivered=record(destinations=envelope.header.destinations))))
    assert host.replica().position == 5


def test_no_number_of_parts_makes_a_part_that_is_not_the_next_count():
    giver, host = copier()
    for part, parts in ((1, 1), (2**32 - 1, 2**32 - 1), (3, 0)):
        assert host.receive("n2", part_of(state(), part=part, parts=parts)) == []
    assert host.replica().copied == 5
    copy(giver, host)
    assert host.replica().position == 5
