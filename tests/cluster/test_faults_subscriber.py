"""A subscriber that does not read: nobody waits for it, nobody remembers for it, and it goes on where it was."""

import ordercast
from ordercast.local.setup import create_groups
from ordercast.local.usage import rss_anon_mb
from tests.cluster.trial import Progress, run_trial

BULK_MESSAGES = 800
BULK_BYTES = 64 << 10
GROWTH_MB_MAX = 150.0


def test_a_subscriber_that_does_not_read_costs_no_memory_and_later_reads_everything(make_cluster):
    cluster = make_cluster(fault_injection=True)
    create_groups(cluster.gateways, ["bulk"])
    pids = {name: member.process.pid for name, member in cluster.members.items()}
    payloads = [str(number).encode().ljust(BULK_BYTES, b".") for number in range(BULK_MESSAGES)]

    def during(progress: Progress) -> None:
        with (
            ordercast.connect_sync(*cluster.gateways) as connection,
            connection.subscribe("bulk", start="earliest") as deliveries,
        ):
            receipt = connection.publish(b"first", to=["bulk"], timeout=60.0)
            assert next(deliveries).offset == receipt.offsets["bulk"]
            before = {name: rss_anon_mb(pid) for name, pid in pids.items()}
            connection.publish_many(payloads, to=["bulk"], timeout=120.0)
            progress.wait_for_receipts()
            growth = {name: rss_anon_mb(pid) - before[name] for name, pid in pids.items()}
            assert max(growth.values()) < GROWTH_MB_MAX, growth
            for payload in payloads:
                assert next(deliveries).payload == payload

    run_trial(cluster, during)
