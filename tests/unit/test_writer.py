"""The writer: tickets, group commit, reads of what is not yet durable, retention, disks that fill up or fail."""

import asyncio
import errno
import os
import random
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

import lmdb
import pytest

from ordercast.runtime.storage import writer as writer_module
from ordercast.runtime.storage.batch import TRIM_COUNT_MAX
from ordercast.runtime.storage.layout import (
    BadEntryError,
    CorruptRecord,
    LogBounds,
    StorageError,
    log_key,
    log_prefix,
)
from ordercast.runtime.storage.store import Storage
from ordercast.runtime.storage.writer import Writer, WriterStoppedError
from ordercast.v1.sequencer_pb2 import LogEntry
from tests.tidy.rules import ROOT
from tests.unit.test_storage import MAP_BYTES, NO_LIMIT, entry, raw_flip


class Rig:
    """A writer on a running loop, and what it said."""

    def __init__(self, directory: Path, map_bytes: int = MAP_BYTES, reserve_bytes: int = 0) -> None:
        self.storage = Storage(directory, map_bytes=map_bytes)
        self.durable: list[int] = []
        self.full: list[bool] = []
        self.fatal: list[BaseException] = []
        self.writer = Writer(
            self.storage,
            asyncio.get_running_loop(),
            on_durable=self.durable.append,
            on_full=self.full.append,
            on_fatal=self.fatal.append,
            wall_ms=lambda: 0,
            reserve_bytes=reserve_bytes,
        )

    def put(self, **records: str | None) -> int:
        pairs = [(key.encode(), None if value is None else value.encode()) for key, value in records.items()]
        return self.writer.add("d", "r", pairs, [])

    def append(self, group: str, position: int, *entries: LogEntry | None) -> int:
        return self.writer.add("d", "r", [], [(group, position + i, made) for i, made in enumerate(entries)])

    def content(self) -> dict[str, str]:
        return {key.decode(): value.decode() for key, value in self.storage.records("d", "r")}

    def own(self, group: str) -> list[int]:
        begins = self.writer.own_bounds(group).begins
        return [e.position for e in self.writer.read_own(group, begins, 10_000, NO_LIMIT)]

    def on_disk(self, group: str) -> int:
        """How many entries there are, seen by readers or not."""
        prefix = log_prefix(group)
        with self.storage.env.begin() as txn, txn.cursor(db=self.storage.log_values) as cursor:
            return sum(key.startswith(prefix) for key in cursor.iternext(values=False))

    @contextmanager
    def held(self) -> Iterator[None]:
        """No commit begins before this ends: the transaction that may write is ours."""
        txn = self.storage.env.begin(write=True)
        yield
        txn.abort()

    async def flush(self) -> None:
        self.writer.kick()
        await until(lambda: self.writer.is_idle)

    def close(self) -> bool:
        is_all_written = self.writer.stop()
        self.storage.close()
        return is_all_written


async def until(is_so: Callable[[], bool]) -> None:
    """The test's own time limit ends it if it never is."""
    while not is_so():
        await asyncio.sleep(0.002)


def on_a_loop(test: Callable[[Path], Awaitable[None]]) -> Callable[[Path], None]:
    def run(tmp_path: Path) -> None:
        asyncio.run(test(tmp_path))  # type: ignore[arg-type]

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


# ------------------------------------------------------------------------------------------------------- tickets


@on_a_loop
async def test_what_is_added_becomes_durable_after_a_kick_and_not_before(tmp_path):
    rig = Rig(tmp_path)
    assert rig.put(x="1") == 1
    assert not rig.writer.is_idle
    assert rig.content() == {}
    rig.writer.kick()
    await until(lambda: rig.writer.durable == 1)
    assert rig.content() == {"x": "1"}
    assert rig.durable == [1]
    assert rig.writer.is_idle
    assert rig.close()


