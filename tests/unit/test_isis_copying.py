"""Copying a log in virtually synchronous groups, from its beginning, or with the state at a position of it."""

import zlib
from itertools import count
from typing import Any

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, unpack_u64
from ordercast.protocols.celllog.fetching import COPY_TIMER
from ordercast.protocols.celllog.snapshots import KEPT_S
from ordercast.protocols.isis import records
from ordercast.v1.isis_pb2 import Cut
from ordercast.v1.membership_pb2 import DomainView, GroupView
from ordercast.v1.sequencer_pb2 import (
    FetchLog,
    LogChunk,
    LogEntry,
    ProducerRecord,
    Snapshot,
    SnapshotAsk,
    SnapshotPart,
)
from tests.unit.causal_stamps import restamping
from tests.unit.driving import LIVES, envelope_of
from tests.unit.isis_town import Node, Town, asked, begun, chunk_of, nothing, part_of, stuck, town_with_a_past

# -------------------------------------------------------------------------------------------------- what is copied


@pytest.mark.parametrize("begins", [0, 1, 3, 5])
def test_of_a_log_whose_beginning_is_gone_the_rest_is_copied_and_then_the_state(begins):
    town = town_with_a_past(begins=begins)
    town.learn("n3")
    town.tick(times=4)
    n1, n3 = town.nodes["n1"], town.nodes["n3"]
    assert n3.machine.copying.has_caught_up(n3.replica)
    assert records.copied("a") not in n3.disk
    assert n3.state == n1.state
    assert (n3.log.begins, n3.log.entries) == (begins, n1.log.entries)


def test_whoever_took_the_state_replays_what_comes_then_and_knows_the_producers():
    town = town_with_a_past()
    town.learn("n3")
    town.tick(times=4)
    town.publish(2)
    town.sent -= 1
    town.publish()  # once more
    town.tick(times=2)
    n1, n3 = town.nodes["n1"], town.nodes["n3"]
    assert n3.replica.position == 8
    assert n3.state == n1.state
    assert n3.log.entries[-1].outcomes[0].spans[0].duplicate
    n3.restart()
    assert n3.state == n1.state, "and it is on disk"


def test_bodies_come_before_the_state():
    town = town_with_a_past()
    n3 = stuck(town, SnapshotPart)
    assert (n3.log.begins, n3.log.ends, n3.replica.copied, n3.replica.position) == (3, 5, 5, 0)
    assert unpack_u64(n3.disk[records.copied("a")]) == 5
    assert not n3.machine.copying.has_caught_up(n3.replica)
    n3.hear("n7", FetchLog(group="a", configuration=1))
    assert n3.heard(LogChunk) == [], "who copies has nothing to give"
    assert asked(n3, 9) == []
    assert n3.replica.retained_from() == 0
    n3.restart()
    n3.tick(0.5)
    assert [fetch.position for _, fetch in n3.heard(FetchLog)] == [5], "it goes on where it was"


def test_a_log_is_copied_as_far_as_the_state_goes_and_replayed_from_there():
    town = town_with_a_past(entries=6)
    n1, state = town.nodes["n1"], state_of(town.nodes["n1"])
    town.publish(2)
    n3 = begun(town, chunk_of(n1.log.entries[:2], position=3, head=5, begins=3))
    n3.hear("n1", part_of(state))
    town.talk()
    assert (n3.replica.copied, n3.state) == (None, n1.state)


def test_a_member_that_was_away_too_long_keeps_nothing_of_what_it_knew():
    town = Town(idempotence_window=2)
    n1, n2 = town.nodes["n1"], town.nodes["n2"]
    town.publish(3)
    town.define("n1 n3", "n1", "n3")
    town.complete("n1", "n3")
    town.tick()
    town.installed("n1", "n3")
    town.connect()
    town.publish(7)
    town.forget(9)
    town.learn("n2")
    town.tick(times=5)
    n2.restart()
    assert (n2.log.begins, n2.state) == (9, n1.state)


@pytest.mark.parametrize("is_on_disk", [False, True])
def test_a_crash_at_any_point_does_no_harm(is_on_disk):
    for point in count(1):
        town = town_with_a_past(log_chunk_bytes=40)
        n1, n3 = town.nodes["n1"], town.nodes["n3"]
        n3.crash_at = (n3.steps + point, is_on_disk)
        town.learn("n3")
        town.tick(times=6)
        if n3.replica.copied is None and n3.replica.position and n3.incarnation == LIVES["n3"]:
            break
        town.connect()
        town.publish()
        town.tick(times=6)
        assert n3.state == n1.state, point
        assert (n3.log.begins, n3.log.entries) == (3, n1.log.entries)
        n3.restart()
        assert n3.state == n1.state
    assert point > 6


