"""Session tokens in a real cluster: what a client publishes comes behind all that it has read, anywhere."""

import asyncio
import itertools
from collections.abc import Iterator

import pytest

import ordercast
from ordercast.local.cluster import LocalCluster
from ordercast.local.setup import create_groups
from tests.cluster.asking import in_time
from tests.cluster.conftest import MakeCluster

#: On one node each, and nothing is sent to two of them: their clocks know nothing of each other.
ALONE = ["alone-1", "alone-2", "alone-3"]
#: On all nodes.
SHARED = ["a", "b", "c"]
AHEAD_COUNT = 50
LINKS_COUNT = 12
BUSY_COUNT = 2


@pytest.fixture(scope="module")
def cluster(make_module_cluster: MakeCluster) -> Iterator[LocalCluster]:
    made = make_module_cluster()
    create_groups(made.gateways, ALONE, replicas=1)
    create_groups(made.gateways, SHARED)
    return made


async def read_until(oc: ordercast.Connection, group: str, payload: bytes) -> ordercast.Delivery:
    """Reads the group's log up to the message with this payload."""
    async with oc.subscribe(group, start="earliest") as deliveries:
        async for delivery in deliveries:
            if delivery.payload == payload:
                return delivery
    raise AssertionError("the log ended")


async def keep_busy(address: str, number: int) -> None:
    """Other messages, to all kinds of sets, until it is cancelled."""
    sets = [["a"], ["b"], ["c"], ["a", "b"], ["b", "c"], ["a", "b", "c"]]
    async with ordercast.connect(address, in_flight_max=16) as oc:
        for turn in itertools.count(number):
            await oc.publish_soon(b"other", to=sets[turn % len(sets)])


def test_an_answer_in_a_group_that_knows_nothing_of_the_question_comes_behind_it(cluster: LocalCluster) -> None:
    """The clock of the first group is far ahead: only what was read tells the other one."""
    first, second, third = ALONE

    async def story() -> list[bytes]:
        async with (
            ordercast.connect(cluster.gateways[0]) as asking,
            ordercast.connect(cluster.gateways[1]) as answering,
            ordercast.connect(cluster.gateways[2]) as closing,
        ):
            for number in range(AHEAD_COUNT):
                await asking.publish(b"%d" % number, to=first)
            await asking.publish(b"question", to=first)
            question = await read_until(answering, first, b"question")
            await answering.publish(b"answer", to=second)
            answer = await read_until(closing, second, b"answer")
            closed = await closing.publish(b"closed", to=third)
            return [question.order_key, answer.order_key, closed.order_key]

    keys = in_time(story())
    assert keys == sorted(keys)
    assert keys[0] < keys[1] < keys[2]


def test_order_keys_rise_along_a_chain_of_readers_while_others_publish(cluster: LocalCluster) -> None:
    """Each link reads the last one in a group of its set, and publishes at another gateway."""
    sets = [["a"], ["a", "b"], ["b", "c"], ["a", "c"]]

    async def story() -> list[bytes]:
        busy = [asyncio.create_task(keep_busy(cluster.gateways[number], number)) for number in range(BUSY_COUNT)]
        try:
            return await links()
        finally:
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)

    async def links() -> list[bytes]:
        keys: list[bytes] = []
        read_in = ""
        for number in range(LINKS_COUNT):
            gateway = cluster.gateways[number % len(cluster.gateways)]
            groups = sets[number % len(sets)]
            async with ordercast.connect(gateway) as oc:
                if read_in:
                    await read_until(oc, read_in, b"link %d" % (number - 1))
                receipt = await oc.publish(b"link %d" % number, to=groups)
            keys.append(receipt.order_key)
            read_in = groups[-1]
        return keys

    keys = in_time(story())
    assert keys == sorted(keys)
    assert len(dict.fromkeys(keys)) == LINKS_COUNT


def test_a_token_of_one_domain_is_taken_along_through_another(cluster: LocalCluster) -> None:
    """A client reads in one domain, publishes in a second, and its token still tells of the first."""
    first, second, _ = ALONE

    async def story() -> tuple[bytes, bytes]:
        async with ordercast.connect(cluster.gateways[0]) as oc:
            await oc.create_domain("elsewhere")
            await oc.create_group("far", domain="elsewhere")
            for number in range(AHEAD_COUNT):
                await oc.publish(b"%d" % number, to=first)
            seen = await oc.publish(b"seen", to=first)
            await oc.publish(b"far away", to="far")
            token = oc.session_token
        async with ordercast.connect(cluster.gateways[1], session_token=token) as behind:
            return seen.order_key, (await behind.publish(b"behind", to=second)).order_key

    seen, behind = in_time(story())
    assert seen < behind
