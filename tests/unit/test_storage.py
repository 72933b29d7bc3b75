"""The storage of a process, as it is read: opening, checksums, logs, offsets and retention."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.core.errors import InvariantBroken
from ordercast.runtime.storage.layout import (
    BadNameError,
    CorruptRecord,
    LogBounds,
    StorageError,
    StorageInUseError,
    UnknownFormatError,
    log_key,
    log_prefix,
    records_prefix,
    seal,
)
from ordercast.runtime.storage.store import LOCK_FILE, Storage
from ordercast.runtime.storage.writer import Writer
from ordercast.v1.common_pb2 import RangeOutcome, Span
from ordercast.v1.sequencer_pb2 import LogEntry

MAP_BYTES = 64 << 20
NO_LIMIT = 1 << 30


def entry(first_offset: int, count: int, size: int = 0) -> LogEntry:
    """With `count` new messages, and a duplicate, which takes no offset."""
    made = LogEntry(first_offset=first_offset, order_key=bytes(size))
    spans = [Span(count=count, first_offset=first_offset), Span(count=7, duplicate=True)]
    made.outcomes.append(RangeOutcome(spans=spans))
    return made


class Opened:
    """A storage with a writer whose loop nobody runs: stop() reports all that was committed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.loop = asyncio.new_event_loop()
        self.wall = 0
        self.open()

    def open(self) -> None:
        self.storage = Storage(self.directory, map_bytes=MAP_BYTES)
        self._start_writer()

    def _start_writer(self) -> None:
        self.writer = Writer(
            self.storage,
            self.loop,
            on_durable=lambda ticket: None,
            on_full=lambda is_full: None,
            on_fatal=lambda error: None,
            wall_ms=lambda: self.wall,
            reserve_bytes=0,
        )

    def commit(self) -> None:
        assert self.writer.stop()
        self._start_writer()

    def append(self, group: str, position: int, *entries: LogEntry) -> None:
        log = [(group, position + index, made) for index, made in enumerate(entries)]
        self.writer.add("domain", "role", [], log)

    def close(self) -> None:
        self.writer.stop()
        self.storage.close()

    def reopen(self) -> None:
        self.close()
        self.open()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    made = Opened(tmp_path / "data")
    yield made
    made.close()
    made.loop.close()


def raw_put(directory: Path, database: bytes, key: bytes, value: bytes | None) -> None:
    """Behind the storage's back, while it is closed."""
    env = lmdb.open(str(directory), max_dbs=4, map_size=MAP_BYTES)
    db = env.open_db(database)
    with env.begin(write=True) as txn:
        if value is None:
            txn.delete(key, db=db)
        else:
            txn.put(key, value, db=db)
    env.close()


def raw_flip(directory: Path, database: bytes, key: bytes, index: int) -> None:
    env = lmdb.open(str(directory), max_dbs=4, map_size=MAP_BYTES)
    db = env.open_db(database)
    with env.begin(write=True) as txn:
        value = bytearray(txn.get(key, db=db) or b"")
        value[index] ^= 1
        txn.put(key, bytes(value), db=db)
    env.close()


# ------------------------------------------------------------------------------------------------------- opening


def test_a_directory_keeps_its_node_id_and_counts_its_boots(tmp_path: Path):
    seen = []
    for _ in range(3):
        storage = Storage(tmp_path / "new" / "data", map_bytes=MAP_BYTES)
        seen.append((storage.node_id, storage.boot))
        storage.close()
    ids, boots = zip(*seen, strict=True)
    assert len(ids[0]) == 16
    assert set(ids) == {ids[0]}
    assert boots == (1, 2, 3)


def test_two_directories_have_different_node_ids(tmp_path: Path):
    one, two = (Storage(tmp_path / name, map_bytes=MAP_BYTES) for name in "ab")
    assert one.node_id != two.node_id
    one.close()
    two.close()


def test_a_second_open_in_the_same_process_is_refused(opened: Opened):
    with pytest.raises(StorageInUseError, match="in use"):
        Storage(opened.directory, map_bytes=MAP_BYTES)


