"""Publishing to real processes: receipts, retries, producers, sessions, domains."""

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator

import grpc
import pytest

import ordercast
from ordercast import errors
from ordercast.core.ids import group_name
from ordercast.local.audit import audit
from ordercast.local.cluster import LocalCluster
from ordercast.local.load import Load, collect_logs, wait_for_equal_logs
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_OK,
    PublishReply,
    PublishRequest,
    PublishStreamRequest,
    PublishStreamResponse,
)
from tests.cluster.asking import CALL_S_MAX, in_time, payloads, raw, read_all

NewGroups = Callable[[int], list[str]]

#: Each waits for the one before it: these take a while.
MIXED_COUNT = 100

_producers = itertools.count(1)


def request_of(groups: list[str], *texts: bytes, producer: bytes = b"", first: int = 1) -> PublishRequest:
    return PublishRequest(
        producer=producer or f"raw-{next(_producers)}".encode(),
        groups=groups,
        first_sequence=first,
        messages=[Message(payload=text) for text in texts],
    )


def offsets_of(reply: PublishReply) -> dict[str, int]:
    return {offset.group: offset.first_offset for offset in reply.offsets}


# --------------------------------------------------------------------------------------------------- receipts


def test_a_receipt_tells_where_the_message_is(cluster: LocalCluster, new_groups: NewGroups) -> None:
    one, two = new_groups(2)

    async def publish() -> tuple[ordercast.Receipt, ordercast.Receipt]:
        async with ordercast.connect(*cluster.gateways) as oc:
            await oc.publish(b"before", to=one)
            both = await oc.publish(b"both", to=[two, one], key="k", headers={"colour": "blue"})
            return both, await oc.publish(b"after", to=two)

    both, after = in_time(publish())
    assert both.offsets == {one: 1, two: 0}
    assert not both.duplicate
    assert after.order_key > both.order_key
    for group in (one, two):
        delivery = read_all(cluster.gateways[1], group)[both.offsets[group]]
        assert (delivery.message_id, delivery.order_key) == (both.message_id, both.order_key)
        assert (delivery.payload, delivery.key, delivery.headers) == (b"both", b"k", {"colour": b"blue"})


def test_a_single_call_gets_the_receipts_of_all_its_messages(cluster: LocalCluster, new_groups: NewGroups) -> None:
    groups = new_groups(2)
    with raw(cluster.gateways[0]) as stub:
        response = stub.Publish(request_of(groups, b"1", b"2", b"3"), timeout=CALL_S_MAX)
    assert sum(reply.count for reply in response.replies) == 3
    assert {reply.status for reply in response.replies} == {PUBLISH_STATUS_OK}
    assert offsets_of(response.replies[0]) == dict.fromkeys(groups, 0)
    assert payloads(cluster.gateways[2], groups[0]) == [b"1", b"2", b"3"]