def test_what_came_is_dropped_if_the_rest_begins_later():
    town = town_with_a_past(entries=8, begins=1)
    n3 = begun(town, chunk_of(town.nodes["n1"].log.entries[:2], position=1, head=8, begins=1))
    assert (n3.log.begins, n3.log.ends) == (1, 3)
    for name in ("n1", "n2"):
        town.nodes[name].log.truncate(6)
    town.tick(times=4)
    assert (n3.log.begins, n3.log.ends) == (6, 8)
    assert n3.state == town.nodes["n1"].state


def test_a_group_that_is_elsewhere_leaves_no_mark_of_the_copy():
    town = town_with_a_past()
    n3 = stuck(town, SnapshotPart)
    assert records.copied("a") in n3.disk
    town.learn("")
    assert n3.disk == {}
    assert n3.machine.copying.snapshots.coming == {}


# ------------------------------------------------------------------------------------------------- what is refused


def copier() -> tuple[Town, Node]:
    """A learner that has what is left of the log, and has asked n1 or n2 for the state."""
    town = town_with_a_past()
    n3 = stuck(town, SnapshotAsk)
    assert n3.replica.copied == 5
    return town, n3


def state_of(node: Node) -> Snapshot:
    position, offset, _ = node.state
    return Snapshot(group="a", position=position, offset=offset, producers=node.replica.producers.messages())


def changed(snapshot: Snapshot, **fields: Any) -> Snapshot:
    found = Snapshot()
    found.CopyFrom(snapshot)
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def with_producer(snapshot: Snapshot, **fields: Any) -> Snapshot:
    found = changed(snapshot)
    found.producers.append(ProducerRecord(producer=b"q", groups=["a"], **fields))
    return found


@pytest.mark.parametrize(
    "broken",
    [
        lambda right: part_of(right, checksum=1),
        lambda right: part_of(right, data=b"\xff", checksum=zlib.crc32(b"\xff")),
        lambda right: part_of(changed(right, group="b")),
        lambda right: part_of(changed(right, position=CLOCK_MAX + 1)),
        lambda right: part_of(with_producer(right, last_sn=5)),
        lambda right: part_of(with_producer(right, spans=[{"first_offset": 5, "count": 1}])),
    ],
)
def test_what_is_no_state_of_this_log_is_refused_and_asked_for_again(broken):
    town, n3 = copier()
    right, source = state_of(town.nodes["n1"]), n3.machine.copying.snapshots.coming["a"].source
    with pytest.raises(RemoteProtocolError):
        n3.hear(source, broken(right))
    assert n3.replica.copied == 5
    town.loses = nothing
    town.tick(times=3)
    assert n3.state == town.nodes["n1"].state


def test_parts_of_another_state_or_from_somebody_else_are_not_mixed():
    town, n3 = copier()
    source = n3.machine.copying.snapshots.coming["a"].source
    other = "n1" if source == "n2" else "n2"
    data = state_of(town.nodes["n1"]).SerializeToString()
    right = part_of(state_of(town.nodes["n1"]))
    n3.hear(other, right)
    assert n3.replica.copied == 5, "it was not asked"
    n3.hear(source, part_of(Snapshot(), token=1, part=0, parts=2, data=b"an earlier one"))
    n3.hear(source, part_of(Snapshot(), token=2, part=1, parts=2, data=data[10:], checksum=right.checksum))
    assert n3.machine.copying.snapshots.coming["a"].parts == [], "it begins again"
    n3.hear(source, part_of(Snapshot(), token=2, part=0, parts=2, data=data[:10], checksum=right.checksum))
    n3.hear(source, part_of(Snapshot(), token=2, part=1, parts=2, data=data[10:], checksum=right.checksum))
    assert n3.state == town.nodes["n1"].state


@pytest.mark.parametrize(
    "broken",
    [
        lambda entries: chunk_of(entries, position=0, head=5, checksum=1),
        lambda entries: chunk_of(entries, position=0, head=5, begins=6),
        lambda entries: chunk_of(entries, position=0, head=CLOCK_MAX + 1),
        lambda entries: chunk_of([*entries, LogEntry(envelope=envelope_of(9, "b"))], position=0, head=5),
    ],
)
def test_a_piece_that_is_damaged_or_of_another_log_changes_nothing(broken):
    town = town_with_a_past(begins=0)
    town.loses = lambda source, to, message: isinstance(message, FetchLog)
    town.learn("n3")
    n3, entries = town.nodes["n3"], town.nodes["n1"].log.entries[:2]
    with pytest.raises(RemoteProtocolError):
        n3.hear("n1", broken(entries))
    assert (n3.replica.position, n3.replica.copied, n3.replica.head) == (0, None, None)
    n3.hear("n1", chunk_of(entries, position=0, head=5))
    assert n3.replica.position == 2


