"""What a process had promised is damaged on its disk: its groups are seeded anew from the others, by themselves.

(Damaged log entries, which other replicas can give, and files that are mended by hand are in test_damaged_logs.)
"""

import shutil
from collections.abc import Callable

import grpc
import pytest

import ordercast
from ordercast.local.cluster import LocalCluster, wait_until
from ordercast.local.setup import create_groups
from ordercast.protocols.scalatom import records
from ordercast.runtime.storage.database_file import DATA_FILE
from ordercast.runtime.storage.layout import LOGS, RECORDS
from ordercast.v1.gateway_pb2 import DescribeGroupRequest, SubscribeRequest, SubscribeStart
from ordercast.v1.membership_pb2 import Group
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, StartAt
from tests.cluster.asking import CALL_S_MAX, payloads, raw
from tests.cluster.changing import (
    OPTIONS,
    ask,
    assert_refused,
    assert_seeded_anew,
    begin_change,
    change,
    flip,
    group_of,
    held_by,
    take_in_as_new,
    wait_until_settled,
)
from tests.cluster.trial import PATIENCE_S, Progress, log_of, run_trial, start_again

SCALATOM = b"default\0scalatom\0"
ACCEPTOR = b"default\0acceptor\0"
FOUND = '"damaged record"'
MESSAGES = [b"%d" % number for number in range(6)]


@pytest.fixture(scope="module")
def cluster(make_module_cluster) -> LocalCluster:
    return make_module_cluster(nodes=3, workers=1, fault_injection=True, options=OPTIONS)


def described(cluster: LocalCluster, group: str, node: str) -> DescribeReplicaResponse:
    with raw(cluster.gateways[0]) as stub:
        answer = stub.DescribeGroup(DescribeGroupRequest(name=group), timeout=CALL_S_MAX)
    return next(replica.log for replica in answer.replicas if replica.node == node)


