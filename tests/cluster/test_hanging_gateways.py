"""A gateway that is stopped, not dead: whoever knows another one goes on there while it is stopped.

No time is asserted: the process is resumed when everybody has gone on without it.
"""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import ordercast
from ordercast.local.cluster import LocalCluster, Member, free_ports, wait_until
from ordercast.local.setup import create_groups
from tests.cluster.asking import in_time
from tests.cluster.conftest import MakeCluster
from tests.cluster.trial import PATIENCE_S, gateway_of

HANGING, SOUND = "hanging", "sound"
BEFORE, AFTER = 5, 20


@pytest.fixture(scope="module")
def cluster(make_module_cluster: MakeCluster) -> LocalCluster:
    """One node with all services, and two gateways that are processes of their own."""
    made = make_module_cluster(nodes=1)
    create_groups(made.gateways, ["busy", "quiet"], replicas=1)
    for name in (HANGING, SOUND):
        peer_port, client_port = free_ports(2)
        made.members[name] = Member(name, ("gateway",), made.directory / name, peer_port, client_port)
    made.start([HANGING, SOUND])
    made.wait_healthy([HANGING, SOUND], timeout_s=PATIENCE_S)
    return made


@pytest.fixture
def addresses(cluster: LocalCluster) -> Iterator[list[str]]:
    """The gateway that is going to hang comes first."""
    yield [gateway_of(cluster, HANGING), gateway_of(cluster, SOUND)]
    if cluster.members[HANGING].is_paused:
        cluster.resume(HANGING)


def read_in_thread(addresses: list[str], group: str, has_begun: threading.Event) -> list[tuple[int, bytes]]:
    found = []
    with ordercast.connect_sync(*addresses) as oc, oc.subscribe(group, start="earliest") as deliveries:
        for delivery in deliveries:
            found.append((delivery.offset, delivery.payload))
            if len(found) == BEFORE:
                has_begun.set()
            if len(found) == BEFORE + AFTER:
                return found
    return found


async def read(addresses: list[str], group: str, has_begun: threading.Event) -> list[tuple[int, bytes]]:
    found = []
    async with ordercast.connect(*addresses) as oc, oc.subscribe(group, start="earliest") as deliveries:
        async for delivery in deliveries:
            found.append((delivery.offset, delivery.payload))
            if len(found) == BEFORE:
                has_begun.set()
            if len(found) == BEFORE + AFTER:
                return found
    return found


def publish(addresses: list[str], group: str, begin: int, end: int) -> None:
    with ordercast.connect_sync(*addresses) as oc:
        for number in range(begin, end):
            oc.publish(b"%d" % number, to=group)


@pytest.mark.parametrize("group", ["busy", "quiet"])
def test_subscribers_go_on_elsewhere(cluster: LocalCluster, addresses: list[str], group: str) -> None:
    """Busy: messages come before, while and after the gateway stops. Quiet: only when everybody is gone."""
    publish(addresses, group, 0, BEFORE)
    have_begun = [threading.Event(), threading.Event()]
    with ThreadPoolExecutor(3) as executor:
        readers: list[Future[list[tuple[int, bytes]]]] = [
            executor.submit(read_in_thread, addresses, group, have_begun[0]),
            executor.submit(lambda: in_time(read(addresses, group, have_begun[1]), PATIENCE_S)),
        ]
        try:
            assert all(has_begun.wait(PATIENCE_S) for has_begun in have_begun)
            if group == "busy":
                publishing = executor.submit(publish, addresses[1:], group, BEFORE, BEFORE + AFTER)
                cluster.pause(HANGING)
                publishing.result()
            else:
                cluster.pause(HANGING)
                publish(addresses[1:], group, BEFORE, BEFORE + AFTER)
            wait_until("all have gone on", lambda: all(reader.done() for reader in readers), PATIENCE_S)
        finally:
            cluster.resume(HANGING)
    for reader in readers:
        assert reader.result() == [(number, b"%d" % number) for number in range(BEFORE + AFTER)]


def test_what_begins_while_the_gateway_is_stopped_begins_elsewhere(
    cluster: LocalCluster, addresses: list[str]
) -> None:
    cluster.pause(HANGING)

    def ask() -> None:
        with ordercast.connect_sync(*addresses) as oc:
            assert {group.name for group in oc.groups()} >= {"busy", "quiet"}

    async def begin() -> None:
        async with ordercast.connect(*addresses) as oc:
            await asyncio.gather(oc.groups(), oc.publish(b"async", to="busy"))

    with ThreadPoolExecutor(2) as executor:
        asking = [executor.submit(ask), executor.submit(publish, addresses, "busy", 0, 1)]
        in_time(begin(), PATIENCE_S)
        for asked in asking:
            asked.result()
