"""A database whose file was cut off: refused with a reason, before LMDB dies of it, and left as it is."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from ordercast.runtime.storage.database_file import (
    DATA_FILE,
    HEAD,
    PAGE_HEADER_BYTES,
    REST,
    CutFileError,
    DamagedFileError,
    check_file,
    latest_state,
)
from ordercast.runtime.storage.layout import StorageError
from ordercast.runtime.storage.store import Storage
from tests.unit.test_storage import MAP_BYTES, Opened, entry

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
#: Opens a directory and reads all that there is. A signal would be a negative exit status.
READ_ALL = """
import sys
from pathlib import Path
from ordercast.runtime.storage.store import Storage
from ordercast.runtime.storage.layout import StorageError
try:
    storage = Storage(Path(sys.argv[1]), map_bytes=1 << 26)
except StorageError as error:
    print(error)
    sys.exit(3)
print(len(storage.records("d", "r")), len(storage.read("g", 0, 1000, 1 << 30)))
"""


def filled(directory: Path) -> None:
    disk = Opened(directory)
    disk.writer.add("d", "r", [(b"%d" % number, b"v" * 200) for number in range(100)], [])
    disk.append("g", 0, *[entry(number, 1, size=9000) for number in range(30)])
    disk.close()
    disk.loop.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole") / "data"
    filled(directory)
    return directory


@pytest.mark.parametrize("left", [0, 1, 100, 4096, 8192, 0.3, 0.6, 0.9])
def test_a_cut_file_is_refused_with_a_reason_at_every_start_and_not_changed(
    whole: Path, tmp_path: Path, left: float
):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    data = tmp_path / DATA_FILE
    os.truncate(data, int(left * data.stat().st_size) if isinstance(left, float) else left)
    before = data.read_bytes()
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", READ_ALL, str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, str(tmp_path) in done.stdout) == (3, True), (done.stdout, done.stderr)
        assert data.read_bytes() == before


def test_a_file_that_is_gone_is_not_begun_anew(whole: Path, tmp_path: Path):
    """It would be another node's, with the same name."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    (tmp_path / DATA_FILE).unlink()
    with pytest.raises(CutFileError, match="missing or empty, and was not"):
        Storage(tmp_path, map_bytes=MAP_BYTES)
    assert not (tmp_path / DATA_FILE).exists()


def overwritten(directory: Path, page: int, at: int, value: int) -> Path:
    """Eight bytes of one of the first pages are another number."""
    with (directory / DATA_FILE).open("r+b") as file:
        file.seek(page * PAGE_BYTES + PAGE_HEADER_BYTES + at)
        file.write(value.to_bytes(8, "little"))
    return directory


def latest_page(directory: Path) -> int:
    with (directory / DATA_FILE).open("rb") as file:
        state = latest_state(file.fileno())
    assert state is not None
    return state.transaction % 2


#: Where the first pages have which numbers, behind their headers.
MAGIC_AT, MAIN_ROOT_AT = 0, HEAD.size + REST.size - 24
LAST_PAGE_AT, TRANSACTION_AT = HEAD.size + REST.size - 16, HEAD.size + REST.size - 8


@pytest.mark.parametrize(
    ("at", "value"),
    [(MAGIC_AT, 0), (MAIN_ROOT_AT, 1 << 30), (LAST_PAGE_AT, 1 << 50), (LAST_PAGE_AT, (1 << 64) - 1)],
)
def test_damaged_first_pages_are_not_taken_for_a_cut(whole: Path, tmp_path: Path, at: int, value: int):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    overwritten(tmp_path, latest_page(tmp_path), at, value)
    with pytest.raises(StorageError, match=r"is damaged.*give-up-disk NAME") as raised:
        Storage(tmp_path, map_bytes=MAP_BYTES)
    assert "cut off" not in str(raised.value)
    assert str(tmp_path) in str(raised.value)


def test_an_old_state_is_not_taken_for_the_latest_one(whole: Path, tmp_path: Path):
    """Its number is damaged, and higher than all that were given: everything since would be gone."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    overwritten(tmp_path, 1 - latest_page(tmp_path), TRANSACTION_AT, 1 << 40)
    with pytest.raises(DamagedFileError, match="say what cannot be"):
        Storage(tmp_path, map_bytes=MAP_BYTES)


def test_a_size_that_only_the_latest_state_has_may_be_wrong_itself(whole: Path, tmp_path: Path):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    size = (tmp_path / DATA_FILE).stat().st_size
    overwritten(tmp_path, latest_page(tmp_path), LAST_PAGE_AT, size // PAGE_BYTES + 9)
    with pytest.raises(CutFileError, match=r"or the page that says so is damaged.*Nothing was changed"):
        Storage(tmp_path, map_bytes=MAP_BYTES)


def test_whatever_is_cut_off_it_is_refused_or_nothing_is_missing(whole: Path, tmp_path: Path):
    size = (whole / DATA_FILE).stat().st_size
    outcomes = set()
    for cut in range(4096, size, max(4096, size // 12 // 4096 * 4096)):
        copy = tmp_path / str(cut)
        shutil.copytree(whole, copy)
        os.truncate(copy / DATA_FILE, size - cut)
        done = subprocess.run(
            [sys.executable, "-c", READ_ALL, str(copy)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 3 or done.stdout == "100 30\n", (cut, done.returncode, done.stderr)
        outcomes.add(done.returncode)
    assert 3 in outcomes


def test_no_file_that_lmdb_wrote_is_taken_for_a_cut_one(tmp_path: Path):
    """Pages that were taken and given back in one transaction may be missing at the end."""
    chance = random.Random(7)
    with lmdb.open(str(tmp_path), max_dbs=4, map_size=256 << 20) as env:
        tables = [env.open_db(name) for name in (b"a", b"b", b"c")]
        for _ in range(300):
            with env.begin(write=True) as txn:
                for _ in range(chance.randint(1, 60)):
                    key, table = b"%d" % chance.randint(0, 400), chance.choice(tables)
                    if chance.random() < 0.5:
                        txn.delete(key, db=table)
                    else:
                        txn.put(key, bytes(chance.choice([10, 100, 3000, 9000, 50_000])), db=table)
                if chance.random() < 0.3:
                    txn.drop(chance.choice(tables), delete=False)
            check_file(tmp_path, was_used=True)
        with (tmp_path / DATA_FILE).open("rb") as file:
            state = latest_state(file.fileno())
        assert state is not None
        assert (state.transaction, state.pages) == (env.info()["last_txnid"], env.info()["last_pgno"] + 1)
