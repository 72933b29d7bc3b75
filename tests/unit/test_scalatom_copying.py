"""Copying a log, also one whose beginning is gone: piece by piece, checked, resumed, and not too fast."""

import zlib

import pytest

from ordercast.core.ids import unpack_u64
from ordercast.core.machine import Effect, Persist, Progress, ResetLog, SetTimer, TimerFired
from ordercast.core.view import OtherConfiguration
from ordercast.protocols.celllog.fetching import COPY_TIMER
from ordercast.protocols.celllog.group_log import CLOSE
from ordercast.protocols.scalatom import records
from ordercast.v1.scalatom_pb2 import EnvelopeDurable, Gossip, HandOver, HandOverAsk, RecTs
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered, FetchLog, LogChunk, Snapshot, SnapshotAsk
from tests.unit.copying_host import LEARNING, asked, copier, copy, fetched, learner, part_of, source
from tests.unit.driving import (
    CONFIGURATION,
    delivered,
    edited,
    envelope_of,
    next_view,
    range_of,
    sends,
    sent,
    sent_when_durable,
)
from tests.unit.scalatom_host import GOSSIP_S, SILENCE_S, Host, chunk_of, log_entry, snapshot_of


def copied_on_disk(host: Host) -> int | None:
    record = host.disk.get(records.copied("a"))
    return None if record is None else unpack_u64(record)


def timers(effects: list[Effect]) -> list[float]:
    return [effect.delay for effect in effects if isinstance(effect, SetTimer) and effect.name == COPY_TIMER]


# -------------------------------------------------------------------------------------------------------- learners


def test_a_learner_asks_for_the_log_of_one_replica_after_the_other():
    host = learner()
    asked = [sends(host.tick(SILENCE_S), FetchLog) for _ in range(4)]
    fetch = FetchLog(group="a", configuration=CONFIGURATION)
    assert asked == [[([name], fetch)] for name in ("n2", "n3", "n1", "n2")]
    assert sends(host.tick(SILENCE_S / 2), FetchLog) == [], "not while it waits for an answer"


def test_a_learner_does_not_ask_who_lost_its_disk():
    host = Host("n6", view=edited(LEARNING, "a", lost="n1 n3"))
    assert [to for _ in range(3) for to, _ in sends(host.tick(SILENCE_S), FetchLog)] == [["n2"]] * 3


def test_a_learner_delivers_what_the_log_has_and_reports_to_nobody():
    host = learner()
    effects = fetched(source(), host)
    assert [position for _, position, _ in delivered(effects)] == [0, 1, 2, 3, 4]
    assert host.logs["a"].entries == source().logs["a"].entries
    assert sent(effects, EnvelopeDelivered) == []
    assert sent_when_durable(effects, EnvelopeDurable) == []


def test_a_learner_takes_no_part_in_the_group():
    host = learner()
    fetched(source(), host)
    with pytest.raises(OtherConfiguration):
        host.take(envelope_of(9, "a"))
    effects = host.connect("n1") + host.tick(GOSSIP_S) + host.tick(GOSSIP_S)
    assert sent(effects, Gossip) == sent(effects, RecTs) == sent(effects, HandOverAsk) == []
    assert host.receive("n1", HandOverAsk(group="a", configuration=CONFIGURATION)) == []
    assert host.machine.buffers()["held"] == 0


def test_only_those_who_have_the_log_may_send_it():
    host = learner()
    for stranger in ("n4", "g1"):
        with pytest.raises(OtherConfiguration):
            host.receive(stranger, chunk_of(log_entry(4, envelope_of(0, "a"))))
    assert host.replica().position == 0


def test_a_learner_is_answered_and_others_are_not():
    giver = source()
    ask = FetchLog(group="a", configuration=CONFIGURATION)
    assert sent(giver.hear("n6", ask), LogChunk)
    for stranger in ("n4", "g1"):
        with pytest.raises(OtherConfiguration):
            giver.receive(stranger, ask)
        with pytest.raises(OtherConfiguration):
            giver.receive(stranger, SnapshotAsk(group="a", configuration=CONFIGURATION))
    with pytest.raises(OtherConfiguration):
        giver.receive("n6", chunk_of(log_entry(90, envelope_of(9, "a")), position=5)), "it has nothing to tell"


def test_who_asks_at_the_head_hears_where_that_is():
    giver = source()
    (chunk,) = sent(giver.receive("n1", FetchLog(group="a", configuration=CONFIGURATION, position=5)), LogChunk)
    assert (list(chunk.entries), chunk.position, chunk.head) == ([], 5, 5)


