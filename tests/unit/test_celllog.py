"""A group's log, whatever protocol orders it: pieces, who may ask, states in parts, and what is on disk of it."""

from typing import Any

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.core.machine import Receive, Send
from ordercast.core.view import OtherConfiguration, View
from ordercast.protocols.celllog import records, who
from ordercast.protocols.celllog.group_log import GroupLog
from ordercast.protocols.celllog.pieces import as_fit, check_piece, checksum_of
from ordercast.protocols.celllog.saved_logs import SavedLogs
from ordercast.protocols.celllog.settings import LogSettings
from ordercast.protocols.celllog.snapshots import PARTS_MAX, Offer, Snapshots
from ordercast.protocols.celllog.stepping import LogMachine
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.sequencer_pb2 import LogChunk, LogEntry, ProducerRecord, Snapshot, SnapshotAsk, SnapshotPart
from tests.unit.driving import CONFIGURATION, edited, envelope_of, next_view, range_of, view_of

VIEW = view_of({"a": "n1 n2 n3"})
GROUP = View(edited(VIEW, "a", learners="n4", lost="n3")).groups["a"]


def entries(*sizes: int) -> list[LogEntry]:
    return [LogEntry(envelope=Envelope(body=bytes(size))) for size in sizes]


# ---------------------------------------------------------------------------------------------------------- pieces


@pytest.mark.parametrize(("bytes_max", "count"), [(1, 1), (150, 1), (250, 2), (1000, 3)])
def test_a_piece_has_as_many_entries_as_fit_but_one_at_least(bytes_max, count):
    assert len(as_fit(entries(100, 100, 100), bytes_max)) == count


def piece(**fields: Any) -> LogChunk:
    there = entries(1, 2)
    return LogChunk(**{"group": "a", "entries": there, "head": 2, "checksum": checksum_of(there), **fields})


@pytest.mark.parametrize(
    "wrong",
    [
        {"checksum": 1},
        {"begins": 3},
        {"head": CLOCK_MAX + 1},
        {"position": CLOCK_MAX + 1},
    ],
)
def test_a_piece_that_no_log_can_have_is_refused(wrong):
    check_piece(piece(), may_lack_checksum=False)
    with pytest.raises(RemoteProtocolError):
        check_piece(piece(**wrong), may_lack_checksum=True)


def test_a_piece_without_a_checksum_is_taken_only_where_early_versions_may_have_sent_it():
    old = piece()
    old.ClearField("checksum")
    check_piece(old, may_lack_checksum=True)
    with pytest.raises(RemoteProtocolError):
        check_piece(old, may_lack_checksum=False)


# ----------------------------------------------------------------------------------------------------- who may ask


def test_learners_may_ask_and_have_nothing_to_tell():
    who.check_asks(GROUP, "n4")
    who.check_gives(GROUP, "n1")
    for check, source in ((who.check_asks, "n5"), (who.check_gives, "n4")):
        with pytest.raises(OtherConfiguration):
            check(GROUP, source)


def test_members_of_the_configuration_before_have_the_log_until_it_is_over():
    group = View(next_view(VIEW, "a", "n4 n5 n6")).groups["a"]
    who.check_gives(group, "n1")
    assert who.sources(group, "n4") == ["n5", "n6", "n1", "n2", "n3"]


def test_who_lost_its_disk_is_not_asked():
    assert who.sources(GROUP, "n1") == ["n2"]


# ------------------------------------------------------------------------------------------------------------- log


def log(position: int = 0) -> GroupLog:
    found = GroupLog(GROUP, "n1", LogSettings())
    found.position = position
    return found


def test_offsets_move_on_by_what_is_new():
    replica = log()
    header = envelope_of(1, "a", ranges=[range_of(b"p", 1, 3), range_of(b"q", 1, 2)]).header
    replica.judge(header, ("a",), 1, b"k")
    assert replica.offset == 5
    replica.judge(header, ("a",), 2, b"l")
    assert replica.offset == 5, "a repetition has no offsets of its own"


