"""Several groups as one stream, from real processes: order, cursors, cuts, and groups that are idle."""

import asyncio
import itertools
from collections.abc import Iterator, Sequence

import pytest

import ordercast
from ordercast import errors
from ordercast.local.cluster import LocalCluster
from ordercast.local.setup import create_domain, create_groups
from tests.cluster.asking import in_time
from tests.cluster.changing import change, group_of, stranger_to, wait_until_settled
from tests.cluster.conftest import MakeCluster
from tests.cluster.trial import Progress, gateway_of, others_than, run_trial, start_again

GROUPS = ["m-a", "m-b", "m-c"]
#: These live in one cell.
SHARED = ["m-u", "m-v"]
ALL = [*GROUPS, *SHARED]
LOOK_S = 0.05


@pytest.fixture(scope="module")
def cluster(make_module_cluster: MakeCluster) -> LocalCluster:
    cluster = make_module_cluster()
    create_groups(cluster.gateways, ALL, shared=SHARED)
    return cluster


def sets_of(count: int) -> list[list[str]]:
    """Overlapping sets of one to five groups, every one as often as the others."""
    every = [list(one) for size in range(1, len(ALL) + 1) for one in itertools.combinations(ALL, size)]
    return list(itertools.islice(itertools.cycle(every), count))


def publish(cluster: LocalCluster, sets: Sequence[list[str]], text: str = "") -> dict[bytes, dict[str, int]]:
    """What is where, by payload."""
    with ordercast.connect_sync(*cluster.gateways) as oc:
        sent = [f"{text}{number}".encode() for number in range(len(sets))]
        soon = [oc.publish_soon(payload, to=to) for payload, to in zip(sent, sets, strict=True)]
        return {payload: one.result().offsets for payload, one in zip(sent, soon, strict=True)}


def only(groups: Sequence[str], offsets: dict[str, int]) -> dict[str, int]:
    return {group: offset for group, offset in offsets.items() if group in groups}


async def until(gateway: str, groups: list[str], cut: ordercast.Cut) -> list[ordercast.AsyncMergedDelivery]:
    async with (
        ordercast.connect(gateway) as oc,
        oc.subscribe(groups, start="earliest", until=cut) as deliveries,
    ):
        return [delivery async for delivery in deliveries]


def shown(deliveries: Sequence[ordercast.MergedDelivery]) -> list[tuple[bytes, dict[str, int]]]:
    return [(delivery.payload, delivery.offsets) for delivery in deliveries]


# ------------------------------------------------------------------------------------------ one order


def test_each_message_comes_once_in_one_order_whichever_gateway_and_whichever_groups(
    cluster: LocalCluster,
) -> None:
    receipts = publish(cluster, sets_of(300), "once-")

    async def run() -> list[list[ordercast.AsyncMergedDelivery]]:
        async with ordercast.connect(*cluster.gateways) as oc:
            cut = await oc.cut(ALL)
        choices = [ALL, ALL, ["m-a", "m-u"], SHARED, ["m-c"]]
        return [
            await until(gateway, groups, cut) for gateway, groups in zip(_turns(cluster), choices, strict=False)
        ]

    first, second, *some = in_time(run())
    assert shown(first) == shown(second)
    there = {delivery.payload: delivery.offsets for delivery in first}
    assert {payload: there[payload] for payload in receipts} == receipts
    assert len(there) == len(first)
    places = [delivery.cut for delivery in first]
    assert places == sorted(places)
    for groups, found in zip((["m-a", "m-u"], SHARED, ["m-c"]), some, strict=True):
        expected = [(payload, only(groups, offsets)) for payload, offsets in shown(first)]
        assert shown(found) == [(payload, offsets) for payload, offsets in expected if offsets]


def _turns(cluster: LocalCluster) -> Iterator[str]:
    return itertools.cycle(cluster.gateways)


def test_the_synchronous_sdk_shows_the_same(cluster: LocalCluster) -> None:
    publish(cluster, sets_of(40), "sync-")
    with ordercast.connect_sync(cluster.gateways[0]) as oc:
        cut = oc.cut(ALL)
        with oc.subscribe(ALL, start="earliest", until=cut) as deliveries:
            found = shown(list(deliveries))
    assert found == shown(in_time(until(cluster.gateways[1], ALL, cut)))


