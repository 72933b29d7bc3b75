"""Run the ledger on a local cluster that loses nodes meanwhile: `python examples/ledger/run.py`.

At the end every shard is replayed from each of its replicas: the balances must add up to zero, and the replicas of
a shard must agree on every state that it went through.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from random import Random

import ordercast
from ordercast.local.cluster import LocalCluster
from ordercast.local.load import wait_for_equal_logs
from ordercast.local.setup import create_groups

sys.path.insert(0, str(Path(__file__).parent))
from ledger import Shard, Transfer, shards_of, total

SHARDS = ["shard-a", "shard-b", "shard-c"]
ACCOUNTS = [f"account-{number}" for number in range(30)]
#: The time of a message begins when it is handed over, and hundreds wait in line here while nodes die. Too short a
#: time would end in `OutcomeUnknown`: the transfer may be stored all the same, and must not be sent again.
PATIENCE_S = 600


async def transfer_money(gateways: list[str], count: int, seed: int) -> None:
    """A client that moves money between random accounts, several transfers at a time."""
    random = Random(seed)
    async with ordercast.connect(*gateways, timeout=PATIENCE_S) as oc:
        receipts = []
        for _ in range(count):
            source, target = random.sample(ACCOUNTS, 2)
            transfer = Transfer(source, target, random.randint(1, 10_000))
            receipts.append(await oc.publish_soon(transfer.encode(), to=shards_of(transfer, SHARDS)))
        # No receipt, no money moved: a failure here would be a bug, for a retry is never applied twice.
        await asyncio.gather(*receipts)


async def replay(gateways: list[str], name: str, replica: str) -> Shard:
    """What one replica's log comes to."""
    shard = Shard(name, SHARDS)
    async with (
        ordercast.connect(*gateways, timeout=PATIENCE_S) as oc,
        oc.subscribe(name, start="earliest", stop_at_end=True, replica=replica) as deliveries,
    ):
        async for delivery in deliveries:
            shard.apply(delivery.payload)
    return shard


async def crash_nodes(cluster: LocalCluster, seconds: float) -> None:
    """One node after the other dies and comes back."""
    for name in cluster.members:
        await asyncio.sleep(seconds)
        print(f"killing {name}")
        cluster.kill(name)
        await asyncio.sleep(seconds)
        cluster.start([name])
        await asyncio.to_thread(cluster.wait_healthy, [name], PATIENCE_S)


async def run(cluster: LocalCluster, clients: int, transfers: int) -> bool:
    gateways = cluster.gateways
    crashes = asyncio.create_task(crash_nodes(cluster, 0.5))
    await asyncio.gather(*(transfer_money(gateways, transfers, seed) for seed in range(clients)))
    await crashes
    print(f"{clients * transfers} transfers have their receipts")
    # The last replica to come back is reading what it missed.
    await asyncio.to_thread(wait_for_equal_logs, gateways[0], PATIENCE_S)
    replays = {
        name: await asyncio.gather(*(replay(gateways, name, replica) for replica in cluster.members))
        for name in SHARDS
    }
    ok = True
    for name, copies in replays.items():
        agree = len({(copy.fingerprint, tuple(sorted(copy.balances.items()))) for copy in copies}) == 1
        ok = ok and agree
        print(f"{name}: {len(copies[0].balances)} accounts, replicas {'agree' if agree else 'DISAGREE'}")
    balance = total(copies[0] for copies in replays.values())
    print(f"the balances of all accounts add up to {balance}")
    return ok and balance == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--transfers", type=int, default=500, help="of each client")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ledger-") as directory, LocalCluster(Path(directory)) as cluster:
        cluster.start()
        cluster.wait_healthy(timeout_s=PATIENCE_S)
        create_groups(cluster.gateways, SHARDS)
        ok = asyncio.run(run(cluster, options.clients, options.transfers))
        cluster.stop()
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
