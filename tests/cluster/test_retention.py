"""Groups that keep only so many bytes: what goes, what a reader that comes too late is told, and who was away."""

import grpc
import pytest

import ordercast
from ordercast import errors
from ordercast.local.cluster import LocalCluster, wait_until
from ordercast.v1.gateway_pb2 import SetCursorRequest
from ordercast.v1.membership_pb2 import Retention
from ordercast.v1.sequencer_pb2 import StartAt
from tests.cli.cluster_commands.commands import document, run, text
from tests.cluster.asking import (
    CALL_S_MAX,
    assert_replicas_agree,
    bounds,
    described_whole,
    error_info,
    next_offsets,
    payloads,
    raw,
    read_all,
    start_of,
)

KEPT_BYTES = 20_000
MESSAGE_BYTES = 1000
#: A message with what an envelope and its place in the log add to it.
ENVELOPE_BYTES_MAX = 2 * MESSAGE_BYTES
#: Several times what is kept, in envelopes that are smaller than that.
MESSAGES = 100
#: Nodes look every few seconds for what can go.
TRUNCATED_S_MAX = 40.0


def create(cluster: LocalCluster, name: str) -> None:
    with ordercast.connect_sync(*cluster.gateways) as oc:
        oc.create_group(name, retention=Retention(bytes=KEPT_BYTES))


@pytest.fixture(scope="module")
def short(cluster: LocalCluster) -> str:
    """A group whose old offsets have gone at every replica, and in which a cursor was left behind."""
    create(cluster, "short")
    with ordercast.connect_sync(*cluster.gateways) as oc:
        oc.set_cursor("short", "left-behind", 0)
    publish(cluster, "short", 0, MESSAGES)
    wait_until("nothing more goes", lambda: max(sizes(cluster, "short")) <= KEPT_BYTES, TRUNCATED_S_MAX)
    return "short"


def sizes(cluster: LocalCluster, group: str) -> list[int]:
    """What each replica's log takes, in bytes."""
    return [replica.log.bytes for replica in described_whole(cluster.gateways[0], group).replicas]


def first_of(cluster: LocalCluster, group: str) -> int:
    """The first offset that any replica still has."""
    return min(first for first, _ in bounds(cluster.gateways[0], group))


def publish(cluster: LocalCluster, group: str, begin: int, count: int, gateway: int = 0) -> None:
    """One by one: what retention drops are whole envelopes."""
    with ordercast.connect_sync(cluster.gateways[gateway]) as oc:
        for number in range(begin, begin + count):
            oc.publish((b"%d" % number).ljust(MESSAGE_BYTES, b"."), to=[group])


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_group_that_gets_a_retention_loses_what_is_beyond_it(cluster: LocalCluster, is_shared: bool) -> None:
    """By the command line: what is not given stays, and other groups of the cell keep all."""
    name = f"updated-{'shared' if is_shared else 'apart'}"
    with ordercast.connect_sync(*cluster.gateways) as oc:
        oc.create_group(name, retention=Retention(age_s=86_400), shared=is_shared)
    publish(cluster, name, 0, MESSAGES)
    assert first_of(cluster, name) == 0
    at = ("-g", cluster.gateways[0])
    (updated,) = document("group", "update", name, "--retention-bytes", str(KEPT_BYTES), *at)
    assert updated["retention"] == {"bytes": KEPT_BYTES, "age_s": 86_400}
    wait_until("the oldest goes", lambda: first_of(cluster, name) > 0, TRUNCATED_S_MAX)
    assert run("group", "update", name, *at).exit_code == 2
    assert run("group", "update", "nowhere", "--retention-age", "1d", *at).exit_code == 3
    assert "keeps everything" in text(
        "group", "update", name, "--retention-bytes", "0", "--retention-age", "0", *at
    )


def is_out_of_reach(cluster: LocalCluster, group: str, offset: int) -> bool:
    """No replica that answers has it any more."""
    return first_of(cluster, group) > offset