@pytest.mark.parametrize(("ahead", "is_close"), [(0, True), (CLOSE, True), (CLOSE + 1, False)])
def test_a_learner_that_is_close_behind_says_so(ahead, is_close):
    host = learner()
    assert host.machine.progress() == {"a": Progress(CONFIGURATION, started=False)}, "it has heard of no log yet"
    host.receive("n1", chunk_of(log_entry(4, envelope_of(0, "a")), head=1 + ahead))
    progress = host.machine.progress()["a"]
    assert progress == Progress(CONFIGURATION, started=False, caught_up=is_close, position=1, head=1 + ahead)


def test_who_is_no_learner_says_nothing():
    assert source().machine.progress() == {}


def test_a_learner_goes_on_after_a_restart_where_it_was():
    giver, host = source(log_chunk=2), learner()
    fetched(giver, host)
    host.restart()
    assert [fetch.position for fetch in sent(host.tick(SILENCE_S), FetchLog)] == [2]
    fetched(giver, host)
    fetched(giver, host)
    assert host.logs["a"].entries == giver.logs["a"].entries


@pytest.mark.parametrize("begins", [0, 2])
def test_a_learner_that_is_not_wanted_any_more_keeps_nothing(begins):
    host = learner()
    fetched(source(begins=begins), host)
    assert [key for key in host.disk if key[:1] in records.OF_GROUPS]
    host.change(edited(LEARNING, "a", learners=""))
    assert [key for key in host.disk if key[:1] in records.OF_GROUPS] == []
    assert "a" not in host.machine.replicas


def test_a_learner_becomes_a_member_with_the_log_that_it_has():
    host = learner()
    fetched(source(), host)
    host.change(next_view(LEARNING, "a", "n1 n2 n6"))
    for name in ("n1", "n2"):
        host.receive(name, HandOver(group="a", configuration=2, clock=20, position=5))
    assert host.replica().is_active
    assert host.next_stamp() == 20


# ---------------------------------------------------------------------------------------------------- not too fast


def test_the_next_piece_waits_as_long_as_the_last_one_may_take():
    giver, host = source(log_chunk=2), learner(copy_bytes_per_s=1000)
    fetch = FetchLog(group="a", configuration=CONFIGURATION)
    (chunk,) = sent(giver.hear("n6", fetch), LogChunk)
    effects = host.receive("n2", chunk)
    assert sent(effects, FetchLog) == []
    (wait_s,) = timers(effects)
    assert wait_s == pytest.approx(chunk.ByteSize() / 1000)
    assert sent(host.tick(wait_s / 2), FetchLog) == [], "nor does silence count while it waits"
    assert timers(host.step(TimerFired, COPY_TIMER, 0)) == [pytest.approx(wait_s / 2)]
    host.now += wait_s / 2
    effects = host.step(TimerFired, COPY_TIMER, 0)
    assert [(to, fetch.position) for to, fetch in sends(effects, FetchLog)] == [(["n2"], 2)]
    assert timers(effects) == [], "nothing more is due"


def test_a_small_piece_is_followed_by_the_next_at_once():
    giver, host = source(log_chunk=2), learner()
    effects = fetched(giver, host)
    assert [fetch.position for fetch in sent(effects, FetchLog)] == [2]
    assert timers(effects) == []


def test_a_copy_of_what_is_left_is_not_faster():
    giver, host = source(7, begins=2, log_chunk=2), learner(copy_bytes_per_s=1000)
    fetched(giver, host)
    for _ in range(2):
        effects = fetched(giver, host)
        assert len(timers(effects)) == 1
        assert sent(effects, FetchLog) == []


def test_a_piece_that_was_due_of_a_group_that_is_gone_is_not_asked_for():
    giver, host = source(log_chunk=2), learner(copy_bytes_per_s=1000)
    (wait_s,) = timers(fetched(giver, host))
    host.change(edited(LEARNING, "a", learners=""))
    host.now += wait_s
    assert host.step(TimerFired, COPY_TIMER, 0) == []


def test_a_piece_that_comes_twice_is_not_followed_by_two():
    giver, host = source(6, begins=1, log_chunk=2), learner()
    fetched(giver, host)
    (chunk,) = sent(giver.hear("n6", FetchLog(group="a", configuration=CONFIGURATION, position=1)), LogChunk)
    asked = [len(sent(host.receive("n2", chunk), FetchLog)) for _ in range(2)]
    assert asked == [1, 0]


# ------------------------------------------------------------------------------------- a log without its beginning


def test_what_is_left_of_a_log_is_copied_as_it_is():
    giver, host = source(5, begins=2), learner()
    effects = fetched(giver, host)
    assert [(e.group, e.position) for e in effects if isinstance(e, ResetLog)] == [("a", 2)]
    effects = fetched(giver, host)
    assert [position for _, position, _ in delivered(effects)] == [2, 3, 4]
    assert host.logs["a"] == giver.logs["a"], "offsets and outcomes and all"
    assert copied_on_disk(host) == 5
    assert host.replica().position == 0, "nothing of it counts as delivered"
    assert not host.machine.progress()["a"].caught_up
    assert host.machine.progress()["a"].position == 5
    assert sends(effects, SnapshotAsk) == [(["n2"], SnapshotAsk(group="a", configuration=CONFIGURATION))]


