"""Log entries that are damaged, at the end, in the middle, on one disk or on all; files that are cut, or old."""

import shutil
from collections.abc import Callable
from pathlib import Path

import grpc
import lmdb
import pytest

import ordercast
from ordercast.errors import OrdercastError
from ordercast.local.cluster import LocalCluster, wait_until
from ordercast.local.setup import create_groups
from ordercast.runtime.process.exits import EXIT_REFUSED
from ordercast.runtime.storage.checking import check_directory
from ordercast.runtime.storage.database_file import DATA_FILE
from ordercast.runtime.storage.layout import LOGS
from ordercast.v1.gateway_pb2 import SubscribeRequest, SubscribeStart
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, StartAt
from tests.cluster.asking import CALL_S_MAX, assert_replicas_agree, described_whole, payloads, raw, status_of
from tests.cluster.trial import (
    GROUPS,
    PATIENCE_S,
    Progress,
    exit_code,
    log_of,
    run_trial,
    start_again,
)

MESSAGES = [b"%d" % number for number in range(6)]


def edit_log(
    data: Path, group: str, edit: Callable[[list[bytes]], dict[bytes, Callable[[bytes], bytes | None]]]
) -> int:
    """Of a stopped process: `edit` is given the keys of the log and says what becomes of which value; how many."""
    with lmdb.open(str(data), max_dbs=4, map_size=1 << 30) as env:
        db = env.open_db(LOGS.encode(), create=False)
        with env.begin(write=True, db=db) as txn:
            edits = edit([key for key, _ in txn.cursor() if key.startswith(f"{group}#".encode())])
            for key, change in edits.items():
                value = change(txn.get(key))
                if value is None:
                    txn.delete(key)
                else:
                    txn.put(key, value)
    return len(edits)


def flipped(value: bytes) -> bytes:
    return value[:-1] + bytes([value[-1] ^ 1])


def described(cluster: LocalCluster, group: str, node: str) -> DescribeReplicaResponse:
    answer = described_whole(cluster.gateways[0], group)
    return next(replica.log for replica in answer.replicas if replica.node == node)


def test_damaged_ends_truncated_and_missing_entries_are_replaced_by_a_peers_and_counted(make_cluster):
    cluster = make_cluster(fault_injection=True)
    damaged: dict[str, int] = {}

    def damage(keys: list[bytes]) -> dict[bytes, Callable[[bytes], bytes | None]]:
        middle = len(keys) // 2
        return {
            keys[0]: flipped,
            keys[middle]: lambda value: value[:7],
            keys[middle + 2]: lambda value: None,
            keys[-2]: flipped,
            keys[-1]: flipped,
        }

    def during(progress: Progress) -> None:
        cluster.kill("node-2")
        for group in GROUPS:
            damaged[group] = edit_log(cluster.members["node-2"].data, group, damage)
        start_again(cluster, "node-2")
        progress.wait_for_receipts()

    run_trial(cluster, during)
    for group, count in damaged.items():
        log = described(cluster, group, "node-2")
        assert (log.repaired_entries, log.damaged_entries, log.damaged_records) == (count, 0, 0)