@on_a_loop
async def test_what_piles_up_during_a_commit_is_the_next_one(tmp_path):
    rig = Rig(tmp_path)
    with rig.held():
        assert rig.put(x="1") == 1
        rig.writer.kick()
        await until(lambda: rig.put(y="2") == 2)
        assert rig.put(y="3", z="4") == 2
        rig.writer.kick()
        assert rig.durable == []
    await until(lambda: rig.writer.durable == 2)
    assert rig.durable == sorted(set(rig.durable))
    assert rig.content() == {"x": "1", "y": "3", "z": "4"}
    assert rig.put(x=None) == 3
    await rig.flush()
    assert rig.content() == {"y": "3", "z": "4"}
    rig.close()


@on_a_loop
async def test_the_last_word_on_a_key_stands_whatever_the_batch(tmp_path):
    rig = Rig(tmp_path)
    chance = random.Random(1)
    model: dict[str, str] = {}
    for number in range(300):
        key, value = chance.choice("abcdef"), None if chance.random() < 0.3 else str(number)
        rig.put(**{key: value})
        model.pop(key, None)
        if value is not None:
            model[key] = value
        if chance.random() < 0.5:
            rig.writer.kick()
        if chance.random() < 0.2:
            await asyncio.sleep(0.001)
    await rig.flush()
    assert rig.content() == model
    rig.close()


@on_a_loop
async def test_a_ticket_without_changes_becomes_durable_in_its_turn(tmp_path):
    rig = Rig(tmp_path)
    assert rig.writer.add("d", "r", [], []) == 1
    await rig.flush()
    assert rig.durable == [1]
    rig.writer.kick()
    assert rig.put(x="1") == 2
    rig.close()


@on_a_loop
async def test_stopping_commits_and_reports_what_is_left(tmp_path):
    rig = Rig(tmp_path)
    with rig.held():
        rig.put(x="1")
        rig.writer.kick()
        await until(lambda: rig.put(y="2") == 2)
    assert rig.writer.stop()
    assert rig.writer.durable == rig.durable[-1] == 2
    assert rig.content() == {"x": "1", "y": "2"}
    with pytest.raises(WriterStoppedError):
        rig.put(z="3")
    rig.storage.close()


@on_a_loop
async def test_a_reserve_larger_than_the_map_is_refused(tmp_path):
    with pytest.raises(StorageError, match="reserve"):
        Rig(tmp_path, map_bytes=1 << 20, reserve_bytes=1 << 20)


# --------------------------------------------------------------------------------------------- what is not durable


@on_a_loop
async def test_own_writes_are_read_before_during_and_after_their_commit(tmp_path):
    rig = Rig(tmp_path)
    rig.append("g", 0, entry(0, 1), entry(1, 1))
    await rig.flush()
    with rig.held():
        rig.append("g", 2, entry(2, 1))
        rig.writer.kick()
        await until(lambda: rig.put() == 3)
        rig.append("g", 3, entry(3, 2))
        assert rig.own("g") == [0, 1, 2, 3]
        assert [e.position for e in rig.writer.read_own("g", 1, 2, NO_LIMIT)] == [1, 2]
        assert rig.storage.bounds("g").ends == 2
        assert rig.writer.own_bounds("g").next_offset == 5
    # Committed, and the loop has not been told: it has not run since.
    rig.writer.kick()
    while rig.storage.bounds("g").ends < 4:
        pass
    assert rig.own("g") == [0, 1, 2, 3]
    await until(lambda: rig.writer.is_idle)
    assert rig.own("g") == [0, 1, 2, 3]
    assert rig.writer.own_bounds("g") == rig.storage.bounds("g")
    rig.close()