@pytest.mark.parametrize(("bytes_", "parts"), [(1 << 20, 1), (100, 3), (10, 29)])
def test_the_state_follows_in_parts_and_then_all_is_as_at_the_source(bytes_, parts):
    giver, host = source(5, begins=2, log_chunk_bytes=bytes_), learner()
    assert asked(giver).parts == parts
    copy(giver, host)
    assert host.replica().position == 5
    assert host.logs["a"] == giver.logs["a"]
    assert copied_on_disk(host) is None
    state, expected = (snapshot_of(one, "a", "n1") for one in (host, giver))
    for snapshot in (state, expected):
        for record in snapshot.delivered:
            record.ClearField("rec_ts")
    assert state == expected
    host.restart()
    assert host.replica().position == 5


def test_the_state_is_written_with_the_end_of_the_copy_and_in_one_piece():
    giver, host = source(5, begins=2), learner()
    fetched(giver, host)
    fetched(giver, host)
    effects = host.receive("n2", part_of(snapshot_of(giver, "a", "n6")))
    (persist,) = [effect for effect in effects if isinstance(effect, Persist)]
    assert persist.barrier
    written = {key[:1] for key, value in persist.records if value is not None}
    assert {records.POSITION, records.PRODUCER, records.DONE, records.DELIVERED} <= written
    assert (records.copied("a"), None) in persist.records


def test_a_copy_goes_on_after_a_crash_where_it_was():
    giver, host = source(8, begins=2, log_chunk=2), learner()
    for done in (2, 4, 6):
        fetched(giver, host)
        assert host.replica().copied == done
        host.restart()
        assert (host.replica().copied, host.logs["a"].ends) == (done, done)
    copy(giver, host)
    assert host.replica().position == 8
    assert host.logs["a"] == giver.logs["a"]


def test_after_a_crash_before_the_state_came_it_is_asked_for_anew():
    giver, host = copier()
    host.restart()
    assert [fetch.position for fetch in sent(host.tick(SILENCE_S), FetchLog)] == [5]
    assert sent(fetched(giver, host), SnapshotAsk) == [SnapshotAsk(group="a", configuration=CONFIGURATION)]


def test_a_copy_goes_on_with_another_source():
    one, other, host = source(8, begins=2, log_chunk=2), source(8, begins=1, name="n3"), learner()
    fetched(one, host)
    fetched(one, host)
    copy(other, host)
    assert host.replica().position == 8
    assert host.logs["a"] == one.logs["a"]


def test_the_state_of_another_source_is_asked_for_from_its_beginning():
    giver, host = copier()
    host.receive("n2", part_of(snapshot_of(giver, "a", "n6"), parts=3))
    effects = host.receive("n3", chunk_of(position=5))
    assert sends(effects, SnapshotAsk) == [(["n3"], SnapshotAsk(group="a", configuration=CONFIGURATION))]
    assert host.receive("n2", part_of(Snapshot(), part=1, parts=3)) == [], "it comes too late"


def test_where_the_log_is_cut_off_while_it_is_copied_it_begins_again_from_there():
    giver, host = source(9, begins=2, log_chunk=2), learner()
    fetched(giver, host)
    fetched(giver, host)
    assert host.replica().copied == 4
    giver.logs["a"].truncate(6)
    effects = fetched(giver, host)
    assert [(e.group, e.position) for e in effects if isinstance(e, ResetLog)] == [("a", 6)]
    assert copied_on_disk(host) == 6
    copy(giver, host)
    assert host.replica().position == 9
    assert host.logs["a"] == giver.logs["a"]


def test_where_it_is_cut_off_before_what_was_copied_the_copy_goes_on():
    giver, host = source(9, begins=2, log_chunk=4), learner()
    fetched(giver, host)
    fetched(giver, host)
    giver.logs["a"].truncate(5)
    assert not [effect for effect in fetched(giver, host) if isinstance(effect, ResetLog)]
    assert (host.logs["a"].begins, host.logs["a"].ends) == (2, 9)


def test_a_log_that_is_cut_off_while_a_learner_delivers_it_is_copied_from_there():
    giver, host = source(9, log_chunk=2), learner()
    fetched(giver, host)
    assert (host.replica().position, host.replica().copied) == (2, None)
    giver.logs["a"].truncate(6)
    copy(giver, host)
    assert host.replica().position == 9
    assert host.logs["a"] == giver.logs["a"]