def test_a_second_open_in_another_process_is_refused(opened: Opened):
    code = (
        "import sys; from pathlib import Path\n"
        "from ordercast.runtime.storage.store import Storage, StorageInUseError\n"
        "try: Storage(Path(sys.argv[1]), map_bytes=1 << 26)\n"
        "except StorageInUseError: print('refused')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(opened.directory)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "refused\n"


def test_a_closed_directory_can_be_opened_again(opened: Opened):
    opened.reopen()
    assert opened.storage.boot == 2
    assert (opened.directory / LOCK_FILE).exists()


def test_an_unknown_format_is_refused_and_left_as_it_was(opened: Opened):
    opened.close()
    raw_put(opened.directory, b"meta", b"format", seal(b"format", [b"99"]))
    for _ in range(2):
        with pytest.raises(UnknownFormatError, match="'99'"):
            Storage(opened.directory, map_bytes=MAP_BYTES)
    raw_put(opened.directory, b"meta", b"format", seal(b"format", [b"1"]))
    opened.open()
    assert opened.storage.boot == 2


def test_somebody_elses_database_is_refused(tmp_path: Path):
    raw_put(tmp_path, b"theirs", b"key", b"value")
    with pytest.raises(UnknownFormatError, match="no format"):
        Storage(tmp_path, map_bytes=MAP_BYTES)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path):
    (tmp_path / "data.mdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(StorageError, match=str(tmp_path)):
        Storage(tmp_path, map_bytes=MAP_BYTES)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        Storage(tmp_path / "file" / "data", map_bytes=MAP_BYTES)


def test_small_things_about_the_process_are_kept(opened: Opened):
    assert opened.storage.meta_get(b"cluster_id") is None
    opened.storage.meta_put(b"cluster_id", b"c" * 16)
    opened.reopen()
    assert opened.storage.meta_get(b"cluster_id") == b"c" * 16


def test_what_the_storage_keeps_about_itself_cannot_be_overwritten(opened: Opened):
    with pytest.raises(StorageError, match="own"):
        opened.storage.meta_put(b"node_id", b"x" * 16)


# ------------------------------------------------------------------------------------------------------- records


def test_records_are_kept_by_domain_and_role(opened: Opened):
    opened.writer.add("d", "r", [(b"b", b"2"), (b"a", b"1"), (b"", b"0")], [])
    opened.writer.add("d", "rr", [(b"a", b"3")], [])
    opened.writer.add("dd", "r", [(b"a\0b", b"")], [])
    opened.reopen()
    assert opened.storage.records("d", "r") == [(b"", b"0"), (b"a", b"1"), (b"b", b"2")]
    assert opened.storage.records("d", "rr") == [(b"a", b"3")]
    assert opened.storage.records("dd", "r") == [(b"a\0b", b"")]
    assert opened.storage.records("dd", "rr") == []


@pytest.mark.parametrize(("domain", "role", "key"), [("", "r", b""), ("d\0", "r", b""), ("d", "r", b"k" * 508)])
def test_a_name_that_is_no_key_is_refused(opened: Opened, domain: str, role: str, key: bytes):
    with pytest.raises(BadNameError):
        opened.writer.add(domain, role, [(key, b"")], [])


def test_a_group_that_is_no_key_is_refused(opened: Opened):
    for group in ("", "a\0b", "g" * 503):
        with pytest.raises(BadNameError):
            opened.writer.add("d", "r", [], [(group, 0, LogEntry())])


@pytest.mark.parametrize("index", [0, 3, 4, -1])
def test_a_flipped_bit_in_a_record_is_named(opened: Opened, index: int):
    opened.writer.add("d", "role", [(b"key", b"value"), (b"other", b"value")], [])
    opened.close()
    raw_flip(opened.directory, b"records", records_prefix("d", "role") + b"key", index)
    opened.open()
    with pytest.raises(CorruptRecord, match=r"records: d role b'key': wrong checksum") as raised:
        opened.storage.records("d", "role")
    assert raised.value.database == "records"


def test_a_torn_record_is_named(opened: Opened):
    opened.close()
    raw_put(opened.directory, b"records", records_prefix("d", "role") + b"key", b"abc")
    opened.open()
    with pytest.raises(CorruptRecord, match="key"):
        opened.storage.records("d", "role")


def test_a_record_under_another_key_is_named(opened: Opened):
    prefix = records_prefix("d", "role")
    opened.close()
    raw_put(opened.directory, b"records", prefix + b"there", seal(prefix + b"here", [b"value"]))
    opened.open()
    with pytest.raises(CorruptRecord, match="there"):
        opened.storage.records("d", "role")


# ---------------------------------------------------------------------------------------------------------- logs


def test_a_group_without_a_log_has_no_bounds_and_no_entries(opened: Opened):
    assert opened.storage.groups() == []
    assert opened.storage.bounds("g") == LogBounds(0, 0, 0, 0, 0)
    assert opened.storage.read("g", 0, 10, 1000) == []
    assert opened.storage.position_of("g", 5) == 0
    assert opened.storage.floor("g", 1, 1) == 0
    assert opened.storage.offset_stored_at("g", 5) == 0


def test_entries_are_read_as_they_were_written(opened: Opened):
    made = [entry(0, 2), entry(2, 0), entry(2, 5)]
    opened.append("g", 0, *made)
    opened.append("gg", 0, entry(0, 1))
    opened.reopen()
    found = opened.storage.read("g", 0, 10, 1 << 20)
    assert [LogEntry.FromString(e.data) for e in found] == made
    assert [(e.position, e.first_offset, e.next_offset) for e in found] == [(0, 0, 2), (1, 2, 2), (2, 2, 7)]
    assert opened.storage.groups() == ["g", "gg"]
    size = sum(len(e.data) for e in found)
    assert opened.storage.bounds("g") == LogBounds(0, 3, 0, 7, size)


def test_a_read_stops_at_the_limits_but_not_before_the_first_entry(opened: Opened):
    opened.append("g", 0, *[entry(i, 1, size=100) for i in range(5)])
    opened.commit()
    size = len(opened.storage.read("g", 1, 1, 1)[0].data)
    for bytes_max, count in [(0, 1), (size, 1), (2 * size - 1, 1), (2 * size, 2), (9 * size, 4)]:
        for read in (opened.storage.read, opened.writer.read_own):
            assert [e.position for e in read("g", 1, 9, bytes_max)] == list(range(1, 1 + count))
    assert [e.position for e in opened.storage.read("g", 3, 1, 1 << 20)] == [3]
    assert opened.storage.read("g", 5, 9, 1 << 20) == []


def test_an_entry_that_is_not_at_the_end_breaks_an_invariant(opened: Opened):
    opened.append("g", 0, entry(0, 3))
    for position, first_offset in [(0, 3), (2, 3), (1, 2)]:
        with pytest.raises(InvariantBroken, match="behind 1 with 3"):
            opened.append("g", position, entry(first_offset, 1))


@pytest.mark.parametrize("index", [0, 4, 12, 28, 36, -1])
def test_a_flipped_bit_in_a_log_is_named_with_its_position(opened: Opened, index: int):
    opened.append("group", 0, *[entry(i, 1, size=50) for i in range(4)])
    opened.close()
    raw_flip(opened.directory, b"logs", log_key(log_prefix("group"), 2), index)
    opened.open()
    with pytest.raises(CorruptRecord, match="logs: group at position 2") as raised:
        opened.storage.read("group", 0, 10, 1 << 20)
    assert (raised.value.database, raised.value.group, raised.value.position) == ("logs", "group", 2)
    assert [e.position for e in opened.storage.read("group", 0, 2, 1 << 20)] == [0, 1]
    assert [e.position for e in opened.storage.read("group", 3, 2, 1 << 20)] == [3]


def test_a_hole_in_a_log_is_named(opened: Opened):
    opened.append("group", 0, *[entry(i, 1) for i in range(4)])
    opened.close()
    raw_put(opened.directory, b"logs", log_key(log_prefix("group"), 1), None)
    opened.open()
    for position in (0, 1):
        with pytest.raises(CorruptRecord, match="group at position 1: missing") as raised:
            opened.storage.read("group", position, 10, 1 << 20)
        assert (raised.value.group, raised.value.position) == ("group", 1)


def test_a_damaged_beginning_is_named(opened: Opened):
    opened.append("group", 0, entry(0, 1))
    opened.close()
    raw_flip(opened.directory, b"begins", b"group", 5)
    storage = Storage(opened.directory, map_bytes=MAP_BYTES)
    with pytest.raises(CorruptRecord, match="begins: group") as raised:
        storage.bounds("group")
    assert raised.value.group == "group"
    storage.close()


# ---------------------------------------------------------------------------------- offsets, and retention's floor

COUNTS = st.lists(st.integers(0, 3), max_size=12)


@given(counts=COUNTS, begins=st.integers(0, 5), first=st.integers(0, 9), cut=st.integers(0, 12))
def test_an_offset_is_found_where_a_list_has_it(tmp_path_factory, counts, begins, first, cut):
    opened = Opened(tmp_path_factory.mktemp("offsets"))
    offset, model = first, []
    opened.writer.add("d", "r", [], [("g", begins, None)])
    for index, count in enumerate(counts):
        opened.append("g", begins + index, entry(offset, count))
        model.append((begins + index, offset, offset + count))
        offset += count
    opened.writer.truncate("g", begins + min(cut, len(counts)))
    model = model[cut:]
    opened.commit()
    ends = begins + len(counts)
    for wanted in range(offset + 3):
        behind = [position for position, _, next_offset in model if next_offset > wanted]
        assert opened.storage.position_of("g", wanted) == (behind[0] if behind else ends)
    bounds = opened.storage.bounds("g")
    assert (bounds.begins, bounds.ends) == (begins + min(cut, len(counts)), ends)
    if counts:
        assert (bounds.first_offset, bounds.next_offset) == (model[0][1] if model else offset, offset)
    opened.close()
    opened.loop.close()


@given(
    sizes=st.lists(st.integers(1, 50), max_size=10),
    cut=st.integers(0, 10),
    keep_bytes=st.integers(0, 300),
    keep_after=st.integers(0, 12),
)
def test_retention_keeps_what_neither_limit_drops(tmp_path_factory, sizes, cut, keep_bytes, keep_after):
    opened = Opened(tmp_path_factory.mktemp("floor"))
    for position, size in enumerate(sizes):
        opened.wall = position + 1
        opened.append("g", position, entry(position, 1, size))
    cut = min(cut, len(sizes))
    opened.writer.truncate("g", cut)
    opened.commit()
    kept = {e.position: len(e.data) for e in opened.storage.read("g", cut, 99, 1 << 20)}
    while kept and (
        (keep_bytes and sum(kept.values()) > keep_bytes) or (keep_after and min(kept) + 1 < keep_after)
    ):
        del kept[min(kept)]
    expected = min(kept) if kept else len(sizes)
    assert opened.storage.floor("g", keep_bytes, keep_after) == expected
    opened.close()
    opened.loop.close()


@given(counts=COUNTS, cut=st.integers(0, 12))
def test_a_time_is_found_where_a_list_has_it(tmp_path_factory, counts, cut):
    opened = Opened(tmp_path_factory.mktemp("times"))
    offset, model = 0, []
    for position, count in enumerate(counts):
        opened.wall = 10 * (position // 2 + 1)
        opened.append("g", position, entry(offset, count))
        model.append((opened.wall, offset))
        offset += count
    cut = min(cut, len(counts))
    opened.writer.truncate("g", cut)
    opened.commit()
    for wall in range(10 * len(counts)):
        behind = [first for stored, first in model[cut:] if stored >= wall]
        assert opened.storage.offset_stored_at("g", wall) == (behind[0] if behind else offset)
    opened.close()
    opened.loop.close()


def test_a_clock_that_was_set_back_leaves_several_places_for_a_time(opened: Opened):
    walls = [10, 50, 20, 30, 40]
    for position, opened.wall in enumerate(walls):
        opened.append("g", position, entry(position, 1))
    opened.commit()
    found = opened.storage.offset_stored_at("g", 25)
    assert walls[found - 1] < 25 <= walls[found]
    assert [stored.wall_ms for stored in opened.storage.read("g", 0, 9, 1 << 20)] == walls


def test_room_in_the_map_is_what_was_never_used_and_what_was_freed(opened: Opened):
    rooms = []
    for value in (None, b"b" * 1_000_000, None):
        opened.writer.add("d", "r", [(b"small", b""), (b"big", value)], [])
        opened.commit()
        rooms.append(opened.storage.map_room_bytes())
    assert rooms[0] - 1_100_000 < rooms[1] <= rooms[0] - 1_000_000
    assert rooms[2] == rooms[0]


# ----------------------------------------------------------------------------------- all that a log goes through

OPERATIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 3)),
    st.tuples(st.just("append"), st.integers(0, 3)),
    st.tuples(st.just("reset"), st.integers(0, 8)),
    st.tuples(st.just("truncate"), st.integers(0, 12)),
    st.tuples(st.sampled_from(["drop", "commit", "reopen"]), st.just(0)),
)


