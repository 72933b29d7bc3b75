"""Retention in a cell that groups share: each group keeps what its own limits say, whatever became of the log."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast.core import dropping
from ordercast.core.dropping import check_dropped, dropped_in, without
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import group_name
from ordercast.core.projection import ends_after, projected
from ordercast.protocols.celllog.group_log import GroupLog
from ordercast.runtime.storage.group_index import DamagedRow, GroupIndex, index_prefix
from ordercast.runtime.storage.layout import CorruptRecord
from ordercast.sequencer import shared_retention
from ordercast.sequencer.reindexing import Reindexing
from ordercast.sequencer.shared_retention import SharedRetention
from ordercast.v1.common_pb2 import Batch
from ordercast.v1.membership_pb2 import Group
from ordercast.v1.sequencer_pb2 import LogEntry
from tests.unit.test_cells import X, Y, append, envelope, replica, target_of
from tests.unit.test_storage import NO_LIMIT, Opened, raw_flip, raw_put

CELL = "a"


class Cell:
    """A node with a replica of one cell, in which x and y live; and what each of them was ever sent."""

    def __init__(self, directory: Path) -> None:
        self.disk = Opened(directory)
        self.log: GroupLog = replica()
        self.entries: list[LogEntry] = []
        self.sent: dict[str, list[bytes]] = {X: [], Y: []}
        self.removed: set[str] = set()
        self.groups: dict[str, Group] = {}
        for address in (X, Y):
            id_ = address.partition("/")[2]
            self.groups[id_] = Group(name=group_name(address), id=id_, cell=CELL, domain="d")
        self.number = 0
        self.open()

    def open(self) -> None:
        """What a process has after its start."""
        storage, log = self.disk.storage, self.log
        self.index = GroupIndex(storage, lambda address: log.ends.get(address, 0))
        cell = Group(id=CELL, name=CELL, is_cell=True, replicas=["n1"], domain="d")
        directory = SimpleNamespace(
            cells={CELL: cell},
            limited=self.groups,
            domains={"d": SimpleNamespace(protocol="p")},
            is_gone=self.removed.__contains__,
        )
        machine = SimpleNamespace(replicas={CELL: self})
        self.node = SimpleNamespace(
            name="n1",
            storage=storage,
            writer=self.disk.writer,
            logs=SimpleNamespace(index=self.index),
            directory=directory,
            host=SimpleNamespace(slots={("d", "p"): SimpleNamespace(machine=machine)}),
            clock=SimpleNamespace(wall_ms=lambda: self.disk.wall),
        )
        self.retention = SharedRetention(self.node)  # type: ignore[arg-type]
        self.reindexing = Reindexing(self.node, self._no_copies)  # type: ignore[arg-type]
        self.copied = None

    async def _no_copies(self, damaged: CorruptRecord) -> None:
        raise damaged

    def retained_from(self) -> int:
        return self.log.position

    def slowest(self, wanted: int) -> int:
        return wanted

    def commit(self) -> None:
        """Until nothing is left to be written or trimmed."""
        for _ in range(4):
            self.disk.commit()
            self.node.writer = self.disk.writer

    def publish(self, count: int = 6) -> None:
        self.number += 1
        position = self.log.position
        batch = [(b"p", 1 + (self.number - 1) * count, count)]
        entry = append(self.log, envelope(self.number, batch))
        self.entries.append(entry)
        for group in (X, Y):
            shown = Batch.FromString(projected(CELL, group, entry).envelope.body).messages
            self.sent[group] += [message.payload for message in shown]
        self.disk.writer.add("d", "r", [], [(CELL, position, entry)])

    def look(self) -> None:
        """Retention has its turn."""

        async def once() -> None:
            await self.retention.cut()
            self.commit()
            await self.retention.sweep_what_is_due()

        asyncio.run(once())
        self.commit()

    def crash(self) -> None:
        """What was not committed is lost, as is all that was in memory."""
        self.disk.reopen()
        self.open()

    def read(self, group: str, offset: int | None = None) -> list[bytes]:
        at = self.index.bounds(group).first_offset if offset is None else offset
        found: list[bytes] = []
        while entries := self.index.read(group, at, 3, NO_LIMIT):
            for entry in entries:
                messages = Batch.FromString(LogEntry.FromString(entry.data).envelope.body).messages
                found += [message.payload for message in messages]
            at = entries[-1].next_offset
        return found

    def check(self, group: str) -> None:
        """From where it begins on it has all that it was sent, and nothing else."""
        bounds = self.index.bounds(group)
        assert bounds.next_offset == len(self.sent[group])
        assert self.read(group) == self.sent[group][bounds.first_offset :]

    def keep(self, group: str, *, bytes_: int = 0, age_s: int = 0) -> None:
        limited = self.groups[group.partition("/")[2]]
        limited.retention.bytes, limited.retention.age_s = bytes_, age_s

    def rows(self) -> int:
        with self.disk.storage.reading() as txn:
            found: int = txn.stat(self.disk.storage.index)["entries"]
        return found

    def size(self) -> int:
        entries = self.disk.storage.read(CELL, self.disk.storage.positions(CELL).start, 10_000, NO_LIMIT)
        return sum(len(entry.data) for entry in entries)


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cell]:
    for name, value in (("SLACK_BYTES", 1), ("PAUSE_S", 0.0), ("REST", 0), ("ENTRIES_AT_ONCE", 3)):
        monkeypatch.setattr(shared_retention, name, value)
    made = Cell(tmp_path / "data")
    yield made
    made.disk.close()
    made.disk.loop.close()


def test_each_group_begins_where_its_own_limit_says(cell: Cell):
    cell.keep(X, bytes_=600)
    for _ in range(20):
        cell.publish()
    cell.commit()
    cell.look()
    for group in (X, Y):
        cell.check(group)
    assert 0 < cell.index.bounds(X).first_offset < cell.index.bounds(X).next_offset
    assert cell.index.bounds(Y).first_offset == 0
    assert cell.disk.storage.positions(CELL).start == 0, "y needs all of it"


def test_what_is_older_goes_by_group(cell: Cell):
    cell.keep(Y, age_s=5)
    for second in range(10):
        cell.disk.wall = second * 1000
        cell.publish()
    cell.commit()
    before = cell.index.offset_stored_at(Y, 4000)
    cell.look()
    assert cell.index.bounds(Y).first_offset == before > 0
    assert cell.index.bounds(X).first_offset == 0
    cell.check(X)
    cell.check(Y)


def test_an_entry_goes_when_no_group_needs_it(cell: Cell):
    cell.keep(X, bytes_=600)
    cell.keep(Y, bytes_=600)
    for _ in range(20):
        cell.publish()
    cell.commit()
    cell.look()
    assert cell.disk.storage.positions(CELL).start > 5
    for group in (X, Y):
        cell.check(group)
        assert cell.index.bounds(group).first_offset > 0
        assert cell.read(group, cell.index.bounds(group).first_offset - 1) == []


def test_a_group_that_keeps_all_does_not_keep_the_others_messages(cell: Cell, monkeypatch: pytest.MonkeyPatch):
    """The log is written again without them: what is left is about what is kept, not what was ever sent."""
    monkeypatch.setattr("tests.unit.test_cells.TARGETS", [(X,), (X,), (Y,)])
    cell.keep(X, bytes_=1)
    for _ in range(60):
        cell.publish(30)
    cell.commit()
    before = cell.size()
    bodies = sum(len(entry.envelope.body) for entry in cell.entries)
    cell.look()
    saved = before - cell.size()
    assert saved > bodies / 3
    for group in (X, Y):
        cell.check(group)
    cell.crash()
    for group in (X, Y):
        cell.check(group)


def test_the_next_sweep_waits_until_a_quarter_is_useless(cell: Cell):
    for _ in range(20):
        cell.publish()
    cell.commit()
    cell.look()  # The first one, after the start.
    swept: list[str] = []

    async def sweep(of: Group) -> None:
        swept.append(of.id)

    cell.retention.sweep = sweep  # type: ignore[method-assign,assignment]
    cell.keep(X, bytes_=sum(row.bytes for row in cell.index.rows_from(X, 0, 100)) - 10)
    cell.look()
    assert not swept
    cell.keep(X, bytes_=1)
    cell.look()
    assert swept == [CELL]


def test_a_group_that_is_gone_leaves_nothing_but_what_others_need(cell: Cell):
    for _ in range(20):
        cell.publish()
    cell.commit()
    rows = cell.rows()
    del cell.groups[Y.partition("/")[2]]
    cell.removed.add(Y)
    cell.log.ends.pop(Y)
    cell.retention.removed({"d": [Y]})
    cell.commit()
    assert 0 < cell.rows() < rows
    assert cell.index.addresses(CELL, "", 10) == [X]
    cell.look()
    cell.check(X)


def test_rows_of_a_group_that_went_while_the_process_was_away_go_after_the_start(cell: Cell):
    for _ in range(20):
        cell.publish()
    cell.commit()
    cell.removed.add(Y)
    cell.crash()
    cell.look()
    assert cell.index.addresses(CELL, "", 10) == [X]
    cell.check(X)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_in_whatever_order_groups_have_what_they_keep(cell: Cell, seed: int):
    """Crashes come at every point; damage is mended whenever somebody comes upon it."""
    chance = random.Random(seed)
    firsts = {X: 0, Y: 0}
    for _ in range(60):
        match chance.randrange(7):
            case 0:
                cell.keep(chance.choice([X, Y]), bytes_=chance.choice([0, 1, 300, 1000]))
            case 1:
                cell.look()
            case 2:
                asyncio.run(cell.retention.cut())
            case 3:
                cell.crash()
            case 4:
                asyncio.run(cell.retention.sweep_what_is_due())
            case _:
                cell.publish()
        if chance.random() < 0.5:
            cell.commit()
            for group in (X, Y):
                cell.check(group)
                first = cell.index.bounds(group).first_offset
                assert first >= firsts[group], "a beginning never goes back"
                firsts[group] = first


@pytest.mark.parametrize(
    "broken",
    [
        lambda cell, entry, groups: without(cell, entry, [X, Y]),  # A live row is dropped.
        lambda cell, entry, groups: _forgets_who_dropped(without(cell, entry, groups)),
    ],
)
def test_a_compaction_that_drops_what_is_needed_is_found(cell: Cell, monkeypatch: pytest.MonkeyPatch, broken):
    monkeypatch.setattr(shared_retention, "without", broken)
    monkeypatch.setattr(shared_retention, "is_worth_it", lambda entry, smaller: True)
    cell.keep(X, bytes_=1)
    for _ in range(10):
        cell.publish()
    cell.commit()
    cell.look()
    other = Cell(cell.disk.directory.parent / "copy")
    copy_to(other, cell)
    other.sent = cell.sent

    def check_both() -> None:
        cell.check(Y)
        other.check(X)

    with pytest.raises(AssertionError):
        check_both()
    other.disk.close()
    other.disk.loop.close()


def _forgets_who_dropped(entry: LogEntry) -> LogEntry:
    del entry.dropped[:]
    return entry


def copy_to(other: Cell, cell: Cell) -> None:
    """As whoever copies a log whose beginning is gone takes it."""
    there = cell.disk.storage.positions(CELL)
    log = [(CELL, there.start, None)]
    for stored in cell.disk.storage.read(CELL, there.start, 10_000, NO_LIMIT):
        log.append((CELL, stored.position, LogEntry.FromString(stored.data)))
    other.disk.writer.add("d", "r", [], log)  # type: ignore[arg-type]
    other.log.ends = dict(cell.log.ends)
    other.log.position = there.stop
    other.commit()


@pytest.mark.parametrize("limits", [(1, 0), (1, 600), (600, 1), (600, 2000), (0, 1)])
def test_a_copy_of_the_log_has_what_its_source_needs(cell: Cell, limits: tuple[int, int], tmp_path: Path):
    """Each group begins where it begins there, or before that; and goes on where it ended."""
    for group, limit in zip((X, Y), limits, strict=True):
        cell.keep(group, bytes_=limit)
    for _ in range(20):
        cell.publish()
    cell.commit()
    cell.look()
    other = Cell(tmp_path / "copy")
    copy_to(other, cell)
    other.sent = cell.sent
    for group in (X, Y):
        other.check(group)
        assert other.index.bounds(group).first_offset <= cell.index.bounds(group).first_offset
    other.disk.close()
    other.disk.loop.close()


# ---------------------------------------------------------------------------------------------------------- damage


def mended(cell: Cell, group: str) -> list[bytes]:
    """All that is read, mending what is come upon."""
    for _ in range(20):
        try:
            cell.check(group)
            return cell.read(group)
        except DamagedRow as damaged:
            found = damaged
        mend(cell, found)
    raise AssertionError("it is not mended")


class Committing:
    """A writer that writes at once."""

    durable = 0

    def __init__(self, cell: Cell) -> None:
        self.cell = cell

    def mend_index(self, *mended: Any) -> int:
        self.cell.disk.writer.mend_index(*mended)
        self.cell.commit()
        return 0

    def kick(self) -> None:
        pass


def mend(cell: Cell, damaged: DamagedRow) -> None:
    cell.node.writer = Committing(cell)
    asyncio.run(cell.reindexing.mend(damaged))


def keys_of(cell: Cell, group: str) -> list[bytes]:
    with cell.disk.storage.reading() as txn, txn.cursor(db=cell.disk.storage.index) as cursor:
        return [bytes(key) for key in cursor.iternext(values=False) if bytes(key).startswith(index_prefix(group))]


@pytest.mark.parametrize("which", [0, 1, 7, -1])
@pytest.mark.parametrize("how", ["flipped", "lost", "all lost"])
def test_a_row_that_is_damaged_or_lost_is_made_anew_from_the_log(cell: Cell, which: int, how: str):
    for _ in range(15):
        cell.publish()
    cell.commit()
    keys = keys_of(cell, X)
    cell.disk.close()
    if how == "flipped":
        raw_flip(cell.disk.directory, b"index", keys[which], 5)
    else:
        for key in keys if how == "all lost" else [keys[which]]:
            raw_put(cell.disk.directory, b"index", key, None)
    cell.disk.open()
    cell.open()
    with pytest.raises(DamagedRow):
        cell.check(X)
    assert mended(cell, X) == cell.sent[X]
    assert keys_of(cell, X) == keys
    cell.check(Y)


def test_a_beginning_that_is_damaged_is_where_the_first_row_is(cell: Cell):
    cell.keep(X, bytes_=600)
    for _ in range(15):
        cell.publish()
    cell.commit()
    cell.look()
    first = cell.index.bounds(X).first_offset
    (begin, *_) = keys_of(cell, X)
    assert begin == index_prefix(X)
    cell.disk.close()
    raw_flip(cell.disk.directory, b"index", begin, 5)
    cell.disk.open()
    cell.open()
    assert first > 0
    mended(cell, X)
    assert cell.index.bounds(X).first_offset <= first


# --------------------------------------------------------------------------------------------------------- entries


def test_what_others_need_is_as_it_was_and_the_log_leads_to_the_same():
    log = replica()
    entry = append(log, envelope(1, [(b"p", 1, 9), (b"q", 1, 3)]))
    without_x = without(CELL, entry, [X])
    assert projected(CELL, Y, without_x) == projected(CELL, Y, entry)
    assert dropped_in(CELL, without_x) == (X,)
    assert ends_after(CELL, without_x) == ends_after(CELL, entry)
    assert len(without_x.envelope.body) < len(entry.envelope.body)
    nothing = without(CELL, without_x, [Y])
    assert dropped_in(CELL, nothing) == (X, Y)
    assert not any(message.payload for message in Batch.FromString(nothing.envelope.body).messages)
    again = replica()
    assert again.judge(nothing.envelope.header, (CELL,), 0, b"k00000000") == list(entry.outcomes)
    assert again.ends == log.ends


@pytest.mark.parametrize("dropped", [[2], [1, 0], [0, 0], [7]])
def test_an_entry_that_names_no_group_of_its_own_as_one_that_dropped_it_is_refused(dropped: list[int]):
    entry = append(replica(), envelope(1, [(b"p", 1, 9)]))
    check_dropped(CELL, dropping.without(CELL, entry, [X, Y]))
    entry.dropped[:] = dropped
    with pytest.raises(RemoteProtocolError):
        check_dropped(CELL, entry)


def test_a_message_for_two_groups_stays_until_both_have_dropped_it():
    entry = append(replica(), envelope(1, [(b"p", 1, 9)]))
    both = [sequence for sequence in range(1, 10) if target_of(b"p", sequence) == (X, Y)]
    kept = Batch.FromString(without(CELL, entry, [X]).envelope.body).messages
    assert both
    assert all(kept[sequence - 1].payload for sequence in both)
