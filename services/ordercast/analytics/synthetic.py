"""Records of a cluster that never was, by a seed: for the bench, and for tests that plant faults in them.

Envelopes go to one or two of a few groups of three replicas. Every replica delivers every envelope
of its groups; some envelopes are traced through their stages, each of which waited for somebody; replicas tell how
long their commits took. One replica may be slow. Everything is made column by column: a million records take
seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ordercast.analytics.records import DELIVERY, EVENT, POINT, POISON, SPAN, arrow_schema
from ordercast.core.tracing import root_id, span_id, trace_id
from ordercast.protocols.catalogue import DEFAULT
from ordercast.telemetry.schema import names
from ordercast.telemetry.schema.model import load

CLUSTER = bytes(range(16))
DOMAIN = "default"
PROTOCOL = DEFAULT.name
NODES = ("n1", "n2", "n3")
#: The gateway that makes all envelopes runs in the first process.
GATEWAY, INCARNATION = "n1", 7
MS = 1_000_000
SECOND = 1_000_000_000
#: Nanoseconds since 1970 of the first publish: any time will do, as long as it stays the same.
BEGIN_NS = 1_790_000_000 * SECOND


@dataclass(frozen=True, slots=True)
class Plan:
    envelopes: int
    seed: int = 0
    groups: tuple[str, ...] = ("a", "b", "c", "d")
    #: Envelopes published in a second.
    rate: int = 1000
    #: One in so many envelopes has spans.
    traced_every: int = 10
    #: A replica whose word, and whose deliveries, come late.
    slow: str = ""
    slow_ns: int = 80 * MS
    #: How much ahead of the others the clocks of these run.
    skew_ns: dict[str, int] = field(default_factory=dict)
    #: Seconds from the beginning between which the last group refuses publishes.
    unavailable: tuple[int, int] | None = None


@dataclass(slots=True)
class Deliveries:
    """One array for each column, one element for each delivery; what tests plant faults in."""

    group: np.ndarray
    node: np.ndarray
    incarnation: np.ndarray
    position: np.ndarray
    #: Which envelope of the plan.
    envelope: np.ndarray
    #: The first part of the order key; the second is the envelope's id.
    number: np.ndarray
    first_offset: np.ndarray
    messages: np.ndarray
    published_ns: np.ndarray
    time_ns: np.ndarray
    received_ns: np.ndarray
    begins: np.ndarray

    def where(self, group: str, node: str, position: int) -> int:
        """The one delivery of a position by a replica."""
        found = np.flatnonzero((self.group == group) & (self.node == node) & (self.position == position))
        assert len(found) == 1, f"{len(found)} deliveries"
        return int(found[0])

    def taken(self, rows: Any) -> "Deliveries":
        return Deliveries(*(getattr(self, name)[rows] for name in self.__slots__))

    def repeated(self, row: int) -> "Deliveries":
        """With one more, at the end, that is the same as `row`; its time may be changed then."""
        return self.taken(np.append(np.arange(len(self.position)), row))

    def without(self, row: int) -> "Deliveries":
        return self.taken(np.delete(np.arange(len(self.position)), row))

    def swap(self, one: int, other: int) -> None:
        """As if the replica had delivered the two envelopes in the other order."""
        for column in (self.envelope, self.number, self.messages, self.published_ns):
            column[[one, other]] = column[[other, one]]


class Cluster:
    """What a plan comes to. The deliveries may be changed before the records are made."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        random = np.random.default_rng(plan.seed)
        count, groups = plan.envelopes, len(plan.groups)
        self.published_ns = BEGIN_NS + np.arange(count, dtype=np.int64) * (SECOND // plan.rate)
        first = random.integers(0, groups, count)
        second = (first + random.integers(1, max(groups, 2), count)) % groups
        self._is_for = np.zeros((count, groups), dtype=bool)
        self._is_for[np.arange(count), first] = True
        both = random.random(count) < 0.5
        self._is_for[np.flatnonzero(both), second[both]] = True
        self._messages = random.integers(1, 20, count)
        self._lag_ns = (2 * MS + random.exponential(2 * MS, count)).astype(np.int64)
        self._random = random
        self.ids = _pairs(np.full(count, INCARNATION), np.arange(count))
        self.traces = np.frombuffer(
            b"".join(trace_id(CLUSTER, DOMAIN, row.tobytes()) for row in self.ids), np.uint8
        ).reshape(count, 16)
        self.deliveries = self._delivered()

    def _delivered(self) -> Deliveries:
        plan, parts = self.plan, []
        for at, group in enumerate(plan.groups):
            envelopes = np.flatnonzero(self._is_for[:, at])
            # A replica delivers in order: whoever has an earlier place is not later.
            messages = self._messages[envelopes]
            offsets = np.concatenate([[0], np.cumsum(messages)[:-1]]) if len(envelopes) else messages
            for node in NODES:
                late = plan.slow_ns if node == plan.slow else 0
                jitter = self._random.exponential(0.3 * MS, len(envelopes)).astype(np.int64)
                time_ns = self.published_ns[envelopes] + self._lag_ns[envelopes] + jitter + late
                time_ns = np.maximum.accumulate(time_ns) if len(envelopes) else time_ns
                shown = time_ns + plan.skew_ns.get(node, 0)
                parts.append(
                    (
                        np.full(len(envelopes), group),
                        np.full(len(envelopes), node),
                        np.full(len(envelopes), 1 + NODES.index(node)),
                        np.arange(len(envelopes)),
                        envelopes,
                        envelopes + 1,
                        offsets,
                        messages,
                        self.published_ns[envelopes],
                        shown,
                        # Sent every few milliseconds, many at once.
                        time_ns - time_ns % (20 * MS) + 25 * MS,
                        np.zeros(len(envelopes), dtype=bool),
                    )
                )
        return Deliveries(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def table(self) -> pa.Table:
        """All records in the order in which they were received, with offsets from 0."""
        parts = [self._delivery_rows(), self._span_rows(), self._point_rows(), self._event_rows()]
        return in_order(pa.concat_tables(parts))

    def _delivery_rows(self) -> pa.Table:
        rows = self.deliveries
        ids = self.ids[rows.envelope]
        count = len(rows.position)
        return records(
            count,
            kind=DELIVERY,
            name=names.EVENT_DELIVERIES,
            service="ordercast",
            domain=DOMAIN,
            protocol=PROTOCOL,
            schema_version=names.VERSION,
            time_ns=rows.time_ns,
            received_ns=rows.received_ns,
            trace_id=_binary(self.traces[rows.envelope]),
            node=rows.node.tolist(),
            incarnation=rows.incarnation,
            messages=rows.messages,
            group=rows.group.tolist(),
            group_id=np.char.add(rows.group, "#1").tolist(),
            envelope=_binary(ids),
            order_key=_binary(np.concatenate([_u64(rows.number), ids], axis=1)),
            position=rows.position,
            first_offset=rows.first_offset,
            published_ns=rows.published_ns,
            attributes=[[(names.ATTRIBUTE_BEGINS, "true")] if begins else [] for begins in rows.begins.tolist()],
        )

    def _span_rows(self) -> pa.Table:
        """The stages of traced envelopes. The slow replica's word comes last; who is behind it waits for a
        message.
        """
        plan, rows = self.plan, []
        last_word = plan.slow or NODES[-1]
        late = plan.slow_ns if plan.slow else 0
        for envelope in range(0, plan.envelopes, plan.traced_every):
            begun, lag = int(self.published_ns[envelope]), int(self._lag_ns[envelope])
            groups = [group for group, is_for in zip(plan.groups, self._is_for[envelope], strict=True) if is_for]
            # Every other one waits for a message that is traced as well.
            back = plan.traced_every if envelope // plan.traced_every % 2 else 1
            before = self.ids[max(envelope - back, 0)].tobytes().hex()
            rows.append((envelope, GATEWAY, "", "ordercast.publish", "", begun, begun + lag + late, "", groups))
            for node in NODES:
                own = late if node == plan.slow else 0
                at = [begun + MS // 2, begun + MS, begun + MS + lag // 2 + own]
                rows.append((envelope, node, "", "ordercast.timestamp", "timestamp", at[0], at[1], "", []))
                blocker = f"replica:{last_word}"
                rows.append((envelope, node, "", "ordercast.decide", "decide", at[1], at[2], blocker, []))
                for group in groups:
                    known, end = at[2] + lag // 8, at[2] + lag // 4
                    blocker = f"replica:{last_word}"
                    rows.append(
                        (
                            envelope,
                            node,
                            group,
                            "ordercast.predecessors",
                            "predecessors",
                            at[2],
                            known,
                            blocker,
                            [],
                        )
                    )
                    blocker = f"message:{before}"
                    rows.append((envelope, node, group, "ordercast.deliver", "deliver", known, end, blocker, []))
        return self._spans(rows)

    def _spans(self, rows: list[tuple[Any, ...]]) -> pa.Table:
        envelope = np.array([row[0] for row in rows], dtype=np.int64)
        end = np.array([row[6] for row in rows], dtype=np.int64)
        traces = [self.traces[at].tobytes() for at in envelope]
        spans = [
            root_id(trace) if row[3] == names.SPAN_PUBLISH else span_id(trace, row[1], row[3] + row[2])
            for trace, row in zip(traces, rows, strict=True)
        ]
        return records(
            len(rows),
            kind=SPAN,
            service="ordercast",
            domain=DOMAIN,
            protocol=PROTOCOL,
            schema_version=names.VERSION,
            name=[row[3] for row in rows],
            time_ns=end,
            start_ns=np.array([row[5] for row in rows], dtype=np.int64),
            received_ns=end + 200 * MS,
            trace_id=traces,
            span_id=spans,
            parent_span_id=[root_id(trace) for trace in traces],
            status=["ok"] * len(rows),
            node=[row[1] for row in rows],
            incarnation=np.array([1 + NODES.index(row[1]) for row in rows], dtype=np.int64),
            group=[row[2] or None for row in rows],
            envelope=_binary(self.ids[envelope]),
            stage=[row[4] or None for row in rows],
            blocked_on=[row[7] or None for row in rows],
            attributes=[
                [(names.ATTRIBUTE_MESSAGING_DESTINATION_NAME, ",".join(row[8]))] if row[8] else [] for row in rows
            ],
        )

    def _point_rows(self) -> pa.Table:
        """Every five seconds each process tells its commits since the last time."""
        bounds = list(load().buckets["s"])
        seconds = np.arange(5, self.plan.envelopes // self.plan.rate + 6, 5, dtype=np.int64)
        at = [(node, int(second)) for second in seconds for node in NODES]
        time_ns = np.array([BEGIN_NS + second * SECOND for _, second in at], dtype=np.int64)
        # The slow one's commits are in the bucket up to 100 ms, the others' in that up to 2.5 ms.
        full = [bounds.index(0.1 if node == self.plan.slow else 0.0025) for node, _ in at]
        return records(
            len(at),
            kind=POINT,
            service="ordercast",
            name=names.METRIC_STORAGE_COMMIT_DURATION,
            schema_version=names.VERSION,
            time_ns=time_ns,
            start_ns=time_ns - 5 * SECOND,
            received_ns=time_ns + 50 * MS,
            value=np.array([100 * bounds[bucket] for bucket in full]),
            value_max=np.array([bounds[bucket] for bucket in full]),
            bounds=[bounds] * len(at),
            buckets=[[100 if place == bucket else 0 for place in range(len(bounds) + 1)] for bucket in full],
            count=np.full(len(at), 100, dtype=np.int64),
            node=[node for node, _ in at],
            incarnation=np.array([1 + NODES.index(node) for node, _ in at], dtype=np.int64),
        )

    def _event_rows(self) -> pa.Table:
        refused = range(*self.plan.unavailable) if self.plan.unavailable else range(0)
        rows: list[tuple[str, str, int, str | None, str | None, int | None]] = [
            (node, names.EVENT_STARTED, BEGIN_NS - SECOND, None, None, None) for node in NODES
        ]
        for second in refused:
            at = BEGIN_NS + second * SECOND
            rows.append((GATEWAY, names.EVENT_REFUSED, at, self.plan.groups[-1], "unavailable", 5))
        time_ns = np.array([row[2] for row in rows], dtype=np.int64)
        return records(
            len(rows),
            kind=EVENT,
            service="ordercast",
            schema_version=names.VERSION,
            name=[row[1] for row in rows],
            time_ns=time_ns,
            received_ns=time_ns + 30 * MS,
            node=[row[0] for row in rows],
            incarnation=np.array([1 + NODES.index(row[0]) for row in rows], dtype=np.int64),
            domain=[DOMAIN if row[3] else None for row in rows],
            group=[row[3] for row in rows],
            reason=[row[4] for row in rows],
            count=pa.array([row[5] for row in rows], pa.int64()),
        )


def records(size: int, /, **columns: Any) -> pa.Table:
    """A table of records: an array or a list for each, one value for all of them, or nothing."""
    made = []
    for column in arrow_schema():
        values = columns.get(column.name)
        if values is None:
            made.append(pa.nulls(size, column.type))
        elif isinstance(values, str | int | float | bytes):
            made.append(pa.repeat(pa.scalar(values, column.type), size))
        else:
            made.append(values if isinstance(values, pa.Array) else pa.array(values, column.type))
    return pa.Table.from_arrays(made, schema=arrow_schema())


def poisoned(table: pa.Table, at: int, **changes: Any) -> pa.Table:
    """With one record more, received with that at `at`, which differs from it by `changes`."""
    row = table.slice(at, 1).to_pylist()[0] | changes
    broken = pa.Table.from_pylist([row], schema=table.schema)
    return numbered(pa.concat_tables([table.slice(0, at + 1), broken, table.slice(at + 1)]))


def repeated(table: pa.Table, begin: int, count: int, later_ns: int) -> pa.Table:
    """With so many records a second time, received later: as if their sender had not got an answer."""
    again = table.slice(begin, count)
    received = table.schema.get_field_index(names.COLUMN_RECEIVED_NS)
    times = pa.array(again.column(received).to_numpy() + later_ns)
    return in_order(pa.concat_tables([table, again.set_column(received, names.COLUMN_RECEIVED_NS, times)]))


def unreadable(table: pa.Table, at: int, reason: str) -> pa.Table:
    """With one record more that the telemetry service could not read."""
    nothing: dict[str, Any] = dict.fromkeys(table.column_names)
    nothing |= {names.COLUMN_KIND: POISON, names.COLUMN_REASON: reason}
    nothing |= {names.COLUMN_RECEIVED_NS: table.column(names.COLUMN_RECEIVED_NS)[at].as_py()}
    return poisoned(table, at, **nothing)


def in_order(table: pa.Table) -> pa.Table:
    """Of their receipts."""
    order = np.argsort(table.column(names.COLUMN_RECEIVED_NS).to_numpy(), kind="stable")
    return numbered(table.take(pa.array(order)))


def numbered(table: pa.Table) -> pa.Table:
    offsets = pa.array(np.arange(table.num_rows, dtype=np.int64))
    return table.set_column(0, names.COLUMN_OFFSET, offsets)


def segments(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    for begin in range(0, table.num_rows, rows):
        yield table.slice(begin, rows)


def _u64(numbers: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(numbers, dtype=">u8").view(np.uint8).reshape(len(numbers), 8)


def _pairs(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    return np.concatenate([_u64(high), _u64(low)], axis=1)


def _binary(rows: np.ndarray) -> pa.Array:
    rows = np.ascontiguousarray(rows)
    fixed = pa.binary(rows.shape[1])
    return pa.Array.from_buffers(fixed, len(rows), [None, pa.py_buffer(rows)]).cast(pa.binary())