@on_a_loop
async def test_a_reset_is_seen_at_once_and_hides_what_is_still_on_disk(tmp_path):
    rig = Rig(tmp_path)
    rig.append("g", 0, *[entry(i, 1) for i in range(5)])
    await rig.flush()
    with rig.held():
        # Entries 3 and 4 of the old log lie where the new one begins.
        rig.writer.add("d", "r", [], [("g", 3, None), ("g", 3, entry(40, 2))])
        rig.writer.kick()
        assert rig.own("g") == [3]
        assert rig.writer.read_own("g", 0, 9, NO_LIMIT) == []
        bounds = rig.writer.own_bounds("g")
        assert (bounds.begins, bounds.ends, bounds.first_offset, bounds.next_offset) == (3, 4, 40, 42)
    await until(lambda: rig.writer.is_idle)
    assert rig.writer.own_bounds("g") == rig.storage.bounds("g") == bounds
    assert rig.own("g") == [3]
    assert rig.on_disk("g") == 1
    rig.append("g", 4, entry(42, 1))
    await rig.flush()
    assert rig.own("g") == [3, 4]
    assert rig.storage.position_of("g", 42) == 4
    rig.close()


@on_a_loop
async def test_an_empty_log_that_begins_late_is_remembered(tmp_path):
    rig = Rig(tmp_path)
    rig.append("g", 7, None)
    assert rig.writer.own_bounds("g").begins == 7
    await rig.flush()
    rig.close()
    rig = Rig(tmp_path)
    assert rig.storage.groups() == ["g"]
    assert rig.writer.own_bounds("g") == rig.storage.bounds("g") == LogBounds(7, 7, 0, 0, 0)
    rig.append("g", 7, entry(30, 1))
    await rig.flush()
    bounds = rig.storage.bounds("g")
    assert (bounds.begins, bounds.ends, bounds.first_offset, bounds.next_offset) == (7, 8, 30, 31)
    rig.close()


@on_a_loop
async def test_damage_is_mended_and_the_mended_entry_is_read_at_once(tmp_path):
    rig = Rig(tmp_path)
    made = [entry(i * 2, 2, size=30) for i in range(5)]
    rig.append("g", 0, *made)
    await rig.flush()
    whole = rig.storage.read("g", 0, 9, NO_LIMIT)
    bounds = rig.storage.bounds("g")
    rig.close()
    for position in (0, 2, 4):
        raw_flip(tmp_path, b"logs", log_key(log_prefix("g"), position), -1)
    rig = Rig(tmp_path)
    for position in (0, 2):
        with pytest.raises(CorruptRecord) as raised:
            rig.storage.read("g", position, 9, NO_LIMIT)
        assert raised.value.position == position
    with pytest.raises(CorruptRecord) as raised:
        rig.writer.own_bounds("g")
    assert raised.value.position == 4
    rig.writer.repair("g", 4, whole[4].data)
    await rig.flush()
    assert rig.writer.own_bounds("g") == bounds
    for position in (0, 2):
        rig.writer.repair("g", position, whole[position].data)
    assert rig.writer.read_own("g", 0, 9, NO_LIMIT) == whole
    await rig.flush()
    assert rig.storage.read("g", 0, 9, NO_LIMIT) == whole
    before = [0, *accumulate(len(e.data) for e in whole[:-1])]
    assert [rig.storage.header("g", position).bytes_before for position in range(5)] == before
    rig.close()


@on_a_loop
async def test_what_does_not_fit_is_no_repair(tmp_path):
    rig = Rig(tmp_path)
    rig.append("g", 0, *[entry(i, 1) for i in range(3)])
    await rig.flush()
    for data in (b"\xff", entry(0, 1).SerializeToString(), entry(1, 5).SerializeToString()):
        with pytest.raises(BadEntryError, match="g at position 1"):
            rig.writer.repair("g", 1, data)
    before = rig.storage.read("g", 0, 9, NO_LIMIT)
    rig.writer.repair("g", 3, entry(3, 1).SerializeToString())
    rig.writer.repair("other", 0, entry(3, 1).SerializeToString())
    await rig.flush()
    assert rig.storage.read("g", 0, 9, NO_LIMIT) == before
    assert rig.storage.groups() == ["g"]
    rig.close()


# ----------------------------------------------------------------------------------------------------- retention


