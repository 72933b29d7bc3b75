"""Agreement, integrity, offsets and watermarks, checked at every delivery.

The first replica of a group to deliver at a position sets what is there; every other replica, and the same one
after a restart, must deliver exactly that. So deliveries of processes that crash right afterwards count too:
agreement is uniform.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from ordercast.core.cells import cell_of, cells_of, shares_cell, targets_of, within
from ordercast.core.dropping import dropped_in, without
from ordercast.core.machine import Deliver, ResetLog, Watermark
from ordercast.sim.board import Board, MessageKey, name_of
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.trace import describe
from ordercast.v1.common_pb2 import Batch, ProducerRange, Span
from ordercast.v1.sequencer_pb2 import LogEntry


@dataclass(slots=True)
class SharedLog:
    """The log of a group that shares its cell: the cell's, without the messages of others."""

    messages: list[MessageKey] = field(default_factory=list)
    offsets: dict[MessageKey, int] = field(default_factory=dict)


@dataclass(slots=True)
class GroupLog:
    """A cell's log as everyone must see it; or a group's, if it has the cell to itself."""

    replicas: tuple[str, ...]
    #: Who is or was one, or was to become one.
    holders: dict[str, None] = field(default_factory=dict)
    entries: list[LogEntry] = field(default_factory=list)
    #: Who delivered first at each position.
    first: list[str] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    #: The messages in order of offset, and the position of each.
    messages: list[MessageKey] = field(default_factory=list)
    offsets: dict[MessageKey, int] = field(default_factory=dict)
    order_keys: dict[MessageKey, bytes] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    watermark: bytes = b""


def as_kept(cell: str, whole: LogEntry, kept: LogEntry) -> LogEntry:
    """What must be left of an entry, if some groups have dropped it."""
    return without(cell, whole, dropped_in(cell, kept)) if kept.dropped else whole


