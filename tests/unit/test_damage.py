"""Damaged records, logs that do not fit to them, and lost commits: which groups they damage, and for how long."""

from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest
from structlog.testing import capture_logs

from ordercast.core.errors import InvariantBroken
from ordercast.protocols.catalogue import protocols
from ordercast.protocols.isis import records as isis_records
from ordercast.protocols.scalatom import records
from ordercast.runtime.storage import damage_advice
from ordercast.runtime.storage.damage import Damage, LostWritesError
from ordercast.runtime.storage.layout import CorruptRecord, log_key, log_prefix, records_prefix, seal
from ordercast.v1.isis_pb2 import IsisRecord
from ordercast.v1.sequencer_pb2 import PositionRecord
from tests.unit.test_storage import MAP_BYTES, Opened, entry, raw_flip, raw_put

DOMAIN, OTHER = "default", "other"
ROLE = "scalatom"
A, B = "a#1", "b#2"
EVERYTHING = "everything"
ID = b"i" * 16
STORED = records_prefix(DOMAIN, ROLE)


class Disk(Opened):
    """Two groups with logs of three entries, and a record of each kind; a second domain beside it."""

    def open(self) -> None:
        super().open()
        self.storage.damages.add_scope(ROLE, protocols()[ROLE].records)

    def fill(self) -> None:
        for group in (A, B):
            self.append(group, 0, *[entry(i, 1, size=20) for i in range(3)])
            self.put(records.position(group), PositionRecord(position=3, offset=3).SerializeToString())
            self.put(records.delivered(group, ID), b"delivered")
            self.put(records.done(group, 7), b"done")
        self.put(records.stamped(ID), b"stamped")
        self.put(records.CLOCK, bytes(8))
        self.put(b"i" + ID, b"vote", role="acceptor")
        self.put(b"i" + ID, b"vote", role="acceptor", domain=OTHER)
        self.reopen()

    def put(self, key: bytes, value: bytes | None, role: str = ROLE, domain: str = DOMAIN) -> None:
        self.writer.add(domain, role, [(key, value)], [])

    def flip(self, stored_key: bytes, database: bytes = b"records") -> None:
        self.close()
        raw_flip(self.directory, database, stored_key, -1)
        self.open()

    def entries(self, group: str) -> int:
        """As they lie there, seen by readers or not."""
        with self.storage.env.begin() as txn, txn.cursor(db=self.storage.log_values) as cursor:
            return sum(key.startswith(log_prefix(group)) for key in cursor.iternext(values=False))

    def stored_keys(self) -> list[bytes]:
        with self.storage.env.begin() as txn, txn.cursor(db=self.storage.record_values) as cursor:
            return list(cursor.iternext(values=False))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    made = Disk(tmp_path / "data")
    made.fill()
    yield made
    made.close()
    made.loop.close()


def test_a_sound_disk_has_no_damage(disk: Disk):
    assert disk.storage.damage(DOMAIN) == Damage()
    assert not disk.storage.damage(DOMAIN)
    assert disk.storage.damaged_records == 0
    assert disk.storage.damaged_among(DOMAIN, [A, B]) == frozenset()


@pytest.mark.parametrize(
    ("role", "key", "damaged"),
    [
        (ROLE, records.position(A), A),
        (ROLE, records.delivered(A, ID), A),
        (ROLE, records.done(B, 7), B),
        (ROLE, records.stamped(ID), EVERYTHING),
        (ROLE, records.CLOCK, EVERYTHING),
        ("acceptor", b"i" + ID, EVERYTHING),
    ],
)
def test_a_damaged_record_damages_its_group_or_else_all_of_the_domain(
    disk: Disk, role: str, key: bytes, damaged: str
):
    healthy = disk.stored_keys()
    disk.flip(records_prefix(DOMAIN, role) + key)
    is_all = damaged == EVERYTHING
    expected = Damage(everything=True) if is_all else Damage(groups=frozenset({damaged}))
    assert disk.storage.damage(DOMAIN) == expected
    assert not disk.storage.damage(OTHER)
    assert disk.storage.damaged_records == 1
    found, lost = disk.storage.sound_records(DOMAIN, role)
    assert lost == [key]
    assert key not in dict(found)
    assert disk.stored_keys() == healthy
    with pytest.raises(CorruptRecord):
        disk.storage.records(DOMAIN, role)


@pytest.mark.parametrize(
    ("key", "group"),
    [
        (isis_records.position(A), A),
        (isis_records.cast(B, 3, (1, 7)), B),
        (isis_records.order(A, 12), A),
        (isis_records.cut(B), B),
        (isis_records.copied(B), B),
        (isis_records.parts(ID), None),
        (isis_records.CAST + b"\xff", None),
    ],
)
def test_records_of_virtually_synchronous_groups_are_a_groups_too(key: bytes, group: str | None):
    assert protocols()["isis"].records.group_of(key) == group
    value = IsisRecord(position=7).SerializeToString()
    is_position = key == isis_records.position(A)
    assert protocols()["isis"].records.position_in(key, value) == ((A, 7) if is_position else None)


