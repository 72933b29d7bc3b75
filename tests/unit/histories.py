"""Histories for checkers: what clients sent, and what groups delivered."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ordercast.core.ids import envelope_id, order_key
from ordercast.core.machine import Deliver
from ordercast.sim.board import Board, MessageKey, Sent
from ordercast.sim.checkers.logs import LogChecker
from ordercast.sim.checkers.violation import Violation
from ordercast.v1.common_pb2 import Batch, Envelope, Header, Message, ProducerRange, RangeOutcome, Span
from ordercast.v1.sequencer_pb2 import LogEntry
from tests.unit.driving import destinations

REPLICAS = {"a": "n1 n2 n3", "b": "n3 n4 n5", "c": "n6"}


@contextmanager
def violates(property_: str) -> Iterator[None]:
    with pytest.raises(Violation) as raised:
        yield
    assert raised.value.property == property_
    assert raised.value.explanation


class History:
    """What clients sent and what groups delivered; each message is an envelope of its own, sent by producer p."""

    def __init__(self) -> None:
        self.board = Board()
        self.logs = LogChecker(self.board, {name: tuple(members.split()) for name, members in REPLICAS.items()})
        self.sequences: dict[tuple[bytes, str], int] = {}
        self.positions: dict[tuple[str, str], int] = {}

    def send(
        self,
        groups: str,
        *,
        producer: bytes = b"p",
        unordered: bool = False,
        after: list[MessageKey] | None = None,
    ) -> MessageKey:
        """To "ab", for example."""
        sequence = self.sequences[producer, groups] = self.sequences.get((producer, groups), 0) + 1
        key = (producer, tuple(groups), sequence)
        payload = f"{producer!r} {groups} {sequence}".encode()
        self.board.send(key, Sent(len(self.board.sent), unordered, payload, after or []))
        return key

    def entry(self, group: str, key: MessageKey, sn: int, **fields: Any) -> LogEntry:
        """As it would be at the end of the group's log; fields replace what is in the entry or in its span."""
        producer, groups, sequence = key
        offset = len(self.logs.groups[group].messages)
        span = {"first_sequence": sequence, "count": 1, "first_offset": offset, "duplicate": False}
        for name in span:
            span[name] = fields.pop(name, span[name])
        header = Header(
            id=envelope_id(1, sn),
            destinations=destinations(*groups),
            ranges=[ProducerRange(producer=producer, first_sequence=sequence, count=1)],
        )
        payload = fields.pop("payload", self.board.sent[key].payload if key in self.board.sent else b"")
        body = Batch(messages=[Message(payload=payload)]).SerializeToString()
        defaults = {
            "order_key": order_key(sn, header.id),
            "envelope": Envelope(header=header, body=body),
            "first_offset": offset,
            "outcomes": [RangeOutcome(spans=[Span(**span)])],
        }
        return LogEntry(**{**defaults, **fields})

    def deliver(self, process: str, group: str, entry: LogEntry, position: int | None = None) -> None:
        if position is None:
            position = self.positions.get((process, group), 0)
        self.positions[process, group] = position + 1
        self.logs.on_deliver(process, Deliver(group, position, entry))

    def everywhere(self, group: str, key: MessageKey, sn: int, **fields: Any) -> None:
        """At every replica of the group."""
        entry = self.entry(group, key, sn, **fields)
        for process in REPLICAS[group].split():
            self.deliver(process, group, entry)

    def order(self, **groups: list[MessageKey]) -> None:
        """a=[m1, m2]: what each group delivers, in this order."""
        for group, keys in groups.items():
            for sn, key in enumerate(keys):
                self.everywhere(group, key, sn)
