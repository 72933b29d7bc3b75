"""Reads every replica of every group and checks that order and offsets agree, in bounded memory.

Two passes in one: the replicas of a group are read side by side and must show the same entries; and the groups of
a domain are merged by order key, where a message must be in all the groups it was sent to, once, at one place. In
domains of virtually synchronous groups, whose keys compare within a group only, the groups are read one after the
other, and what must hold between them is something else (verify_casts.py). The cluster may go on meanwhile: what a
group did not show before its end was reached is looked for once more.
"""

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import grpc

from ordercast.core.causal import CausalCodec
from ordercast.core.protocol import Orders
from ordercast.local.verify_casts import CastDomain, Lack
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


class Verifier:
    def __init__(self, channel: grpc.Channel, on_progress: Callable[[int], None] = lambda entries: None) -> None:
        self.stub = GatewayServiceStub(channel)
        self.report = Report()
        #: Of the domain being read: each group's first key, and the next offset of those read to the end.
        self.first_keys: dict[str, bytes] = {}
        self.ends: dict[str, int] = {}
        #: (group, order key) that others have, and who.
        self.missed: dict[tuple[str, bytes], str] = {}
        #: Of an order key in the domain being read.
        self.key_bytes = 0
        #: Nodes that did not answer, however often they were asked.
        self._silent: set[str] = set()
        self.on_progress = on_progress

    def run(self) -> Report:
        cluster: DescribeClusterResponse = self.stub.DescribeCluster(DescribeClusterRequest(), timeout=10)
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
        merged = heapq.merge(*(self._tagged(group) for group in groups), key=lambda item: item[0])
        present = {group.id: group for group in groups}
        key, entry, seen = b"", LogEntry(), [""]
        for next_key, group, next_entry in merged:
            if next_key == key:
                seen.append(group)
                self._same_envelope(entry, next_entry, seen)
                continue
            if key:
                self._check_destinations(key, entry, seen, present)
            key, entry, seen = next_key, next_entry, [group]
        if key:
            self._check_destinations(key, entry, seen, present)
        self._look_again(present)

    def _tagged(self, group: Group) -> Iterator[tuple[bytes, str, LogEntry]]:
        following = 0
        found = self._found(group)
        for entry in self._side_by_side(group, found, self._open(group, found)):
            self.first_keys.setdefault(group.id, entry.order_key)
            following = next_offset_of(entry)
            yield entry.order_key, group.id, entry
        self.ends[group.id] = following

    def _same_envelope(self, entry: LogEntry, other: LogEntry, seen: list[str]) -> None:
        if entry.envelope != other.envelope:
            self.report.problem(f"{seen[-1]} and {seen[0]} show different messages at {entry.order_key.hex()}")

    def _check_destinations(self, key: bytes, entry: LogEntry, seen: list[str], present: dict[str, Group]) -> None:
        destinations = [destination.group for destination in entry.envelope.header.destinations]
        for group in destinations:
            is_kept = group in present and self.first_keys.get(group, key) <= key
            if is_kept and group not in seen:
                self._miss(group, key, seen[0])
        for group in seen:
            if group not in destinations:
                self.report.problem(f"{group} has {key.hex()}, which is not for it")

    def _miss(self, group: str, key: bytes, where: str) -> None:
        """Behind the end of what was read it may be on its way; before that, it will not come any more."""
        if group in self.ends and len(self.missed) < MISSED_MAX:
            self.missed[group, key] = where
        else:
            self.report.problem(f"{where} has {key.hex()}, which is also for {group} and is not there")

    def _look_again(self, present: dict[str, Group]) -> None:
        for _ in range(LOOKS_MAX):
            for id_ in sorted({group for group, _ in self.missed}):
                found = GroupReport(present[id_].name, [], first_offset=self.ends.get(id_, 0))
                for entry in self._read(present[id_].name, "", found):
                    self.missed.pop((id_, entry.order_key), None)
            if not self.missed:
                return
            time.sleep(LOOK_S)
        for (group, key), where in self.missed.items():
            self.report.problem(f"{where} has {key.hex()}, which is also for {group} and does not come")
        self.missed.clear()

    # ---------------------------------------------------------- one domain of virtually synchronous groups

    def _check_casts(self, groups: list[Group], codec: CausalCodec) -> None:
        """One group after the other; then what they say about each other."""
        self.ends = {}
        present = {group.id: group for group in groups}
        domain = CastDomain(present, codec)
        for group in groups:
            found = self._found(group)
            logs = self._open(group, found)
            self.ends[group.id] = found.first_offset
            if logs:
                domain.begin(group.id, is_whole=found.first_offset == 0)
            for entry in self._side_by_side(group, found, logs):
                self._take_cast(domain, group, entry)
        self._look_again_for_casts(domain, present)

    def _take_cast(self, domain: CastDomain, group: Group, entry: LogEntry) -> None:
        for problem in domain.take(group.id, entry):
            self.report.problem(f"{group.name}: {problem}")
        self.ends[group.id] = next_offset_of(entry)

    def _look_again_for_casts(self, domain: CastDomain, present: dict[str, Group]) -> None:
        lacks: list[Lack] = []
        for look in range(LOOKS_MAX + 1):
            for id_ in sorted({lack.group for lack in lacks}):
                found = GroupReport(present[id_].name, [], first_offset=self.ends[id_])
                for entry in self._read(present[id_].name, "", found):
                    self._take_cast(domain, present[id_], entry)
            domain.ends = {id_: self._end_of(group) for id_, group in present.items()}
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
        header = entry.envelope.header
        groups = tuple(destination.group for destination in header.destinations)
        for range_, outcome in zip(header.ranges, entry.outcomes, strict=True):
            for span in outcome.spans:
                if span.duplicate:
                    continue
                epoch, last = producers.get((range_.producer, groups), (0, 0))
                if last and range_.epoch == epoch and span.first_sequence != last + 1:
                    problem(
                        f"{group.name}: producer {range_.producer.hex()} continues {last} "
                        f"with {span.first_sequence} at offset {span.first_offset}"
                    )
                producers[range_.producer, groups] = (range_.epoch, span.first_sequence + span.count - 1)
        return next_offset_of(entry)