@pytest.mark.parametrize("position", [pytest.param(2, marks=pytest.mark.long), len(MESSAGES) - 1])
def test_an_entry_that_is_damaged_at_every_replica_halts_its_group_loudly_and_no_other(make_cluster, position):
    """Until one replica has it again: here its disk is mended by damaging it once more."""
    cluster = make_cluster(fault_injection=True)
    create_groups(cluster.gateways, ["halts", "goes-on"])
    with ordercast.connect_sync(*cluster.gateways) as connection:
        for payload in MESSAGES:
            for group in ("halts", "goes-on"):
                connection.publish(payload, to=[group])
    wait_until("all replicas have all", lambda: has_all(cluster), PATIENCE_S)
    cluster.kill(*cluster.members)
    for member in cluster.members.values():
        edit_log(member.data, "halts", lambda keys: {keys[position]: flipped})
    start_again(cluster, *cluster.members)

    for replica in ("", *cluster.members):
        code, text = reading_ends(cluster, "halts", replica)
        assert code == grpc.StatusCode.DATA_LOSS, text
        assert "no other replica gives it" in text
        assert "Bring back a node that has it" in text
    assert payloads(cluster.gateways[0], "goes-on") == MESSAGES
    with ordercast.connect_sync(*cluster.gateways) as connection:
        connection.publish(b"more", to=["goes-on"], timeout=PATIENCE_S)
    assert payloads(cluster.gateways[1], "goes-on") == [*MESSAGES, b"more"]

    cluster.kill("node-3")
    edit_log(cluster.members["node-3"].data, "halts", lambda keys: {keys[position]: flipped})
    start_again(cluster, "node-3")
    wait_until("it is read again", lambda: is_read(cluster, "halts"), PATIENCE_S)
    assert payloads(cluster.gateways[0], "halts") == MESSAGES
    assert_replicas_agree(cluster.gateways[0])
    assert described(cluster, "halts", "node-1").damaged_entries == 0


def reading_ends(cluster: LocalCluster, group: str, replica: str) -> tuple[grpc.StatusCode, str]:
    """With which status; past the SDK, which goes on trying."""
    start = SubscribeStart(group=group, start=StartAt(earliest=True), replica=replica)
    with raw(cluster.gateways[0]) as stub:
        error = status_of(lambda: list(stub.Subscribe(iter([SubscribeRequest(start=start)]), timeout=CALL_S_MAX)))
    return error.code(), error.details()


def has_all(cluster: LocalCluster) -> bool:
    ends = [
        described(cluster, group, name).next_offset for group in ("halts", "goes-on") for name in cluster.members
    ]
    return set(ends) == {len(MESSAGES)}


def is_read(cluster: LocalCluster, group: str) -> bool:
    try:
        return all(payloads(cluster.gateways[0], group, replica=name) for name in cluster.members)
    except OrdercastError:
        return False


# -------------------------------------------------------------------------------------------- files as a whole


def test_a_node_whose_disk_lost_what_it_had_synced_does_not_take_part(make_cluster):
    """The database looks sound, and is an older one."""
    cluster = make_cluster(fault_injection=True)

    def during(progress: Progress) -> None:
        data = cluster.members["node-2"].data
        older, newer = data.with_name("older"), data.with_name("newer")
        cluster.kill("node-2")
        shutil.copyfile(data / DATA_FILE, older)
        start_again(cluster, "node-2")
        progress.wait_for_receipts()
        cluster.kill("node-2")
        shutil.move(data / DATA_FILE, newer)
        shutil.copyfile(older, data / DATA_FILE)
        assert "were durable, and are gone" in check_directory(data).problems[0]
        for _ in range(2):
            cluster.start(["node-2"])
            assert exit_code(cluster, "node-2") == EXIT_REFUSED
        assert "this disk has lost writes" in log_of(cluster, "node-2")
        progress.wait_for_receipts()
        shutil.move(newer, data / DATA_FILE)
        start_again(cluster, "node-2")

    run_trial(cluster, during)


@pytest.mark.long
def test_a_node_whose_file_was_cut_off_says_so_and_leaves_it_as_it_is(make_cluster):
    cluster = make_cluster(fault_injection=True)

    def during(progress: Progress) -> None:
        file = cluster.members["node-2"].data / DATA_FILE
        cluster.kill("node-2")
        whole = file.read_bytes()
        left = whole[: len(whole) // 2]
        file.write_bytes(left)
        for _ in range(2):
            cluster.start(["node-2"])
            assert exit_code(cluster, "node-2") == EXIT_REFUSED
            assert file.read_bytes() == left
        assert "it was cut off" in log_of(cluster, "node-2")
        assert "it was cut off" in check_directory(file.parent).problems[0]
        progress.wait_for_receipts()
        file.write_bytes(whole)
        start_again(cluster, "node-2")

    run_trial(cluster, during)