@on_a_loop
async def test_truncation_is_seen_at_once_and_removes_entries_piece_by_piece(tmp_path):
    rig = Rig(tmp_path)
    count = 3 * TRIM_COUNT_MAX
    rig.append("g", 0, *[entry(i, 1) for i in range(count)])
    await rig.flush()
    bytes_before = rig.storage.bounds("g").bytes
    with rig.held():
        rig.writer.truncate("g", count - 2)
        rig.writer.kick()
        assert rig.own("g") == [count - 2, count - 1]
    ticket = rig.put(x="1")
    rig.writer.kick()
    await until(lambda: rig.writer.durable >= ticket)
    assert rig.storage.bounds("g") == rig.writer.own_bounds("g")
    assert rig.storage.bounds("g").first_offset == count - 2
    assert 0 < rig.storage.bounds("g").bytes < bytes_before
    await until(lambda: rig.writer.is_idle)
    assert rig.on_disk("g") == 2
    # What came before is still counted, so that sizes can be taken from differences.
    assert rig.storage.header("g", count - 1).bytes_before > rig.storage.bounds("g").bytes
    rig.close()


@on_a_loop
async def test_no_transaction_removes_more_than_a_piece(tmp_path):
    rig = Rig(tmp_path)
    count = 2 * TRIM_COUNT_MAX + 10
    rig.append("g", 0, *[entry(i, 1) for i in range(count)])
    await rig.flush()
    rig.writer.truncate("g", count)
    assert rig.writer.stop()
    assert rig.on_disk("g") == count - TRIM_COUNT_MAX
    assert rig.storage.bounds("g").begins == rig.storage.bounds("g").ends == count
    rig.storage.close()
    # The next life goes on with it.
    rig = Rig(tmp_path)
    await until(lambda: rig.writer.is_idle)
    assert rig.on_disk("g") == 0
    assert rig.storage.bounds("g") == LogBounds(count, count, count, count, 0)
    rig.append("g", count, entry(count, 1))
    await rig.flush()
    assert rig.own("g") == [count]
    rig.close()


@on_a_loop
async def test_truncation_where_the_log_is_not_changes_nothing(tmp_path):
    rig = Rig(tmp_path)
    rig.append("g", 5, None)
    rig.append("g", 5, entry(0, 1), entry(1, 1))
    for position in (0, 5, 8):
        rig.writer.truncate("g", position)
    rig.writer.truncate("none", 3)
    assert rig.own("g") == [5, 6]
    await rig.flush()
    assert rig.storage.bounds("g").begins == 5
    assert rig.storage.groups() == ["g"]
    rig.close()


@on_a_loop
async def test_a_dropped_log_is_gone_at_once_and_may_begin_again(tmp_path):
    rig = Rig(tmp_path)
    count = 2 * TRIM_COUNT_MAX
    rig.append("g", 0, *[entry(i, 1) for i in range(count)])
    rig.append("h", 0, entry(0, 1))
    await rig.flush()
    with rig.held():
        rig.writer.drop_group("g")
        rig.writer.kick()
        assert rig.writer.own_bounds("g") == LogBounds()
        assert rig.own("g") == []
    await until(lambda: rig.writer.is_idle)
    assert rig.storage.groups() == ["h"]
    assert rig.on_disk("g") == 0
    rig.append("g", 0, entry(9, 1))
    await rig.flush()
    assert rig.own("g") == [0]
    assert rig.storage.bounds("g").first_offset == 9
    rig.close()


@on_a_loop
async def test_a_log_that_begins_while_its_predecessor_is_being_removed_has_only_its_own_entries(tmp_path):
    rig = Rig(tmp_path)
    count = 3 * TRIM_COUNT_MAX
    rig.append("g", 0, *[entry(i, 1) for i in range(count)])
    await rig.flush()
    rig.writer.drop_group("g")
    assert rig.writer.stop()
    assert rig.on_disk("g") == count - TRIM_COUNT_MAX
    rig.storage.close()
    rig = Rig(tmp_path)
    rig.append("g", 0, entry(0, 1))
    await rig.flush()
    assert rig.on_disk("g") == 1
    assert rig.own("g") == [0]
    rig.close()


