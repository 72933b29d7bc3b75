"""Clients leave a gateway that hangs: nothing is lost, and nothing comes twice."""

import asyncio
import contextlib
import threading
import time

import pytest

import ordercast
from ordercast.client import aio_silence, session, stream_reader, sync_silence
from ordercast.core import silence as silence_module
from ordercast.core.silence import Silence
from ordercast.errors import Unavailable
from tests.unit.client_gateway import ClusterModel, served
from tests.unit.hanging import hanging

PATIENCE_S = 60.0
#: More than silence may last.
MORE_LOOKS = 10


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    """Whoever hangs in these tests does so for ever: there is no need to be sure of it for seconds."""
    for module in (aio_silence, sync_silence):
        monkeypatch.setattr(module, "LOOK_S", 0.1)
    monkeypatch.setattr(session, "PATIENCE_S", 0.6)


@pytest.fixture
def cluster():
    model = ClusterModel("a", "b")
    return model


@pytest.fixture
def gateways(cluster):
    """The first can be made to hang; the second is sound."""
    with served(cluster) as first, served(cluster) as second, hanging(first) as puppet:
        yield puppet, second


def publish(address: str, *payloads: bytes) -> None:
    with ordercast.connect_sync(address) as oc:
        oc.publish_many(payloads, to="a")


def run(main):
    async def in_time():
        async with asyncio.timeout(PATIENCE_S):
            return await main

    return asyncio.run(in_time())


def wait_until(is_so) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


@contextlib.contextmanager
def sync_subscribed(*addresses, **options):
    with ordercast.connect_sync(*addresses) as oc, oc.subscribe("a", **options) as deliveries:
        yield deliveries


# ------------------------------------------------------------------------------------------------------ the log


@pytest.mark.parametrize("is_quiet", [True, False])
def test_a_subscription_leaves_a_gateway_that_hangs(cluster, gateways, is_quiet):
    puppet, second = gateways
    publish(second, b"0", b"1", b"2")

    async def main():
        async with (
            ordercast.connect(puppet.address, second) as oc,
            oc.subscribe("a", start="earliest", cursor="c") as deliveries,
        ):
            got = [await anext(deliveries) for _ in range(3)]
            streams = cluster.streams
            puppet.hang()
            if is_quiet:
                await asyncio.to_thread(wait_until, lambda: cluster.streams > streams)
            await asyncio.to_thread(publish, second, b"3", b"4")
            got += [await anext(deliveries) for _ in range(2)]
            await got[-1].ack()
        return [(delivery.offset, delivery.payload) for delivery in got]

    assert run(main()) == [(number, b"%d" % number) for number in range(5)]
    assert cluster.cursors["a", "c"] == 5


@pytest.mark.parametrize("is_quiet", [True, False])
def test_a_subscription_for_threads_leaves_a_gateway_that_hangs(cluster, gateways, is_quiet):
    puppet, second = gateways
    publish(second, b"0", b"1", b"2")
    with sync_subscribed(puppet.address, second, start="earliest", cursor="c") as deliveries:
        got = [next(deliveries) for _ in range(3)]
        streams = cluster.streams
        puppet.hang()
        if is_quiet:
            wait_until(lambda: cluster.streams > streams)
        publish(second, b"3", b"4")
        got += [next(deliveries) for _ in range(2)]
        got[-1].ack()
    assert [(delivery.offset, delivery.payload) for delivery in got] == [(n, b"%d" % n) for n in range(5)]
    assert cluster.cursors["a", "c"] == 5


def test_who_leaves_with_the_publisher_beside_it_does_not_come_back(cluster, gateways):
    """Both count on from the gateway that hangs: together they would be there again."""
    puppet, second = gateways

    async def main():
        async with (
            ordercast.connect(puppet.address, second) as oc,
            oc.subscribe("a", start="earliest") as deliveries,
        ):
            await oc.publish(b"0", to="a")
            await anext(deliveries)
            puppet.hang()
            await oc.publish(b"1", to="a")
            assert (await anext(deliveries)).payload == b"1"
            return oc._gateway(0), oc._gateway(1)

    assert run(main()) == (second, second)