def test_what_was_delivered_before_the_state_was_made_is_copied_first():
    """The log went on between the last piece and the state: the bodies come first."""
    giver, host = copier()
    giver.order(envelope_of(5, "a", ranges=[range_of(b"p", 6, 1)]), 20)
    effects = host.receive("n2", part_of(snapshot_of(giver, "a", "n6")))
    assert [(to, fetch.position) for to, fetch in sends(effects, FetchLog)] == [(["n2"], 5)]
    assert host.replica().copied == 5
    giver.order(envelope_of(6, "a", ranges=[range_of(b"p", 7, 1)]), 21)
    effects = fetched(giver, host)
    assert (host.replica().position, host.replica().copied) == (6, None), "as far as the state goes"
    fetched(giver, host)
    assert host.logs["a"] == giver.logs["a"], "and what is behind it is delivered as ever"


def test_a_state_whose_log_does_not_come_gives_way_to_that_of_another_source():
    """n2 was one entry further than n3 when it made its state, and was gone before it had sent that entry: whoever
    waited for it, with all that n3 has, waited for ever.
    """
    (giver, host), other = copier(), source(begins=2, name="n3")
    giver.order(envelope_of(5, "a"), 20)
    host.receive("n2", part_of(snapshot_of(giver, "a", "n6")))
    assert (host.replica().position, host.replica().copied) == (0, 5)
    copy(other, host)
    assert (host.replica().position, host.replica().copied) == (5, None)
    assert host.logs["a"] == other.logs["a"]


def test_a_member_takes_an_earlier_state_if_nobody_is_left_who_has_a_later_one():
    """n2 was one entry further than n3, and is gone for good before it gave its state. In the next configuration
    nobody delivers that entry again before the one that has copied it has started.
    """
    giver, other, host = source(6, begins=2), source(5, begins=2, name="n3"), learner()
    fetched(giver, host)
    fetched(giver, host)
    copy(other, host)
    assert (host.replica().position, host.replica().copied) == (0, 6), "a learner waits"
    second = next_view(LEARNING, "a", "n6 n7 n8")
    for one in (other, host):
        one.change(second)
    for _ in range(4):
        copy(other, host)
    assert (host.replica().position, host.replica().copied) == (5, None)
    assert host.logs["a"] == other.logs["a"]
    assert copied_on_disk(host) is None


def test_of_a_group_that_is_gone_no_state_is_left():
    """It would be taken for the state of a group that comes under the same name."""
    _, host = copier()
    assert host.machine.catch_up.snapshots.coming
    host.change(edited(LEARNING, "a", learners=""))
    assert host.machine.catch_up.snapshots.coming == {}


def test_how_far_a_copy_is_gets_written_only_when_it_moves():
    giver, host = copier()
    effects = fetched(giver, host)
    assert [effect for effect in effects if isinstance(effect, Persist)] == []


def test_a_state_from_before_what_was_copied_is_not_taken():
    giver, host = copier()
    old = snapshot_of(giver, "a", "n6")
    giver.order(envelope_of(5, "a"), 20)
    host.receive("n2", chunk_of(giver.logs["a"].entries[-1], position=5))
    assert host.receive("n2", part_of(old)) == []
    assert (host.replica().position, host.replica().copied) == (0, 6)
    copy(giver, host)
    assert host.replica().position == 6


def test_a_state_that_nobody_asked_for_is_not_taken():
    host = learner()
    assert host.receive("n2", part_of(snapshot_of(source(), "a", "n3"))) == []
    assert host.replica().position == 0


def test_parts_count_once_and_in_their_order():
    giver, host = copier()
    data = snapshot_of(giver, "a", "n6").SerializeToString()
    parts = [part_of(Snapshot(), data=data[i * 50 :][:50], part=i, parts=3) for i in range(2)]
    parts.append(part_of(Snapshot(), data=data[100:], part=2, parts=3))
    for part in parts:
        part.checksum = zlib.crc32(data)
    assert host.receive("n2", parts[1]) == []
    for ask, part in ((1, parts[0]), (None, parts[0]), (2, parts[1]), (None, parts[0])):
        asks = sent(host.receive("n2", part), SnapshotAsk)
        assert [(one.token, one.part) for one in asks] == ([] if ask is None else [(7, ask)])
    host.receive("n2", parts[2])
    assert host.replica().position == 5


def test_where_the_source_has_made_another_state_meanwhile_it_begins_again_with_that():
    giver, host = copier()
    host.receive("n2", part_of(snapshot_of(giver, "a", "n6"), parts=3))
    effects = host.receive("n2", part_of(snapshot_of(giver, "a", "n6"), token=8))
    assert host.replica().position == 5
    assert sent(effects, SnapshotAsk) == []
