"""Groups that are created and deleted while others are in use."""

import asyncio
from collections.abc import Callable

import pytest

import ordercast
from ordercast import errors
from ordercast.core.ids import group_name
from ordercast.local.audit import audit
from ordercast.local.cluster import LocalCluster, wait_until
from ordercast.local.load import Load, collect_logs, wait_for_equal_logs
from ordercast.runtime.storage.store import Storage
from ordercast.v1.gateway_pb2 import ListGroupsRequest
from tests.cluster.asking import CALL_S_MAX, assert_replicas_agree, in_time, payloads, raw

NewGroups = Callable[[int], list[str]]

#: Between two steps of a test, so that there is traffic on both sides of each.
RECEIPTS = 50
GONE_S_MAX = 30.0


def is_gone(cluster: LocalCluster, name: str) -> bool:
    """Every gateway has forgotten it."""
    found = []
    for gateway in cluster.gateways:
        with raw(gateway) as stub:
            found += stub.ListGroups(ListGroupsRequest(), timeout=CALL_S_MAX).groups
    return name not in [group.name for group in found]


async def receipts_come(load: Load) -> None:
    wanted = len(load.evidence.receipts) + RECEIPTS
    while len(load.evidence.receipts) < wanted:
        await asyncio.sleep(0.02)


async def publish_until_not_found(cluster: LocalCluster, groups: list[str], begun: asyncio.Event) -> int:
    """How many were published before that; `begun` is set by the first of them."""
    count = 0
    async with ordercast.connect(*cluster.gateways) as oc:
        while True:
            try:
                await oc.publish(b"to be lost %d" % count, to=groups)
            except errors.NotFound:
                return count
            count += 1
            begun.set()


async def subscribe_until_not_found(cluster: LocalCluster, group: str) -> int:
    """How many were delivered before that."""
    count = 0
    async with ordercast.connect(*cluster.gateways) as oc:
        try:
            async with oc.subscribe(group, start="earliest") as deliveries:
                async for _ in deliveries:
                    count += 1
        except errors.NotFound:
            return count
    raise AssertionError("the subscription ended without an error")


async def stop(load: Load, producers: list[asyncio.Task[None]], subscribers: list[asyncio.Task[None]]) -> None:
    load.is_stopping = True
    await asyncio.gather(*producers)
    await load.caught_up(CALL_S_MAX)
    for task in subscribers:
        task.cancel()
    await asyncio.gather(*subscribers, return_exceptions=True)


def judge(cluster: LocalCluster, load: Load) -> None:
    """Of the groups that this load used; those of other tests are none of its business."""
    assert load.failed == {}
    wait_for_equal_logs(cluster.gateways[0], CALL_S_MAX)
    collect_logs(cluster.gateways[0], load.evidence)
    load.evidence.logs = {id_: log for id_, log in load.evidence.logs.items() if group_name(id_) in load.groups}
    verdict = audit(load.evidence)
    assert verdict.is_clean, verdict.findings
    assert verdict.acknowledged == len(load.evidence.sent)