def test_a_message_comes_though_the_other_groups_are_idle(cluster: LocalCluster) -> None:
    async def run() -> dict[str, int]:
        async with (
            ordercast.connect(*cluster.gateways) as oc,
            oc.subscribe(ALL, start="latest") as deliveries,
        ):
            receipt = await oc.publish(b"alone", to=["m-b"])
            delivery = await anext(deliveries)
            assert delivery.offsets == receipt.offsets
            return delivery.offsets

    assert list(in_time(run())) == ["m-b"]


# ------------------------------------------------------------------------------------------ cuts


def test_a_cut_is_behind_all_that_was_acknowledged_and_later_messages_are_behind_the_cut(
    cluster: LocalCluster,
) -> None:
    before = publish(cluster, sets_of(30), "before-")

    async def run() -> tuple[list[bytes], list[bytes]]:
        async with ordercast.connect(*cluster.gateways) as oc:
            cut = await oc.cut(ALL)
            assert cut == ordercast.Cut.parse(str(cut))
            for group in ALL:  # some may be behind the others
                await oc.publish(b"after", to=[group])
            after = await oc.publish(b"after", to=ALL)
            async with oc.subscribe(ALL, start=cut, stop_at_end=True) as deliveries:
                later = [delivery async for delivery in deliveries]
            assert later[-1].offsets == after.offsets
            return [d.payload for d in await until(cluster.gateways[1], ALL, cut)], [d.payload for d in later]

    inside, behind = in_time(run())
    assert [payload for payload in before if payload not in inside] == []
    assert behind == [b"after"] * (len(ALL) + 1)


@pytest.mark.parametrize("number", [b"", (1 << 61).to_bytes(8, "big")])
def test_a_place_that_nobody_has_come_to_is_no_end_and_raises_no_clock(
    cluster: LocalCluster, number: bytes
) -> None:
    async def run() -> tuple[ordercast.Cut, ordercast.Cut]:
        async with ordercast.connect(*cluster.gateways) as oc:
            before = await oc.cut(ALL)
            with pytest.raises(errors.InvalidArgument, match="no cut"):
                await until(cluster.gateways[0], ALL, ordercast.Cut(number + before.order_key[8:]))
            return before, await oc.cut(ALL)

    before, after = in_time(run())
    assert int.from_bytes(after.order_key[:8], "big") < int.from_bytes(before.order_key[:8], "big") + 1000


def test_a_cut_of_other_groups_is_an_end_too(cluster: LocalCluster) -> None:
    publish(cluster, sets_of(20), "others-")

    async def run() -> list[ordercast.AsyncMergedDelivery]:
        async with ordercast.connect(*cluster.gateways) as oc:
            return await until(cluster.gateways[0], ["m-c"], await oc.cut(["m-a"]))

    assert in_time(run())


# ------------------------------------------------------------------------------------------ cursors


def test_one_cursor_goes_on_at_any_gateway_in_the_middle_of_a_batch(cluster: LocalCluster) -> None:
    publish(cluster, sets_of(100), "cursor-")

    async def some(gateway: str, count: int) -> list[bytes]:
        async with (
            ordercast.connect(gateway) as oc,
            oc.subscribe(ALL, start="earliest", cursor="one") as deliveries,
        ):
            found = [await anext(deliveries) for _ in range(count)]
            await found[-1].ack()
            return [delivery.payload for delivery in found]

    async def run() -> tuple[list[bytes], list[bytes]]:
        async with ordercast.connect(*cluster.gateways) as oc:
            cut = await oc.cut(ALL)
        whole = [delivery.payload for delivery in await until(cluster.gateways[0], ALL, cut)]
        pieces = [await some(gateway, 7) for gateway, _ in zip(_turns(cluster), range(9), strict=False)]
        return whole, [payload for piece in pieces for payload in piece]

    whole, pieces = in_time(run())
    assert pieces == whole[: len(pieces)]


