"""Disks that are lost, fail to sync, are full, or give back other bytes than were written."""

import contextlib
import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import lmdb
import pytest

import ordercast
from ordercast.errors import DeadlineExceeded, OutcomeUnknown, ResourceExhausted
from ordercast.local.cluster import LocalCluster
from ordercast.local.setup import create_groups
from ordercast.runtime.process.exits import EXIT_BROKEN, EXIT_REFUSED
from ordercast.runtime.storage.layout import LOGS, RECORDS
from ordercast.v1.faults_pb2 import InjectRequest
from tests.cluster.asking import payloads
from tests.cluster.trial import (
    PATIENCE_S,
    Progress,
    assert_nobody_leads_any_more,
    exit_code,
    log_of,
    membership_leader,
    run_trial,
    start_again,
    wait_for_log,
)

ROOT = Path(__file__).resolve().parents[2]
FULL_S = 2.0

# ------------------------------------------------------------------------------------------------------ lost disks


@contextmanager
def empty_disk(cluster: LocalCluster, name: str) -> Iterator[None]:
    """The killed process has nothing under its name; in the end, it has its old disk again, and runs."""
    data = cluster.members[name].data
    kept = data.with_name(f"{name}.kept")
    data.rename(kept)
    try:
        yield
    finally:
        cluster.kill(name)
        shutil.rmtree(data)
        kept.rename(data)
    start_again(cluster, name)


@pytest.mark.long
def test_a_node_that_comes_back_with_an_empty_disk_is_refused_until_its_old_disk_is_back(make_cluster):
    cluster = make_cluster(fault_injection=True)

    def during(progress: Progress) -> None:
        cluster.kill("node-2")
        with empty_disk(cluster, "node-2"):
            cluster.start(["node-2"])
            assert exit_code(cluster, "node-2") == EXIT_REFUSED
            assert "belongs to a node with another disk" in log_of(cluster, "node-2")
            progress.wait_for_receipts()
        progress.wait_for_receipts()

    run_trial(cluster, during)


@pytest.mark.long
def test_a_membership_node_with_an_empty_disk_does_not_vote(make_cluster):
    """With its vote there would be a majority, which need not know what an earlier one decided."""
    cluster = make_cluster(separate=True, fault_injection=True)

    def during(progress: Progress) -> None:
        cluster.kill("membership-1", "membership-2")
        with empty_disk(cluster, "membership-1"):
            cluster.start(["membership-1"])
            wait_for_log(cluster, "membership-3", "came back without its disk")
            assert_nobody_leads_any_more(cluster)
            progress.wait_for_receipts()
            start_again(cluster, "membership-2")
            assert exit_code(cluster, "membership-1") == EXIT_REFUSED
            assert "belongs to a node with another disk" in log_of(cluster, "membership-1")
        assert membership_leader(cluster) is not None

    run_trial(cluster, during)


# --------------------------------------------------------------------------------------------------- failing disks


def test_a_process_whose_disk_fails_to_sync_ends_at_once_and_comes_back(make_cluster):
    cluster = make_cluster(fault_injection=True)

    def during(progress: Progress) -> None:
        for name in cluster.members:
            cluster.inject(name, InjectRequest(fsync_fails=True))
            assert exit_code(cluster, name) == EXIT_BROKEN
            assert "the sync fails" in log_of(cluster, name)
            progress.wait_for_receipts()
            start_again(cluster, name)

    run_trial(cluster, during)


# ------------------------------------------------------------------------------------------------------ full disks

LARGE_BYTES = 64 << 10
RESERVE_BYTES = 8 << 20
#: So much of the reserve is gone when publishes are to be refused; they may have the rest until they are.
ROOM_BYTES = 1 << 20
#: Messages, sent one by one, whose deliveries may wait for the disk.
UNLOGGED_MAX = 4
MAP_BYTES = 32 << 20
TMPFS_BYTES = 64 << 20


def publish_until_refused(publish: Callable[[bytes], object], name: str) -> list[bytes]:
    """Returns what was acknowledged before the disks were full. Of what was under way then, nobody may know."""
    stored: list[bytes] = []
    for number in itertools.count():
        payload = f"{name}/{number}".encode().ljust(LARGE_BYTES, b".")
        try:
            publish(payload)
            stored.append(payload)
        except ResourceExhausted:
            break
        except (OutcomeUnknown, DeadlineExceeded):
            continue
    return stored


@pytest.mark.long
def test_full_stores_refuse_publishes_serve_reads_and_recover_when_a_group_is_deleted(make_cluster):
    options = [f"--storage.map-bytes={MAP_BYTES}", f"--storage.reserve-bytes={RESERVE_BYTES}"]
    cluster = make_cluster(fault_injection=True, options=options)
    create_groups(cluster.gateways, ["large", "small"])
    with ordercast.connect_sync(*cluster.gateways) as connection:
        connection.publish(b"before", to=["small"])
        stored = publish_until_refused(lambda payload: connection.publish(payload, "large", timeout=5.0), "large")
        # The last ones are on disk with their stamps; the log shows them when there is room for them.
        readable = payloads(cluster.gateways[0], "large")[: len(stored)]
        assert readable == stored[: len(readable)]
        assert len(readable) >= len(stored) - UNLOGGED_MAX
        assert payloads(cluster.gateways[0], "small") == [b"before"]
        with pytest.raises(ResourceExhausted):
            connection.publish(b"refused", to=["small"], timeout=5.0)
        connection.delete_group("large")
        connection.publish(b"after", to=["small"], timeout=PATIENCE_S)
    assert payloads(cluster.gateways[0], "small") == [b"before", b"after"]
    run_trial(cluster, Progress.wait_for_receipts)