def count_looks(monkeypatch, silence) -> list[bool]:
    """What each look at it says from now on."""
    looks, look = [], silence.look

    def counted() -> bool:
        looks.append(look())
        return looks[-1]

    monkeypatch.setattr(silence, "look", counted)
    return looks


def test_a_consumer_that_does_not_read_does_not_leave(cluster, gateways, monkeypatch):
    """What was read ahead is as much as there may be, and so nothing is heard."""
    monkeypatch.setattr(stream_reader, "AHEAD_ENTRIES_MAX", 1)
    puppet, _ = gateways
    for number in range(10):
        publish(puppet.address, b"%d" % number)

    async def main():
        async with (
            ordercast.connect(puppet.address) as oc,
            oc.subscribe("a", start="earliest") as deliveries,
        ):
            silence = deliveries._reader.silence
            while silence.is_listening:
                await asyncio.sleep(0.01)
            looks = count_looks(monkeypatch, silence)
            while len(looks) < MORE_LOOKS:
                await asyncio.sleep(0.01)
            assert not any(looks)
            return [(await anext(deliveries)).offset for _ in range(10)]

    assert run(main()) == list(range(10))


def test_a_thread_that_does_not_read_does_not_leave(cluster, gateways, monkeypatch):
    monkeypatch.setattr(stream_reader, "AHEAD_ENTRIES_MAX", 1)
    puppet, _ = gateways
    for number in range(10):
        publish(puppet.address, b"%d" % number)
    with sync_subscribed(puppet.address, start="earliest") as deliveries:
        silence = deliveries._reader.silence
        wait_until(lambda: not deliveries._reader.has_room and not silence.is_listening)
        looks = count_looks(monkeypatch, silence)
        wait_until(lambda: len(looks) >= MORE_LOOKS)
        assert not any(looks)
        assert [next(deliveries).offset for _ in range(10)] == list(range(10))


def test_a_consumer_that_blocks_its_event_loop_misses_nothing(cluster, gateways):
    puppet, second = gateways

    async def main():
        async with (
            ordercast.connect(puppet.address, second) as oc,
            oc.subscribe("a", start="earliest") as deliveries,
        ):
            publishing = threading.Thread(target=publish, args=(second, b"0", b"1"))
            publishing.start()
            time.sleep(1.0)
            got = [(await anext(deliveries)).offset for _ in range(2)]
            publishing.join()
            return got

    assert run(main()) == [0, 1]


def test_a_gateway_that_gives_no_signs_of_life_is_not_left_for_silence(cluster, gateways, monkeypatch):
    """One of an early version."""
    puppet, _ = gateways
    cluster.gives_signs = False

    async def main():
        async with ordercast.connect(puppet.address) as oc, oc.subscribe("a", start="earliest") as deliveries:
            looks = count_looks(monkeypatch, deliveries._reader.silence)
            while len(looks) < MORE_LOOKS:
                await asyncio.sleep(0.01)
            assert not any(looks)
            await asyncio.to_thread(publish, puppet.address, b"0")
            return (await anext(deliveries)).offset

    assert run(main()) == 0


# --------------------------------------------------------------------------------------------------------- live


def test_live_delivery_ends_when_its_gateway_hangs_and_begins_again_elsewhere(cluster, gateways):
    puppet, second = gateways

    async def main():
        async with ordercast.connect(puppet.address, second) as oc:
            async with oc.subscribe_live("a") as live:
                await asyncio.to_thread(publish, second, b"0")
                got = [(await anext(live)).payload]
                puppet.hang()
                with pytest.raises(Unavailable, match="silent"):
                    await anext(live)
            async with oc.subscribe_live("a") as live:
                await asyncio.to_thread(publish, second, b"1")
                return [*got, (await anext(live)).payload]

    assert run(main()) == [b"0", b"1"]


