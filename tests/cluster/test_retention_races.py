"""Logs that are cut while they are read, caught up with and written, and a process that is killed in the middle.

What a subscriber gets has no gap from where it began, until it ends with OUT_OF_RANGE: then what it wanted next is
gone, at every replica. Logs are cut, so none of them shows all that there was. Witnesses who keep up do, together:
one for each group and replica writes down the entries as they come.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import grpc
import pytest

import ordercast
from ordercast import errors
from ordercast.core.ids import group_name
from ordercast.local.audit import Verdict, audit, messages_of
from ordercast.local.cluster import LocalCluster
from ordercast.local.load import Load, wait_for_equal_logs
from ordercast.runtime.storage.layout import next_offset_of
from ordercast.v1.gateway_pb2 import DescribeClusterRequest, SubscribeRequest, SubscribeStart
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub
from ordercast.v1.membership_pb2 import Retention
from ordercast.v1.sequencer_pb2 import LogEntry, StartAt
from tests.cluster.asking import assert_replicas_agree, bounds, error_info
from tests.cluster.trial import PATIENCE_S, Progress, start_again

GROUPS = ("a", "b")
MESSAGE_BYTES = 4000
#: A second or two of what is published: who is slower than that is overtaken.
KEPT_BYTES = 600_000
PRODUCERS = 3
PAUSE_S = 0.01
#: Between two messages: far slower than what is published, on however busy a machine.
SLOW_S = 0.2
#: A resuming subscriber takes so many, goes away for so long, and comes back where it was.
TAKEN = 40
AWAY_S = 0.3
CUTS = 3
#: gRPC would otherwise take megabytes ahead, and the gateway would never be behind.
NARROW = (("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 1 << 16))


class Witness:
    """Entries of a group by their first offset. Where it was overtaken, another witness has what it missed."""

    def __init__(self) -> None:
        self.entries: dict[int, LogEntry] = {}
        self.differences: list[str] = []

    def saw(self, entry: LogEntry) -> None:
        if self.entries.setdefault(entry.first_offset, entry) != entry:
            self.differences.append(f"two entries at offset {entry.first_offset}")

    def log(self) -> list[LogEntry]:
        return [self.entries[offset] for offset in sorted(self.entries)]

    def gaps(self) -> list[tuple[int, int]]:
        log = self.log()
        ends = [0, *map(next_offset_of, log)]
        return [
            (end, entry.first_offset) for end, entry in zip(ends, log, strict=False) if end != entry.first_offset
        ]


async def watch(gateway: str, group: str, replica: str, witness: Witness) -> None:
    """For ever, over every end of the stream."""
    at = StartAt(offset=0)
    async with grpc.aio.insecure_channel(gateway) as channel:
        while True:
            start = SubscribeRequest(start=SubscribeStart(group=group, start=at, replica=replica))
            call = GatewayServiceStub(channel).Subscribe()
            try:
                await call.write(start)
                async for response in call:
                    for data in response.deliveries.entries:
                        entry = LogEntry.FromString(data)
                        witness.saw(entry)
                        at = StartAt(offset=next_offset_of(entry))
            except grpc.aio.AioRpcError as error:
                if error.code() == grpc.StatusCode.OUT_OF_RANGE:
                    at = StartAt(earliest=True)
                await asyncio.sleep(0.1)


class Subscriber:
    """Remembers what it saw, in runs: after OUT_OF_RANGE it begins anew with the earliest that there is."""

    def __init__(self, load: Load, name: str, group: str) -> None:
        self.load = load
        self.name = name
        self.group = group
        self.runs = 0
        self.overtaken: list[tuple[int, int]] = []

    async def run(
        self, read: "Callable[[Subscriber, ordercast.Connection, int | str], Awaitable[int | str]]"
    ) -> None:
        at: int | str = "earliest"
        gateways = self.load.random.sample(self.load.gateways, len(self.load.gateways))
        async with ordercast.connect(*gateways) as connection:
            while True:
                try:
                    at = await read(self, connection, at)
                except errors.OutOfRange as gone:
                    self.overtaken.append((self.next(), gone.first_offset))
                    self.runs += 1
                    at = "earliest"

    def next(self) -> int:
        seen = self.seen
        return seen[-1][0] + 1 if seen else 0

    @property
    def seen(self) -> list[tuple[int, bytes]]:
        return self.load.evidence.seen.setdefault((f"{self.name}/{self.runs}", self.group), [])


async def read_on(
    subscriber: Subscriber, connection: ordercast.Connection, at: int | str, wait_s: float
) -> int | str:
    async with connection.subscribe(subscriber.group, start=at) as deliveries:
        async for delivery in deliveries:
            subscriber.seen.append((delivery.offset, delivery.payload))
            if wait_s:
                await asyncio.sleep(wait_s)
    return subscriber.next()


async def fast(subscriber: Subscriber, connection: ordercast.Connection, at: int | str) -> int | str:
    return await read_on(subscriber, connection, at, 0.0)


async def slow(subscriber: Subscriber, connection: ordercast.Connection, at: int | str) -> int | str:
    return await read_on(subscriber, connection, at, SLOW_S)


async def resuming(subscriber: Subscriber, connection: ordercast.Connection, at: int | str) -> int | str:
    async with connection.subscribe(subscriber.group, start=at) as deliveries:
        taken = 0
        async for delivery in deliveries:
            subscriber.seen.append((delivery.offset, delivery.payload))
            taken += 1
            if taken == TAKEN:
                break
    await asyncio.sleep(AWAY_S)
    return subscriber.next()


async def unchecked(subscriber: Subscriber, connection: ordercast.Connection, at: int | str) -> int | str:
    """Slow, and past the SDK: that one would notice a gap by itself, and ask again."""
    wanted = at if isinstance(at, int) else 0
    start = StartAt(offset=at) if isinstance(at, int) else StartAt(earliest=True)
    gateway = subscriber.load.random.choice(subscriber.load.gateways)
    async with grpc.aio.insecure_channel(gateway, options=NARROW) as channel:
        call = GatewayServiceStub(channel).Subscribe()
        try:
            await call.write(SubscribeRequest(start=SubscribeStart(group=subscriber.group, start=start)))
            async for response in call:
                for data in response.deliveries.entries:
                    for offset, payload, _ in messages_of(LogEntry.FromString(data)):
                        if offset >= wanted:
                            subscriber.seen.append((offset, payload))
                            await asyncio.sleep(SLOW_S)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.OUT_OF_RANGE:
                raise errors.OutOfRange(str(error.details()), details=error_info(error).metadata) from error
            await asyncio.sleep(AWAY_S)
    return subscriber.next() if subscriber.seen else at


def first_offsets(cluster: LocalCluster) -> list[int]:
    return [max(first for first, _ in bounds(cluster.gateways[0], group)) for group in GROUPS]


def wait_for_cut(cluster: LocalCluster) -> None:
    """Each group has lost something since, at some replica."""
    before, deadline = first_offsets(cluster), time.monotonic() + PATIENCE_S
    while not all(now > then for now, then in zip(first_offsets(cluster), before, strict=True)):
        assert time.monotonic() < deadline, "nothing was cut off"
        time.sleep(0.2)


async def race(cluster: LocalCluster) -> tuple[Verdict, list[Subscriber], list[str]]:
    load = Load(cluster.gateways, GROUPS)
    progress = Progress(load)
    witnesses = {group: Witness() for group in GROUPS}
    watching = [
        asyncio.create_task(watch(gateway, group, name, witnesses[group]))
        for gateway, name in zip(cluster.gateways, cluster.members, strict=True)
        for group in GROUPS
    ]
    subscribers = [
        (Subscriber(load, f"{read.__name__}-{number}", group), read)
        for read in (fast, slow, unchecked, resuming)
        for number in (1, 2)
        for group in GROUPS
    ]
    reading = [asyncio.create_task(subscriber.run(read)) for subscriber, read in subscribers]
    producing = [
        asyncio.create_task(load.produce(f"producer-{number}", pause_s=PAUSE_S, size=MESSAGE_BYTES))
        for number in range(PRODUCERS)
    ]
    try:
        for cut in range(CUTS):
            await asyncio.to_thread(wait_for_cut, cluster)
            victim = list(cluster.members)[cut % len(cluster.members)]
            cluster.kill(victim)
            # It misses more than a majority of the others: sometimes more than they keep.
            await asyncio.to_thread(progress.wait_for_receipts)
            await asyncio.to_thread(start_again, cluster, victim)
        await overtaken([subscriber for subscriber, _ in subscribers])
        load.is_stopping = True
        await asyncio.wait(producing, timeout=PATIENCE_S)
        await asyncio.to_thread(wait_for_equal_logs, cluster.gateways[0], PATIENCE_S)
        await caught_up(load, witnesses)
    finally:
        for task in (*watching, *reading, *producing):
            task.cancel()
        ended = await asyncio.gather(*watching, *reading, *producing, return_exceptions=True)
    with grpc.insecure_channel(cluster.gateways[0]) as channel:
        groups = (
            GatewayServiceStub(channel)
            .DescribeCluster(DescribeClusterRequest(shared_groups=True), timeout=10)
            .groups
        )
    for group in groups:
        load.evidence.logs[group.id] = {"witnesses": witnesses[group_name(group.id)].log()}
    verdict = audit(load.evidence)
    problems = [str(error) for error in ended if isinstance(error, Exception)]
    for name, witness in witnesses.items():
        problems += [*witness.differences, *(f"nobody saw {name} from {gap}" for gap in witness.gaps())]
    return verdict, [subscriber for subscriber, _ in subscribers], [*problems, *load.failed]


async def overtaken(subscribers: list[Subscriber]) -> None:
    """Until logs were cut before somebody who is slow had read them."""
    async with asyncio.timeout(PATIENCE_S):
        for kind in ("slow", "unchecked"):
            while not any(subscriber.overtaken for subscriber in subscribers if subscriber.name.startswith(kind)):
                await asyncio.sleep(0.1)


async def caught_up(load: Load, witnesses: dict[str, Witness]) -> None:
    """Until somebody has written down everything that was acknowledged."""
    async with asyncio.timeout(PATIENCE_S):
        for receipt in load.evidence.receipts.values():
            for group, offset in receipt.offsets.items():
                while not (log := witnesses[group].log()) or next_offset_of(log[-1]) <= offset:
                    await asyncio.sleep(0.1)


@pytest.mark.long
def test_cutting_logs_under_readers_kills_and_catching_up_leaves_no_gap(make_cluster):
    cluster = make_cluster(fault_injection=True)
    with ordercast.connect_sync(*cluster.gateways) as connection:
        for group in GROUPS:
            connection.create_group(group, retention=Retention(bytes=KEPT_BYTES))
    verdict, subscribers, problems = asyncio.run(race(cluster))
    assert not problems
    assert verdict.is_clean, verdict.findings
    assert verdict.acknowledged > 0
    # Who was told OUT_OF_RANGE had not missed the chance to get it: it is before what there is.
    for subscriber in subscribers:
        assert all(wanted < first for wanted, first in subscriber.overtaken), (
            subscriber.name,
            subscriber.overtaken,
        )
    assert_replicas_agree(cluster.gateways[0])
