"""Producers and subscribers that remember everything: the witnesses of a run on a real cluster."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from random import Random
from secrets import token_hex

import grpc

import ordercast
from ordercast.client import errors
from ordercast.core.cells import cell_of
from ordercast.core.ids import group_name
from ordercast.core.members import address_of, places_of
from ordercast.core.place import Place
from ordercast.local.casts import position_of
from ordercast.local.evidence import Acknowledged, Evidence, MergedWitness, SentMessage
from ordercast.v1.gateway_pb2 import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeGroupRequest,
    SubscribeRequest,
    SubscribeStart,
)
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub
from ordercast.v1.membership_pb2 import Group
from ordercast.v1.sequencer_pb2 import (
    DescribeReplicaRequest,
    LogEntry,
    ReadEntryRequest,
    ReadGroupRequest,
    StartAt,
)
from ordercast.v1.sequencer_pb2_grpc import SequencerServiceStub

PUBLISH_S_MAX = 120.0
CALL_S_MAX = 10.0
READ_S_MAX = 60.0
COLLECT_S_MAX = 20.0
LOOK_S = 0.1
#: After so many deliveries a merged reader comes back with its cursor.
MERGED_AT_ONCE = 100
#: Why groups cannot be read so.
NO_ORDER = "NO_MERGED_ORDER"
AGAIN_S = 0.5
#: Messages whose sender is shown what another producer has seen.
TOLD_CHANCE = 0.1


class Load:
    """Publishes to random sets of groups and subscribes to all of them, through all gateways."""

    def __init__(
        self, gateways: Sequence[str], groups: Sequence[str], seed: int = 1, set_size_max: int | None = None
    ) -> None:
        self.gateways = list(gateways)
        self.groups = list(groups)
        self.set_size_max = set_size_max or len(self.groups)
        #: By producer: its session token, and messages that it stands for.
        self.told: dict[str, tuple[bytes, tuple[bytes, ...]]] = {}
        self.evidence = Evidence()
        self.random = Random(seed)
        self.is_stopping = False
        #: When something was acknowledged, and what waits for that, for the longest outage.
        self.waiting: dict[bytes, SentMessage] = {}
        self.last_receipt = time.monotonic()
        self.outage_s_max = 0.0
        self.outage_ended = self.last_receipt
        #: Publishes that ended without a receipt, by kind of error.
        self.failed: dict[str, int] = {}
        self.on_receipt: Callable[[], None] = lambda: None

    # ------------------------------------------------------------------------------------------- producing

    async def produce(
        self, name: str, *, count: int | None = None, in_flight: int = 16, pause_s: float = 0.0, size: int = 0
    ) -> None:
        """Until it is told to stop, or so many; then until everything is answered."""
        async with ordercast.connect(*self._shuffled(name)) as connection:
            await self._produce(connection, name, count, in_flight, pause_s, size)

    async def produce_together(self, names: Sequence[str], *, in_flight: int = 16, pause_s: float = 0.0) -> None:
        """The same, for several producers over one connection."""
        async with ordercast.connect(*self._shuffled(names[0])) as connection:

            async def one(name: str) -> None:
                async with connection.producer() as producer:
                    await self._produce(producer, name, None, in_flight, pause_s, 0)

            await asyncio.gather(*map(one, names))

    def _shuffled(self, name: str) -> list[str]:
        return Random(f"{self.random.random()}/{name}").sample(self.gateways, len(self.gateways))

    async def _produce(
        self,
        producer: ordercast.Producer,
        name: str,
        count: int | None,
        in_flight: int,
        pause_s: float,
        size: int,
    ) -> None:
        random = Random(f"{self.random.random()}/{name}")
        seen: deque[bytes] = deque(maxlen=4)
        room = asyncio.Semaphore(in_flight)
        pending: set[asyncio.Task[None]] = set()
        index = 0
        while not self.is_stopping and (count is None or index < count):
            groups = tuple(sorted(random.sample(self.groups, random.randint(1, self.set_size_max))))
            payload = f"{name}/{index}".encode().ljust(size, b".")
            unordered = random.random() < 0.1
            await room.acquire()
            token, told = self._told_by_another(name, random)
            sent = SentMessage(payload, index, groups, unordered, (*seen, *told))
            self.evidence.sent[payload] = sent
            if not self.waiting:
                self.last_receipt = time.monotonic()
            self.waiting[payload] = sent
            future = await producer.publish_soon(
                payload, to=list(groups), ordered=not unordered, timeout=PUBLISH_S_MAX, after=token
            )
            self.told[name] = (producer.session_token, tuple(seen))
            task = asyncio.ensure_future(self._receipt(future, sent, seen, room))
            pending.add(task)
            task.add_done_callback(pending.discard)
            index += 1
            if pause_s:
                await asyncio.sleep(random.expovariate(1 / pause_s))
        if pending:
            await asyncio.wait(pending)

    def _told_by_another(self, name: str, random: Random) -> tuple[bytes | None, tuple[bytes, ...]]:
        """Causality goes from client to client: what one of them has seen, another one shows with its message."""
        others = sorted(other for other in self.told if other != name)
        if not others or random.random() >= TOLD_CHANCE:
            return None, ()
        return self.told[random.choice(others)]

    async def _receipt(
        self,
        future: "asyncio.Future[ordercast.Receipt]",
        sent: SentMessage,
        seen: deque[bytes],
        room: asyncio.Semaphore,
    ) -> None:
        try:
            receipt = await future
        except errors.OrdercastError as error:
            self.failed[type(error).__name__] = self.failed.get(type(error).__name__, 0) + 1
            return
        finally:
            del self.waiting[sent.payload]
            room.release()
        now = time.monotonic()
        if now - self.last_receipt > self.outage_s_max:
            self.outage_s_max, self.outage_ended = now - self.last_receipt, now
        self.last_receipt = now
        seen.append(sent.payload)
        self.evidence.receipts[sent.payload] = Acknowledged(
            receipt.order_key, dict(receipt.offsets), receipt.duplicate
        )
        self.on_receipt()

    # ----------------------------------------------------------------------------------------- subscribing

    async def subscribe(self, name: str, group: str) -> None:
        """From the beginning, until it is cancelled."""
        seen = self.evidence.seen.setdefault((name, group), [])
        gateways = self.random.sample(self.gateways, len(self.gateways))
        async with (
            ordercast.connect(*gateways) as connection,
            connection.subscribe(group, start="earliest") as deliveries,
        ):
            async for delivery in deliveries:
                seen.append((delivery.offset, delivery.payload))

    async def subscribe_merged(self, name: str) -> None:
        """All groups as one stream, from the beginning, until it is cancelled.

        It leaves and comes back now and then, at another gateway, and goes on at its cursor. Groups of a domain
        without an order over several groups nobody reads so.
        """
        witness = MergedWitness(tuple(sorted(self.groups)))
        # Of this run alone: a cursor of an earlier one may stand behind what comes to groups that are new.
        cursor = f"{name}-{token_hex(4)}"
        uncertain = False
        while True:
            gateways = self.random.sample(self.gateways, len(self.gateways))
            try:
                async with (
                    ordercast.connect(*gateways) as connection,
                    connection.subscribe(witness.groups, start="earliest", cursor=cursor) as deliveries,
                ):
                    self.evidence.merged[name] = witness
                    async for delivery in deliveries:
                        place = Place(delivery.order_key, delivery.index)
                        if uncertain and witness.seen and place <= witness.seen[-1][0]:
                            continue
                        uncertain = False
                        witness.seen.append((place, delivery.payload, delivery.offsets))
                        await delivery.ack()
                        if len(witness.seen) % MERGED_AT_ONCE == 0:
                            break
            except (errors.FailedPrecondition, errors.NotFound) as refused:
                if refused.details.get("reason") == NO_ORDER:
                    return
                # Nodes with older software know no such subscription, or no such cursor: there will be others.
                await asyncio.sleep(AGAIN_S)
            except errors.OutcomeUnknown:
                # The cursor may be behind: what comes again was seen, and acknowledged in vain.
                uncertain = True

    def _has_caught_up(self, witness: MergedWitness, wanted: dict[str, int]) -> bool:
        missing = {group: offset for group, offset in wanted.items() if group in witness.groups}
        for _, _, offsets in reversed(witness.seen):
            missing = {group: offset for group, offset in missing.items() if offsets.get(group, -1) < offset}
            if not missing:
                return True
        return not missing

    async def caught_up(self, timeout_s: float) -> None:
        """Until every subscriber has seen every acknowledged message of its groups."""
        wanted: dict[str, int] = {}
        for receipt in self.evidence.receipts.values():
            for group, offset in receipt.offsets.items():
                wanted[group] = max(wanted.get(group, -1), offset)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while any(
                    (seen[-1][0] if seen else -1) < wanted.get(group, -1)
                    for (_, group), seen in self.evidence.seen.items()
                ) or not all(self._has_caught_up(one, wanted) for one in self.evidence.merged.values()):
                    await asyncio.sleep(0.05)


def collect_logs(
    address: str, evidence: Evidence, timeout_s: float = COLLECT_S_MAX, *, groups: Collection[str] | None = None
) -> None:
    """Every replica's log of every group, or of these, as it is on its disk.

    Gateways may still be about to repeat what was answered elsewhere. In virtually synchronous groups such entries
    count too, and logs that were read one after the other would not fit together: so they are read until none has
    grown meanwhile.
    """
    deadline = time.monotonic() + timeout_s
    with grpc.insecure_channel(address) as channel:
        stub = GatewayServiceStub(channel)
        while True:
            is_last = time.monotonic() >= deadline
            cluster = stub.DescribeCluster(
                DescribeClusterRequest(shared_groups=True), timeout=CALL_S_MAX, wait_for_ready=True
            )
            try:
                _collect(stub, cluster, evidence, groups)
                if is_last or all(_is_read(stub, id_, evidence) for id_ in evidence.ordered_within()):
                    return
            except grpc.RpcError:
                # Who was to be read is no replica any more, or was away for a moment: the next look knows.
                if is_last:
                    raise
            time.sleep(LOOK_S)


def _is_read(stub: GatewayServiceStub, group: str, evidence: Evidence) -> bool:
    """All replicas have as much as was read, and all the same."""
    described = stub.DescribeGroup(DescribeGroupRequest(name=group_name(group)), timeout=CALL_S_MAX)
    ends = {replica.log.position for replica in described.replicas}
    read = {position_of(log[-1]) + 1 if log else 0 for log in evidence.cells[cell_of(group)].values()}
    return len(ends) == 1 and ends == read


def _collect(
    stub: GatewayServiceStub,
    cluster: DescribeClusterResponse,
    evidence: Evidence,
    groups: Collection[str] | None,
) -> None:
    domains = {domain.name: domain for domain in cluster.domains}
    peers = {node.name: node.peer_address for node in cluster.nodes}
    for group in cluster.groups:
        if groups is not None and group.name not in groups:
            continue
        evidence.domains[address_of(group)] = domains[group.domain]
        logs = evidence.logs[address_of(group)] = {}
        for replica in group.replicas:
            start = SubscribeStart(
                group=group.name, replica=replica, stop_at_end=True, start=StartAt(earliest=True)
            )
            responses = stub.Subscribe(iter([SubscribeRequest(start=start)]), timeout=READ_S_MAX)
            logs[replica] = [LogEntry.FromString(e) for r in responses for e in r.deliveries.entries]
    evidence.shared.clear()
    used = {cell_of(address) for address in evidence.logs}
    for cell in (found.cell for found in cluster.cells if found.cell.id in used):
        evidence.domains[cell.id] = domains[cell.domain]
        evidence.shared[cell.id] = {replica: read_cell(peers[replica], cell.id) for replica in cell.replicas}
    for id_ in dict.fromkeys(map(cell_of, evidence.ordered_within())):
        replicas = evidence.cells[id_]
        for replica, entries in replicas.items():
            replicas[replica] = with_hidden(peers[replica], id_, entries)


def read_cell(address: str, cell: str) -> list[LogEntry]:
    """The log that groups share, with the messages of all of them, as replicas read it from each other."""
    with grpc.insecure_channel(address) as channel:
        request = ReadGroupRequest(group=cell, start=StartAt(earliest=True), stop_at_end=True)
        responses = SequencerServiceStub(channel).ReadGroup(request, timeout=READ_S_MAX)
        return [LogEntry.FromString(entry) for response in responses for entry in response.entries]


def with_hidden(address: str, group: str, entries: list[LogEntry]) -> list[LogEntry]:
    """Those without a new message, too, which no reader is shown: replicas pass them on to each other.

    Of groups whose order keys are positions, so that it is known which are left out.
    """
    shown = {position_of(entry): entry for entry in entries}
    with grpc.insecure_channel(address) as channel:
        stub = SequencerServiceStub(channel)
        end = stub.DescribeReplica(DescribeReplicaRequest(group=group), timeout=CALL_S_MAX).position
        for position in [position for position in range(end) if position not in shown]:
            try:
                answer = stub.ReadEntry(ReadEntryRequest(group=group, position=position), timeout=CALL_S_MAX)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.NOT_FOUND:  # type: ignore[attr-defined]
                    raise
                continue  # Retention was there.
            shown[position] = LogEntry.FromString(answer.entry)
    return [shown[position] for position in sorted(shown)]


def wait_for_equal_logs(address: str, timeout_s: float) -> None:
    """Until all replicas of each group have the same length: replicas that were away need a moment.

    Those that lost what they had need a new configuration first, and are not read from before; and members of a
    virtually synchronous group that were left out come back in a later view.
    """
    deadline = time.monotonic() + timeout_s
    with grpc.insecure_channel(address) as channel:
        stub = GatewayServiceStub(channel)
        while time.monotonic() < deadline:
            cluster = stub.DescribeCluster(
                DescribeClusterRequest(shared_groups=True), timeout=CALL_S_MAX, wait_for_ready=True
            )
            if all(has_equal_logs(stub, group) for group in cluster.groups):
                return
            time.sleep(LOOK_S)


def has_equal_logs(stub: GatewayServiceStub, group: Group) -> bool:
    described = stub.DescribeGroup(DescribeGroupRequest(name=group.name), timeout=CALL_S_MAX)
    ends = {r.log.position if not r.error else -1 for r in described.replicas}
    all_there = sorted(described.group.replicas) == sorted(places_of(described.group))
    return len(ends) == 1 and -1 not in ends and all_there and not described.group.lost
