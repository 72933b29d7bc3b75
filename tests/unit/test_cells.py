"""Groups that share a cell: who is where, what each of them sees, and that all replicas see the same."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.core.cells import (
    Tally,
    cell_of,
    cells_of,
    check_targets,
    groups_within,
    names_group,
    placed,
    put_targets,
    told_cells,
)
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import group_name
from ordercast.core.projection import ends_after, projected, projected_live
from ordercast.core.view import Group
from ordercast.protocols.celllog.group_log import GroupLog
from ordercast.protocols.celllog.idempotence import ProducerTable
from ordercast.protocols.celllog.saved_logs import SavedLogs
from ordercast.protocols.celllog.settings import LogSettings
from ordercast.runtime.storage.group_index import GroupIndex
from ordercast.v1.common_pb2 import Batch, Envelope, Header, Message, ProducerRange
from ordercast.v1.sequencer_pb2 import LogEntry, Snapshot
from tests.unit.driving import destinations, envelope_id
from tests.unit.test_storage import Opened

X, Y, Z = "a/x#1", "a/y#2", "b/z#3"
CELL = Group("a", 1, ("n1", "n2", "n3"), ())
TARGETS = [(X,), (Y,), (X, Y)]


def test_an_address_says_where_a_group_lives_and_what_it_is_called():
    assert (cell_of(X), cell_of("orders#17")) == ("a", "orders#17")
    assert cells_of((X, Y, Z)) == ("a", "b")
    assert (group_name(X), group_name("orders#17")) == ("x", "orders")
    assert (told_cells((X,)), told_cells(("orders#17",))) == (("a",), ())


# ------------------------------------------------------------------------------------------------ what is refused


def header(*targets: tuple[str, ...], cells: tuple[str, ...] = ("a",), ranges: list[ProducerRange]) -> Header:
    made = Header(id=envelope_id(7, 1), destinations=destinations(*cells), ranges=ranges)
    put_targets(made, targets)
    return made


def of(*runs: int, count: int = 2, first: int = 1) -> ProducerRange:
    return ProducerRange(producer=b"p", first_sequence=first, count=count, runs=runs)


def test_an_envelope_that_says_plainly_for_whom_its_messages_are_is_taken():
    check_targets(header(ranges=[of()]))
    check_targets(header((X,), (X, Y), ranges=[of(0, 1, 1, 1), of(count=0)]))
    check_targets(header((X, Z), cells=("a", "b"), ranges=[of(0, 2)]))


@pytest.mark.parametrize(
    "wrong",
    [
        header((X,), ranges=[of()]),
        header(ranges=[of(0, 2)]),
        header((X,), ranges=[of(0, 1)]),
        header((X,), ranges=[of(0, 2, 0, 0)]),
        header((X,), ranges=[of(0, 2, 0)]),
        header((X,), ranges=[of(1, 2)]),
        header((X,), (X,), ranges=[of(0, 1, 1, 1)]),
        header((Y, X), ranges=[of(0, 2)]),
        header((X, X), ranges=[of(0, 2)]),
        header((X,), cells=("a", "b"), ranges=[of(0, 2)]),
        header((X, Z), ranges=[of(0, 2)]),
        header((), ranges=[of(0, 2)]),
    ],
)
def test_an_envelope_that_leaves_it_open_for_whom_its_messages_are_is_refused(wrong: Header):
    with pytest.raises(RemoteProtocolError):
        check_targets(wrong)


def test_offsets_of_other_groups_than_an_envelope_has_are_refused():
    with pytest.raises(RemoteProtocolError):
        Tally.of("a", header((X, Z), cells=("a", "b"), ranges=[of(0, 2)]), [1, 2])


# ------------------------------------------------------------------------------------------------- cell and model


@dataclass
class Model:
    """What users are promised of the cell's groups, kept in the simplest way."""

    logs: dict[str, list[bytes]] = field(default_factory=lambda: {X: [], Y: []})
    last: dict[bytes, int] = field(default_factory=dict)
    #: Where each message is, by producer and sequence.
    places: dict[tuple[bytes, int], dict[str, int]] = field(default_factory=dict)

    def deliver(self, producer: bytes, first: int, sent: list[tuple[str, ...]]) -> None:
        if first > self.last.get(producer, 0) + 1:
            return
        for sequence, groups in enumerate(sent, first):
            if sequence == self.last.get(producer, 0) + 1:
                self.last[producer] = sequence
                self.places[producer, sequence] = {group: len(self.logs[group]) for group in groups}
                for group in groups:
                    self.logs[group].append(payload_of(producer, sequence))


def payload_of(producer: bytes, sequence: int) -> bytes:
    return producer + b"%d" % sequence


def target_of(producer: bytes, sequence: int) -> tuple[str, ...]:
    """Whoever repeats a message sends it to the same groups."""
    return TARGETS[(sequence * 7 + producer[0]) % len(TARGETS)]