def first_and_middle(keys: list[bytes]) -> list[bytes]:
    return sorted({keys[0], keys[len(keys) // 2]})


def damage_and_restart(
    cluster: LocalCluster,
    name: str,
    prefix: bytes,
    chosen: Callable[[list[bytes]], list[bytes]] = first_and_middle,
) -> None:
    """It starts, takes part in what is sound, and names what is damaged."""
    cluster.kill(name)
    before = len(log_of(cluster, name))
    damaged = flip(cluster.members[name].data, RECORDS, prefix, chosen)
    assert damaged
    start_again(cluster, name)
    assert log_of(cluster, name)[before:].count(FOUND) == len(damaged)


def assert_mended(cluster: LocalCluster, name: str, before: dict[str, Group]) -> None:
    """By new configurations of these groups, and nothing is counted as damaged any more."""
    assert_seeded_anew(cluster, name, before)
    for group in before:
        wait_until(
            f"the damage in {group} is over",
            lambda group=group: described(cluster, group, name).damaged_records == 0,
            PATIENCE_S,
        )


# ------------------------------------------------------------------------------------------------ single records


def test_a_damaged_record_of_one_group_has_that_group_seeded_anew_and_no_other(cluster):
    groups = ["position-a", "position-b", "position-c"]

    def during(progress: Progress) -> None:
        damaged = group_of(cluster, groups[0])
        name = damaged.replicas[-1]
        held = held_by(cluster, name, groups)
        damage_and_restart(cluster, name, SCALATOM + records.position(damaged.id))
        progress.wait_for_receipts()
        assert_mended(cluster, name, {damaged.name: damaged})
        for other in held:
            if other != damaged.name:
                assert group_of(cluster, other).configuration == held[other].configuration
        progress.wait_for_receipts()

    run_trial(cluster, during, groups)


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        pytest.param("clock", SCALATOM + records.CLOCK, marks=pytest.mark.long, id="a clock"),
        pytest.param("acceptor", ACCEPTOR, id="votes"),
    ],
)
def test_damage_that_is_no_single_groups_has_all_groups_of_the_node_seeded_anew(cluster, kind, prefix):
    groups = [f"{kind}-a", f"{kind}-b"]

    def during(progress: Progress) -> None:
        name = group_of(cluster, groups[0]).replicas[-1]
        held = held_by(cluster, name, groups)
        damage_and_restart(cluster, name, prefix)
        progress.wait_for_receipts()
        assert_mended(cluster, name, held)
        progress.wait_for_receipts()

    run_trial(cluster, during, groups)


@pytest.mark.long
def test_a_node_that_is_killed_whenever_it_finds_damage_is_still_seeded_anew(cluster):
    """Each life finds it, or remembers it; membership may have heard of it from any of them."""
    groups = ["again-a", "again-b"]

    def during(progress: Progress) -> None:
        damaged = group_of(cluster, groups[0])
        name = damaged.replicas[-1]
        cluster.kill(name)
        flip(cluster.members[name].data, RECORDS, SCALATOM + records.position(damaged.id), first_and_middle)
        for _ in range(2):
            before = len(log_of(cluster, name))
            cluster.start([name])
            wait_until("it is found", lambda at=before: FOUND in log_of(cluster, name)[at:], PATIENCE_S)
            cluster.kill(name)
        start_again(cluster, name)
        assert_mended(cluster, name, {damaged.name: damaged})
        progress.wait_for_receipts()

    run_trial(cluster, during, groups)


# -------------------------------------------------------------------------------------------- files as a whole


@pytest.mark.long
def test_a_worker_whose_disk_lost_what_it_had_synced_is_seeded_anew(cluster):
    """The database looks sound, and is an older one: all that it says may have been said otherwise since."""
    groups = ["older-a", "older-b"]

    def during(progress: Progress) -> None:
        for group in groups:
            if "node-4" not in group_of(cluster, group).replicas:
                change(cluster, group, "replace", group_of(cluster, group).replicas[0], "node-4")
        wait_until_settled(cluster, groups)
        held = held_by(cluster, "node-4", groups)
        data = cluster.members["node-4"].data / DATA_FILE
        cluster.kill("node-4")
        shutil.copyfile(data, data.with_name("older"))
        start_again(cluster, "node-4")
        progress.wait_for_receipts()
        cluster.kill("node-4")
        shutil.move(data.with_name("older"), data)
        start_again(cluster, "node-4")
        assert "writes are lost" in log_of(cluster, "node-4")
        assert_mended(cluster, "node-4", held)
        progress.wait_for_receipts()

    run_trial(cluster, during, groups)


@pytest.mark.long
def test_a_node_whose_file_was_cut_off_is_taken_in_as_a_new_one_when_its_disk_is_given_up(cluster):
    groups = ["cut-a", "cut-b"]

    def during(progress: Progress) -> None:
        name = group_of(cluster, groups[0]).replicas[-1]
        held = held_by(cluster, name, groups)
        file = cluster.members[name].data / DATA_FILE
        cluster.kill(name)
        left = file.read_bytes()[: file.stat().st_size // 2]
        file.write_bytes(left)
        assert_refused(cluster, name, "it was cut off", "give this disk up")
        assert file.read_bytes() == left
        progress.wait_for_receipts()
        shutil.rmtree(file.parent)
        take_in_as_new(cluster, name)
        assert_mended(cluster, name, held)
        progress.wait_for_receipts()

    run_trial(cluster, during, groups)


# ------------------------------------------------------------------------------------------------ on every disk


def test_an_entry_that_is_damaged_at_every_replica_is_copied_to_no_newcomer(make_cluster):
    """Nor skipped: the change waits. Other groups change as ever."""
    cluster = make_cluster(nodes=3, workers=1, fault_injection=True, options=OPTIONS)
    create_groups(cluster.gateways, ["halts", "goes-on"])
    with ordercast.connect_sync(*cluster.gateways) as connection:
        for payload in MESSAGES:
            for group in ("halts", "goes-on"):
                connection.publish(payload, to=[group])
    halts = group_of(cluster, "halts")
    wait_until("all replicas have all", lambda: has_all(cluster, halts), PATIENCE_S)
    cluster.kill(*cluster.members)
    for name in halts.replicas:
        flip(cluster.members[name].data, LOGS, halts.id.encode(), lambda keys: [keys[2]])
    start_again(cluster, *cluster.members)

    begin_change(cluster, "halts", "add")
    assert len(change(cluster, "goes-on", "add").replicas) == 4
    for name in halts.replicas:
        start = SubscribeStart(group="halts", start=StartAt(earliest=True), replica=name)
        with raw(cluster.gateways[0]) as stub, pytest.raises(grpc.RpcError) as caught:
            list(stub.Subscribe(iter([SubscribeRequest(start=start)]), timeout=CALL_S_MAX))
        assert caught.value.code() == grpc.StatusCode.DATA_LOSS
    waiting = group_of(cluster, "halts")
    assert waiting.HasField("next")
    assert waiting.configuration == halts.configuration
    assert not ask(cluster, lambda connection: connection.cancel_change("halts")).HasField("next")
    with ordercast.connect_sync(*cluster.gateways) as connection:
        connection.publish(b"more", to=["goes-on"], timeout=PATIENCE_S)
    assert payloads(cluster.gateways[1], "goes-on") == [*MESSAGES, b"more"]


def has_all(cluster: LocalCluster, group: Group) -> bool:
    ends = {described(cluster, group.name, name).next_offset for name in group.replicas}
    return ends == {len(MESSAGES)}
