"""Nobody but the owner reads what is in a data directory."""

import os
import stat

import pytest

from ordercast.runtime.storage import private_files
from ordercast.runtime.storage.private_files import make_private
from ordercast.runtime.storage.store import Storage
from ordercast.telemetry.spool import layout


def modes(directory):
    return {path.name: stat.S_IMODE(path.lstat().st_mode) for path in (directory, *directory.iterdir())}


@pytest.fixture(autouse=True)
def _open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def assert_private(directory):
    found = modes(directory)
    assert found.pop(directory.name) == 0o700
    assert found
    assert set(found.values()) == {0o600}


def test_a_data_directory_is_for_its_owner_alone(tmp_path):
    storage = Storage(tmp_path / "new")
    assert_private(tmp_path / "new")
    storage.close()


def test_one_of_an_earlier_version_is_closed_at_a_start(tmp_path):
    Storage(tmp_path / "old").close()
    for path in (tmp_path / "old").iterdir():
        path.chmod(0o644)
    (tmp_path / "old").chmod(0o755)
    Storage(tmp_path / "old").close()
    assert_private(tmp_path / "old")


def test_the_spool_is_for_its_owner_alone(tmp_path):
    os.close(layout.lock(tmp_path / "spool"))
    assert_private(tmp_path / "spool")


def test_what_belongs_to_somebody_else_stays_and_stops_nothing(tmp_path, monkeypatch):
    """As a volume that Kubernetes mounts for a group."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "file").chmod(0o664)
    tmp_path.chmod(0o2775)
    before = modes(tmp_path)
    monkeypatch.setattr(private_files.os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    make_private(tmp_path)
    assert modes(tmp_path) == before


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"")
    (tmp_path / "elsewhere").chmod(0o644)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "link").symlink_to(tmp_path / "elsewhere")
    make_private(tmp_path / "data")
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o644
