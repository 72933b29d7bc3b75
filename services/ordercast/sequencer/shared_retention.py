"""Retention and deletion in cells that groups share.

Each group's beginning moves by itself, by its own limits: rows of its index before that count for nothing. The log
is the cell's, and follows in its own time: a *sweep* goes through it and asks of each entry which groups still
need it. The beginning of the log goes as far as no group needs it. Behind that, an entry is written again without
the messages that nobody needs, once they are half of it (core/dropping.py). So a log takes about twice what its
groups keep, and what headers take, besides what became useless since the last sweep.

A sweep is due when a quarter of the log became useless, a group was deleted, or the process started. After one
there is a rest of many times as long as it took: sweeping never takes more than a small part of the processor.
Nothing is remembered of it: a crash in between leaves what was done, and the next sweep does the rest.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from ordercast.core.cells import shares_cell
from ordercast.core.dropping import dropped_in, is_worth_it, without
from ordercast.core.members import address_of
from ordercast.core.projection import ends_after
from ordercast.runtime.process.node import Node
from ordercast.runtime.storage.group_index import GroupBegin, IndexRow
from ordercast.runtime.storage.store import StoredEntry
from ordercast.v1.membership_pb2 import Group
from ordercast.v1.sequencer_pb2 import LogEntry

log = structlog.get_logger("retention")

#: Between pieces of work, so that nobody notices.
PAUSE_S = 0.01
GROUPS_AT_ONCE = 200
ROWS_AT_ONCE = 256
ENTRIES_AT_ONCE = 128
BYTES_AT_ONCE = 512 << 10
#: So much may become useless before it is worth a look.
SLACK_BYTES = 1 << 20
#: A sweep is followed by a rest of so many times as long.
REST = 10
#: A replica that is away is waited for until it would need so much of the log: then it takes a state.
SLOW_BYTES = 64 << 20
#: So much useless that a sweep is due, however long the log is.
ALL = 1 << 62


@dataclass(slots=True)
class Counted:
    """How many bytes a group keeps, of its messages between two offsets."""

    first: int
    next: int
    bytes: int = 0


class SharedRetention:
    def __init__(self, node: Node) -> None:
        self.node = node
        self._counted: dict[str, Counted] = {}
        #: Cells that were looked through since the start.
        self._looked: dict[str, None] = {}
        #: By cell: bytes that became useless since its last sweep, and when the next one may be.
        self._useless: dict[str, int] = {}
        self._not_before: dict[str, float] = {}

    def _here(self) -> dict[str, Group]:
        """Cells that groups share."""
        cells = self.node.directory.cells.values()
        return {cell.id: cell for cell in cells if cell.is_cell and self.node.name in cell.replicas}

    async def cut(self) -> None:
        """Move the beginnings of all groups that have limits."""
        here = self._here()
        for number, group in enumerate(list(self.node.directory.limited.values())):
            if group.cell in here:
                self._cut(group)
            if number % GROUPS_AT_ONCE == GROUPS_AT_ONCE - 1:
                await asyncio.sleep(PAUSE_S)

    async def sweep_what_is_due(self) -> None:
        for cell in self._here().values():
            if cell.id not in self._looked:
                await self._forget_gone(cell)
                self._looked[cell.id] = None
            if self._is_due(cell):
                await self.sweep(cell)

    def removed(self, addresses: Mapping[str, list[str]]) -> None:
        """Groups are gone: their rows go in the background, their messages with the next sweeps."""
        for address in (one for of_domain in addresses.values() for one in of_domain):
            self.node.writer.drop_shared(address)
            self._counted.pop(address, None)
            cell = address.partition("/")[0]
            # How much they had is not known.
            self._useless[cell] = ALL
        if addresses:
            self.node.writer.kick()

    # ------------------------------------------------------------------------------------ where groups begin

    def _cut(self, group: Group) -> None:
        """Move the group's beginning, a piece at a time: a long way takes several looks."""
        address, index = address_of(group), self.node.logs.index
        counted = self._counted.get(address)
        begin = index.begin_of(address)
        first = begin.offset if begin is not None else 0
        if counted is None or counted.first < first:
            counted = self._counted[address] = Counted(first, first)
        self._count(address, counted)
        limit = group.retention.bytes
        cut: IndexRow | None = None
        for row in index.rows_from(address, counted.first, ROWS_AT_ONCE):
            is_over = bool(limit) and counted.bytes > limit and row.next_offset <= counted.next
            if not is_over and not self._is_old(group, row):
                break
            cut = row
            counted.first = row.next_offset
            if row.next_offset <= counted.next:
                counted.bytes -= row.bytes
            self._useless[group.cell] = self._useless.get(group.cell, 0) + row.bytes
        if cut is not None:
            counted.next = max(counted.next, counted.first)
            self.node.writer.begin_group(address, GroupBegin(cut.next_offset, cut.position + 1))
            self.node.writer.kick()

    def _count(self, address: str, counted: Counted) -> None:
        """What came since."""
        for row in self.node.logs.index.rows_from(address, counted.next, ROWS_AT_ONCE):
            counted.bytes += row.bytes
            counted.next = row.next_offset

    def _is_old(self, group: Group, row: IndexRow) -> bool:
        age_s = group.retention.age_s
        if not age_s:
            return False
        stored_ms = self.node.storage.header(group.cell, row.position).wall_ms
        return stored_ms < self.node.clock.wall_ms() - age_s * 1000

    async def _forget_gone(self, cell: Group) -> None:
        """Once after the start: rows of groups that went while this process was away, or that it had not yet
        removed.
        """
        index, writer = self.node.logs.index, self.node.writer
        address = ""
        while addresses := index.addresses(cell.id, address, GROUPS_AT_ONCE):
            for address in addresses:
                if self.node.directory.is_gone(address):
                    writer.drop_shared(address)
                elif (begin := index.begin_of(address)) is not None:
                    writer.begin_group(address, begin)
            writer.kick()
            await asyncio.sleep(PAUSE_S)
        self._useless[cell.id] = ALL

    # ------------------------------------------------------------------------------------------------- sweeps

    def _is_due(self, cell: Group) -> bool:
        useless = self._useless.get(cell.id, 0)
        if useless < SLACK_BYTES or time.monotonic() < self._not_before.get(cell.id, 0.0):
            return False
        return useless * 4 >= self.node.storage.bounds(cell.id).bytes

    async def sweep(self, cell: Group) -> None:
        replica = self.replica(cell)
        if replica is None or replica.copied is not None:
            return
        begun, self._useless[cell.id] = time.monotonic(), 0
        there = self.node.storage.positions(cell.id)
        settled = min(replica.retained_from(), there.stop)
        slow = self.node.storage.floor(cell.id, SLOW_BYTES, 0)
        floor = max(replica.slowest(settled), slow)
        sweep = Sweep(self.node, cell.id, there.start)
        position = there.start
        while position < settled:
            entries = self.node.storage.read(
                cell.id, position, min(ENTRIES_AT_ONCE, settled - position), BYTES_AT_ONCE
            )
            if not entries:
                break  # The log was replaced meanwhile.
            sweep.take(entries)
            position = entries[-1].position + 1
            await asyncio.sleep(PAUSE_S)
        begins = min(sweep.needed_from, floor)
        if begins > there.start:
            self.node.writer.truncate(cell.id, begins)
            self.node.writer.kick()
        for group in sweep.gone:
            if self.node.logs.index.rows_from(group, 0, 1):  # A copy of the log brought them back.
                self.node.writer.drop_shared(group)
        self._not_before[cell.id] = time.monotonic() + REST * (time.monotonic() - begun)
        log.info(
            "cell swept",
            cell=cell.id,
            entries=position - there.start,
            dropped=max(0, begins - there.start),
            written_again=sweep.written_again,
            saved_bytes=sweep.saved_bytes,
        )

    def replica(self, cell: Group) -> Any:
        """As the protocol's machine has it, if there is one."""
        node = self.node
        slot = node.host.slots.get((cell.domain, node.directory.domains[cell.domain].protocol))
        return getattr(slot.machine, "replicas", {}).get(cell.id) if slot is not None else None