def envelope(number: int, batches: list[tuple[bytes, int, int]]) -> Envelope:
    made = header(*TARGETS, ranges=[])
    made.id = envelope_id(7, number)
    messages = []
    for producer, first, count in batches:
        runs: list[int] = []
        for sequence in range(first, first + count):
            runs += [TARGETS.index(target_of(producer, sequence)), 1]
            messages.append(Message(payload=payload_of(producer, sequence)))
        made.ranges.add(producer=producer, first_sequence=first, count=count, runs=runs)
    return Envelope(header=made, body=Batch(messages=messages).SerializeToString())


def append(log: GroupLog, made: Envelope) -> LogEntry:
    key = b"k%08d" % log.position
    entry = LogEntry(order_key=key, envelope=made, first_offset=log.offset, bases=log.bases(made.header))
    log.complete(entry, ("a",), log.position)
    log.position += 1
    return entry


def replica() -> GroupLog:
    return GroupLog(CELL, "n1", LogSettings())


BATCHES = st.lists(
    st.lists(st.tuples(st.sampled_from([b"p", b"q", b"r"]), st.integers(1, 6), st.integers(1, 4)), max_size=3),
    max_size=8,
)


@given(BATCHES)
@settings(deadline=None)
def test_each_group_sees_its_messages_once_and_without_a_gap(batches):
    log, model = replica(), Model()
    found: dict[str, list[bytes]] = {X: [], Y: []}
    for number, batch in enumerate(batches, 1):
        entry = append(log, envelope(number, batch))
        for producer, first, count in batch:
            model.deliver(producer, first, [target_of(producer, first + index) for index in range(count)])
        ends = ends_after("a", entry)
        for group in (X, Y):
            ours = projected("a", group, entry)
            assert ours.first_offset == len(found[group])
            for range_, outcome in zip(ours.envelope.header.ranges, ours.outcomes, strict=True):
                (span,) = outcome.spans
                assert (span.first_sequence, span.count) == (range_.first_sequence, range_.count)
            found[group] += [message.payload for message in Batch.FromString(ours.envelope.body).messages]
            assert ends.get(group, (len(found[group]),) * 2)[1] == len(found[group])
    assert found == model.logs
    assert log.ends == {group: len(there) for group, there in model.logs.items() if there}
    assert log.offset == len(model.places), "a cell counts each message once"


def test_a_refused_row_that_took_offsets_would_be_noticed(monkeypatch):
    """No simulated client sends one: gateways refuse it before."""
    judge = ProducerTable.judge

    def counting(self, range_, groups, sn, order_key, offset, tally):
        outcome = judge(self, range_, groups, sn, order_key, offset, tally)
        if outcome.refusal:
            tally.take(range_, range_.first_sequence, range_.first_sequence + range_.count)
        return outcome

    batches = [[(b"p", 3, 2)], [(b"p", 1, 2)]]
    see = test_each_group_sees_its_messages_once_and_without_a_gap.hypothesis.inner_test
    see(batches)
    monkeypatch.setattr(ProducerTable, "judge", counting)
    with pytest.raises(AssertionError):
        see(batches)


@given(BATCHES)
@settings(deadline=None)
def test_receipts_say_where_messages_are_also_of_those_that_come_again(batches):
    log, model = replica(), Model()
    for number, batch in enumerate(batches, 1):
        entry = append(log, envelope(number, batch))
        for producer, first, count in batch:
            model.deliver(producer, first, [target_of(producer, first + index) for index in range(count)])
        tally = Tally.of("a", entry.envelope.header, entry.bases)
        for range_, outcome in zip(entry.envelope.header.ranges, entry.outcomes, strict=True):
            for place in placed(tally, range_, outcome):
                for index in range(place.messages):
                    there = model.places[range_.producer, place.first_sequence + index]
                    told = zip(TARGETS[place.target], place.offsets or (), strict=True)
                    assert {group: offset + index for group, offset in told} == there


@given(BATCHES, BATCHES)
@settings(deadline=None)
def test_a_replica_goes_on_alike_from_its_disk_from_a_state_and_in_memory(before, after):
    log = replica()
    disk: dict[bytes, bytes] = {}
    for number, batch in enumerate(before, 1):
        append(log, envelope(number, batch))
        for key, value in log.judged_changes():
            if value is None:
                disk.pop(key, None)
            else:
                disk[key] = value
    restarted = replica()
    saved = SavedLogs()
    for key, value in disk.items():
        assert saved.add(key, value)
    saved.restore(restarted)
    restarted.position, restarted.offset = log.position, log.offset
    copied = replica()
    snapshot = Snapshot(group="a")
    log.state().put_into(snapshot)
    stale = dict(copied.take_state(Snapshot.FromString(snapshot.SerializeToString())))
    assert {key: value for key, value in stale.items() if value is not None} == disk
    for number, batch in enumerate(after, 1 + len(before)):
        entries = [append(one, envelope(number, batch)) for one in (log, restarted, copied)]
        assert entries[1] == entries[0] == entries[2]