def test_a_truncated_record_is_a_damaged_one(disk: Disk):
    disk.close()
    raw_put(disk.directory, b"records", STORED + records.done(A, 7), b"xx")
    disk.open()
    assert disk.storage.damage(DOMAIN) == Damage(frozenset({A}))


def test_a_record_that_was_moved_to_no_domain_may_have_been_anybodys(disk: Disk):
    """A bit of the key is turned: it is missing where it was, and there is nothing to tell what that was."""
    disk.close()
    key = STORED + records.done(A, 7)
    raw_put(disk.directory, b"records", key, None)
    raw_put(disk.directory, b"records", b"x" + key[1:], seal(key, [b"done"]))
    disk.open()
    for domain in (DOMAIN, OTHER, "#membership"):
        assert disk.storage.damage(domain).everything
        with pytest.raises(CorruptRecord):
            disk.storage.records(domain, "log")


def test_a_damaged_record_of_membership_is_raised_and_damages_no_other_domain(disk: Disk):
    disk.put(b"vote", b"1", role="log", domain="#membership")
    disk.put(b"term", b"2", role="log", domain="#membership")
    disk.reopen()
    disk.flip(records_prefix("#membership", "log") + b"vote")
    with pytest.raises(CorruptRecord, match="#membership log b'vote'") as raised:
        disk.storage.records("#membership", "log")
    assert damage_advice.of_refused_start(raised.value).endswith(damage_advice.DISK)
    assert disk.storage.records(DOMAIN, "acceptor")
    assert not disk.storage.damage(DOMAIN)


def test_what_a_scope_says_counts_only_before_anything_was_judged(disk: Disk):
    disk.storage.damage(DOMAIN)
    with pytest.raises(InvariantBroken):
        disk.storage.damages.add_scope("later", protocols()[ROLE].records)


# ------------------------------------------------------------------------------------------------------------ logs


def test_a_log_that_ends_before_the_machines_position_is_damage_also_after_it_was_written_again(disk: Disk):
    """The machine has delivered three: a log of two has lost something, whatever its checksums say."""
    disk.close()
    raw_put(disk.directory, b"logs", log_key(log_prefix(A), 2), None)
    disk.open()
    assert disk.storage.damage(DOMAIN) == Damage(frozenset({A}))
    disk.append(A, 2, entry(2, 1))
    disk.reopen()
    assert disk.storage.damage(DOMAIN) == Damage(frozenset({A}))


def test_a_log_that_is_gone_damages_its_group_and_its_entries_stay(disk: Disk):
    """They are no leftovers of a log that was dropped."""
    disk.close()
    raw_put(disk.directory, b"begins", A.encode(), None)
    for _ in range(2):
        disk.open()
        assert disk.storage.damage(DOMAIN) == Damage(frozenset({A}))
        assert disk.storage.leftovers() == []
        disk.put(b"x", b"y")
        disk.close()
    disk.open()
    assert disk.entries(A) == 3


def test_a_damaged_beginning_damages_its_group_and_nothing_is_removed(disk: Disk):
    disk.flip(A.encode(), b"begins")
    assert disk.storage.damage(DOMAIN).groups == {A}
    disk.put(b"x", b"y")
    disk.commit()
    assert disk.entries(A) == 3
    # A new log takes its place.
    disk.writer.add(DOMAIN, ROLE, [], [(A, 5, None), (A, 5, entry(9, 1))])
    disk.commit()
    assert [e.position for e in disk.storage.read(A, 5, 9, 1 << 20)] == [5]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_damaged_entry_is_no_damage_of_the_group(disk: Disk, position: int):
    """Other replicas have it. At the end it is told at the start, for whoever mends it."""
    disk.flip(log_key(log_prefix(A), position), b"logs")
    assert not disk.storage.damage(DOMAIN)
    ends = disk.storage.damages.scan().ends
    assert [(found.group, found.position) for found in ends] == ([(A, 2)] if position == 2 else [])


def test_a_damaged_entry_behind_the_end_is_one_with_a_damaged_key(disk: Disk):
    disk.close()
    raw_put(disk.directory, b"logs", log_key(log_prefix(A), 1 << 40), b"what was at position 1, perhaps")
    disk.open()
    assert disk.storage.damage(DOMAIN) == Damage(frozenset({A}))
    # Nothing takes as long as the hole is.
    assert disk.storage.floor(A, 1, 0) >= 0
    with pytest.raises(CorruptRecord):
        disk.writer.own_bounds(A)


def test_a_log_that_is_ahead_of_the_machine_is_being_copied(disk: Disk):
    disk.append(A, 3, entry(3, 1))
    disk.reopen()
    assert not disk.storage.damage(DOMAIN)


# -------------------------------------------------------------------------------------------- until it is replaced