def test_what_is_on_disk_of_producers_is_put_together_again():
    replica = log()
    for sn in range(1, 4):
        replica.judge(envelope_of(sn, "a", ranges=[range_of(b"p", 2 * sn - 1, 2)]).header, ("a",), sn, b"k%d" % sn)
    saved = SavedLogs()
    for key, value in reversed(replica.producers.records()):
        assert saved.add(key, value or b"")
    assert not saved.add(records.copied("a"), b"")
    again = log()
    saved.restore(again)
    assert again.producers.messages() == replica.producers.messages()


def test_a_state_ends_the_copy_and_replaces_what_was_remembered():
    replica = log()
    replica.copied = 9
    replica.judge(envelope_of(1, "a", ranges=[range_of(b"p", 1)]).header, ("a",), 1, b"k")
    state = Snapshot(
        group="a", position=9, offset=7, producers=[ProducerRecord(producer=b"q", epoch=1, groups=["a"])]
    )
    changes = dict(replica.take_state(state))
    assert (replica.copied, replica.position, replica.offset) == (None, 9, 7)
    assert [producer for producer, _ in replica.producers.states] == [b"q"]
    assert changes[records.copied("a")] is None
    assert len([key for key, value in changes.items() if value is None]) == 3, "the mark, p, and its span"


# ---------------------------------------------------------------------------------------------------------- states


class Machine(LogMachine[GroupLog]):
    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(name, LogSettings(**settings), observe=False)
        self.incarnation = 5
        self.view = View(VIEW)
        self.replicas["a"] = GroupLog(self.view.groups["a"], name, self.settings)
        self.states = States(self)


class States(Snapshots[GroupLog]):
    """Of a log of four entries and 1000 producers."""

    taken: Snapshot | None = None

    def offer(self, replica: GroupLog, ask: SnapshotAsk) -> Offer:
        return Offer(4, is_present=True, make=self.make)

    def make(self) -> Snapshot:
        producers = [ProducerRecord(producer=b"%04d" % i, groups=["a"], last_sn=3) for i in range(1000)]
        return Snapshot(group="a", position=4, offset=9, producers=producers)

    def asks_for(self, replica: GroupLog) -> int:
        return CONFIGURATION

    def sn_end(self, snapshot: Snapshot) -> int:
        return snapshot.position

    def came(self, replica: GroupLog, snapshot: Snapshot, source: str) -> None:
        self.taken = snapshot


def exchange(giver: Machine, taker: Machine) -> int:
    """Questions and answers, until the state is there. Returns how many parts it had."""
    taker.states.ask(taker.replicas["a"], giver.process)
    for count in range(PARTS_MAX + 1):
        if taker.states.taken is not None:
            return count
        (ask,) = [effect.message for effect in taker.out if isinstance(effect, Send)]
        giver.then.clear()
        giver.states.on_ask(Receive(0.0, 0.0, taker.process, 1, ask))
        taker.out.clear()
        taker.states.on_part(Receive(0.0, 0.0, giver.process, 1, giver.then[0].message))
    raise AssertionError("a state without an end")


def test_a_state_comes_in_parts_and_as_it_was():
    giver, taker = Machine("n1", log_chunk_bytes=2000), Machine("n2")
    assert exchange(giver, taker) > 2
    assert taker.states.taken == giver.states.make()


def test_parts_are_made_so_large_that_there_are_not_too_many():
    giver, taker = Machine("n1", log_chunk_bytes=1), Machine("n2")
    assert 1 < exchange(giver, taker) <= PARTS_MAX
    assert taker.states.taken == giver.states.make()


def test_nobody_waits_for_more_parts_than_a_state_can_have():
    taker = Machine("n2")
    taker.states.ask(taker.replicas["a"], "n1")
    endless = SnapshotPart(group="a", configuration=CONFIGURATION, token=1, parts=PARTS_MAX + 1, data=b"x")
    with pytest.raises(RemoteProtocolError):
        taker.states.on_part(Receive(0.0, 0.0, "n1", 1, endless))


def test_who_has_no_part_in_the_group_is_neither_answered_nor_believed():
    giver = Machine("n1")
    for message, handle in (
        (SnapshotAsk(group="a", configuration=CONFIGURATION), giver.states.on_ask),
        (SnapshotPart(group="a", configuration=CONFIGURATION), giver.states.on_part),
    ):
        with pytest.raises(OtherConfiguration):
            handle(Receive(0.0, 0.0, "n9", 1, message))