def test_the_next_piece_waits_as_long_as_the_last_one_may_take():
    town = town_with_a_past(begins=0, copy_bytes_per_s=1000)
    town.learn("n3")
    n3 = town.nodes["n3"]
    town.tick()
    assert n3.replica.position == 2
    assert COPY_TIMER in n3.timers
    assert n3.heard(FetchLog) == []
    town.tick(times=4)
    assert n3.state == town.nodes["n1"].state


# ------------------------------------------------------------------------------------------------ giving the state


def test_all_parts_are_of_one_moment():
    town = town_with_a_past(log_chunk_bytes=50)
    n1 = town.nodes["n1"]
    (first,) = asked(n1, 2)
    town.publish()
    rest = [asked(n1, 2, token=first.token, part=part)[0] for part in range(1, first.parts)]
    data = b"".join(part.data for part in [first, *rest])
    assert {(p.token, p.parts, p.checksum) for p in rest} == {(first.token, first.parts, zlib.crc32(data))}
    snapshot = Snapshot.FromString(data)
    assert (snapshot.position, snapshot.offset) == (5, 5)
    (later,) = asked(n1, 2)
    assert later.token != first.token, "whoever begins gets the present"
    (again,) = asked(n1, 2, token=first.token, part=1)
    assert (again.token, again.part) == (later.token, 0), "and everyone else begins again with it"
    with pytest.raises(RemoteProtocolError):
        asked(n1, 2, token=later.token, part=later.parts)


def test_a_state_that_nobody_asks_for_is_dropped():
    town = town_with_a_past()
    n1 = town.nodes["n1"]
    asked(n1, 2)
    town.tick(KEPT_S / 2)
    asked(n1, 2)
    town.tick(KEPT_S * 0.75)
    assert n1.machine.copying.snapshots.made, "it was used since"
    town.tick(KEPT_S)
    assert n1.machine.copying.snapshots.made == {}


def town_that_has_gone_on() -> Town:
    """View 2 has n3 too, which has heard of nothing: five entries are from before, and three are of that view."""
    town = town_with_a_past()
    town.silent["n3"] = None
    town.define("n1 n2 n3", "n1", "n2")
    town.complete("n1", "n2")
    town.publish(3)
    town.silent.clear()
    return town


def test_the_beginning_of_a_view_is_remembered_until_all_have_installed_it():
    town = town_that_has_gone_on()
    n1 = town.nodes["n1"]
    assert (n1.replica.view, n1.replica.position) == (2, 8)
    (before,) = asked(n1, 2)
    (present,) = asked(n1, 3)
    assert [Snapshot.FromString(part.data).position for part in (before, present)] == [5, 8]
    assert Snapshot.FromString(before.data).producers[0].last_sequence == 5
    assert asked(n1, 1) == [], "it has nothing that old"
    town.installed("n1", "n2", starting="n3")
    town.tick()
    assert asked(n1, 2)
    town.installed("n1", "n2")
    town.tick()
    assert asked(n1, 2) == []
    assert n1.machine.copying.snapshots.beginnings == {}


def test_nothing_is_dropped_from_a_log_while_a_view_begins():
    town = Town()
    town.publish(4)
    n1 = town.nodes["n1"]
    assert n1.replica.retained_from() == 4
    town.define("n1 n2 n3")
    assert n1.replica.retained_from() == 0
    town.complete()
    assert n1.replica.retained_from() == 0
    town.installed(starting="n3")
    assert n1.replica.retained_from() == 0
    town.installed()
    assert n1.replica.retained_from() == 4


# ---------------------------------------------------------------------------------- views, and how far a copy goes


def test_a_newcomer_to_a_view_is_not_ready_before_it_has_the_state():
    town = town_with_a_past()
    town.loses = lambda source, to, message: isinstance(message, SnapshotPart)
    town.define("n1 n2 n3")
    town.tick(times=3)
    n3 = town.nodes["n3"]
    assert n3.replica.copied == 5
    assert not n3.machine.progress()["a"].started
    town.complete()
    town.tick(times=3)
    assert (n3.replica.view, len(n3.replica.eras)) == (0, 0)
    town.loses = nothing
    town.tick(times=3)
    assert n3.replica.view == 2
    assert n3.replica.eras[0].start == 5
    assert n3.state == town.nodes["n1"].state


def test_a_newcomer_enters_a_view_where_it_began_though_others_have_gone_on():
    town = town_that_has_gone_on()
    n1, n3 = town.nodes["n1"], town.nodes["n3"]
    n3.change(town.view)
    town.tick(times=4)
    assert n3.replica.eras[0].start == n1.replica.eras[0].start == 5
    town.connect()
    town.publish()
    assert n3.state == n1.state
    assert n3.log.entries == n1.log.entries