class LogChecker:
    def __init__(self, board: Board, replicas: dict[str, tuple[str, ...]]) -> None:
        self.board = board
        self.groups = {name: GroupLog(members, dict.fromkeys(members)) for name, members in replicas.items()}
        #: By address: groups that share their cells.
        self.shared: dict[str, SharedLog] = {}
        #: Deliveries of messages, over all replicas.
        self.delivered = 0
        #: Who wants to hear of each message that comes into a group's log, when it does.
        self.on_new: Callable[[MessageKey, LogEntry], None] = lambda key, entry: None

    def add(self, name: str, replicas: tuple[str, ...]) -> None:
        self.groups[name] = GroupLog(replicas, dict.fromkeys(replicas))

    def offsets_in(self, group: str) -> dict[MessageKey, int]:
        """By its address: where its messages are for users."""
        return self._shared_log(group).offsets if shares_cell(group) else self.groups[group].offsets

    def _shared_log(self, group: str) -> SharedLog:
        return self.shared.setdefault(group, SharedLog())

    def change(self, name: str, replicas: tuple[str, ...], learners: tuple[str, ...]) -> None:
        group = self.groups[name]
        group.replicas = replicas
        group.holders.update(dict.fromkeys((*replicas, *learners)))

    def on_deliver(self, process: str, effect: Deliver) -> None:
        self.on_commit(process, effect.group, effect.position, effect.entry)
        outcomes = effect.entry.outcomes
        self.delivered += sum(s.count for outcome in outcomes for s in outcome.spans if not s.duplicate)

    def on_commit(self, process: str, name: str, position: int, entry: LogEntry) -> None:
        """Visible to somebody, or durable without anybody having seen it."""
        group = self.groups[name]
        if process not in group.holders:
            raise Violation("integrity", f"{process} delivers in {name}, of which it is no replica")
        if position < len(group.entries):
            self._check_same(name, group, process, position, entry)
        elif position == len(group.entries):
            self._append(name, group, process, entry)
        else:
            raise Violation("agreement", f"{process} skips {name}:{len(group.entries)}")
        group.positions[process] = max(group.positions.get(process, 0), position + 1)

    def _check_same(self, name: str, group: GroupLog, process: str, position: int, entry: LogEntry) -> None:
        known = group.entries[position]
        if known is entry or (known.order_key == entry.order_key and as_kept(name, known, entry) == entry):
            return
        raise Violation(
            "agreement",
            f"at {name}:{position} {group.first[position]} delivered {describe(known.envelope)} with key "
            f"{describe(known.order_key)} and offset {known.first_offset}, but {process} delivers "
            f"{describe(entry.envelope)} with key {describe(entry.order_key)} and offset {entry.first_offset}",
        )

    def _append(self, name: str, group: GroupLog, process: str, entry: LogEntry) -> None:
        header = entry.envelope.header
        if group.keys and entry.order_key <= group.keys[-1]:
            raise Violation(
                "order",
                f"{process} delivers {describe(entry.order_key)} in {name} behind {describe(group.keys[-1])}",
            )
        if entry.order_key <= group.watermark:
            raise Violation(
                "watermark",
                f"{name} said that nothing up to {describe(group.watermark)} would still come, but {process} "
                f"delivers {describe(entry.order_key)}",
            )
        if name not in [destination.group for destination in header.destinations]:
            raise Violation("integrity", f"{process} delivers {describe(header)} in {name}")
        group.entries.append(entry)
        group.first.append(process)
        group.keys.append(entry.order_key)
        self._append_messages(name, group, process, entry)

    def _append_messages(self, name: str, group: GroupLog, process: str, entry: LogEntry) -> None:
        header = entry.envelope.header
        cells = tuple(destination.group for destination in header.destinations)
        self._check_ends(name, process, entry, list(entry.bases))
        if entry.first_offset != len(group.messages):
            raise Violation("integrity", f"{process} counts offset {entry.first_offset} in {name}")
        body = Batch.FromString(entry.envelope.body).messages
        start = 0
        for range_, outcome in zip(header.ranges, entry.outcomes, strict=True):
            targets = _targets_of(entry, range_)
            for span in outcome.spans:
                for sequence in range(span.first_sequence, span.first_sequence + span.count):
                    payload = body[start + sequence - range_.first_sequence].payload
                    groups = targets[sequence - range_.first_sequence] if targets else cells
                    key = self.board.by_payload.get(payload)
                    if key is None or key[:2] != (range_.producer, groups) or cells_of(groups) != cells:
                        what = name_of((range_.producer, groups, sequence))
                        raise Violation("integrity", f"{process} delivers {what} in {name}, which nobody sent")
                    if not span.duplicate:
                        offset = span.first_offset + sequence - span.first_sequence
                        self._new_message(name, group, process, key, offset, entry)
                    else:
                        self._repetition(name, group, process, key, span, sequence - span.first_sequence)
            start += range_.count
        ends = [base + new for base, new in zip(entry.bases, entry.news, strict=True)]
        self._check_ends(name, process, entry, ends)

    def _check_ends(self, name: str, process: str, entry: LogEntry, told: list[int]) -> None:
        """What readers count from: where the groups of an entry end, before it and behind it."""
        targets = targets_of(entry.envelope.header)
        groups = sorted({group for target in targets for group in target if cell_of(group) == name})
        whole = len(self.groups[name].messages)
        ends = [len(self._shared_log(group).messages) if shares_cell(group) else whole for group in groups]
        if told != ends:
            raise Violation("integrity", f"{process} counts {told} in {groups}, which end at {ends}")

    def _repetition(
        self, name: str, group: GroupLog, process: str, key: MessageKey, span: Span, ahead: int
    ) -> None:
        if key not in group.offsets:
            raise Violation("exactly-once", f"{name_of(key)} is no repetition in {name}: it is not there")
        there = [self.offsets_in(address)[key] for address in within(name, key[1])]
        if span.offsets and [offset + ahead for offset in span.offsets] != there:
            raise Violation("receipt", f"{process} says that {name_of(key)} is at {span.offsets}, not at {there}")

    def _new_message(
        self, name: str, group: GroupLog, process: str, key: MessageKey, offset: int, entry: LogEntry
    ) -> None:
        if key in group.offsets:
            raise Violation(
                "exactly-once",
                f"{process} delivers {name_of(key)} in {name} at {offset}, but it is at {group.offsets[key]} too",
            )
        if offset != len(group.messages):
            raise Violation("integrity", f"{process} gives offset {offset} in {name}, not {len(group.messages)}")
        group.offsets[key] = offset
        group.order_keys[key] = entry.order_key
        group.messages.append(key)
        for address in _sharing(name, key):
            shared = self._shared_log(address)
            shared.offsets[key] = len(shared.messages)
            shared.messages.append(key)
        self.on_new(key, entry)

    def on_log_reset(self, process: str, effect: ResetLog) -> None:
        """A snapshot: what it stands for must be what the group has delivered."""
        group = self.groups[effect.group]
        if effect.position > len(group.entries):
            raise Violation("agreement", f"{process} takes a snapshot beyond {effect.group}:{len(group.entries)}")
        group.positions[process] = effect.position

    def on_watermark(self, process: str, effect: Watermark) -> None:
        group = self.groups[effect.group]
        below = bisect_right(group.keys, effect.key)
        if group.positions.get(process, 0) < below:
            raise Violation(
                "watermark",
                f"{process} is at {effect.group}:{group.positions.get(process, 0)} and says it has seen "
                f"everything up to {describe(effect.key)}, but {below} envelopes come before that",
            )
        group.watermark = max(group.watermark, effect.key)


def _targets_of(entry: LogEntry, range_: ProducerRange) -> list[tuple[str, ...]]:
    """Of each message of the range; nothing if all are simply for the destinations."""
    targets = targets_of(entry.envelope.header)
    runs = list(range_.runs)
    return [targets[index] for index, count in zip(runs[::2], runs[1::2], strict=True) for _ in range(count)]


def _sharing(cell: str, key: MessageKey) -> list[str]:
    """The groups of a message that share this cell."""
    return [group for group in key[1] if shares_cell(group) and cell_of(group) == cell]
