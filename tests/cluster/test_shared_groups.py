"""Groups that share a cell, beside one that has its own: published to, read, and verified, whatever fails."""

import asyncio

import pytest

import ordercast
from ordercast.local.cluster import LocalCluster, wait_until
from ordercast.local.setup import create_groups
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import PublishRequest
from ordercast.v1.membership_pb2 import Retention
from tests.cluster.asking import CALL_S_MAX, assert_replicas_agree, bounds, in_time, payloads, raw, read_all
from tests.cluster.changing import ask
from tests.cluster.conftest import MakeCluster
from tests.cluster.trial import Progress, run_trial, start_again

SHARED = ("u", "v")
GROUPS = (*SHARED, "own")
SETS = (("u",), ("v",), ("own",), ("u", "v"), ("own", "u"), ("own", "u", "v"))
LOOK_S = 0.05


@pytest.fixture(scope="module")
def cluster(make_module_cluster: MakeCluster) -> LocalCluster:
    return make_module_cluster(fault_injection=True)


@pytest.fixture(autouse=True)
def groups_there(request: pytest.FixtureRequest, cluster: LocalCluster) -> None:
    """The first test makes them. But each may be the first one here, in a cluster that has just started."""
    if request.function is not test_a_killed_node_and_a_restart_of_all_lose_and_reorder_nothing:
        there = {group.name for group in ask(cluster, lambda oc: oc.groups())}
        create_groups(cluster.gateways, [name for name in GROUPS if name not in there], shared=SHARED)


def to(group: str, sent: list[tuple[tuple[str, ...], bytes]]) -> list[bytes]:
    return [payload for groups, payload in sent if group in groups]


def test_a_killed_node_and_a_restart_of_all_lose_and_reorder_nothing(cluster: LocalCluster) -> None:
    def during(progress: Progress) -> None:
        names = sorted(cluster.members)
        cluster.kill(names[1])
        progress.wait_for_receipts()
        start_again(cluster, names[1])
        progress.wait_for_receipts()
        cluster.kill(*names)
        start_again(cluster, *names)
        progress.wait_for_receipts()

    run_trial(cluster, during, GROUPS, shared=SHARED)


def test_receipts_say_where_readers_find_what_is_published_to_shared_and_own_groups(cluster: LocalCluster) -> None:
    before = {group: len(payloads(cluster.gateways[0], group)) for group in GROUPS}
    sent = [(SETS[number % len(SETS)], b"%d" % number) for number in range(60)]

    async def publish() -> list[ordercast.Receipt]:
        async with ordercast.connect(*cluster.gateways) as oc:
            soon = [await oc.publish_soon(payload, to=list(groups)) for groups, payload in sent]
            return [await receipt for receipt in soon]

    receipts = in_time(publish())
    found = {group: read_all(cluster.gateways[1], group) for group in GROUPS}
    for group, deliveries in found.items():
        assert [delivery.offset for delivery in deliveries] == list(range(len(deliveries)))
        assert [delivery.payload for delivery in deliveries[before[group] :]] == to(group, sent)
    for (groups, payload), receipt in zip(sent, receipts, strict=True):
        assert sorted(receipt.offsets) == sorted(groups)
        for group, offset in receipt.offsets.items():
            assert found[group][offset].payload == payload
            assert found[group][offset].message_id == receipt.message_id


@pytest.mark.parametrize("group", GROUPS)
def test_a_reader_begins_where_it_says_and_a_cursor_where_it_ended(cluster: LocalCluster, group: str) -> None:
    everything = [(delivery.offset, delivery.payload) for delivery in read_all(cluster.gateways[0], group)]
    middle = len(everything) // 2
    for gateway in cluster.gateways:
        found = read_all(gateway, group, start=middle)
        assert [(delivery.offset, delivery.payload) for delivery in found] == everything[middle:]
    with ordercast.connect_sync(*cluster.gateways) as oc:
        with oc.subscribe(group, last=7, stop_at_end=True) as deliveries:
            assert [(delivery.offset, delivery.payload) for delivery in deliveries] == everything[-7:]
        with oc.subscribe(group, start="earliest", cursor="reader") as deliveries:
            for _ in range(middle):
                next(deliveries).ack()
        ((cursor, lag),) = oc.describe_cursors(group, "reader")
        assert cursor.offset == middle
        assert lag is not None
        assert lag.messages == len(everything) - middle
        assert lag.HasField("age_ms")
        with oc.subscribe(group, cursor="reader", stop_at_end=True) as deliveries:
            assert [(delivery.offset, delivery.payload) for delivery in deliveries] == everything[middle:]


