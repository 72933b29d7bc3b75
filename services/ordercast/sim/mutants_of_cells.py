"""Mutants of what follows from groups that share cells. It is the same code in every protocol that has logs."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ordercast.core.cells import Runs, Tally
from ordercast.core.dropping import without
from ordercast.core.submission import Groups
from ordercast.gateway import ranges
from ordercast.gateway.producer import WaitingRequest
from ordercast.protocols.celllog.group_log import CellState, GroupLog
from ordercast.protocols.celllog.saved_logs import SavedLogs
from ordercast.sim import disk
from ordercast.sim.mutant import Mutant, register
from ordercast.v1.common_pb2 import ProducerRange
from ordercast.v1.sequencer_pb2 import LogEntry, Snapshot

OF_CELLS: list[Mutant] = []
mutant = partial(register, OF_CELLS)


_restore = SavedLogs.restore


@mutant("offsets-given-twice-after-a-restart", "a group's end is on disk", (SavedLogs, "restore"))
def _ends_lost(self: SavedLogs, log: GroupLog) -> None:
    _restore(self, log)
    log.ends = {}


_put_into = CellState.put_into


@mutant("state-without-the-ends-of-groups", "a state has all that the log led to", (CellState, "put_into"), seed=5)
def _without_ends(self: CellState, snapshot: Snapshot) -> None:
    _put_into(self, snapshot)
    del snapshot.ends[:]


_take = Tally.take


@mutant("repetition-counts-as-a-message", "what comes again has no offsets of its own", (Tally, "take"), seed=31)
def _takes_all(self: Tally, range_: ProducerRange, first: int, end: int) -> Runs:
    taken = _take(self, range_, first, end)
    if first > range_.first_sequence:
        _take(self, range_, range_.first_sequence, first)
    return taken


_add_runs = ranges._add_runs


@mutant("messages-shown-to-another-group", "each message is for its own groups", (ranges, "_add_runs"))
def _one_target(range_: ProducerRange, item: WaitingRequest, indices: Mapping[Groups, int]) -> None:
    _add_runs(range_, item, indices)
    range_.runs[::2] = range_.runs[:1] * (len(range_.runs) // 2)


_complete = GroupLog.complete


@mutant("index-has-messages-that-are-not-new", "of a repetition nothing is new", (GroupLog, "complete"))
def _counts_all(self: GroupLog, entry: LogEntry, groups: tuple[str, ...], sn: int) -> None:
    _complete(self, entry, groups, sn)
    header = entry.envelope.header
    tally = Tally.of(self.name, header, entry.bases)
    for range_ in header.ranges:
        tally.take(range_, range_.first_sequence, range_.first_sequence + range_.count)
    entry.news[:] = [end - base for end, base in zip(tally.ends, entry.bases, strict=True)]


@mutant("compaction-drops-a-live-row", "what another group needs stays in an entry", (disk, "without"))
def _drops_all(cell: str, entry: LogEntry, groups: Any) -> LogEntry:
    found = without(cell, entry, groups)
    found.envelope.body = b""
    return found


@mutant("compaction-is-not-told", "an entry says which groups have dropped it", (disk, "without"))
def _untold(cell: str, entry: LogEntry, groups: Any) -> LogEntry:
    found = without(cell, entry, groups)
    del found.dropped[:]
    return found
