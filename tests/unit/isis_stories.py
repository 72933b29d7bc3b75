"""Histories of virtually synchronous groups, told cast by cast, for those who judge them."""

import copy
from collections.abc import Iterator
from typing import Any

from ordercast.core.ids import envelope_id, group_name, pack_u64
from ordercast.local.evidence import Acknowledged, Evidence, SentMessage, messages_of
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
from ordercast.v1.isis_pb2 import CastKey, CastStamp, GroupTime
from ordercast.v1.membership_pb2 import Domain
from ordercast.v1.sequencer_pb2 import LogEntry

REPLICAS = ("n1", "n2", "n3")
A, B = "a#1", "b#2"
IDS = {"a": A, "b": B}

#: "1:0.3": view 1, the caster in place 0, its third cast. What it comes after: {"a": "1:0.2 1:1.1"}
Past = dict[str, str]


def parse(cast: str) -> tuple[int, int, int]:
    view, _, rest = cast.partition(":")
    member, _, number = rest.partition(".")
    return int(view), int(member), int(number)


def times_of(past: Past) -> list[GroupTime]:
    found = []
    for group in sorted(past):
        casts = sorted(map(parse, past[group].split()))
        members, counts = [member for _, member, _ in casts], [number for _, _, number in casts]
        found.append(GroupTime(group=IDS[group], view=casts[0][0], members=members, counts=counts))
    return found


class Story:
    """What clients sent, what the logs came to, and what clients were told of it."""

    def __init__(self, ordering: str = "causal") -> None:
        self.ordering = ordering
        self.evidence = Evidence()
        self.sequences: dict[tuple[bytes, str], int] = {}
        self.numbers: dict[bytes, tuple[bytes, int]] = {}
        for id_ in IDS.values():
            self.evidence.domains[id_] = Domain(name="d", protocol="isis", settings={"ordering": ordering})
            self.evidence.logs[id_] = {replica: [] for replica in REPLICAS}

    def send(
        self, payload: str, groups: str, *, producer: str = "p", unordered: bool = False, after: str = ""
    ) -> None:
        """To "ab", for example, by one who had seen the messages in `after`."""
        sequence = self.sequences[producer.encode(), groups] = (
            self.sequences.get((producer.encode(), groups), 0) + 1
        )
        self.numbers[payload.encode()] = (producer.encode(), sequence)
        index = len(self.evidence.sent)
        seen = tuple(one.encode() for one in after.split())
        self.evidence.sent[payload.encode()] = SentMessage(payload.encode(), index, tuple(groups), unordered, seen)

    def log(self, group: str, cast: str, payload: str = "", past: Past | None = None, **fields: Any) -> None:
        """The next entry, at all replicas; without a payload it is one that shows nothing new."""
        log = self.evidence.logs[IDS[group]]
        entry = self.entry(group, log[REPLICAS[0]], cast, payload, past or {}, **fields)
        for entries in log.values():
            entries.append(copy.deepcopy(entry))

    def entry(
        self, group: str, before: list[LogEntry], cast: str, payload: str, past: Past, carried: Past | None = None
    ) -> LogEntry:
        position, offset = len(before), sum(len(messages_of(one)) for one in before)
        view, member, number = parse(cast)
        header = Header(id=envelope_id(1, position), destinations=[Destination(group=IDS[group])])
        entry = LogEntry(order_key=pack_u64(position), first_offset=offset)
        if payload:
            producer, sequence = self.numbers[payload.encode()]
            groups = [IDS[name] for name in self.evidence.sent[payload.encode()].groups]
            header.ClearField("destinations")
            header.destinations.extend(Destination(group=id_) for id_ in groups)
            header.ranges.append(ProducerRange(producer=producer, first_sequence=sequence, count=1))
            span = Span(first_sequence=sequence, count=1, first_offset=offset, order_key=pack_u64(position))
            entry.outcomes.append(RangeOutcome(spans=[span]))
        body = Batch(messages=[Message(payload=payload.encode())] if payload else []).SerializeToString()
        entry.envelope.CopyFrom(Envelope(header=header, body=body))
        stamp = CastStamp(
            view=view,
            key=CastKey(member=member, number=number),
            times=times_of(past),
            carried=times_of(carried or {}),
            total=self.ordering == "total",
        )
        entry.protocol = stamp.SerializeToString()
        return entry

    def tell(self) -> Evidence:
        """Everything is acknowledged, and read to the end by a subscriber."""
        for id_, log in self.evidence.logs.items():
            name = group_name(id_)
            seen = self.evidence.seen.setdefault(("reader", name), [])
            for entry in log[REPLICAS[0]]:
                for offset, payload, _ in messages_of(entry):
                    seen.append((offset, payload))
                    receipt = self.evidence.receipts.setdefault(
                        payload, Acknowledged(entry.order_key, {}, duplicate=False)
                    )
                    receipt.offsets[name] = offset
        return self.evidence


def right_story(ordering: str = "causal") -> Story:
    """m1 in a, answered in b; m3 to both; a view change in a; and then p goes on in a, where q has answered."""
    story = Story(ordering)
    story.send("m1", "a")
    story.send("m2", "b", after="m1")
    story.send("m3", "ab", producer="q")
    story.send("m4", "a", after="m2")
    story.send("m5", "a", producer="r", after="m3")
    story.send("m6", "a", after="m4 m5")
    story.log("a", "1:0.1", "m1")
    story.log("a", "1:1.1", "m3", {"a": "1:0.1"})
    story.log("a", "1:1.2")
    story.log("b", "1:0.1", "m2", {"a": "1:0.1"})
    story.log("b", "1:2.1", "m3")
    story.log("a", "2:0.1", "m4", {"b": "1:0.1"})
    story.log("a", "2:1.1", "m5", {}, carried={"b": "1:2.1"})
    story.log("a", "2:0.2", "m6", {"a": "2:1.1", "b": "1:0.1 1:2.1"})
    return story


def right() -> Evidence:
    return right_story().tell()


def each(evidence: Evidence, group: str) -> Iterator[list[LogEntry]]:
    yield from evidence.logs[IDS[group]].values()


def put_in_order(evidence: Evidence, group: str, payloads: str) -> None:
    """The same entries in another order, with places to match: nobody but the order is wrong."""
    wanted = [payload.encode() for payload in payloads.split()]
    for entries in each(evidence, group):
        by_payload = {messages_of(entry)[0][1]: entry for entry in entries if messages_of(entry)}
        entries[:] = [by_payload[payload] for payload in wanted]
        for position, entry in enumerate(entries):
            entry.order_key, entry.first_offset = pack_u64(position), position
            entry.outcomes[0].spans[0].first_offset = position
            entry.outcomes[0].spans[0].order_key = pack_u64(position)
    evidence.seen[("reader", group)] = list(enumerate(wanted))
    for position, payload in enumerate(wanted):
        evidence.receipts[payload].offsets[group] = position
        if evidence.sent[payload].groups[0] == group:
            evidence.receipts[payload].order_key = pack_u64(position)


def forget_stamps(evidence: Evidence) -> None:
    """They name nothing any more, and number what is there: what is left to judge is what clients saw."""
    for id_ in evidence.logs:
        for entries in evidence.logs[id_].values():
            for number, entry in enumerate(entries, start=1):
                stamp = CastStamp(view=1, key=CastKey(member=0, number=number))
                entry.protocol = stamp.SerializeToString()