def test_groups_that_are_created_under_traffic_take_part_at_once(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    load = Load(cluster.gateways, new_groups(2), seed=5)

    async def run() -> None:
        producers = [asyncio.create_task(load.produce(f"producer-{n}", pause_s=0.01)) for n in range(2)]
        subscribers = [asyncio.create_task(load.subscribe("subscriber", group)) for group in load.groups]
        async with ordercast.connect(*cluster.gateways) as oc:
            for name in ("late-1", "late-2"):
                await receipts_come(load)
                await oc.create_group(name)
                # From now on, messages go to sets of the old groups and the new one.
                load.groups.append(name)
                subscribers.append(asyncio.create_task(load.subscribe("subscriber", name)))
        await receipts_come(load)
        await stop(load, producers, subscribers)

    in_time(run())
    judge(cluster, load)
    for name in ("late-1", "late-2"):
        assert any(name in sent.groups and len(sent.groups) > 1 for sent in load.evidence.sent.values())


def test_a_group_that_is_deleted_under_traffic_goes_and_harms_no_other(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    kept, shared, doomed = new_groups(3)
    load = Load(cluster.gateways, [kept, shared], seed=6)

    async def run() -> tuple[int, int, int]:
        producers = [asyncio.create_task(load.produce(f"producer-{n}", pause_s=0.01)) for n in range(2)]
        begun = [asyncio.Event(), asyncio.Event()]
        alone = asyncio.create_task(publish_until_not_found(cluster, [doomed], begun[0]))
        subscriber = asyncio.create_task(subscribe_until_not_found(cluster, doomed))
        await receipts_come(load)
        async with ordercast.connect(*cluster.gateways) as oc:
            with_others = asyncio.create_task(publish_until_not_found(cluster, [doomed, "a"], begun[1]))
            await receipts_come(load)
            for each in begun:
                await each.wait()
            await oc.delete_group(doomed)
        counts = await asyncio.gather(alone, with_others, subscriber)
        await receipts_come(load)
        await stop(load, producers, [])
        return counts[0], counts[1], counts[2]

    alone, with_others, delivered = in_time(run())
    assert alone > 0
    assert with_others > 0
    # All that had a receipt was delivered before the group was gone.
    assert delivered == alone + with_others
    judge(cluster, load)
    # What was also for another group is there, as often as there was a receipt.
    assert len(payloads(cluster.gateways[0], "a")) == with_others
    wait_until(f"{doomed} is gone", lambda: is_gone(cluster, doomed), GONE_S_MAX)
    assert_replicas_agree(cluster.gateways[0])


def test_a_name_can_be_used_again_for_a_group_that_begins_at_zero(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    (name,) = new_groups(1)
    with ordercast.connect_sync(*cluster.gateways) as oc:
        old = oc.describe_group(name).group.id
        oc.publish_many([b"old %d" % number for number in range(50)], to=[name])
        oc.set_cursor(name, "reader", 20)
        oc.delete_group(name)
        wait_until(f"{name} is gone", lambda: is_gone(cluster, name), GONE_S_MAX)

        new = oc.create_group(name)
        assert new.id != old
        assert oc.cursors(name) == []
        assert oc.publish(b"new", to=[name]).offsets == {name: 0}
    assert payloads(cluster.gateways[1], name) == [b"new"]


def test_a_group_that_is_gone_leaves_nothing_in_the_stores(cluster: LocalCluster, new_groups: NewGroups) -> None:
    """Its log goes at every node, and not only its name. This comes last: the nodes are stopped to look."""
    name, kept = new_groups(2)
    with ordercast.connect_sync(*cluster.gateways) as oc:
        id_ = oc.describe_group(name).group.id
        oc.publish_many([b"x" * 1000 for _ in range(200)], to=[name])
        oc.publish(b"kept", to=[kept])
        stored = {group.id for group in oc.groups()}
        oc.delete_group(name)
        wait_until(f"{name} is gone", lambda: is_gone(cluster, name), GONE_S_MAX)
    assert id_ in stored
    assert cluster.stop() == dict.fromkeys(cluster.members, 0)
    for member in cluster.members.values():
        storage = Storage(member.data)
        try:
            assert id_ not in storage.groups()
            assert id_ not in storage.leftovers()
            assert storage.groups()
        finally:
            storage.close()
    cluster.start()
    cluster.wait_healthy()


def test_what_is_there_already_is_the_answer_if_that_is_asked_for(cluster: LocalCluster) -> None:
    async def with_asyncio() -> None:
        async with ordercast.connect(*cluster.gateways) as oc:
            made = await oc.create_group("kept", exist_ok=True)
            assert await oc.create_group("kept", replicas=1, exist_ok=True) == made
            with pytest.raises(errors.AlreadyExists):
                await oc.create_group("kept")
            domain = await oc.create_domain("keeping", settings={"gossip_s": "0.02"}, exist_ok=True)
            assert await oc.create_domain("keeping", exist_ok=True) == domain
            with pytest.raises(errors.AlreadyExists, match="scalatom"):
                await oc.create_domain("keeping", protocol="isis", exist_ok=True)
            with pytest.raises(errors.AlreadyExists, match="default"):
                await oc.create_group("kept", domain="keeping", exist_ok=True)

    in_time(with_asyncio())


def test_a_group_that_is_being_deleted_is_made_anew(cluster: LocalCluster) -> None:
    with ordercast.connect_sync(*cluster.gateways) as oc:
        first = oc.create_group("fleeting", exist_ok=True)
        oc.delete_group("fleeting")
        assert oc.create_group("fleeting", exist_ok=True).id != first.id