def test_live_delivery_for_threads_ends_when_its_gateway_hangs_and_begins_again_elsewhere(cluster, gateways):
    puppet, second = gateways
    with ordercast.connect_sync(puppet.address, second) as oc:
        with oc.subscribe_live("a") as live:
            publish(second, b"0")
            assert next(live).payload == b"0"
            puppet.hang()
            with pytest.raises(Unavailable, match="silent"):
                next(live)
        with oc.subscribe_live("a") as live:
            publish(second, b"1")
            assert next(live).payload == b"1"


# ---------------------------------------------------------------------------------------------------- beginning


def test_whatever_begins_at_a_gateway_that_hangs_goes_on_at_another(cluster, gateways):
    puppet, second = gateways
    puppet.hang()

    async def publishing():
        async with ordercast.connect(puppet.address, second) as oc:
            await oc.publish(b"0", to="a")

    async def asking():
        async with ordercast.connect(puppet.address, second) as oc:
            return [group.name for group in await oc.groups()]

    async def reading():
        async with ordercast.connect(puppet.address, second) as oc, oc.subscribe("a", start="earliest") as log:
            return (await anext(log)).payload

    async def living():
        async with ordercast.connect(puppet.address, second) as oc, oc.subscribe_live("a") as live:
            return live.replica

    async def main():
        return await asyncio.gather(publishing(), asking(), reading(), living())

    assert run(main()) == [None, ["a", "b"], b"0", "here"]


def test_whatever_begins_at_a_gateway_that_hangs_goes_on_at_another_for_threads(cluster, gateways):
    puppet, second = gateways
    puppet.hang()
    with ordercast.connect_sync(puppet.address, second) as oc:
        assert [group.name for group in oc.groups()] == ["a", "b"]
    with ordercast.connect_sync(puppet.address, second) as oc:
        oc.publish(b"0", to="a")
    with sync_subscribed(puppet.address, second, start="earliest") as deliveries:
        assert next(deliveries).payload == b"0"
    with ordercast.connect_sync(puppet.address, second) as oc, oc.subscribe_live("a") as live:
        assert live.replica == "here"


def test_a_call_whose_gateway_hangs_before_it_answers_is_made_elsewhere(cluster, gateways):
    puppet, second = gateways
    cluster.on_list = puppet.hang

    async def main():
        async with ordercast.connect(puppet.address, second) as oc:
            return [group.name for group in await oc.groups()], oc._gateway(0)

    assert run(main()) == (["a", "b"], second)


def test_a_call_of_a_thread_whose_gateway_hangs_before_it_answers_is_made_elsewhere(cluster, gateways):
    puppet, second = gateways
    cluster.on_list = puppet.hang
    with ordercast.connect_sync(puppet.address, second) as oc:
        assert [group.name for group in oc.groups()] == ["a", "b"]
        assert oc._gateway(0) == second


def test_a_slow_answer_of_a_gateway_that_is_alive_is_waited_for(cluster, gateways, monkeypatch):
    """Made again, a change could find that it was made."""
    monkeypatch.setattr(silence_module, "PATIENCE_S", PATIENCE_S)
    puppet, second = gateways
    signs, calls = [], []
    heard = Silence.heard

    def counted(silence: Silence, alive_ms: int = 0) -> None:
        heard(silence, alive_ms)
        signs.append(alive_ms)

    def take_long() -> None:
        calls.append(len(signs))
        wait_until(lambda: len(signs) >= 3 * len(calls))

    monkeypatch.setattr(Silence, "heard", counted)
    cluster.on_list = take_long

    async def main():
        async with ordercast.connect(puppet.address, second) as oc:
            return [group.name for group in await oc.groups()]

    assert run(main()) == ["a", "b"]
    with ordercast.connect_sync(puppet.address, second) as oc:
        assert [group.name for group in oc.groups()] == ["a", "b"]
    assert len(calls) == 2
    assert all(signs)