def test_a_repetition_through_another_gateway_gets_the_first_offsets(cluster: LocalCluster) -> None:
    cell = ask(cluster, lambda oc: oc.describe_group("u")).group.cell.partition("#")[0]
    for groups, cells in ((["u", "v"], [cell]), (["own", "u"], sorted([cell, "own"]))):
        producer = f"repeats to {groups}".encode()
        request = PublishRequest(producer=producer, groups=groups, cells=cells, first_sequence=1)
        request.messages.extend([Message(payload=b"once"), Message(payload=b"and this")])
        replies = []
        for gateway in cluster.gateways:
            with raw(gateway) as stub:
                (reply,) = stub.Publish(request, timeout=CALL_S_MAX).replies
            replies.append((reply.duplicate, reply.order_key, {o.group: o.first_offset for o in reply.offsets}))
        first, *again = replies
        assert not first[0]
        assert again == [(True, *first[1:])] * 2
        for group, offset in first[2].items():
            assert payloads(cluster.gateways[0], group, start=offset) == [b"once", b"and this"]


@pytest.mark.parametrize("is_beside", [True, False])
def test_a_group_that_is_made_again_begins_anew_and_takes_what_its_producers_go_on_with(
    cluster: LocalCluster, is_beside: bool
) -> None:
    """In the same cell, or in one of its own: then the producer's messages are numbered anew there."""
    name = "again-beside" if is_beside else "again-apart"
    ask(cluster, lambda oc: oc.create_group(name, beside="u"))

    async def go_on() -> tuple[int, int]:
        async with ordercast.connect(*cluster.gateways) as oc:
            for number in range(3):
                before = await oc.publish(b"before %d" % number, to=[name])
            await oc.publish(b"both", to=[name, "v"])
            await oc.delete_group(name)
            while name in [group.name for group in await oc.groups()]:
                await asyncio.sleep(LOOK_S)
            await oc.create_group(name, beside="u" if is_beside else "", own_cell=not is_beside)
            after = await oc.publish(b"after", to=[name])
            return before.offsets[name], after.offsets[name]

    assert in_time(go_on()) == (2, 0)
    for gateway in cluster.gateways:
        assert payloads(gateway, name) == [b"after"]


def test_a_group_keeps_its_own_retention_beside_others_that_keep_all(cluster: LocalCluster) -> None:
    """Where it begins moves at every replica; what is left has no gap."""
    kept, messages = 20_000, 60
    with ordercast.connect_sync(*cluster.gateways) as oc:
        oc.create_group("short", beside="u", retention=Retention(bytes=kept))
        for number in range(messages):
            oc.publish((b"%d" % number).ljust(1000, b"."), to=["short"])
            oc.publish(b"beside %d" % number, to=["v"])
    before = bounds(cluster.gateways[0], "v")
    wait_until("it begins later", lambda: min(f for f, _ in bounds(cluster.gateways[0], "short")) > 0, 60.0)
    for gateway in cluster.gateways:
        left = [delivery.offset for delivery in read_all(gateway, "short")]
        assert left == list(range(left[0], messages))
        assert left[0] > 0
    assert bounds(cluster.gateways[0], "v") == before


def test_all_replicas_show_the_same_in_the_end(cluster: LocalCluster) -> None:
    report = assert_replicas_agree(cluster.gateways[0])
    assert {group.group for group in report.groups} >= set(GROUPS)
