"""Tables as files: which of them count, and which are deleted."""

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.analytics.needed import need_packages

need_packages()

from ordercast.analytics.retention import forget  # noqa: E402
from ordercast.analytics.tables import Tables, batch_files, batches  # noqa: E402


def put(tables: Tables, name: str, day: str, file: str, value: int) -> Path:
    folder = tables.path(name) / f"date={day}"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"value": [value]}), folder / file)
    return folder / file


def note(tables: Tables, name: str, batch: str, *files: Path) -> None:
    """As Spark does it: a version, and then a line for each file; the folder may have been elsewhere."""
    log = tables.path(name) / "_spark_metadata"
    log.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"path": f"file:///elsewhere/{'/'.join(path.parts[-2:])}", "action": "add"}) for path in files
    ]
    (log / batch).write_text("\n".join(["v1", *lines]))


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


def test_files_that_no_batch_has_committed_do_not_count(tables: Tables):
    note(tables, "lag", "0", put(tables, "lag", "2026-01-01", "a.parquet", 1))
    note(tables, "lag", "1", put(tables, "lag", "2026-01-02", "b.parquet", 2))
    put(tables, "lag", "2026-01-02", "left-over.parquet", 3)
    assert tables.read("lag").column("value").to_pylist() == [1, 2]
    assert sorted(batches(tables.path("lag"))) == [0, 1]
    assert [path.name for path in batch_files(tables.path("lag"), 1)] == ["b.parquet"]
    assert batch_files(tables.path("lag"), 7) == []


def test_a_compact_note_stands_for_all_before_it(tables: Tables):
    files = [put(tables, "lag", "2026-01-01", f"{at}.parquet", at) for at in range(4)]
    for at in range(2):
        note(tables, "lag", str(at), files[at])
    note(tables, "lag", "2.compact", *files[:3])
    note(tables, "lag", "3", files[3])
    assert sorted(tables.read("lag").column("value").to_pylist()) == [0, 1, 2, 3]


def test_days_are_columns_and_can_be_chosen(tables: Tables):
    for at, day in enumerate(("2026-01-01", "2026-01-02", "2026-01-03")):
        note(tables, "lag", str(at), put(tables, "lag", day, "a.parquet", at))
    chosen = tables.read("lag", since=date(2026, 1, 2), until=date(2026, 1, 2))
    assert chosen.to_pylist() == [{"value": 1, "date": "2026-01-02"}]


def test_days_that_are_too_old_are_deleted(tables: Tables):
    for name in ("lag", "audit"):
        for day in ("1970-01-01", "2026-01-01", "2026-01-09"):
            put(tables, name, day, "a.parquet", 1)
    assert forget(tables, ("lag", "audit"), 0, date(2026, 1, 10)) == []
    gone = forget(tables, ("lag", "audit"), 5, date(2026, 1, 10))
    assert gone == ["lag/date=2026-01-01", "audit/date=2026-01-01"]
    assert [path.name for path in sorted(tables.path("lag").iterdir())] == ["date=1970-01-01", "date=2026-01-09"]