def test_a_learner_takes_nothing_of_a_view_that_it_has_not_heard_of():
    """It may be in it."""
    town = town_with_a_past()
    town.learn("n3", "n1", "n2")
    town.define("n1 n2", "n1", "n2", learners="n3")
    town.complete("n1", "n2")
    town.installed("n1", "n2", starting="n1")
    town.publish(2)
    n1, n3 = town.nodes["n1"], town.nodes["n3"]
    first = GroupView(group="a", configuration=1, replicas=["n1", "n2"], incarnations=[1, 2], learners=["n3"])
    n3.change(DomainView(domain="test", number=2, groups=[first]))
    town.tick(times=4)
    assert (n1.replica.position, n3.replica.position, n3.replica.copied) == (7, 5, None)
    n3.change(town.view)
    town.tick(times=4)
    assert n3.state == n1.state


def test_a_learner_takes_nothing_of_a_view_that_it_may_still_enter():
    """It is a member of view 2, and hears of that together with view 3, which is defined without it."""
    town = Town()
    town.publish(2)
    town.loses = lambda source, to, message: isinstance(message, Cut) and to == "n3"
    town.define("n1 n2 n3")
    town.complete("n1", "n2")
    town.connect()
    town.publish(2)
    town.define("n1 n2", "n1", "n2", "n3", learners="n3")
    town.tick(times=4)
    n1, n3 = town.nodes["n1"], town.nodes["n3"]
    assert (n3.replica.view, n3.replica.position) == (0, 2)
    n3.hear("n1", Cut(group="a", view=2, ends=1, first_position=2))
    assert n3.replica.view == 2
    assert n3.replica.ending is not None
    assert n3.replica.ending.start == 2
    town.tick(times=4)
    assert n3.state == n1.state


def test_a_state_from_behind_the_beginning_of_the_view_is_not_taken():
    town = town_that_has_gone_on()
    town.loses = lambda source, to, message: isinstance(message, SnapshotPart)
    n1, n3 = town.nodes["n1"], town.nodes["n3"]
    n3.change(town.view)
    town.tick(times=4)
    assert n3.replica.copied == 5, "no further than where view 2 begins"
    n3.hear(n3.machine.copying.snapshots.coming["a"].source, part_of(state_of(n1)))
    assert n3.replica.copied == 5
    assert n3.machine.copying.snapshots.whole("a") is None


def test_a_member_of_the_view_that_ends_does_not_begin_anew():
    """It has casts and positions beside its log, which count with the log that it has."""
    town = town_with_a_past(begins=0)
    n1, n2 = town.nodes["n1"], town.nodes["n2"]
    town.define("n1 n3", learners="n2")
    n2.hear("n1", chunk_of([], position=5, head=9, begins=9))
    assert (n2.replica.copied, n2.log.begins, n2.replica.position) == (None, 0, 5)
    town.define("n1 n2 n3")
    town.tick(times=2)
    town.complete()
    town.tick(times=2)
    assert n2.state == n1.state


def test_a_member_takes_an_earlier_state_if_nobody_is_left_who_has_a_later_one():
    town = Town("n1 n2 n3 n4", "n1 n2 n4")
    town.publish(5)
    town.forget(3)
    n1, n3 = town.nodes["n1"], town.nodes["n3"]
    before = n1.state[:2]
    town.loses = lambda source, to, message: to != "n3"
    town.learn("n3")
    # The log of n2 goes further: it has heard what is on whose disk, and the others have not.
    last = LogEntry.FromString(n1.log.entries[-1].SerializeToString())
    with restamping(last) as stamp:
        stamp.key.number += 1
    n3.hear("n2", chunk_of([*n1.log.entries, last], position=3, head=6, begins=3))
    assert n3.replica.copied == 6
    town.silent["n2"] = None
    town.loses = nothing
    town.tick(times=8)
    assert n3.replica.copied == 6, "a learner waits"
    town.define("n1 n3 n4", "n1", "n3", "n4")
    town.tick(times=8)
    assert n3.replica.copied is None
    assert n3.state[:2] == before
    assert n3.machine.progress()["a"].started
    assert (n3.log.begins, n3.log.entries) == (3, n1.log.entries)
    town.complete("n1", "n3", "n4")
    assert n3.replica.view == 2


def test_a_state_is_given_up_if_nobody_is_left_whose_log_goes_as_far():
    town, n3 = copier()
    n1 = town.nodes["n1"]
    source = n3.machine.copying.snapshots.coming["a"].source
    n3.hear(source, part_of(changed(state_of(n1), position=9)))
    assert n3.machine.copying.snapshots.whole("a") is not None, "it waits for the log"
    town.loses = nothing
    town.tick(times=8)
    assert n3.state == n1.state