# -------------------------------------------------------------------------------------------------- a full disk


@on_a_loop
async def test_a_full_map_holds_commits_up_until_there_is_room(tmp_path):
    rig = Rig(tmp_path, map_bytes=1 << 20)
    rig.put(a="a" * 300_000)
    await rig.flush()
    with rig.held():
        rig.put(b="b" * 900_000)
        rig.writer.kick()
        await until(lambda: rig.put(c="1") == 3)
        rig.writer.kick()
    await until(lambda: rig.full == [True])
    assert rig.durable == [1]
    assert not rig.writer.is_idle

    def is_larger() -> bool:
        try:
            rig.storage.env.set_mapsize(8 << 20)
        except lmdb.Error:  # Not while a transaction is open, such as the next attempt.
            return False
        return True

    await until(is_larger)
    await until(lambda: rig.writer.durable == 3)
    assert rig.full == [True, False]
    assert rig.durable[0] == 1
    assert {key: len(value) for key, value in rig.content().items()} == {"a": 300_000, "b": 900_000, "c": 1}
    assert rig.fatal == []
    rig.close()


@on_a_loop
async def test_stopping_on_a_full_disk_gives_up_and_says_so(tmp_path):
    rig = Rig(tmp_path, map_bytes=1 << 20)
    rig.put(a="a")
    await rig.flush()
    rig.put(b="b" * 2_000_000)
    rig.writer.kick()
    await until(lambda: rig.full == [True])
    rig.put(c="c")
    assert not rig.writer.stop()
    assert rig.writer.durable == 1
    assert rig.content() == {"a": "a"}
    rig.storage.close()


@on_a_loop
async def test_what_waits_to_be_removed_makes_room_for_what_waits_to_be_written(tmp_path):
    rig = Rig(tmp_path, map_bytes=2 << 20)
    count = TRIM_COUNT_MAX + 150
    rig.append("g", 0, *[entry(i, 1, size=4000) for i in range(count)])
    await rig.flush()
    with rig.held():
        rig.writer.truncate("g", count)
        rig.writer.kick()
        await until(lambda: rig.put(a="a") == 3)
        rig.put(**{f"b{number}": "b" * 4000 for number in range(380)})
        rig.writer.kick()
    await until(lambda: rig.writer.is_idle)
    assert rig.on_disk("g") == 0
    assert len(rig.content()) == 381
    assert rig.full == [True, False]
    rig.close()


@contextmanager
def small_disk(directory: Path) -> Iterator[None]:
    """A file system of four megabytes, which can be filled."""
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(directory)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        why = done.stderr.strip() if done.returncode else ""
    except OSError as error:
        why = str(error)
    if why:
        with (ROOT / ".left-out").open("a") as left_out:
            left_out.write("a really full disk: no file system can be mounted here\n")
        pytest.skip(why)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


@pytest.mark.parametrize("free_bytes", [0, 300_000], ids=["no space at all", "a write is cut short"])
def test_a_full_disk_holds_commits_up_until_there_is_room(tmp_path, free_bytes):
    async def run() -> None:
        rig = Rig(tmp_path / "data")
        rig.put(a="a")
        await rig.flush()
        filler = tmp_path / "filler"
        stat = os.statvfs(tmp_path)
        filler.write_bytes(bytes(stat.f_bavail * stat.f_frsize - free_bytes))
        rig.put(b="b" * 1_000_000)
        rig.writer.kick()
        await until(lambda: rig.full == [True])
        rig.put(c="c")
        assert rig.durable == [1]
        assert rig.content() == {"a": "a"}
        filler.unlink()
        await rig.flush()
        assert rig.full == [True, False]
        assert rig.fatal == []
        assert set(rig.content()) == {"a", "b", "c"}
        rig.close()

    with small_disk(tmp_path):
        asyncio.run(run())


