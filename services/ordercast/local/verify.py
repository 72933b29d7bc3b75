"""Reads every replica of every group and checks that order and offsets agree, in bounded memory.

Two passes in one: the replicas of a group are read side by side and must show the same entries; and the groups of
a domain are merged by order key, where a message must be in all the groups it was sent to, once, at one place
(verify_messages.py). In domains of virtually synchronous groups, whose keys compare within a cell only, the cells
are read one after the other, and what must hold between them is something else (verify_casts.py). The cluster may
go on meanwhile: what a group did not show before its end was reached is looked for once more.
"""

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

import grpc

from ordercast.core.causal import CausalCodec
from ordercast.core.cells import cell_of
from ordercast.core.members import address_of
from ordercast.core.protocol import Orders
from ordercast.local.messages import cells_in
from ordercast.local.verify_casts import CastDomain, Lack
from ordercast.local.verify_messages import Content, MessagePlace, Sequences, contents
from ordercast.protocols.catalogue import UnknownProtocol, named
from ordercast.runtime.storage.layout import next_offset_of
from ordercast.v1.gateway_pb2 import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeGroupRequest,
    DescribeGroupResponse,
    SubscribeRequest,
    SubscribeStart,
)
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub
from ordercast.v1.membership_pb2 import GROUP_STATE_ACTIVE, Group
from ordercast.v1.sequencer_pb2 import LogEntry, StartAt

#: What is wrong is told so often, and then only counted.
PROBLEMS_MAX = 20
#: What a group may still get after its end was read, and how long that is waited for.
MISSED_MAX = 10_000
LOOKS_MAX = 10
LOOK_S = 0.5
#: A replica that does not say where it is may only be late.
QUESTIONS_MAX = 4


@dataclass(slots=True)
class GroupReport:
    group: str
    replicas: list[str]
    #: Replicas that could not be read, and why.
    unreachable: dict[str, str] = field(default_factory=dict)
    first_offset: int = 0
    messages: int = 0
    entries: int = 0


@dataclass(slots=True)
class Report:
    groups: list[GroupReport] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0

    @property
    def is_ok(self) -> bool:
        return self.problem_count == 0

    @property
    def is_complete(self) -> bool:
        return not any(group.unreachable for group in self.groups)

    def problem(self, text: str) -> None:
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(text)


@dataclass(slots=True)
class Missed:
    """What a group does not show, and another one does."""

    where: str
    contents: dict[Content, None]


def _key(tagged: tuple[bytes, str, LogEntry]) -> bytes:
    return tagged[0]