@settings(max_examples=60)
@given(operations=st.lists(OPERATIONS, max_size=25))
def test_own_and_stored_logs_are_what_a_list_would_be(tmp_path_factory, operations):
    opened = Opened(tmp_path_factory.mktemp("logs"))
    begins, model, offset = 0, [], 0
    for name, argument in operations:
        match name:
            case "append":
                opened.append("g", begins + len(model), entry(offset, argument))
                model.append((begins + len(model), offset, offset + argument))
                offset += argument
            case "reset":
                opened.writer.add("d", "r", [], [("g", argument, None)])
                begins, model = argument, []
            case "truncate":
                opened.writer.truncate("g", argument)
                if begins < argument <= begins + len(model):
                    begins, model = argument, model[argument - begins :]
            case "drop":
                opened.writer.drop_group("g")
                begins, model = 0, []
            case "commit":
                opened.commit()
            case "reopen":
                opened.reopen()
        own = opened.writer.read_own("g", begins, 99, NO_LIMIT)
        assert [(e.position, e.first_offset, e.next_offset) for e in own] == model
        bounds = opened.writer.own_bounds("g")
        assert (bounds.begins, bounds.ends) == (begins, begins + len(model))
        assert bounds.bytes == sum(len(e.data) for e in own)
        if name in ("commit", "reopen"):
            assert opened.storage.read("g", begins, 99, NO_LIMIT) == own
            assert opened.storage.bounds("g") == bounds
    opened.close()
    opened.loop.close()