def test_an_acknowledgement_of_what_was_not_delivered_is_refused(cluster: LocalCluster) -> None:
    publish(cluster, sets_of(3), "beyond-")

    async def run() -> None:
        async with (
            ordercast.connect(cluster.gateways[0]) as oc,
            oc.subscribe(ALL, start="earliest", cursor="beyond") as deliveries,
        ):
            first = await anext(deliveries)
            with pytest.raises(errors.InvalidArgument, match="not delivered"):
                await deliveries._ack(first._place.behind()._replace(nth=1 << 30))

    in_time(run())


# ------------------------------------------------------------------------------------------ which groups


def test_a_pattern_takes_the_groups_of_a_domain_that_match(cluster: LocalCluster) -> None:
    publish(cluster, sets_of(40), "pattern-")

    async def run() -> tuple[list[bytes], list[bytes]]:
        async with ordercast.connect(*cluster.gateways) as oc:
            cut = await oc.cut(domain="default", pattern="m-[uv]")
            async with oc.subscribe_merged(
                domain="default", pattern="m-[uv]", start="earliest", until=cut
            ) as deliveries:
                matching = [delivery.payload async for delivery in deliveries]
            return matching, [d.payload for d in await until(cluster.gateways[0], SHARED, cut)]

    matching, named = in_time(run())
    assert matching == named != []


def test_groups_without_a_common_order_are_refused_with_what_to_do_instead(cluster: LocalCluster) -> None:
    create_domain(cluster.gateways, "causal", "isis", {})
    create_groups(cluster.gateways, ["m-x", "m-y"], domain="causal")

    async def refused(groups: list[str]) -> str:
        async with ordercast.connect(*cluster.gateways) as oc:
            with pytest.raises(errors.OrdercastError) as caught:
                async with oc.subscribe(groups, start="earliest"):
                    pass
        return caught.value.message

    assert "causal subscription" in in_time(refused(["m-x", "m-y"]))
    assert "groups of one domain" in in_time(refused(["m-a", "m-x"]))
    assert "unknown group" in in_time(refused(["m-a", "m-nobody"]))


# -------------------------------------------------------------------------------------------------- faults


def test_merged_readers_miss_nothing_while_nodes_die_and_pause_and_a_replica_is_replaced(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(nodes=3, workers=1, fault_injection=True)
    groups = ["f-a", "f-b", "f-u", "f-v"]

    def during(progress: Progress) -> None:
        cluster.kill("node-1")
        progress.wait_for_receipts()
        start_again(cluster, "node-1")
        cluster.pause("node-2")
        progress.wait_for_receipts()
        cluster.resume("node-2")
        holder = group_of(cluster, "f-a").replicas[0]
        change(cluster, "f-a", "replace", holder, stranger_to(cluster, group_of(cluster, "f-a")))
        progress.wait_for_receipts()
        wait_until_settled(cluster, ["f-a"])

    report = run_trial(cluster, during, groups, shared=["f-u", "f-v"])
    assert report.merged > report.verdict.acknowledged


def test_a_group_without_a_quorum_stops_the_stream_and_is_named_and_others_are_read_alone(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(fault_injection=True)
    create_groups(cluster.gateways, ["q-three"])
    create_groups(cluster.gateways, ["q-lonely"], replicas=1)
    holder = group_of(cluster, "q-lonely").replicas[0]
    gateways = [gateway_of(cluster, name) for name in others_than(cluster, holder)]

    async def run() -> None:
        async with (
            ordercast.connect(*gateways) as oc,
            oc.subscribe(["q-lonely", "q-three"], start="earliest") as merged,
            oc.subscribe("q-three", start="earliest") as alone,
        ):
            await oc.publish(b"before", to=["q-lonely", "q-three"])
            assert (await anext(merged)).groups == ("q-lonely", "q-three")
            await asyncio.to_thread(cluster.pause, holder)
            await oc.publish(b"behind", to=["q-three"], timeout=60.0)
            assert [(await anext(alone)).payload for _ in range(2)] == [b"before", b"behind"]
            coming = asyncio.ensure_future(anext(merged))
            while merged.waiting_for != ("q-lonely",):
                assert not coming.done()
                await asyncio.sleep(LOOK_S)
            await asyncio.to_thread(cluster.resume, holder)
            assert (await coming).payload == b"behind"
            assert merged.waiting_for == ()

    in_time(run())