def test_what_is_left_has_no_gap_and_is_about_as_much_as_was_asked_for(cluster: LocalCluster, short: str) -> None:
    first = first_of(cluster, short)
    kept = read_all(cluster.gateways[1], short)
    assert [delivery.offset for delivery in kept] == list(range(first, MESSAGES))
    assert kept[0].payload.startswith(b"%d." % first)
    # Whole envelopes go: what is left is short of the limit by less than one of them.
    assert all(KEPT_BYTES - ENVELOPE_BYTES_MAX < size <= KEPT_BYTES for size in sizes(cluster, short))
    assert_replicas_agree(cluster.gateways[0])


def test_a_cursor_that_was_left_behind_is_told_the_first_offset_and_can_go_on_there(
    cluster: LocalCluster, short: str
) -> None:
    first = first_of(cluster, short)
    with ordercast.connect_sync(*cluster.gateways) as oc:
        with pytest.raises(errors.OutOfRange) as caught, oc.subscribe(short, cursor="left-behind"):
            pass
        assert (caught.value.first_offset, caught.value.next_offset) == (first, MESSAGES)
        oc.set_cursor(short, "left-behind", first)
        with oc.subscribe(short, cursor="left-behind") as deliveries:
            assert next(deliveries).offset == first


def test_the_status_of_an_offset_behind_retention_names_the_first_that_exists(
    cluster: LocalCluster, short: str
) -> None:
    """On the wire: OUT_OF_RANGE with an ErrorInfo, for subscriptions and for cursors; and nothing is created."""
    bounds_told = {"first_offset": str(first_of(cluster, short)), "next_offset": str(MESSAGES)}
    cursor = SetCursorRequest(group=short, name="never", start=StartAt(offset=0))
    with raw(cluster.gateways[0]) as stub:
        calls = (
            lambda: list(stub.Subscribe(iter([start_of(short, offset=0)]), timeout=CALL_S_MAX)),
            lambda: stub.SetCursor(cursor, timeout=CALL_S_MAX),
        )
        for call in calls:
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code() == grpc.StatusCode.OUT_OF_RANGE
            info = error_info(caught.value)
            assert (info.domain, info.reason) == ("ordercast", "OFFSET_OUT_OF_RANGE")
            assert dict(info.metadata) == bounds_told
    with ordercast.connect_sync(*cluster.gateways) as oc:
        assert [found.name for found in oc.cursors(short)] == ["left-behind"]


def test_a_node_that_was_away_for_longer_than_the_retention_comes_back_and_agrees(
    cluster: LocalCluster,
) -> None:
    """What it missed is nowhere to be had: it takes a snapshot, and goes on from there."""
    group = "missed"
    create(cluster, group)
    publish(cluster, group, 0, 5)
    wait_until("all have it", lambda: [n for _, n in bounds(cluster.gateways[0], group)] == [5] * 3, CALL_S_MAX)
    cluster.kill("node-3")
    try:
        publish(cluster, group, 5, MESSAGES)
        wait_until("what it missed goes", lambda: is_out_of_reach(cluster, group, 5), TRUNCATED_S_MAX)
    finally:
        cluster.start(["node-3"])
        cluster.wait_healthy(["node-3"])
    end = MESSAGES + 5
    wait_until(
        "node-3 is where the others are",
        lambda: [following for _, following in bounds(cluster.gateways[0], group)] == [end] * 3,
        CALL_S_MAX,
    )
    # It does not only know where the log ends: it has what the others have, and takes part again.
    publish(cluster, group, end, 3, gateway=2)
    assert next_offsets(cluster.gateways[2], [group]) == {group: end + 3}
    wait_until(
        "node-3 has the new ones",
        lambda: (
            payloads(cluster.gateways[2], group, start=end, replica="node-3")
            == payloads(cluster.gateways[0], group, start=end, replica="node-1")
        ),
        CALL_S_MAX,
    )
    assert_replicas_agree(cluster.gateways[2])
