"""Data directories that another version wrote."""

from pathlib import Path

import lmdb
import pytest

from ordercast.runtime.storage.layout import UnknownFormatError, seal, unseal
from ordercast.runtime.storage.store import FORMAT, FORMATS_BEFORE, Storage
from tests.unit.test_storage import MAP_BYTES, raw_put


def written_with(directory: Path, format_: bytes) -> bytes:
    """A directory of that format; its id."""
    storage = Storage(directory, map_bytes=MAP_BYTES)
    storage.meta_put(b"cluster_id", b"cluster")
    storage.close()
    raw_put(directory, b"meta", b"format", seal(b"format", [format_]))
    return storage.node_id


def format_of(directory: Path) -> bytes:
    with lmdb.open(str(directory), max_dbs=4, readonly=True, lib_version=0) as env:
        meta = env.open_db(b"meta", create=False)
        with env.begin(meta, buffers=True) as txn:
            value = txn.get(b"format")
            assert value is not None
            return bytes(unseal("meta", b"format", value))


@pytest.mark.parametrize("before", FORMATS_BEFORE)
def test_a_directory_of_an_earlier_version_is_taken_over_with_all_it_has(tmp_path, before):
    node_id = written_with(tmp_path, before)
    storage = Storage(tmp_path, map_bytes=MAP_BYTES)
    assert (storage.node_id, storage.boot) == (node_id, 2)
    assert storage.meta_get(b"cluster_id") == b"cluster"
    storage.close()
    assert format_of(tmp_path) == FORMAT  # which the earlier version refuses


def test_a_directory_of_a_later_version_is_refused_and_left_as_it_was(tmp_path):
    written_with(tmp_path, b"3")
    with pytest.raises(UnknownFormatError, match="has the format '3'; this version knows '1' and '2'"):
        Storage(tmp_path, map_bytes=MAP_BYTES)
    assert format_of(tmp_path) == b"3"