class Sweep:
    """Once through the log of a cell."""

    def __init__(self, node: Node, cell: str, begin: int) -> None:
        self.node = node
        self.cell = cell
        #: No group needs an entry before this position.
        self.needed_from = begin
        self._is_needed = False
        self.written_again = 0
        self.saved_bytes = 0
        #: Groups that are no more.
        self.gone: dict[str, None] = {}
        #: By address: where the group begins. What moves meanwhile is for the next sweep.
        self._begins: dict[str, int] = {}

    def take(self, entries: list[StoredEntry]) -> None:
        """The next ones."""
        smaller: list[tuple[int, bytes]] = []
        for stored in entries:
            entry = LogEntry.FromString(stored.data)
            done = dropped_in(self.cell, entry)
            useless = [group for group in self._useless(entry) if group not in done]
            living = len(ends_after(self.cell, entry)) - len(done) - len(useless)
            if living > 0 or self._has_others(entry):
                self._is_needed = True
            if not self._is_needed:
                self.needed_from = stored.position + 1
            elif useless:
                again = without(self.cell, entry, useless)
                if is_worth_it(entry, again):
                    smaller.append((stored.position, again.SerializeToString()))
                    self.saved_bytes += len(stored.data) - len(smaller[-1][1])
        if smaller:
            self.written_again += len(smaller)
            self.node.writer.rewrite(self.cell, smaller)
            self.node.writer.kick()

    def _useless(self, entry: LogEntry) -> Iterator[str]:
        """Groups that need nothing of it: they begin behind it, or are gone."""
        for group, (_, end) in ends_after(self.cell, entry).items():
            if self.node.directory.is_gone(group):
                self.gone[group] = None
                yield group
            elif self._begin_of(group) >= end:
                yield group

    def _has_others(self, entry: LogEntry) -> bool:
        """Messages for what is no group of a shared cell, if there can be any, stay."""
        return not entry.envelope.header.targets or any(
            not shares_cell(group) for group in entry.envelope.header.groups if group == self.cell
        )

    def _begin_of(self, group: str) -> int:
        begin = self._begins.get(group)
        if begin is None:
            found = self.node.logs.index.begin_of(group)
            begin = self._begins[group] = found.offset if found is not None else 0
        return begin
