"""Several producers over one connection of the SDK for asyncio, against a gateway over real gRPC."""

import asyncio

import pytest

import ordercast
from ordercast.errors import FailedPrecondition, Fenced, OutcomeUnknown
from ordercast.v1.gateway_pb2 import PUBLISH_STATUS_UNAVAILABLE
from tests.unit.client_gateway import ClusterModel, served

PRODUCERS = 8


@pytest.fixture
def cluster():
    return ClusterModel("a", "b")


@pytest.fixture
def address(cluster):
    with served(cluster) as address:
        yield address


def run(main):
    return asyncio.run(main())


async def publish_some(producer, name, count=20):
    """Receipts of messages to sets that take turns; a payload says whose it is and which."""
    soon = []
    for number in range(count):
        to = (["a"], ["b"], ["a", "b"])[number % 3]
        soon.append(await producer.publish_soon(f"{name} {number}".encode(), to=to))
    return await asyncio.gather(*soon)


def assert_all_is_there_once_and_in_order(cluster, count=20):
    for group, left_out in (("a", 1), ("b", 0)):
        payloads = [payload.decode().split() for payload in cluster.payloads(group)]
        for name in range(PRODUCERS):
            numbers = [int(number) for who, number in payloads if who == str(name)]
            assert numbers == [number for number in range(count) if number % 3 != left_out]


async def all_publish(oc, count=20):
    producers = [oc.producer() for _ in range(PRODUCERS)]

    async def one(name, producer):
        async with producer:
            return await publish_some(producer, name, count)

    return await asyncio.gather(*(one(name, producer) for name, producer in enumerate(producers)))


def test_producers_of_a_connection_share_a_stream_and_each_has_ids_and_an_order_of_its_own(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            await oc.publish(b"9 0", to="a")
            return await all_publish(oc)

    receipts = run(main)
    assert cluster.streams == 1
    assert len({request.producer for request in cluster.requests}) == 1 + PRODUCERS
    assert len({receipt.message_id for of_one in receipts for receipt in of_one}) == 20 * PRODUCERS
    assert_all_is_there_once_and_in_order(cluster)


def test_what_several_producers_have_goes_out_in_one_frame(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc, oc.producer() as one, oc.producer() as other:
            await oc.publish(b"x", to="a")
            soon = [await each.publish_soon(b"y", to="a") for each in (one, other)]
            frame = one._stream._frame()
            # It was taken out of turn, and is repeated like anything else without an answer.
            assert [request.producer for request in frame.requests] == [one._id, other._id]
            cluster.break_streams()
            await oc.publish(b"z", to="a")
            return await asyncio.gather(*soon)

    assert len(run(main)) == 2
    assert sorted(cluster.payloads("a")) == [b"x", b"y", b"y", b"z"]


def test_producers_that_share_a_stream_are_told_together_where_groups_live(cluster, address):
    cluster.cells = {"a": "cell-1", "b": "cell-2"}

    async def main():
        async with ordercast.connect(address) as oc, oc.producer() as one, oc.producer() as other:
            soon = [await each.publish_soon(b"x", to="a") for each in (one, other)]
            await asyncio.gather(*soon)
            asked = list(cluster.located)
            await one.publish(b"1", to="b")
            assert one._stream is other._stream
            await other.publish(b"2", to="b")
            assert [*asked, "b"] == cluster.located, "who had not asked was told too"
            cluster.break_streams()
            await one.publish(b"3", to=["a", "b"])
            await other.publish(b"4", to=["a", "b"])
            assert [*asked, "b"] == cluster.located, "it is remembered beyond the stream"

    run(main)
    assert set(cluster.located) == {"a", "b"}
    told = {tuple(request.groups): tuple(request.cells) for request in cluster.requests}
    assert told == {("a",): ("cell-1",), ("b",): ("cell-2",), ("a", "b"): ("cell-1", "cell-2")}
    assert cluster.payloads("b") == [b"1", b"2", b"3", b"4"]


def test_a_stream_that_breaks_costs_none_of_its_producers_a_message(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            working = asyncio.create_task(all_publish(oc, 200))
            for _ in range(3):
                before = len(cluster.requests)
                while len(cluster.requests) < before + 10 and not working.done():
                    await asyncio.sleep(0.001)
                cluster.break_streams()
            return await working

    assert len(run(main)) == PRODUCERS
    assert cluster.streams > 1
    assert_all_is_there_once_and_in_order(cluster, 200)


def test_a_producer_that_gives_a_shared_stream_up_has_its_own_from_then_on(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc, oc.producer() as one, oc.producer() as other:
            await one.publish(b"1", to="a")
            await other.publish(b"2", to="a")
            assert one._stream is other._stream
            cluster.refusals.extend([PUBLISH_STATUS_UNAVAILABLE])
            await one.publish(b"3", to="a")
            await other.publish(b"4", to="a")
            assert one._stream is not other._stream
            before = cluster.streams
            cluster.refusals.extend([PUBLISH_STATUS_UNAVAILABLE])
            await one.publish(b"5", to="a")
            await other.publish(b"6", to="a")
            # Nobody but itself was disturbed.
            assert cluster.streams == before + 1

    run(main)
    assert cluster.payloads("a") == [b"1", b"2", b"3", b"4", b"5", b"6"]


def test_a_producer_that_is_done_takes_the_stream_from_nobody(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc, oc.producer() as one:
            async with oc.producer() as other:
                await other.publish(b"1", to="a")
                await one.publish(b"2", to="a")
            await one.publish(b"3", to="a")
            with pytest.raises(FailedPrecondition):
                await other.publish(b"4", to="a")

    run(main)
    assert cluster.streams == 1
    assert cluster.payloads("a") == [b"1", b"2", b"3"]


def test_a_producer_that_leaves_something_open_takes_its_copies_along(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            await oc.publish(b"1", to="a")
            cluster.is_answering.clear()
            with pytest.raises(KeyError):  # noqa: PT012 (it is raised on the way out)
                async with oc.producer() as other:
                    soon = await other.publish_soon(b"2", to="a")
                    while not other._session.sent:
                        await asyncio.sleep(0)
                    raise KeyError
            with pytest.raises(OutcomeUnknown, match="closed"):
                await soon
            cluster.is_answering.set()
            await oc.publish(b"3", to="a")

    run(main)
    assert cluster.streams == 2
    assert [payload for payload in cluster.payloads("a") if payload != b"2"] == [b"1", b"3"]


def test_producers_end_with_their_connection(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            producer = await oc.producer().__aenter__()
            await producer.publish(b"1", to="a")
        with pytest.raises(FailedPrecondition):
            await producer.publish(b"2", to="a")

    run(main)
    assert cluster.payloads("a") == [b"1"]


def test_of_two_producers_with_one_name_on_one_connection_the_later_fences_the_other(cluster, address):
    async def main():
        async with (
            ordercast.connect(address) as oc,
            oc.producer("billing") as one,
            oc.producer("billing") as other,
        ):
            await one.publish(b"1", to="a")
            await other.publish(b"2", to="a")
            with pytest.raises(Fenced):
                await one.publish(b"3", to="a")
            await other.publish(b"4", to="a")

    run(main)
    assert cluster.payloads("a") == [b"1", b"2", b"4"]


def test_a_producer_has_seen_what_it_is_told_and_nothing_of_its_connection(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            await oc.publish(b"1", to="a")
            async with oc.producer() as one, oc.producer(session_token=oc.session_token) as other:
                return oc.session_token, one.session_token, other.session_token

    seen, nothing, told = run(main)
    assert nothing == b""
    assert told == seen != b""
