"""Looks a stopped process's data directory through, and says what is wrong there. Changes nothing.

The file is whole; no commit is missing; every value is what was written; no log has a hole. Whether the replicas
of a group agree, only a running cluster can tell.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lmdb

from ordercast.runtime.storage.commit_mark import MARK_FILE, read_mark
from ordercast.runtime.storage.damage_advice import ENTRY, RECORD, of_record
from ordercast.runtime.storage.database_file import DATA_FILE, check_file, of_lmdb
from ordercast.runtime.storage.layout import (
    BEGINS,
    INDEX,
    LOGS,
    MARK,
    META,
    RECORDS,
    U64,
    CorruptRecord,
    Mark,
    StorageError,
    StorageInUseError,
    position_in,
    unseal,
)

#: What is wrong is told so often, and then only counted.
PROBLEMS_MAX = 20
LOCK_FILE = "process.lock"
MAP_BYTES = 1 << 40


@dataclass(slots=True)
class DirectoryReport:
    directory: Path
    #: Values that were looked at, by table.
    values: dict[str, int] = field(default_factory=dict)
    #: By what is to be done: entries come from other replicas by themselves; for the rest groups are replaced.
    damaged_records: int = 0
    damaged_entries: int = 0
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    #: What to do, for each kind of problem.
    advice: list[str] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        return self.problem_count == 0

    def problem(self, text: str, advice: str = "") -> None:
        """`advice` once, however often it is needed; none if the text has it."""
        self.problem_count += 1
        if advice and advice not in self.advice:
            self.advice.append(advice)
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(text)


def check_directory(directory: Path) -> DirectoryReport:
    """Raises StorageError if there is nothing to look at, or if a process runs there."""
    report = DirectoryReport(directory)
    marked = (directory / MARK_FILE).exists()
    if not (directory / DATA_FILE).exists() and not marked:
        raise StorageError(f"{directory} is no data directory: there is no {DATA_FILE}")
    with _stopped(directory):
        try:
            check_file(directory, was_used=marked and (directory / MARK_FILE).stat().st_size > 0)
            with lmdb.open(
                str(directory), readonly=True, lock=False, create=False, max_dbs=5, map_size=MAP_BYTES
            ) as env:
                _check_tables(env, report)
                _check_commits(env, directory, report)
        except StorageError as error:
            report.problem(str(error))
        except lmdb.Error as error:
            report.problem(str(of_lmdb(directory, error)))
    return report


@contextmanager
def _stopped(directory: Path) -> Iterator[None]:
    path = directory / LOCK_FILE
    if not path.exists():
        yield
        return
    lock = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise StorageInUseError(f"{directory} is in use by a running process: stop it first") from error
    finally:
        os.close(lock)


def _check_commits(env: lmdb.Environment, directory: Path, report: DirectoryReport) -> None:
    with env.begin(db=env.open_db(META.encode(), create=False), buffers=True) as txn:
        sealed = txn.get(b"node_id")
        try:
            node_id = b"" if sealed is None else bytes(unseal(META, b"node_id", sealed))
        except CorruptRecord:
            return  # It is among the damaged values; and whose number it is, cannot be told.
    number, committed = read_mark(directory, node_id), env.info()["last_txnid"]
    if number is not None and number > committed:
        report.problem(
            f"commits {committed + 1} to {number} were durable, and are gone: everything is suspect", RECORD
        )


def _check_tables(env: lmdb.Environment, report: DirectoryReport) -> None:
    tables = {name: env.open_db(name.encode(), create=False) for name in (META, RECORDS, BEGINS, LOGS)}
    with contextlib.suppress(lmdb.NotFoundError):  # Of earlier software.
        tables[INDEX] = env.open_db(INDEX.encode(), create=False)
    begins: dict[bytes, Mark] = {}
    with env.begin(buffers=True) as txn:
        for name, table in tables.items():
            report.values[name] = 0
            before = b""
            for view, value in txn.cursor(db=table):
                key = bytes(view)
                report.values[name] += 1
                content = _content(name, key, value, report)
                if name == BEGINS and content is not None and len(content) == MARK.size:
                    begins[key] = Mark(*MARK.unpack(content))
                elif name == LOGS:
                    _check_place(key, before, begins, report)
                    before = key


def _content(table: str, key: bytes, value: Any, report: DirectoryReport) -> memoryview | None:
    try:
        return unseal(table, key, value)
    except CorruptRecord as damaged:
        report.problem(str(damaged), of_record(damaged))
        report.damaged_entries += table == LOGS
        report.damaged_records += table not in (LOGS, INDEX)
        return None


def _check_place(key: bytes, before: bytes, begins: dict[bytes, Mark], report: DirectoryReport) -> None:
    """Each entry follows the one before, or is the first of its log. What was dropped is left out."""
    group, position = key[: -U64.size - 1], position_in(key)
    begin = begins.get(group)
    if begin is None or position < begin.position:
        return
    is_next = before[: -U64.size] == key[: -U64.size] and position_in(before) >= begin.position
    expected = position_in(before) + 1 if is_next else begin.position
    if position != expected:
        name = group.decode(errors="replace")
        report.damaged_entries += position - expected
        report.problem(f"{LOGS}: {name}: positions {expected} to {position - 1} are missing", ENTRY)