def test_a_stream_says_first_how_much_may_be_outstanding_and_then_answers(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    (group,) = new_groups(1)
    frames = [
        PublishStreamRequest(
            requests=[request_of([group], b"%d" % number, producer=b"streaming", first=number + 1)]
        )
        for number in range(5)
    ]
    is_answered = threading.Event()
    with raw(cluster.gateways[0]) as stub:
        answers: Iterator[PublishStreamResponse] = stub.PublishStream(
            until(is_answered, frames), timeout=CALL_S_MAX
        )
        first = next(answers)
        assert (first.credits > 0, len(first.replies)) == (True, 0)
        replies: list[PublishReply] = []
        while sum(reply.count for reply in replies) < len(frames):
            replies += next(answers).replies
        is_answered.set()
    assert [reply.first_sequence for reply in replies] == sorted(reply.first_sequence for reply in replies)
    assert offsets_of(replies[0]) == {group: 0}
    assert payloads(cluster.gateways[0], group) == [b"%d" % number for number in range(5)]


def until(is_answered: threading.Event, frames: list[PublishStreamRequest]) -> Iterator[PublishStreamRequest]:
    """A gateway ends the stream when its client has no more to say: so the client stays until it is answered."""
    yield from frames
    is_answered.wait(CALL_S_MAX)


def test_many_messages_of_one_call_come_in_its_order(cluster: LocalCluster, new_groups: NewGroups) -> None:
    groups = new_groups(3)
    texts = [b"%d" % number for number in range(2000)]

    async def publish() -> list[ordercast.Receipt]:
        async with ordercast.connect(*cluster.gateways) as oc:
            return await oc.publish_many(texts, to=groups)

    receipts = in_time(publish())
    assert [receipt.offsets for receipt in receipts] == [dict.fromkeys(groups, n) for n in range(2000)]
    keys = [receipt.order_key for receipt in receipts]
    assert keys == sorted(keys)
    assert len({receipt.message_id for receipt in receipts}) == 2000
    for group, gateway in zip(groups, cluster.gateways, strict=True):
        assert payloads(gateway, group) == texts


def test_receipts_to_come_keep_the_order_of_the_calls_over_all_sets(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    """Messages to different sets go in different envelopes, and share groups all the same."""
    one, two = new_groups(2)
    sets = [[one], [one, two], [two], [one, two]]

    async def publish() -> list[ordercast.Receipt]:
        async with ordercast.connect(*cluster.gateways) as oc:
            soon = [await oc.publish_soon(b"%d" % n, to=sets[n % len(sets)]) for n in range(MIXED_COUNT)]
            return list(await asyncio.gather(*soon))

    receipts = in_time(publish())
    for group in (one, two):
        sent = [number for number in range(MIXED_COUNT) if group in sets[number % len(sets)]]
        assert payloads(cluster.gateways[1], group) == [b"%d" % number for number in sent]
        assert [receipts[number].offsets[group] for number in sent] == list(range(len(sent)))
        keys = [receipts[number].order_key for number in sent]
        assert keys == sorted(keys)


def test_the_sdk_without_asyncio_does_the_same(cluster: LocalCluster, new_groups: NewGroups) -> None:
    one, two = new_groups(2)
    with ordercast.connect_sync(*cluster.gateways) as oc:
        first = oc.publish(b"first", to=[one, two])
        soon = [oc.publish_soon(b"soon %d" % number, to=[one]) for number in range(50)]
        many = oc.publish_many([b"many %d" % number for number in range(50)], to=[two])
        assert first.offsets == {one: 0, two: 0}
        assert [receipt.result().offsets[one] for receipt in soon] == list(range(1, 51))
        assert [receipt.offsets[two] for receipt in many] == list(range(1, 51))
        with oc.subscribe(one, start="earliest") as deliveries:
            delivery = next(deliveries)
    assert (delivery.payload, delivery.message_id) == (b"first", first.message_id)


def test_what_many_producers_send_through_all_gateways_is_in_one_order_everywhere(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    groups = new_groups(3)
    load = Load(cluster.gateways, groups, seed=7)

    async def run() -> None:
        subscribers = [
            asyncio.create_task(load.subscribe(f"subscriber-{number}", group))
            for group in groups
            for number in (1, 2)
        ]
        await asyncio.gather(*(load.produce(f"producer-{number}", count=150) for number in range(4)))
        await load.caught_up(CALL_S_MAX)
        for task in subscribers:
            task.cancel()
        await asyncio.gather(*subscribers, return_exceptions=True)

    in_time(run())
    wait_for_equal_logs(cluster.gateways[0], CALL_S_MAX)
    collect_logs(cluster.gateways[0], load.evidence)
    load.evidence.logs = {id_: log for id_, log in load.evidence.logs.items() if group_name(id_) in groups}
    verdict = audit(load.evidence)
    assert verdict.is_clean, verdict.findings
    assert (verdict.acknowledged, load.failed) == (600, {})


# ---------------------------------------------------------------------------------------------------- retries


def test_a_retry_over_another_gateway_gets_the_first_receipt(cluster: LocalCluster, new_groups: NewGroups) -> None:
    groups = new_groups(2)
    request = request_of(groups, b"once", b"and this")
    replies = []
    for gateway in cluster.gateways:
        with raw(gateway) as stub:
            (reply,) = stub.Publish(request, timeout=CALL_S_MAX).replies
            replies.append(reply)
    first, *again = replies
    assert not first.duplicate
    for reply in again:
        assert reply.duplicate
        assert (reply.order_key, offsets_of(reply)) == (first.order_key, offsets_of(first))
    assert payloads(cluster.gateways[0], groups[0]) == [b"once", b"and this"]


def test_what_is_new_behind_a_retry_is_stored(cluster: LocalCluster, new_groups: NewGroups) -> None:
    """The client had a receipt for the first message only, and now sends both, in one request."""
    (group,) = new_groups(1)
    with raw(cluster.gateways[0]) as stub:
        stub.Publish(request_of([group], b"known", producer=b"half"), timeout=CALL_S_MAX)
    with raw(cluster.gateways[1]) as stub:
        response = stub.Publish(request_of([group], b"known", b"new", producer=b"half"), timeout=CALL_S_MAX)
    assert [(reply.duplicate, offsets_of(reply)[group]) for reply in response.replies] == [(True, 0), (False, 1)]
    assert payloads(cluster.gateways[0], group) == [b"known", b"new"]


def test_a_sequence_that_leaves_a_gap_is_refused(cluster: LocalCluster, new_groups: NewGroups) -> None:
    (group,) = new_groups(1)
    with raw(cluster.gateways[0]) as stub, pytest.raises(grpc.RpcError) as caught:
        stub.Publish(request_of([group], b"third", first=3), timeout=CALL_S_MAX)
    assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert payloads(cluster.gateways[0], group) == []


# -------------------------------------------------------------------------------------------- named producers


def test_a_second_instance_of_a_named_producer_fences_the_first(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    (group,) = new_groups(1)

    async def run() -> None:
        async with ordercast.connect(cluster.gateways[0], producer="billing") as first:
            await first.publish(b"one", to=group)
            async with ordercast.connect(cluster.gateways[1], producer="billing") as second:
                await second.publish(b"two", to=group)
                with pytest.raises(errors.Fenced):
                    await first.publish(b"too late", to=group)
                await second.publish(b"three", to=group)

    in_time(run())
    found = read_all(cluster.gateways[2], group)
    assert [delivery.payload for delivery in found] == [b"one", b"two", b"three"]
    assert [delivery.producer for delivery in found] == [b"billing"] * 3
    assert [delivery.sequence for delivery in found] == [1, 2, 3]


# --------------------------------------------------------------------------------------------- session tokens


@pytest.mark.parametrize("how", ["at the connection", "at the message"])
def test_what_a_handed_over_session_saw_comes_first(
    cluster: LocalCluster, new_groups: NewGroups, how: str
) -> None:
    """Through another gateway, and first to a group that knows nothing of what was seen: only the token tells."""
    one, two = new_groups(2)

    async def run() -> tuple[ordercast.Receipt, ordercast.Receipt]:
        async with ordercast.connect(cluster.gateways[0]) as ahead:
            # Clocks of one group run ahead of those of the other.
            await ahead.publish_many([b"%d" % number for number in range(20)], to=[one])
            seen = await ahead.publish(b"seen", to=[one])
            token = ahead.session_token
        at_connection = token if how == "at the connection" else None
        at_message = token if how == "at the message" else None
        async with ordercast.connect(cluster.gateways[1], session_token=at_connection) as behind:
            apart = await behind.publish(b"apart", to=[two], after=at_message)
            later = await behind.publish(b"later", to=[one, two])
        assert seen.order_key < apart.order_key < later.order_key
        return seen, later

    seen, later = in_time(run())
    assert later.offsets[one] > seen.offsets[one]


# -------------------------------------------------------------------------------------------- ordered or not


def test_messages_that_give_up_order_keep_it_within_their_set(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    one, two = new_groups(2)
    sets = [[one], [two], [one, two]]

    async def publish() -> None:
        async with ordercast.connect(*cluster.gateways) as oc:
            soon = [await oc.publish_soon(b"%d" % n, to=sets[n % 3], ordered=False) for n in range(150)]
            await asyncio.gather(*soon)

    in_time(publish())
    for index, group in ((0, one), (1, two)):
        found = [int(payload) for payload in payloads(cluster.gateways[0], group)]
        assert sorted(found) == [number for number in range(150) if number % 3 in (index, 2)]
        for of_set in (index, 2):
            of_one_set = [number for number in found if number % 3 == of_set]
            assert of_one_set == sorted(of_one_set)
    both = [[p for p in payloads(cluster.gateways[0], group) if int(p) % 3 == 2] for group in (one, two)]
    assert both[0] == both[1]


# ---------------------------------------------------------------------------------------------------- domains


def test_one_connection_publishes_in_two_domains(cluster: LocalCluster, new_groups: NewGroups) -> None:
    here = new_groups(2)
    there = ["there-1", "there-2"]

    async def run() -> list[ordercast.Receipt]:
        async with ordercast.connect(*cluster.gateways) as oc:
            await oc.create_domain("elsewhere")
            for name in there:
                assert (await oc.create_group(name, domain="elsewhere")).domain == "elsewhere"
            soon = [
                await oc.publish_soon(b"%d" % number, to=here if number % 2 else there) for number in range(100)
            ]
            receipts = list(await asyncio.gather(*soon))
            # And one after the other, with what was seen in the other domain in hand.
            for number in range(100, 104):
                receipts.append(await oc.publish(b"%d" % number, to=here if number % 2 else there))
            return receipts

    receipts = in_time(run())
    for groups, parity in ((here, 1), (there, 0)):
        expected = [b"%d" % number for number in range(104) if number % 2 == parity]
        for group in groups:
            assert payloads(cluster.gateways[2], group) == expected
        offsets = [receipts[number].offsets for number in range(parity, 104, 2)]
        assert offsets == [dict.fromkeys(groups, number) for number in range(52)]