class Verifier:
    def __init__(self, channel: grpc.Channel, on_progress: Callable[[int], None] = lambda entries: None) -> None:
        self.stub = GatewayServiceStub(channel)
        self.report = Report()
        #: Of the domain being read, by address: the first key, and the next offset of those read to the end.
        self.first_keys: dict[str, bytes] = {}
        self.ends: dict[str, int] = {}
        #: (group, order key) that others have.
        self.missed: dict[tuple[str, bytes], Missed] = {}
        #: Of an order key in the domain being read.
        self.key_bytes = 0
        #: Nodes that did not answer, however often they were asked.
        self._silent: set[str] = set()
        self.on_progress = on_progress

    def run(self) -> Report:
        cluster: DescribeClusterResponse = self.stub.DescribeCluster(
            DescribeClusterRequest(shared_groups=True), timeout=10
        )
        by_domain: dict[str, list[Group]] = {}
        for group in cluster.groups:
            if group.state == GROUP_STATE_ACTIVE:
                by_domain.setdefault(group.domain, []).append(group)
        protocols = {domain.name: domain.protocol for domain in cluster.domains}
        for name, groups in by_domain.items():
            try:
                protocol = named(protocols[name])
            except UnknownProtocol as unknown:
                self.report.problem(f"what the domain {name} promises is not known here: {unknown}")
                continue
            self.key_bytes = protocol.traits.key_bytes
            if protocol.traits.orders == Orders.WITHIN:
                assert protocol.causal is not None, "core.protocol sees to that"
                self._check_casts(groups, protocol.causal)
            else:
                self._check_domain(groups)
        return self.report

    # ------------------------------------------------------------------------------------------ one domain

    def _check_domain(self, groups: list[Group]) -> None:
        """Merged by order key. What one group shows, every other destination must show at the same place."""
        self.first_keys, self.ends = {}, {}
        merged = heapq.merge(*(self._tagged(group) for group in groups), key=_key)
        present = {address_of(group): group for group in groups}
        sequences = Sequences()
        for key, found in groupby(merged, key=_key):
            place = MessagePlace(key, {group: entry for _, group, entry in found})

            def is_kept(group: str, key: bytes = key) -> bool:
                return group in present and self.first_keys.get(group, key) <= key

            for problem in (*place.problems(is_kept), *sequences.take(place)):
                self.report.problem(problem)
            for group in place.wanted():
                if is_kept(group) and group not in place.entries:
                    self._miss(group, place)
        self._look_again(present)

    def _tagged(self, group: Group) -> Iterator[tuple[bytes, str, LogEntry]]:
        following = 0
        found, address = self._found(group), address_of(group)
        for entry in self._side_by_side(group, found, self._open(group, found)):
            self.first_keys.setdefault(address, entry.order_key)
            following = next_offset_of(entry)
            yield entry.order_key, address, entry
        self.ends[address] = following

    def _miss(self, group: str, place: MessagePlace) -> None:
        """Note what is missing. Behind the end of what was read it may still come; before it, not."""
        if group in self.ends and len(self.missed) < MISSED_MAX:
            self.missed[group, place.key] = Missed(place.first, place.expected_in(group))
        else:
            key = place.key.hex()
            self.report.problem(f"{place.first} has {key}, which is also for {group} and is not there")

    def _look_again(self, present: dict[str, Group]) -> None:
        for _ in range(LOOKS_MAX):
            for id_ in sorted({group for group, _ in self.missed}):
                found = GroupReport(present[id_].name, [], first_offset=self.ends.get(id_, 0))
                for entry in self._read(present[id_].name, "", found):
                    missed = self.missed.pop((id_, entry.order_key), None)
                    if missed is not None and not missed.contents.keys() <= set(contents(entry)):
                        self.report.problem(
                            f"{id_} and {missed.where} show different messages at {entry.order_key.hex()}"
                        )
            if not self.missed:
                return
            time.sleep(LOOK_S)
        for (group, key), missed in self.missed.items():
            self.report.problem(f"{missed.where} has {key.hex()}, which is also for {group} and does not come")
        self.missed.clear()

    # ---------------------------------------------------------- one domain of virtually synchronous groups

    def _check_casts(self, groups: list[Group], codec: CausalCodec) -> None:
        """One cell after the other, its groups merged by position; then what they say about each other."""
        self.ends = {}
        present = {address_of(group): group for group in groups}
        domain = CastDomain(present, codec)
        by_cell: dict[str, list[Group]] = {}
        for group in groups:
            by_cell.setdefault(cell_of(address_of(group)), []).append(group)
        for living in by_cell.values():
            shown = [self._shown_in(domain, group) for group in living]
            for _, address, entry in heapq.merge(*shown, key=_key):
                self._take_cast(domain, present, address, entry)
        self._look_again_for_casts(domain, present)

    def _shown_in(self, domain: CastDomain, group: Group) -> Iterator[tuple[bytes, str, LogEntry]]:
        found, address = self._found(group), address_of(group)
        logs = self._open(group, found)
        self.ends[address] = found.first_offset
        if logs:
            domain.begin(address, is_whole=found.first_offset == 0)
        for entry in self._side_by_side(group, found, logs):
            yield entry.order_key, address, entry

    def _take_cast(self, domain: CastDomain, present: dict[str, Group], address: str, entry: LogEntry) -> None:
        for problem in domain.take(address, entry):
            self.report.problem(f"{present[address].name}: {problem}")
        self.ends[address] = next_offset_of(entry)

    def _look_again_for_casts(self, domain: CastDomain, present: dict[str, Group]) -> None:
        lacks: list[Lack] = []
        for look in range(LOOKS_MAX + 1):
            for id_ in sorted({group for lack in lacks for group in lack.groups}):
                found = GroupReport(present[id_].name, [], first_offset=self.ends[id_])
                for entry in self._read(present[id_].name, "", found):
                    self._take_cast(domain, present, id_, entry)
            domain.ends = {cell_of(id_): self._end_of(group) for id_, group in present.items()}
            lacks = domain.lacks()
            if not lacks:
                return
            if look:
                time.sleep(LOOK_S)
        for lack in lacks:
            self.report.problem(lack.text)

    def _end_of(self, group: Group) -> int:
        """The position that its log has reached. Not all before it is shown to readers."""
        described = self.stub.DescribeGroup(DescribeGroupRequest(name=group.name), timeout=10)
        return max((replica.log.position for replica in described.replicas if not replica.error), default=0)

    # ------------------------------------------------------------------------------------------- one group

    def _found(self, group: Group) -> GroupReport:
        found = GroupReport(group.name, list(group.replicas))
        self.report.groups.append(found)
        return found

    def _side_by_side(
        self, group: Group, found: GroupReport, logs: dict[str, Iterator[LogEntry]]
    ) -> Iterator[LogEntry]:
        """The entries of a group, after all its replicas agreed on each."""
        following = found.first_offset
        last_key = b""
        producers: dict[tuple[bytes, tuple[str, ...]], tuple[int, int]] = {}
        while logs:
            entries = {name: entry for name, log in logs.items() if (entry := next(log, None)) is not None}
            missing = [name for name in logs if name not in entries]
            for name in missing:
                # It is behind, or the others went on after it was asked where it ends. That is no disagreement.
                del logs[name]
            if not entries:
                break
            (first, entry), *others = entries.items()
            for name, other in others:
                self._compare(group, first, entry, name, other)
            following = self._check_entry(group, entry, last_key, following, producers)
            last_key = entry.order_key
            found.entries += 1
            found.messages = following - found.first_offset
            if found.entries % 256 == 0:
                self.on_progress(256)
            yield entry
        self.on_progress(found.entries % 256)

    def _open(self, group: Group, found: GroupReport) -> dict[str, Iterator[LogEntry]]:
        """Each replica from the first offset that all of them still have."""
        described = self._described(group)
        bounds = {replica.node: replica for replica in described.replicas}
        found.unreachable = {name: replica.error for name, replica in bounds.items() if replica.error}
        # Those of this answer: the replicas may have changed since the groups were listed.
        found.replicas = list(bounds)
        reachable = [name for name in bounds if name not in found.unreachable]
        found.first_offset = max((bounds[name].log.first_offset for name in reachable), default=0)
        return {name: self._read(group.name, name, found) for name in reachable}

    def _described(self, group: Group) -> DescribeGroupResponse:
        """A replica that is late is asked again. One that stays silent is not waited for in every group."""
        for look in range(QUESTIONS_MAX):
            described = self.stub.DescribeGroup(DescribeGroupRequest(name=group.name), timeout=10)
            late = {replica.node for replica in described.replicas if replica.error} - self._silent
            if not late:
                return described
            if look:
                time.sleep(LOOK_S)
        self._silent |= late
        return described

    def _read(self, group: str, replica: str, found: GroupReport) -> Iterator[LogEntry]:
        start = SubscribeStart(
            group=group, replica=replica, stop_at_end=True, start=StartAt(offset=found.first_offset)
        )
        try:
            for response in self.stub.Subscribe(iter([SubscribeRequest(start=start)])):
                for data in response.deliveries.entries:
                    entry = LogEntry.FromString(data)
                    if next_offset_of(entry) > found.first_offset:
                        yield entry
        except grpc.RpcError as error:
            found.unreachable[replica] = str(error.details())  # type: ignore[attr-defined]

    def _compare(self, group: Group, first: str, entry: LogEntry, name: str, other: LogEntry) -> None:
        if entry != other:
            self.report.problem(
                f"{group.name}: {first} has {entry.order_key.hex()} at offset {entry.first_offset}, "
                f"and {name} has {other.order_key.hex()} at offset {other.first_offset}"
            )

    def _check_entry(
        self,
        group: Group,
        entry: LogEntry,
        last_key: bytes,
        following: int,
        producers: dict[tuple[bytes, tuple[str, ...]], tuple[int, int]],
    ) -> int:
        """Order keys rise, offsets have no gap, and no message of a producer is there twice."""
        problem = self.report.problem
        if len(entry.order_key) != self.key_bytes or entry.order_key <= last_key:
            problem(f"{group.name}: the order key at offset {entry.first_offset} does not rise")
        if entry.first_offset > following:
            problem(f"{group.name}: offsets {following} to {entry.first_offset} are missing")
        header, cells = entry.envelope.header, cells_in(entry)
        for range_, outcome in zip(header.ranges, entry.outcomes, strict=True):
            for span in outcome.spans:
                if span.duplicate:
                    continue
                epoch, last = producers.get((range_.producer, cells), (0, 0))
                # What is between may be in other groups of the cell.
                is_next = span.first_sequence > last if group.cell else span.first_sequence == last + 1
                if last and range_.epoch == epoch and not is_next:
                    problem(
                        f"{group.name}: producer {range_.producer.hex()} continues {last} "
                        f"with {span.first_sequence} at offset {span.first_offset}"
                    )
                producers[range_.producer, cells] = (range_.epoch, span.first_sequence + span.count - 1)
        return next_offset_of(entry)