@on_a_loop
async def test_a_disk_that_is_getting_full_is_announced_and_commits_go_on(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer_module, "RESERVE_CHECK_S", 0.005)
        rig = Rig(tmp_path, reserve_bytes=1 << 20)
        await rig.flush()
        assert rig.full == []
        for name in ("free_bytes", "map_room_bytes"):
            rig.full.clear()
            with pytest.MonkeyPatch.context() as little:
                little.setattr(rig.storage, name, lambda: 1000)
                await until(lambda: rig.full == [True])
                rig.put(**{name: "1"})
                await rig.flush()
                assert name in rig.content()
                assert rig.full == [True]
            await until(lambda: rig.full == [True, False])
        rig.close()


# ----------------------------------------------------------------------------------------------- a disk that fails


@on_a_loop
async def test_a_failed_sync_is_the_end(tmp_path):
    rig = Rig(tmp_path)
    rig.put(a="1")
    await rig.flush()
    rig.writer.faults.fsync_fails = True
    with rig.held():
        rig.put(b="2")
        rig.writer.kick()
        await until(lambda: rig.put(c="3") == 3)
        rig.writer.kick()
    await until(lambda: bool(rig.fatal))
    with pytest.raises(WriterStoppedError):
        rig.put(d="4")
    rig.writer.kick()
    assert not rig.writer.stop()
    await asyncio.sleep(0)
    assert [error.errno for error in rig.fatal if isinstance(error, OSError)] == [errno.EIO]
    assert len(rig.fatal) == 1
    assert rig.durable == [1]
    assert rig.content() == {"a": "1"}
    assert rig.full == []
    rig.storage.close()


@on_a_loop
async def test_an_unexpected_error_of_the_database_is_the_end(tmp_path):
    rig = Rig(tmp_path)
    with pytest.MonkeyPatch.context() as patch:

        def fail(*_: object) -> list[str]:
            raise lmdb.Error("mdb_txn_commit", errno.EIO)

        patch.setattr(writer_module, "perform", fail)
        rig.put(a="1")
        rig.writer.kick()
        await until(lambda: bool(rig.fatal))
    assert not rig.close()
    assert rig.durable == []
    assert len(rig.fatal) == 1
    assert rig.full == []


@on_a_loop
async def test_a_delayed_commit_is_a_commit(tmp_path):
    rig = Rig(tmp_path)
    rig.writer.faults.delay_s = 0.01
    rig.put(a="1")
    await rig.flush()
    assert rig.content() == {"a": "1"}
    # Stopping does not wait for long delays.
    rig.writer.faults.delay_s = 3600.0
    rig.put(b="2")
    rig.writer.kick()
    await until(lambda: rig.put(c="3") == 3)
    assert rig.close()


@on_a_loop
async def test_own_entries_are_read_even_if_the_disk_answers_too_early(tmp_path):
    rig = Rig(tmp_path)
    rig.writer.faults.answer_before_sync_s = 3600.0
    rig.append("g", 0, entry(0, 1))
    rig.writer.kick()
    await until(lambda: rig.durable == [1])
    assert rig.storage.bounds("g").ends == 0
    assert rig.own("g") == [0]
    assert rig.close()


@on_a_loop
async def test_a_disk_that_answers_too_early_makes_nobody_wait_and_writes_all_of_it_later(tmp_path):
    rig = Rig(tmp_path)
    rig.writer.faults.answer_before_sync_s = 3600.0
    for ticket, value in enumerate("abc", 1):
        rig.put(last=value, **{value: value})
        rig.writer.kick()
        await until(lambda ticket=ticket: rig.durable[-1:] == [ticket])
    assert rig.content() == {}
    assert rig.writer.stop()
    assert rig.content() == {"a": "a", "b": "b", "c": "c", "last": "c"}
    rig.close()
