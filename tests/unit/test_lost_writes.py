"""Commits that were durable and are gone: the database looks sound, and the number beside it tells."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.runtime.storage.commit_mark import MARK_FILE, SLOT_GAP, CommitMark
from ordercast.runtime.storage.damage import LostWritesError
from ordercast.runtime.storage.database_file import DATA_FILE
from ordercast.runtime.storage.store import Storage
from tests.unit.test_storage import MAP_BYTES, Opened

NODE_ID = b"n" * 16


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Opened]:
    made = Opened(tmp_path / "data")
    yield made
    made.close()
    made.loop.close()


def commit(disk: Opened, count: int) -> None:
    for number in range(count):
        disk.writer.add("d", "r", [(b"key", b"%d" % number)], [])
        disk.commit()


def lose_last_commits(disk: Opened, count: int) -> None:
    """The file of the database is what it was before them, as if the device had dropped what it had synced."""
    older = disk.directory.with_name("older.mdb")
    disk.reopen()
    with disk.storage.env.begin() as txn:  # A copy of a file that nobody writes.
        txn.id()
        shutil.copyfile(disk.directory / DATA_FILE, older)
    commit(disk, count)
    disk.close()
    os.replace(older, disk.directory / DATA_FILE)
    disk.open()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_lost_commits_damage_everything_in_every_domain(disk: Opened, count: int):
    commit(disk, 3)
    lose_last_commits(disk, count)
    for domain in ("d", "never-heard-of"):
        assert disk.storage.damage(domain).everything
    with pytest.raises(LostWritesError, match="were durable, and are gone"):
        disk.storage.records("d", "r")
    assert disk.storage.sound_records("d", "r") == ([(b"key", b"2")], [])


def test_lost_commits_are_remembered_when_numbers_are_as_high_again(disk: Opened):
    lose_last_commits(disk, 2)
    commit(disk, 10)
    for _ in range(3):
        disk.reopen()
        assert disk.storage.damage("d").everything


def test_groups_that_were_replaced_after_a_loss_are_sound_and_new_ones_are_too(disk: Opened):
    lose_last_commits(disk, 2)
    assert disk.storage.damaged_among("d", ["a", "b"]) == {"a", "b"}
    disk.reopen()
    assert not disk.storage.damage("d").everything
    assert disk.storage.damage("e").everything
    assert disk.storage.damaged_among("d", ["a", "b", "c"]) == {"a", "b"}
    disk.storage.forget_damage("d", "a")
    disk.storage.forget_damage("d", "b")
    disk.reopen()
    assert not disk.storage.damage("d")
    # And what is lost after that is a new loss.
    lose_last_commits(disk, 1)
    assert disk.storage.damage("d").everything


def test_a_database_that_lost_nothing_is_not_suspected(disk: Opened):
    for _ in range(5):
        commit(disk, 3)
        disk.storage.meta_put(b"something", b"small")
        assert not disk.storage.damage("d")
        disk.reopen()
        assert not disk.storage.damage("d")


def test_a_start_without_a_commit_after_it_is_not_suspected(tmp_path: Path):
    for _ in range(4):
        storage = Storage(tmp_path, map_bytes=MAP_BYTES)
        assert not storage.damage("d")
        storage.close()


def test_a_file_that_is_gone_or_was_never_there_is_no_loss(disk: Opened):
    """A directory of an earlier version has none. What is not known is not claimed."""
    commit(disk, 3)
    disk.close()
    (disk.directory / MARK_FILE).unlink()
    disk.open()
    assert not disk.storage.damage("d")
    lose_last_commits(disk, 1)
    assert disk.storage.damage("d").everything


def test_the_numbers_of_another_disk_say_nothing_about_this_one(disk: Opened):
    disk.close()
    mark = CommitMark(disk.directory)
    mark.write(b"x" * 16, 1_000_000)
    mark.close()
    disk.open()
    assert not disk.storage.damage("d")
    lose_last_commits(disk, 2)
    assert disk.storage.damage("d").everything


# ------------------------------------------------------------------------------------------------------- the file


def test_the_higher_number_counts_and_a_damaged_one_does_not(tmp_path: Path):
    mark = CommitMark(tmp_path)
    assert mark.is_empty()
    assert mark.read(NODE_ID) is None
    for number in (6, 7):
        mark.write(NODE_ID, number)
    assert mark.read(NODE_ID) == 7
    assert mark.read(b"x" * 16) is None
    for place, left in ((SLOT_GAP + 20, 6), (20, None)):
        with (tmp_path / MARK_FILE).open("r+b") as file:
            file.seek(place)
            byte = file.read(1)
            file.seek(place)
            file.write(bytes([byte[0] ^ 1]))
        assert mark.read(NODE_ID) == left
    mark.close()


def test_a_number_is_there_for_a_process_that_was_killed_right_after_its_commit(disk: Opened):
    """Written, though not synced: who opens the file sees it."""
    commit(disk, 2)
    other = CommitMark(disk.directory)
    assert other.read(disk.storage.node_id) == disk.storage.env.info()["last_txnid"]
    other.close()


def test_numbers_that_are_lower_than_before_begin_with_an_empty_file(tmp_path: Path):
    mark = CommitMark(tmp_path)
    mark.write(NODE_ID, 100)
    mark.clear()
    mark.write(NODE_ID, 7)
    mark.sync()
    assert mark.read(NODE_ID) == 7
    mark.close()
