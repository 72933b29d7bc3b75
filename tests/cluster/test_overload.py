"""More than a cluster can order: it is refused early and told when to come back, and nobody else suffers."""

import asyncio
import time

import ordercast
from ordercast.bench.flood import STREAMS, FloodOutcome, FloodStream, Offer
from ordercast.local.cluster import LocalCluster
from ordercast.local.setup import create_groups
from ordercast.local.usage import rss_anon_mb
from tests.cluster.asking import assert_replicas_agree, in_time, payloads

GROUPS = ("a", "b")
#: Far more than three processes order, on whatever machine.
MESSAGES_PER_SECOND = 600_000.0
FLOOD_S = 2.0
#: No promise of the cluster, only the end of a flood of which nothing comes back.
FLOOD_S_MAX = 45.0
POLITE_MESSAGES = 400
GROWTH_MB_MAX = 200.0


def is_felt(outcome: FloodOutcome) -> bool:
    return outcome.acknowledged > 0 and outcome.refused > 0


async def flood_and_publish(cluster: LocalCluster) -> tuple[FloodOutcome, list[ordercast.Receipt]]:
    """A flood at every gateway, and beside it one client that keeps to its credits."""
    outcome = FloodOutcome()
    begun = time.time()
    offer = Offer(tuple(cluster.gateways), GROUPS, 16, 0.0, begun + FLOOD_S_MAX)
    streams = [FloodStream(address, offer, outcome) for address in offer.gateways for _ in range(STREAMS)]
    floods = [asyncio.create_task(stream.open_loop(MESSAGES_PER_SECOND / len(streams))) for stream in streams]
    async with ordercast.connect(*cluster.gateways, in_flight_max=32) as polite:
        soon = [await polite.publish_soon(b"polite %d" % number, to=GROUPS) for number in range(POLITE_MESSAGES)]
        receipts = await asyncio.gather(*soon)
    while time.time() < begun + FLOOD_S or (time.time() < offer.counted_until and not is_felt(outcome)):
        await asyncio.sleep(0.05)
    for task in floods:
        task.cancel()
    await asyncio.gather(*floods, return_exceptions=True)
    return outcome, receipts


def test_a_flood_is_refused_with_retry_info_and_keeps_nobody_out(make_cluster):
    cluster = make_cluster()
    create_groups(cluster.gateways, list(GROUPS))
    pids = [member.process.pid for member in cluster.members.values()]
    before = max(map(rss_anon_mb, pids))
    outcome, receipts = in_time(flood_and_publish(cluster))
    assert max(map(rss_anon_mb, pids)) - before < GROWTH_MB_MAX
    assert outcome.acknowledged > 0
    assert 0 < outcome.refused == outcome.refused_with_retry_info
    # What had to be sent again, since an answer took too long, is there once as well.
    sent = [b"polite %d" % number for number in range(POLITE_MESSAGES)]
    for group in GROUPS:
        stored = payloads(cluster.gateways[0], group)
        assert [payload for payload in stored if payload.startswith(b"polite")] == sent
        assert [stored[receipt.offsets[group]] for receipt in receipts] == sent
    with ordercast.connect_sync(*cluster.gateways) as connection:
        assert connection.publish(b"afterwards", to=GROUPS).offsets
    assert_replicas_agree(cluster.gateways[0])
