"""Logs of groups of which some share a cell: as replicas of the cells have them, and as readers are shown them."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from ordercast.core.cells import Names, Tally, cell_of, cells_of, groups_within, put_targets, shares_cell
from ordercast.core.ids import envelope_id, group_name, order_key, pack_u64, unpack_u64
from ordercast.core.projection import projected
from ordercast.local.evidence import Acknowledged, Evidence, SentMessage
from ordercast.local.messages import new_messages
from ordercast.v1.common_pb2 import (
    Batch,
    Destination,
    Envelope,
    Header,
    Message,
    ProducerRange,
    RangeOutcome,
    Span,
)
from ordercast.v1.gateway_pb2 import (
    Deliveries,
    DescribeClusterResponse,
    DescribeGroupResponse,
    ReplicaStatus,
    SubscribeResponse,
)
from ordercast.v1.isis_pb2 import CastKey, CastStamp
from ordercast.v1.membership_pb2 import GROUP_STATE_ACTIVE, Domain, Group
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, LogEntry

#: u and v share a cell, c has its own.
CELL, U, V, C = "cell-1#1", "cell-1#1/u#2", "cell-1#1/v#3", "c#4"
ADDRESSES = {"u": U, "v": V, "c": C}
REPLICAS = ("n1", "n2", "n3")


class SharedLogs:
    """By cell. Where each cell has an order of its own, keys are positions and entries are casts."""

    def __init__(self, protocol: str = "scalatom") -> None:
        self.protocol = protocol
        self.evidence = Evidence()
        self.cells: dict[str, list[LogEntry]] = {CELL: [], C: []}
        self.sequences: dict[tuple[str, Names], int] = {}
        self.ends: dict[str, int] = {}
        self.sn = 0

    def publish(self, *messages: str, producer: str = "p") -> None:
        """In one envelope: "uv:m1" is m1, to u and v. All go to the same cells."""
        self.sn += 1
        told = [
            (tuple(sorted(ADDRESSES[g] for g in to)), text) for to, _, text in (m.partition(":") for m in messages)
        ]
        cells = cells_of(told[0][0])
        first = self.sequences.get((producer, cells), 0) + 1
        self.sequences[producer, cells] = first + len(told) - 1
        targets = list(dict.fromkeys(groups for groups, _ in told))
        range_ = ProducerRange(producer=producer.encode(), first_sequence=first, count=len(told))
        for groups, _ in told:
            range_.runs.extend((targets.index(groups), 1))
        header = Header(id=envelope_id(1, self.sn), ranges=[range_])
        header.destinations.extend(Destination(group=cell) for cell in cells)
        if targets != [cells]:
            put_targets(header, targets)
        else:
            header.ranges[0].ClearField("runs")
        body = Batch(messages=[Message(payload=text.encode()) for _, text in told]).SerializeToString()
        before = dict(self.ends)
        keys = [self._add(cell, header, body) for cell in cells]
        for groups, text in told:
            self._witness(groups, text.encode(), keys[0], before)

    def _witness(self, groups: Names, payload: bytes, key: bytes, ends: dict[str, int]) -> None:
        """What its producer sent and was told."""
        names = tuple(sorted(map(group_name, groups)))
        self.evidence.sent[payload] = SentMessage(payload, len(self.evidence.sent), names)
        offsets = {group_name(group): ends.get(group, 0) for group in groups}
        self.evidence.receipts[payload] = Acknowledged(key, offsets, duplicate=False)
        for group in groups:
            ends[group] = ends.get(group, 0) + 1

    def _add(self, cell: str, header: Header, body: bytes) -> bytes:
        is_cast = self.protocol == "isis"
        position = len(self.cells[cell])
        key = pack_u64(position) if is_cast else order_key(self.sn, header.id)
        range_ = header.ranges[0]
        offset = self.ends.get(cell, 0)
        self.ends[cell] = offset + range_.count
        entry = LogEntry(order_key=key, envelope=Envelope(header=header, body=body), first_offset=offset)
        span = Span(first_sequence=range_.first_sequence, count=range_.count, first_offset=offset, order_key=key)
        entry.outcomes.append(RangeOutcome(spans=[span], last_sequence=range_.first_sequence + range_.count - 1))
        if header.targets:
            groups = groups_within(cell, header)
            bases = [offset if not shares_cell(group) else self.ends.get(group, 0) for group in groups]
            entry.bases.extend(bases)
            tally = Tally.of(cell, header, bases)
            tally.take(range_, range_.first_sequence, range_.first_sequence + range_.count)
            entry.news.extend([end - base for end, base in zip(tally.ends, bases, strict=True)])
            self.ends |= {group: end for group, end in zip(groups, tally.ends, strict=True) if shares_cell(group)}
        if is_cast:
            entry.protocol = CastStamp(view=1, key=CastKey(member=0, number=position + 1)).SerializeToString()
        self.cells[cell].append(entry)
        return key

    def shown(self) -> dict[str, list[LogEntry]]:
        """By address."""
        found: dict[str, list[LogEntry]] = {C: list(self.cells[C])}
        for group in (U, V):
            entries = [projected(CELL, group, entry) for entry in self.cells[CELL]]
            found[group] = [entry for entry in entries if entry.outcomes]
        return found

    def told(self) -> Evidence:
        """What all witnesses of it say."""
        evidence = self.evidence
        for address, entries in self.shown().items():
            evidence.logs[address] = {replica: copy.deepcopy(entries) for replica in REPLICAS}
            messages = [told for entry in entries for told in new_messages(entry)]
            evidence.seen["subscriber", group_name(address)] = [(told.offset, told.payload) for told in messages]
        evidence.shared[CELL] = {replica: copy.deepcopy(self.cells[CELL]) for replica in REPLICAS}
        domain = Domain(name="d", protocol=self.protocol)
        evidence.domains = dict.fromkeys((U, V, C, CELL), domain)
        return evidence


def group_of(address: str) -> Group:
    name, _, _ = address.rpartition("/")[2].partition("#")
    return Group(
        name=name,
        id=address.rpartition("/")[2],
        domain="d",
        state=GROUP_STATE_ACTIVE,
        replicas=REPLICAS,
        cell=cell_of(address) if shares_cell(address) else "",
    )


class Gateway:
    """Shows these logs, all replicas the same."""

    def __init__(self, logs: dict[str, list[LogEntry]], protocol: str = "scalatom") -> None:
        self.logs = logs
        self.protocol = protocol
        self.groups = {group_of(address).name: (group_of(address), address) for address in logs}
        #: By address: what comes after the end was read for the first time.
        self.later: dict[str, list[LogEntry]] = {}

    def DescribeCluster(self, request: Any, timeout: float) -> DescribeClusterResponse:  # noqa: N802
        groups = [group for group, _ in self.groups.values()]
        return DescribeClusterResponse(groups=groups, domains=[Domain(name="d", protocol=self.protocol)])

    def DescribeGroup(self, request: Any, timeout: float) -> DescribeGroupResponse:  # noqa: N802
        group, address = self.groups[request.name]
        entries = self.logs[address]
        # Where cells have orders of their own, keys are positions.
        position = 1 + unpack_u64(entries[-1].order_key[:8]) if entries else 0
        log = DescribeReplicaResponse(first_offset=entries[0].first_offset if entries else 0, position=position)
        return DescribeGroupResponse(
            group=group, replicas=[ReplicaStatus(node=replica, log=log) for replica in REPLICAS]
        )

    def Subscribe(self, requests: Iterator[Any]) -> Iterator[SubscribeResponse]:  # noqa: N802
        start = next(requests).start
        _, address = self.groups[start.group]
        entries: Sequence[LogEntry] = self.logs[address]
        if not start.replica:
            self.logs[address] = entries = [*entries, *self.later.pop(address, [])]
        yield SubscribeResponse(deliveries=Deliveries(entries=[entry.SerializeToString() for entry in entries]))
