"""The SDK for asyncio, against a gateway over real gRPC."""

import asyncio

import grpc
import pytest

import ordercast
from ordercast.errors import (
    AlreadyExists,
    DeadlineExceeded,
    FailedPrecondition,
    Fenced,
    InvalidArgument,
    NotFound,
    OutcomeUnknown,
    OutOfRange,
    Unavailable,
)
from ordercast.v1.gateway_pb2 import PUBLISH_STATUS_UNAVAILABLE
from tests.unit.certificates import Authority
from tests.unit.client_gateway import ClusterModel, served, token_of


@pytest.fixture
def cluster():
    return ClusterModel("a", "b")


@pytest.fixture
def address(cluster):
    with served(cluster) as address:
        yield address


def run(main):
    """The test's coroutine, in an event loop of its own."""
    return asyncio.run(main())


def test_a_message_is_published_and_read_back_with_all_it_carries(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            receipt = await oc.publish(b"hello", to=["b", "a"], key="k", headers={"h": b"v"})
            async with oc.subscribe("a", start="earliest", stop_at_end=True) as deliveries:
                return receipt, [delivery async for delivery in deliveries], oc.session_token

    receipt, (delivery,), token = run(main)
    assert receipt.offsets == {"a": 0, "b": 0}
    assert token == token_of(1)
    assert (delivery.payload, delivery.key, delivery.headers) == (b"hello", b"k", {"h": b"v"})
    assert delivery.message_id == receipt.message_id


def test_many_messages_arrive_once_and_in_order(cluster, address):
    payloads = [str(number).encode() for number in range(1000)]

    async def main():
        async with ordercast.connect(address, in_flight_max=100) as oc:
            return await oc.publish_many(payloads, to=["a"])

    assert [receipt.offsets["a"] for receipt in run(main)] == list(range(1000))
    assert cluster.payloads("a") == payloads
    assert len(cluster.requests) < 100  # they left together


def test_concurrent_callers_at_the_bound_are_let_in_by_and_by(cluster, address):
    async def main():
        async with ordercast.connect(address, in_flight_max=2) as oc:
            await asyncio.gather(*(oc.publish(str(n).encode(), to="a") for n in range(20)))

    run(main)
    assert cluster.payloads("a") == [str(n).encode() for n in range(20)]


def test_leaving_waits_for_receipts_that_nobody_waited_for(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            soon = [await oc.publish_soon(b"x", to="a") for _ in range(5)]
        return [future.result().offsets["a"] for future in soon]

    assert run(main) == [0, 1, 2, 3, 4]


def test_what_was_stored_before_the_stream_broke_is_not_stored_again(cluster, address):
    cluster.lost_answers = 2

    async def main():
        async with ordercast.connect(address) as oc:
            return await oc.publish(b"once", to=["a", "b"]), await oc.publish(b"next", to=["a", "b"])

    first, second = run(main)
    assert first.duplicate
    assert second.offsets == {"a": 1, "b": 1}
    assert cluster.payloads("b") == [b"once", b"next"]


def test_messages_to_several_sets_survive_broken_streams(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            soon = []
            for number in range(200):
                to = (["a"], ["b"], ["a", "b"])[number % 3]
                soon.append(await oc.publish_soon(str(number).encode(), to=to))
                if number % 50 == 25:
                    cluster.break_streams()
                    await asyncio.sleep(0)
            return await asyncio.gather(*soon)

    assert len(run(main)) == 200
    assert cluster.payloads("a") == [str(n).encode() for n in range(200) if n % 3 != 1]
    assert cluster.payloads("b") == [str(n).encode() for n in range(200) if n % 3 != 0]


def test_a_group_without_a_quorum_is_tried_again(cluster, address):
    cluster.refusals.extend([PUBLISH_STATUS_UNAVAILABLE] * 2)

    async def main():
        async with ordercast.connect(address) as oc:
            return await oc.publish(b"x", to="a")

    assert not run(main).duplicate


def test_a_gateway_that_is_down_is_passed_over(cluster, address):
    async def main():
        async with ordercast.connect(f"127.0.0.1:1,{address}") as oc:
            await oc.publish(b"x", to="a")
            return await oc.groups()

    assert [group.name for group in run(main)] == ["a", "b"]


def test_what_was_never_sent_exceeds_its_deadline():
    async def main():
        async with ordercast.connect("127.0.0.1:1", timeout=0.3) as oc:
            with pytest.raises(DeadlineExceeded, match="could not be sent"):
                await oc.publish(b"x", to="a", timeout=0.1)
            with pytest.raises(DeadlineExceeded, match="could not subscribe"):
                await oc.subscribe("a", start=0).__aenter__()

    run(main)


def test_what_may_be_stored_has_an_unknown_outcome_and_leaves_no_gap(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            await oc.publish(b"first", to="a")
            cluster.is_answering.clear()
            with pytest.raises(OutcomeUnknown):
                await oc.publish(b"second", to="a", timeout=0.2)
            cluster.is_answering.set()
            await oc.publish(b"third", to="a")

    run(main)
    assert cluster.payloads("a") == [b"first", b"second", b"third"]


def test_a_cancelled_publish_is_not_withdrawn(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            await oc.publish(b"first", to="a")
            cluster.is_answering.clear()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(oc.publish(b"second", to="a"), 0.1)
            cluster.is_answering.set()
            return await oc.publish(b"third", to="a")

    assert run(main).offsets == {"a": 2}


def test_leaving_with_an_error_does_not_wait_for_receipts(cluster, address):
    async def main():
        with pytest.raises(KeyError):  # noqa: PT012 (it is raised on the way out)
            async with ordercast.connect(address) as oc:
                await oc.publish(b"first", to="a")
                cluster.is_answering.clear()
                second = await oc.publish_soon(b"second", to="a")
                while not oc._session.sent:
                    await asyncio.sleep(0)
                raise KeyError
        with pytest.raises(OutcomeUnknown, match="closed"):
            await second

    run(main)


def test_callers_at_the_bound_are_let_go_when_the_connection_closes(cluster, address):
    async def main():
        cluster.is_answering.clear()
        with pytest.raises(KeyError):  # noqa: PT012 (it is raised on the way out)
            async with ordercast.connect(address, in_flight_max=1) as oc:
                calls = [asyncio.create_task(oc.publish(b"x", to="a")) for _ in range(3)]
                await asyncio.sleep(0)
                raise KeyError
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(outcome, OutcomeUnknown | Unavailable) for outcome in outcomes)

    run(main)


def test_credentials_are_read_anew_at_each_connection(cluster, tmp_path):
    authority = Authority("ours")
    gateway, client = authority.issue("gateway", ["gateway"]), authority.issue("client", ["client"])
    tls = ordercast.TLS(tmp_path / "ca", tmp_path / "cert", tmp_path / "key", server_name="gateway")
    server = grpc.ssl_server_credentials([(gateway.key_pem, gateway.cert_pem)], authority.pem, True)

    async def main(address):
        async with ordercast.connect(address, tls=tls) as oc:
            with pytest.raises(InvalidArgument, match="cannot read"):
                await oc.publish(b"x", to="a")
            tls.ca.write_bytes(authority.pem)
            client.write(tls.cert, tls.key)
            return await oc.publish(b"y", to="a"), [group.name for group in await oc.groups()]

    with served(cluster, server) as address:
        receipt, groups = asyncio.run(main(address))
    assert receipt.offsets == {"a": 0}
    assert groups == ["a", "b"]


def test_errors_are_typed(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            with pytest.raises(NotFound, match="nowhere"):
                await oc.publish(b"x", to=["a", "nowhere"])
            with pytest.raises(NotFound):
                await oc.subscribe("nowhere", start="earliest").__aenter__()
            with pytest.raises(OutOfRange) as beyond:
                await oc.subscribe("a", start=5).__aenter__()
            assert (beyond.value.first_offset, beyond.value.next_offset) == (0, 0)
            await oc.create_group("c")
            with pytest.raises(AlreadyExists):
                await oc.create_group("c")
            with pytest.raises(InvalidArgument):
                await oc.publish("text", to="a")
            with pytest.raises(InvalidArgument):
                await oc.publish(b"x", to=[])
        with pytest.raises(FailedPrecondition):
            await oc.publish(b"x", to="a")

    run(main)


def test_a_later_instance_of_a_named_producer_fences_the_first(cluster, address):
    async def main():
        async with ordercast.connect(address, producer="billing") as first:
            await first.publish(b"1", to="a")
            async with ordercast.connect(address, producer="billing") as second:
                assert (await second.publish(b"2", to="a")).message_id.endswith("-2")
            for _ in range(2):
                with pytest.raises(Fenced):
                    await first.publish(b"3", to="a")

    run(main)
    assert cluster.payloads("a") == [b"1", b"2"]


def test_a_token_of_another_client_goes_with_the_message(cluster, address):
    async def main():
        async with ordercast.connect(address) as one, ordercast.connect(address) as other:
            await one.publish(b"1", to="a")
            await other.publish(b"2", to="b", after=one.session_token)
            async with ordercast.connect(address, session_token=other.session_token) as third:
                await third.publish(b"3", to="a")

    run(main)
    assert [request.session for request in cluster.requests] == [b"", token_of(1), token_of(2)]


def test_a_client_that_has_seen_something_itself_can_still_follow_another(cluster, address):
    async def main():
        async with ordercast.connect(address) as one, ordercast.connect(address) as other:
            await one.publish(b"1", to="a")
            await other.publish(b"2", to="b")
            await other.publish(b"3", to="b", after=one.session_token)
            await one.publish(b"4", to="b", after=other.session_token)

    run(main)
    assert [request.session for request in cluster.requests] == [b"", b"", token_of(2), token_of(3)]


def test_what_is_published_comes_behind_what_was_handed_to_the_application_and_not_what_was_read_ahead(
    cluster, address
):
    """The gateway sends three entries at a time, and the SDK reads all of them ahead."""

    async def main():
        async with ordercast.connect(address) as writer, ordercast.connect(address) as reader:
            for _ in range(9):
                await writer.publish(b"x", to="a")
            async with reader.subscribe("a", start="earliest") as deliveries:
                while len(deliveries._reader._ahead) < 9:
                    await asyncio.sleep(0.01)
                assert reader.session_token == b""
                tokens = []
                for _ in range(4):
                    delivery = await anext(deliveries)
                    await reader.publish(delivery.payload, to="b")
                    tokens.append(cluster.requests[-1].session)
                    assert cluster.shows(tokens[-1]) >= delivery.order_key[:8]
                return tokens

    assert run(main)[0] == token_of(3)


@pytest.mark.parametrize("token", [b"made up", bytes(27), token_of(1) * 2, "text"])
def test_a_token_of_a_wrong_shape_is_refused_before_anything_is_sent(cluster, address, token):
    async def main():
        with pytest.raises(InvalidArgument, match="session token"):
            ordercast.connect(address, session_token=token)
        async with ordercast.connect(address) as oc:
            with pytest.raises(InvalidArgument, match="session token"):
                await oc.publish(b"x", to="a", after=token)

    run(main)
    assert cluster.requests == []


def test_a_subscription_goes_on_after_its_stream_broke(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            await oc.publish_many([str(n).encode() for n in range(10)], to="a")
            async with oc.subscribe("a", start=3) as deliveries:
                got = [(await anext(deliveries)).offset for _ in range(4)]
                cluster.break_streams()
                await oc.publish_many([b"more"] * 5, to="a")
                got += [(await anext(deliveries)).offset for _ in range(8)]
                return got

    assert run(main) == list(range(3, 15))


def test_a_cursor_is_where_it_was_acknowledged_when_the_subscription_is_left(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            await oc.publish_many([b"x"] * 10, to="a")
            async with oc.subscribe("a", start="earliest", cursor="mine") as deliveries:
                async for delivery in deliveries:
                    await delivery.ack()
                    if delivery.offset == 6:
                        break
            assert cluster.cursors["a", "mine"] == 7
            async with oc.subscribe("a", cursor="mine", stop_at_end=True) as deliveries:
                rest = [delivery async for delivery in deliveries]
                await rest[-1].ack()
            return [delivery.offset for delivery in rest], await oc.cursors("a")

    offsets, cursors = run(main)
    assert offsets == [7, 8, 9]
    assert [(cursor.name, cursor.offset) for cursor in cursors] == [("mine", 10)]


def test_a_consumer_with_a_cursor_gets_nothing_twice_after_its_stream_broke(cluster, address):
    async def main():
        async with ordercast.connect(address) as oc:
            for _ in range(10):
                await oc.publish(b"x", to="a")
            async with oc.subscribe("a", start="earliest", cursor="mine") as deliveries:
                got = []
                async for delivery in deliveries:
                    got.append(delivery.offset)
                    if delivery.offset in (2, 5):
                        await delivery.ack()
                        cluster.break_streams()
                    if delivery.offset == 9:
                        return got

    assert run(main) == list(range(10))