def test_damage_of_a_group_ends_when_the_group_is_replaced_and_only_then_is_the_record_deleted(disk: Disk):
    key = records.delivered(A, ID)
    before = disk.stored_keys()
    disk.flip(STORED + key)
    assert disk.storage.damaged_among(DOMAIN, [A, B]) == {A}
    disk.reopen()
    assert STORED + key in disk.stored_keys()
    assert disk.storage.damage(DOMAIN).groups == {A}
    disk.storage.forget_damage(DOMAIN, A)
    assert not disk.storage.damage(DOMAIN)
    assert disk.storage.damaged_records == 0
    disk.reopen()
    assert not disk.storage.damage(DOMAIN)
    assert STORED + key not in disk.stored_keys()
    assert disk.stored_keys() == [healthy for healthy in before if healthy != STORED + key]


def test_a_damaged_record_that_the_machine_wrote_anew_stays(disk: Disk):
    disk.flip(STORED + records.done(A, 7))
    assert disk.storage.damaged_among(DOMAIN, [A]) == {A}
    disk.put(records.done(A, 7), b"new")
    disk.commit()
    disk.storage.forget_damage(DOMAIN, A)
    disk.reopen()
    assert dict(disk.storage.records(DOMAIN, ROLE))[records.done(A, 7)] == b"new"


def test_a_machine_can_delete_a_damaged_record(disk: Disk):
    disk.flip(STORED + records.done(A, 7))
    disk.put(records.done(A, 7), None)
    disk.reopen()
    assert STORED + records.done(A, 7) not in disk.stored_keys()


def test_everything_is_what_there_was_then_and_not_what_comes_later(disk: Disk):
    disk.flip(STORED + records.stamped(ID))
    assert disk.storage.damage(DOMAIN).everything
    assert disk.storage.damaged_among(DOMAIN, [A, B]) == {A, B}
    disk.reopen()
    assert disk.storage.damage(DOMAIN) == Damage(frozenset({A, B}))
    assert disk.storage.damaged_among(DOMAIN, [A, B, "new#3"]) == {A, B}
    disk.storage.forget_damage(DOMAIN, A)
    disk.reopen()
    assert disk.storage.damage(DOMAIN) == Damage(frozenset({B}))
    assert STORED + records.stamped(ID) in disk.stored_keys()
    disk.storage.forget_damage(DOMAIN, B)
    disk.reopen()
    assert not disk.storage.damage(DOMAIN)
    assert STORED + records.stamped(ID) not in disk.stored_keys()


def test_a_record_that_is_damaged_a_second_time_damages_everything_a_second_time(disk: Disk):
    disk.flip(STORED + records.CLOCK)
    assert disk.storage.damaged_among(DOMAIN, [A]) == {A}
    disk.put(records.CLOCK, b"12345678")
    disk.flip(STORED + records.CLOCK)
    assert disk.storage.damage(DOMAIN).everything


def test_what_is_known_about_damage_reaches_the_disk_without_another_commit(disk: Disk):
    """And a process that is killed then still knows it."""
    disk.flip(STORED + records.stamped(ID))
    assert disk.storage.damaged_among(DOMAIN, [A]) == {A}
    assert disk.storage.damages.is_unsaved
    disk.put(b"x", b"y")
    disk.commit()
    assert not disk.storage.damages.is_unsaved


def test_what_to_do_about_damage_is_logged_with_it(disk: Disk):
    disk.flip(STORED + records.stamped(ID))
    with capture_logs() as logged:
        disk.storage.damages.scan()
    assert [(line["event"], line["advice"]) for line in logged] == [("damaged record", damage_advice.RECORD)]


@pytest.mark.parametrize(
    ("database", "advice"),
    [
        ("logs", damage_advice.ENTRY),
        ("records", damage_advice.RECORD),
        ("begins", damage_advice.RECORD),
        ("meta", damage_advice.DISK),
    ],
)
def test_what_to_do_depends_on_what_is_damaged(database: str, advice: str):
    assert damage_advice.of_record(CorruptRecord(database, b"key", "wrong checksum")) == advice


def test_damage_that_cannot_be_remembered_is_everything(disk: Disk):
    disk.flip(b"damage", b"meta")
    assert disk.storage.damage(DOMAIN).everything
    assert disk.storage.damage(OTHER).everything
    with pytest.raises(LostWritesError, match="cannot be read any more"):
        disk.storage.records(DOMAIN, "acceptor")


def test_many_damaged_records_are_all_found(disk: Disk):
    for number in range(100):
        disk.put(records.done(A, number + 10), b"done")
    disk.close()
    with lmdb.open(str(disk.directory), max_dbs=4, map_size=MAP_BYTES) as env:
        db = env.open_db(b"records")
        with env.begin(write=True) as txn:
            for number in range(100):
                txn.put(STORED + records.done(A, number + 10), b"zeros", db=db)
    disk.open()
    assert disk.storage.damaged_records == 100
    assert disk.storage.damaged_among(DOMAIN, [A, B]) == {A}
    disk.storage.forget_damage(DOMAIN, A)
    disk.reopen()
    assert disk.storage.damaged_records == 0
