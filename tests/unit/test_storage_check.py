"""Looking through the data directory of a stopped process: what is said, and that nothing is changed."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ordercast.cli.main import app
from ordercast.runtime.storage.checking import check_directory
from ordercast.runtime.storage.damage_advice import DISK, ENTRY, RECORD
from ordercast.runtime.storage.database_file import DATA_FILE
from ordercast.runtime.storage.layout import StorageError, StorageInUseError, log_key, log_prefix, records_prefix
from tests.unit.test_storage import Opened, entry, raw_flip, raw_put

KEY = records_prefix("d", "r") + b"key"
PREFIX = log_prefix("g")


def filled(directory: Path) -> Path:
    disk = Opened(directory)
    disk.writer.add("d", "r", [(b"key", b"value"), (b"other", b"value")], [])
    for group in ("f", "g", "h"):
        disk.append(group, 0, *[entry(number, 1, size=9000) for number in range(6)])
    disk.writer.truncate("g", 2)
    disk.writer.drop_group("h")
    disk.close()
    disk.loop.close()
    return directory


def cut(directory: Path) -> None:
    os.truncate(directory / DATA_FILE, (directory / DATA_FILE).stat().st_size // 2)


def go_back(directory: Path) -> None:
    """To what the database was one life before."""
    older = directory.with_name("older")
    shutil.copyfile(directory / DATA_FILE, older)
    disk = Opened(directory)
    disk.close()
    disk.loop.close()
    shutil.copyfile(older, directory / DATA_FILE)


FAULTS: list[tuple[Callable[[Path], None], str, str]] = [
    (lambda path: raw_flip(path, b"records", KEY, -1), "records: d r b'key': wrong checksum", RECORD),
    (lambda path: raw_put(path, b"records", KEY, b""), "records: d r b'key': wrong checksum", RECORD),
    (lambda path: raw_flip(path, b"begins", b"f", -1), "begins: f: wrong checksum", RECORD),
    (lambda path: raw_flip(path, b"logs", log_key(PREFIX, 5), 9), "logs: g at position 5: wrong checksum", ENTRY),
    (
        lambda path: raw_put(path, b"logs", log_key(PREFIX, 4), None),
        "logs: g: positions 4 to 4 are missing",
        ENTRY,
    ),
    (
        lambda path: raw_put(path, b"logs", log_key(PREFIX, 2), None),
        "logs: g: positions 2 to 2 are missing",
        ENTRY,
    ),
    (lambda path: raw_flip(path, b"meta", b"node_id", -1), "meta: node_id: wrong checksum", DISK),
    (cut, "it was cut off", DISK),
    (go_back, "were durable, and are gone", RECORD),
]


def test_a_sound_directory_has_no_problems(tmp_path: Path):
    report = check_directory(filled(tmp_path / "data"))
    assert report.is_ok, report.problems
    assert (report.values["records"], report.values["begins"], report.values["logs"]) == (2, 2, 10)


@pytest.mark.parametrize(("damage", "said", "advice"), FAULTS)
def test_what_is_wrong_is_named_with_what_to_do_and_nothing_is_changed(
    tmp_path: Path, damage: Callable[[Path], None], said: str, advice: str
):
    directory = filled(tmp_path / "data")
    damage(directory)
    before = (directory / DATA_FILE).read_bytes()
    report = check_directory(directory)
    assert [said in problem for problem in report.problems] == [True]
    done = CliRunner().invoke(app, ["verify", "--data", str(directory), "--json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["problems"] == report.problems
    assert json.loads(done.stdout)["advice"] == report.advice
    shown = CliRunner().invoke(app, ["verify", "--data", str(directory)]).stdout
    assert said in shown
    assert shown.count(advice) == 1
    assert (directory / DATA_FILE).read_bytes() == before


def test_a_directory_in_use_or_without_data_is_refused(tmp_path: Path):
    with pytest.raises(StorageError, match="no data directory"):
        check_directory(tmp_path)
    disk = Opened(tmp_path / "data")
    with pytest.raises(StorageInUseError, match="stop it first"):
        check_directory(tmp_path / "data")
    done = CliRunner().invoke(app, ["verify", "--data", str(tmp_path / "data")])
    assert done.exit_code == 5
    disk.close()
    disk.loop.close()
    assert CliRunner().invoke(app, ["verify", "--data", str(tmp_path / "data")]).exit_code == 0
