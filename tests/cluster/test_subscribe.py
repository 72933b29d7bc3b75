"""Subscribing to real processes: where it starts, what acknowledgements do, and how it outlives a gateway."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import ordercast
from ordercast import errors
from ordercast.local.cluster import LocalCluster, wait_until
from ordercast.local.setup import create_groups
from ordercast.v1.faults_pb2 import InjectRequest
from tests.cluster.asking import in_time, payloads, read_all

NewGroups = Callable[[int], list[str]]


def texts(begin: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(begin, end)]


def publish(cluster: LocalCluster, group: str, begin: int, end: int) -> None:
    with ordercast.connect_sync(*cluster.gateways) as connection:
        connection.publish_many(texts(begin, end), to=[group])


async def take(deliveries: ordercast.Subscription, count: int) -> list[ordercast.AsyncDelivery]:
    return [await anext(deliveries) for _ in range(count)]


# ------------------------------------------------------------------------------------------- where it starts


def test_from_the_earliest_everything_comes_and_goes_on_coming(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    (group,) = new_groups(1)
    publish(cluster, group, 0, 10)

    async def run() -> list[ordercast.AsyncDelivery]:
        async with (
            ordercast.connect(cluster.gateways[0]) as oc,
            oc.subscribe(group, start="earliest") as deliveries,
        ):
            found = await take(deliveries, 10)
            await asyncio.to_thread(publish, cluster, group, 10, 20)
            return found + await take(deliveries, 10)

    found = in_time(run())
    assert [(delivery.offset, delivery.payload) for delivery in found] == list(enumerate(texts(0, 20)))


def test_from_the_latest_only_what_is_published_afterwards_comes(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    (group,) = new_groups(1)
    publish(cluster, group, 0, 10)

    async def run() -> list[ordercast.AsyncDelivery]:
        async with (
            ordercast.connect(cluster.gateways[0]) as oc,
            oc.subscribe(group, start="latest") as deliveries,
        ):
            await asyncio.to_thread(publish, cluster, group, 10, 13)
            return await take(deliveries, 3)

    assert [(d.offset, d.payload) for d in in_time(run())] == list(enumerate(texts(10, 13), 10))


def test_from_a_time_or_the_last_so_many(cluster: LocalCluster, new_groups: NewGroups) -> None:
    """All processes have one clock here. Times are in milliseconds: what comes in the next is told apart."""
    (group,) = new_groups(1)
    begun = datetime.now(UTC)
    publish(cluster, group, 0, 10)

    def ends() -> list[int]:
        with ordercast.connect_sync(*cluster.gateways) as oc:
            return [replica.log.next_offset for replica in oc.describe_group(group).replicas]

    wait_until("all replicas have stored it", lambda: ends() == [10, 10, 10], 60.0)
    between = datetime.now(UTC) + timedelta(milliseconds=2)
    wait_until("the next millisecond", lambda: datetime.now(UTC) > between, 60.0)
    publish(cluster, group, 10, 15)
    wait_until("all replicas have stored the rest", lambda: ends() == [15, 15, 15], 60.0)
    behind = list(enumerate(texts(10, 15), 10))

    async def read(**options: Any) -> list[ordercast.AsyncDelivery]:
        async with (
            ordercast.connect(*cluster.gateways) as oc,
            oc.subscribe(group, stop_at_end=True, **options) as deliveries,
        ):
            return [delivery async for delivery in deliveries]

    for options in ({"start": between}, {"start": between.astimezone().replace(tzinfo=None)}, {"last": 5}):
        found = in_time(read(**options))
        assert [(delivery.offset, delivery.payload) for delivery in found] == behind
        with (
            ordercast.connect_sync(*cluster.gateways) as oc,
            oc.subscribe(group, stop_at_end=True, **options) as deliveries,
        ):
            assert [(delivery.offset, delivery.payload) for delivery in deliveries] == behind
    everything = in_time(read(start=timedelta(hours=1)))
    assert (
        [delivery.payload for delivery in everything]
        == texts(0, 15)
        == [delivery.payload for delivery in in_time(read(last=99))]
    )
    assert in_time(read(start=timedelta(0))) == []
    for delivery in everything:
        assert delivery.stored_at is not None
        assert begun - timedelta(milliseconds=1) <= delivery.stored_at <= datetime.now(UTC)
    with ordercast.connect_sync(*cluster.gateways) as oc:
        assert oc.set_cursor(group, "since", between).offset == 10


@pytest.mark.parametrize("gateway", [0, 1, 2])
def test_an_offset_in_the_middle_of_an_envelope_is_where_it_starts(
    cluster: LocalCluster, new_groups: NewGroups, gateway: int
) -> None:
    (group,) = new_groups(1)
    publish(cluster, group, 0, 50)
    for offset in (0, 17, 49):
        found = read_all(cluster.gateways[gateway], group, start=offset)
        assert [(d.offset, d.payload) for d in found] == list(enumerate(texts(offset, 50), offset))


def test_it_stops_at_the_end_if_told_to(cluster: LocalCluster, new_groups: NewGroups) -> None:
    (group,) = new_groups(1)
    assert payloads(cluster.gateways[0], group) == []
    publish(cluster, group, 0, 3)
    assert payloads(cluster.gateways[0], group) == texts(0, 3)
    assert payloads(cluster.gateways[0], group, start=3) == []
    assert payloads(cluster.gateways[0], group, start="latest") == []


def test_each_replica_can_be_read_alone_and_shows_the_same(cluster: LocalCluster, new_groups: NewGroups) -> None:
    (group,) = new_groups(1)
    publish(cluster, group, 0, 20)
    shown = [
        [(d.offset, d.order_key, d.payload) for d in read_all(cluster.gateways[0], group, replica=replica)]
        for replica in cluster.members
    ]
    # A replica may be an envelope behind, and is never another way on.
    longest = max(shown, key=len)
    assert [payload for _, _, payload in longest] == texts(0, 20)
    assert all(copy == longest[: len(copy)] for copy in shown)


def test_subscribers_of_two_groups_see_what_they_share_in_one_order(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    one, two = new_groups(2)

    async def produce(name: str, gateway: str) -> None:
        async with ordercast.connect(gateway) as oc:
            for number in range(20):
                await oc.publish(f"{name} {number}".encode(), to=[one, two])

    async def follow(group: str, gateway: str) -> list[bytes]:
        async with ordercast.connect(gateway) as oc, oc.subscribe(group, start="earliest") as deliveries:
            return [delivery.payload for delivery in await take(deliveries, 60)]

    async def run() -> list[list[bytes]]:
        producing = [produce(f"producer {index}", gateway) for index, gateway in enumerate(cluster.gateways)]
        seen = asyncio.gather(follow(one, cluster.gateways[0]), follow(two, cluster.gateways[1]))
        await asyncio.gather(*producing)
        return await seen

    seen = in_time(run())
    assert len(set(seen[0])) == 60
    assert seen[0] == seen[1]


def test_what_has_a_receipt_is_found_at_once_although_disks_are_slow(
    make_cluster: Callable[..., LocalCluster],
) -> None:
    """Receipts come before deliveries are on any disk, and readers are fed from disks."""
    slow = make_cluster(fault_injection=True)
    create_groups(slow.gateways, ["a"])
    for name in slow.members:
        slow.inject(name, InjectRequest(disk_delay_s=0.1))
    with ordercast.connect_sync(slow.gateways[0]) as oc:
        middle = oc.publish_many(texts(0, 20), to=["a"])[10].offsets["a"]
        with oc.subscribe("a", start=middle) as deliveries:
            assert next(deliveries).payload == b"10"
        oc.publish_many(texts(20, 40), to=["a"])
        assert payloads(slow.gateways[1], "a") == texts(0, 40)
        last = oc.publish_many(texts(40, 60), to=["a"])[-1].offsets["a"]
        assert oc.set_cursor("a", "reader", last).offset == last
        oc.publish_many(texts(60, 80), to=["a"])
        assert oc.set_cursor("a", "reader", "latest").offset == 80


# --------------------------------------------------------------------------------------------------- cursors


def test_a_cursor_resumes_behind_what_was_acknowledged(cluster: LocalCluster, new_groups: NewGroups) -> None:
    """Through another gateway each time. What was delivered and not acknowledged comes again."""
    (group,) = new_groups(1)
    publish(cluster, group, 0, 10)

    async def consume(gateway: str, count: int, acked: int, start: str | None = None) -> list[bytes]:
        async with (
            ordercast.connect(gateway) as oc,
            oc.subscribe(group, start=start, cursor="reader") as deliveries,
        ):
            found = await take(deliveries, count)
            for delivery in found[:acked]:
                await delivery.ack()
            return [delivery.payload for delivery in found]

    first, second, third = cluster.gateways
    assert in_time(consume(first, 5, 3, start="earliest")) == texts(0, 5)
    assert in_time(consume(second, 4, 4)) == texts(3, 7)
    # The cursor exists: where it would have begun does not matter any more.
    assert in_time(consume(third, 3, 0, start="earliest")) == texts(7, 10)
    with ordercast.connect_sync(first) as oc:
        (cursor,) = oc.cursors(group, "reader")
    assert cursor.offset == 7


def test_two_cursors_of_one_group_know_nothing_of_each_other(cluster: LocalCluster, new_groups: NewGroups) -> None:
    (group,) = new_groups(1)
    publish(cluster, group, 0, 10)
    with ordercast.connect_sync(*cluster.gateways) as oc:
        for name, count in (("fast", 8), ("slow", 2)):
            with oc.subscribe(group, start="earliest", cursor=name) as deliveries:
                for _ in range(count):
                    next(deliveries).ack()
        assert {cursor.name: cursor.offset for cursor in oc.cursors(group)} == {"fast": 8, "slow": 2}


def test_what_is_acknowledged_on_the_way_to_the_end_is_confirmed(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    (group,) = new_groups(1)
    publish(cluster, group, 0, 10)
    with ordercast.connect_sync(*cluster.gateways) as oc:
        with oc.subscribe(group, start="earliest", cursor="once", stop_at_end=True) as deliveries:
            for delivery in deliveries:
                delivery.ack()
        assert oc.cursors(group, "once")[0].offset == 10


def test_a_cursor_is_set_to_any_place_and_deleted(cluster: LocalCluster, new_groups: NewGroups) -> None:
    (group,) = new_groups(1)
    publish(cluster, group, 0, 10)
    with ordercast.connect_sync(*cluster.gateways) as oc:
        for start, offset in ((4, 4), ("latest", 10), ("earliest", 0), (7, 7)):
            assert oc.set_cursor(group, "moved", start).offset == offset
        with oc.subscribe(group, cursor="moved") as deliveries:
            assert next(deliveries).payload == b"7"
        oc.delete_cursor(group, "moved")
        with pytest.raises(errors.NotFound), oc.subscribe(group, cursor="moved"):
            pass


# -------------------------------------------------------------------------------- when a gateway is killed
# These come last: they end a process that the tests above use.


@pytest.mark.parametrize("cursor", [None, "resuming"])
def test_a_subscription_goes_on_through_another_gateway(
    cluster: LocalCluster, new_groups: NewGroups, cursor: str | None
) -> None:
    """No gap and no duplicate for who reads, whether or not it acknowledges what it has read."""
    (group,) = new_groups(1)
    publish(cluster, group, 0, 100)
    victim = next(iter(cluster.members))

    async def run() -> list[ordercast.AsyncDelivery]:
        """The first gateway is the one that is used, as long as it is there."""
        async with (
            ordercast.connect(*cluster.gateways) as oc,
            oc.subscribe(group, start="earliest", cursor=cursor) as deliveries,
        ):
            found = []
            for number in range(200):
                if number == 50:
                    cluster.kill(victim)
                    await asyncio.to_thread(publish, cluster, group, 100, 200)
                found.append(await anext(deliveries))
                if cursor is not None:
                    await found[-1].ack()
            return found

    try:
        found = in_time(run())
    finally:
        cluster.start([victim])
        cluster.wait_healthy([victim])
    assert [(delivery.offset, delivery.payload) for delivery in found] == list(enumerate(texts(0, 200)))
    if cursor is not None:
        with ordercast.connect_sync(cluster.gateways[1]) as oc:
            assert oc.cursors(group, cursor)[0].offset == 200