@contextmanager
def small_disks(directories: list[Path]) -> Iterator[None]:
    """File systems that can be filled, one for each of them."""
    with ExitStack() as stack:
        for directory in directories:
            directory.mkdir(parents=True)
            command = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", str(directory)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                why = done.stderr.strip() if done.returncode else ""
            except OSError as error:
                why = str(error)
            if why:
                with (ROOT / ".left-out").open("a") as left_out:
                    left_out.write("a cluster on really full disks: no file system can be mounted here\n")
                pytest.skip(why)
            stack.callback(subprocess.run, ["umount", "--lazy", str(directory)], check=True)
        yield


def fill(disk: Path, *, but_bytes: int) -> Path:
    """A file that takes what is left, but for so much."""
    filler = disk / f"filler-{but_bytes}"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while free_bytes(disk) > but_bytes:
            file.write(bytes(min(1 << 16, free_bytes(disk) - but_bytes)))
    return filler


def free_bytes(disk: Path) -> int:
    stat = os.statvfs(disk)
    return stat.f_bavail * stat.f_frsize


def test_disks_that_fill_up_under_load_refuse_then_hold_writes_up_and_recover_with_room(make_cluster):
    """First below the reserve, where publishes are refused; then to the last byte, where commits fail."""
    options = [f"--storage.reserve-bytes={RESERVE_BYTES}"]
    cluster = make_cluster(is_started=False, fault_injection=True, options=options)
    disks = [member.data for member in cluster.members.values()]

    def during(progress: Progress) -> None:
        fillers = [fill(disk, but_bytes=RESERVE_BYTES - ROOM_BYTES) for disk in disks]
        gateway = cluster.gateways[0]
        publish_until_refused(lambda payload: progress.publish(gateway, payload, ["a"], 5.0), "beside")
        assert payloads(gateway, "a")
        fillers += [fill(disk, but_bytes=0) for disk in disks]
        time.sleep(FULL_S)
        for filler in fillers:
            filler.unlink()
        progress.wait_for_receipts()

    with small_disks(disks), cluster:
        cluster.start()
        cluster.wait_healthy(timeout_s=PATIENCE_S)
        run_trial(cluster, during)


# -------------------------------------------------------------------------------------------------- damaged disks


def damage(data: Path, database: str, prefix: bytes) -> list[bytes]:
    """Turn a bit in the first and in the middle one of the values under keys that begin so."""
    with lmdb.open(str(data), max_dbs=4, map_size=1 << 30) as env:
        db = env.open_db(database.encode(), create=False)
        with env.begin(write=True, db=db) as txn:
            keys = [key for key, _ in txn.cursor() if key.startswith(prefix)]
            chosen = sorted({keys[0], keys[len(keys) // 2]})
            for key in chosen:
                value = txn.get(key)
                txn.put(key, value[:-1] + bytes([value[-1] ^ 1]))
    return chosen


@pytest.mark.long
def test_damaged_log_entries_are_found_when_they_are_read_and_replaced_by_a_peers(make_cluster):
    """The trial's judges read every replica from the beginning to the end."""
    cluster = make_cluster(fault_injection=True)
    damaged: list[bytes] = []

    def during(progress: Progress) -> None:
        cluster.kill("node-2")
        damaged.extend(damage(cluster.members["node-2"].data, LOGS, b"a#"))
        start_again(cluster, "node-2")
        progress.wait_for_receipts()

    run_trial(cluster, during)
    assert log_of(cluster, "node-2").count("damaged log entry replaced") == len(damaged) == 2


def test_a_membership_node_with_a_damaged_record_does_not_start_and_names_it(make_cluster):
    """What a machine promised cannot be had from peers. Here the disk is mended by damaging it once more.

    (Where it is a group's record, the group is replaced there: test_damaged_state.py.)
    """
    cluster = make_cluster(fault_injection=True)
    domain = "#membership"
    prefix = f"{domain}\0".encode()

    def during(progress: Progress) -> None:
        cluster.kill("node-2")
        data = cluster.members["node-2"].data
        damage(data, RECORDS, prefix)
        cluster.start(["node-2"])
        # The records of a domain are read when membership has said that there is such a domain.
        assert exit_code(cluster, "node-2") in (EXIT_REFUSED, EXIT_BROKEN)
        assert f"records: {domain} " in log_of(cluster, "node-2")
        progress.wait_for_receipts()
        damage(data, RECORDS, prefix)
        start_again(cluster, "node-2")

    run_trial(cluster, during)
