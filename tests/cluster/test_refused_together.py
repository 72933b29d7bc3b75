"""Messages that a gateway refuses together come again one by one, and nothing of their producer overtakes them."""

import asyncio
from collections.abc import Callable

import ordercast
from ordercast.local.cluster import LocalCluster
from ordercast.local.setup import create_groups
from tests.cluster.asking import assert_replicas_agree, in_time, payloads

#: More of them than a gateway takes in one request, to sets that overlap, over and over.
RUN = 7
SETS = (["a"], ["a", "b"], ["b"], ["b", "c"], ["a", "c"])
ROUNDS = 3
PRODUCERS = 3
DESTINATIONS = [groups for _ in range(ROUNDS) for groups in SETS for _ in range(RUN)]


async def publish_runs(gateway: str, name: str) -> list[ordercast.Receipt]:
    """Each message says whose it is, and which of its producer's."""
    async with ordercast.connect(gateway, timeout=120.0) as oc:
        soon = [await oc.publish_soon(f"{name} {n}".encode(), groups) for n, groups in enumerate(DESTINATIONS)]
        return list(await asyncio.gather(*soon))


def test_runs_that_are_too_long_for_a_request_keep_their_order_in_all_sets(
    make_cluster: Callable[..., LocalCluster],
) -> None:
    cluster = make_cluster(options=["--limits.envelope-messages-max=4"])
    create_groups(cluster.gateways, ["a", "b", "c"])
    names = [f"producer-{number}" for number in range(PRODUCERS)]

    async def publish_all() -> None:
        work = [publish_runs(cluster.gateways[n % len(cluster.gateways)], name) for n, name in enumerate(names)]
        await asyncio.gather(*work)

    in_time(publish_all(), timeout_s=240.0)
    for group in ("a", "b", "c"):
        sent = [number for number, groups in enumerate(DESTINATIONS) if group in groups]
        read = [payload.decode().split() for payload in payloads(cluster.gateways[0], group)]
        for name in names:
            assert [int(number) for producer, number in read if producer == name] == sent, (group, name)
    assert_replicas_agree(cluster.gateways[0])