def test_whoever_forgets_a_log_forgets_where_its_groups_end():
    log = replica()
    append(log, envelope(1, [(b"p", 1, 4)]))
    written = {key for key, value in log.judged_changes() if value is not None}
    assert {key for key, value in log.clear() if value is None} == written
    assert log.ends == {}


def test_live_entries_show_each_group_its_own_messages():
    live = LogEntry(envelope=envelope(1, [(b"p", 1, 6), (b"q", 3, 2)]))
    assert names_group(live.envelope.header, X)
    assert not names_group(live.envelope.header, Z)
    ours = projected_live(X, live)
    wanted = [(b"p", n) for n in range(1, 7)] + [(b"q", n) for n in (3, 4)]
    messages = [message.payload for message in Batch.FromString(ours.envelope.body).messages]
    assert messages == [payload_of(*one) for one in wanted if X in target_of(*one)]
    assert sum(range_.count for range_ in ours.envelope.header.ranges) == len(messages)


# ----------------------------------------------------------------------------------------------------------- index


@pytest.fixture
def opened(tmp_path: Path):
    found = Opened(tmp_path)
    yield found
    found.writer.stop()
    found.storage.close()


def payloads(entries) -> list[bytes]:
    found = [Batch.FromString(LogEntry.FromString(entry.data).envelope.body).messages for entry in entries]
    return [message.payload for messages in found for message in messages]


def write(opened: Opened, log: GroupLog, made: Envelope) -> None:
    position = log.position
    opened.writer.add("d", "r", [], [("a", position, append(log, made))])


def test_a_group_is_read_from_its_cells_log_by_offset(opened: Opened):
    log, model = replica(), Model()
    for number in range(1, 8):
        batch = [(b"p", 1 + 2 * (number - 1), 2), (b"q", number, 1)]
        opened.wall = number * 1000
        write(opened, log, envelope(number, batch))
        for producer, first, count in batch:
            model.deliver(producer, first, [target_of(producer, first + index) for index in range(count)])
    opened.commit()
    index = GroupIndex(opened.storage, lambda address: log.ends.get(address, 0))
    for group in (X, Y):
        wanted = model.logs[group]
        bounds = index.bounds(group)
        assert (bounds.first_offset, bounds.next_offset) == (0, len(wanted))
        for offset in range(len(wanted)):
            found = index.read(group, offset, 1000, 1 << 20)
            assert found[0].first_offset <= offset < found[0].next_offset
            assert payloads(found) == wanted[found[0].first_offset :]
        assert len(index.read(group, 0, 2, 1 << 20)) == 2
        assert len(index.read(group, 0, 100, 1)) == 1, "one at least"
        assert index.read(group, len(wanted), 10, 1 << 20) == []
        assert index.offset_stored_at(group, 8000) == len(wanted)
        assert index.offset_stored_at(group, 0) == 0


def test_a_group_without_entries_in_the_log_ends_where_the_machine_says(opened: Opened):
    log = replica()
    opened.writer.add("d", "r", [], [("a", 7, None)])  # A copy of a log whose beginning is gone.
    log.position = 7
    write(opened, log, envelope(1, [(b"q", 1, 1)]))
    opened.commit()
    (there,) = target_of(b"q", 1)
    other = Y if there == X else X
    index = GroupIndex(opened.storage, lambda address: 5 if address == other else 1)
    assert (index.bounds(other).first_offset, index.bounds(other).next_offset) == (5, 5)
    assert (index.bounds(there).first_offset, index.bounds(there).next_offset) == (0, 1)


def test_what_a_cut_left_behind_in_the_index_is_seen_by_nobody(opened: Opened):
    log = replica()
    for number in range(1, 6):
        write(opened, log, envelope(number, [(b"p", 3 * number - 2, 3)]))
    opened.commit()
    index = GroupIndex(opened.storage, lambda address: log.ends[address])
    before = index.bounds(X)
    opened.writer.truncate("a", 3)
    opened.commit()
    after = index.bounds(X)
    assert before.first_offset == 0 < after.first_offset < after.next_offset == before.next_offset
    for offset in range(after.first_offset):
        assert index.read(X, offset, 10, 1 << 20) == []
    assert index.read(X, after.first_offset, 10, 1 << 20)[0].first_offset == after.first_offset
    opened.writer.drop_group("a")
    opened.commit()
    assert index.read(X, 0, 10, 1 << 20) == []
    opened.commit()
    with opened.storage.reading() as txn:
        assert txn.stat(opened.storage.index)["entries"] == 0


def test_groups_within_an_envelope_are_told_in_one_order():
    made = header((X, Z), (Y, Z), cells=("a", "b"), ranges=[of(0, 1, 1, 1)])
    assert groups_within("a", made) == (X, Y)
    assert groups_within("b", made) == (Z,)
