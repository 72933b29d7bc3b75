"""The logs as this process has written them, durable or not. Only the event loop's thread comes here.

Entries that are not known to be durable are the end of a log: they are kept here, and what is before them is read
from the storage. Whether a commit is just being made, or made and not yet heard of, makes no difference: entries
leave only when the loop is told, and are then in the storage.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from ordercast.core.dropping import dropped_in
from ordercast.core.errors import InvariantBroken
from ordercast.core.projection import ends_after
from ordercast.runtime.storage.batch import BeginLog, DropLog, Operation, PutEntry
from ordercast.runtime.storage.group_index import GroupBegin, IndexRow
from ordercast.runtime.storage.layout import (
    BadEntryError,
    CorruptRecord,
    EntryHeader,
    Extent,
    LogBounds,
    Mark,
    StoredEntry,
    log_prefix,
    next_offset_of,
)
from ordercast.runtime.storage.store import Storage
from ordercast.v1.sequencer_pb2 import LogEntry

NOTHING = Mark(0, 0, 0)


def rows_of(cell: str, position: int, entry: LogEntry) -> tuple[tuple[str, IndexRow], ...]:
    """For the index of each group that has new messages in the entry."""
    header = entry.envelope.header
    if not header.targets:
        return ()
    size, messages = entry.ByteSize(), max(1, sum(range_.count for range_ in header.ranges))
    dropped = dropped_in(cell, entry)
    return tuple(
        (group, IndexRow(first, end, position, size * (end - first) // messages))
        for group, (first, end) in ends_after(cell, entry).items()
        if group not in dropped
    )


def begins_behind(cell: str, position: int, entry: LogEntry) -> tuple[tuple[str, GroupBegin], ...]:
    """Of groups that have dropped the entry."""
    dropped = dropped_in(cell, entry)
    if not dropped:
        return ()
    ends = ends_after(cell, entry)
    return tuple((group, GroupBegin(ends[group][1], position + 1)) for group in dropped if group in ends)


@dataclass(slots=True)
class OwnLog:
    begin: Mark = NOTHING
    end: Mark = NOTHING
    #: False: never written, or dropped.
    exists: bool = False
    #: The last entry, if it is damaged: then the end has the least offset that it can have, and about the bytes.
    unsound: CorruptRecord | None = None
    #: The ticket of the last change.
    changed: int = 0
    #: The end of the log, with tickets.
    pending: deque[tuple[int, PutEntry]] = field(default_factory=deque)

    @property
    def pending_from(self) -> int:
        return self.end.position - len(self.pending)


class OwnLogs:
    def __init__(self, storage: Storage, wall_ms: Callable[[], int]) -> None:
        self._storage = storage
        self._wall_ms = wall_ms
        self._logs: dict[str, OwnLog] = {}
        #: Those with changes that are not known to be durable.
        self._unsettled: dict[str, OwnLog] = {}
        #: By group and position, with tickets.
        self._repairs: dict[str, dict[int, tuple[int, PutEntry]]] = {}

    # ------------------------------------------------------------------------------------------------- reading

    def bounds(self, group: str) -> LogBounds:
        log = self._sound_log(group)
        return Extent(log.begin, log.end).bounds()

    def read(self, group: str, position: int, count_max: int, bytes_max: int) -> list[StoredEntry]:
        """As Storage.read."""
        log = self._sound_log(group)
        found: list[StoredEntry] = []
        if position < log.begin.position:
            return found
        bytes_left = bytes_max
        while position < log.end.position and len(found) < count_max and (bytes_left >= 0 or not found):
            for entry in self._run(group, log, position, count_max - len(found), bytes_left):
                bytes_left -= len(entry.data)
                if found and bytes_left < 0:
                    return found
                found.append(entry)
                position += 1
        return found

    def _run(self, group: str, log: OwnLog, position: int, count_max: int, bytes_max: int) -> list[StoredEntry]:
        """At least one entry, from one of the places where it may be; never more than the caller can take."""
        first = position - log.pending_from
        if first >= 0:
            run = []
            for index in range(first, min(first + count_max, len(log.pending))):
                run.append(log.pending[index][1].stored())
                bytes_max -= len(run[-1].data)
                if bytes_max < 0:
                    break
            return run
        repairs = self._repairs.get(group, {})
        if position in repairs:
            return [repairs[position][1].stored()]
        stop = min([log.pending_from, *(p for p in repairs if p > position)])
        run = self._storage.read(group, position, min(count_max, stop - position), bytes_max)
        if not run:
            raise InvariantBroken(f"{group} has no entry {position} on disk, but {log.pending_from} are durable")
        return run

    # ------------------------------------------------------------------------------------------------- writing

    def write(self, ticket: int, group: str, position: int, entry: LogEntry | None) -> list[Operation]:
        """Append, or begin anew without an entry; what the writer has to do for it, in order.

        Behind a damaged entry it goes on: the machine knows where its log ends, and the entry is mended when it is
        read.
        """
        if entry is None:
            log = self._log_to_replace(group)
            # Bytes go on counting. Where offsets go on is known with the first entry.
            begin = Mark(position, log.end.offset, log.end.bytes)
            return [self._begin_anew(log, ticket, group, begin)]
        log = self._log(group)
        begin, end = log.begin, log.end
        is_first = begin.position == end.position
        if position != end.position or (not is_first and entry.first_offset < end.offset):
            found = f"entry {position} with offset {entry.first_offset}"
            raise InvariantBroken(f"{group}: {found} behind {end.position} with {end.offset}")
        operations: list[Operation] = []
        if is_first and (not log.exists or begin.offset != entry.first_offset):
            begin = Mark(position, entry.first_offset, end.bytes)
            operations.append(self._begin_anew(log, ticket, group, begin))
        header = EntryHeader(entry.first_offset, next_offset_of(entry), self._wall_ms(), end.bytes)
        rows, begins = rows_of(group, position, entry), begins_behind(group, position, entry)
        put = PutEntry(group, position, header, entry.SerializeToString(), rows, begins)
        log.pending.append((ticket, put))
        log.end = put.end()
        log.unsound = None
        self._change(log, ticket, group)
        return [*operations, put]

    def truncate(self, ticket: int, group: str, position: int) -> list[Operation]:
        """Nothing to do if the log does not reach there: it was replaced since the position was chosen."""
        log = self._sound_log(group)
        if not log.begin.position < position <= log.end.position:
            return []
        log.begin = self._mark(group, log, position)
        while log.pending and log.pending[0][1].position < position:
            log.pending.popleft()
        self._forget_repairs(group, position)
        self._change(log, ticket, group)
        return [BeginLog(group, log.begin, is_new=False)]

    def drop(self, ticket: int, group: str) -> list[Operation]:
        log_prefix(group)
        log = self._logs[group] = OwnLog()
        self._repairs.pop(group, None)
        self._change(log, ticket, group)
        return [DropLog(group)]

    def repair(self, ticket: int, group: str, position: int, data: bytes) -> list[Operation]:
        """Nothing to do if the entry is no longer one of this log, or is not yet on disk."""
        log = self._log(group)
        there = range(log.begin.position, log.pending_from)
        if position not in there:
            return []
        header = self._mended_header(group, log, position, data, there)
        begins = begins_behind(group, position, LogEntry.FromString(data))
        put = PutEntry(group, position, header, data, begins=begins)
        self._repairs.setdefault(group, {})[position] = (ticket, put)
        if position == log.end.position - 1:
            log.end = put.end()
            log.unsound = None
        return [put]

    def rewrite(self, group: str, position: int, data: bytes) -> list[Operation]:
        """The same entry, without messages that no group needs. Nothing to do if it is gone, or not yet on disk.

        Until this is on disk readers may get either.
        """
        log = self._log(group)
        if position not in range(log.begin.position, log.pending_from):
            return []
        return [PutEntry(group, position, self._storage.header(group, position), data)]

    def release(self, committed: int) -> None:
        """These tickets are in the storage now."""
        for group, log in list(self._unsettled.items()):
            pending = log.pending
            while pending and pending[0][0] <= committed:
                pending.popleft()
            if log.changed <= committed:
                del self._unsettled[group]
                if not log.exists:
                    self._logs.pop(group)
        for group, repairs in list(self._repairs.items()):
            for position in [p for p, (ticket, _) in repairs.items() if ticket <= committed]:
                del repairs[position]
            if not repairs:
                del self._repairs[group]

    # ------------------------------------------------------------------------------------------------- helpers

    def _log(self, group: str) -> OwnLog:
        log = self._logs.get(group)
        if log is None:
            unsound = None
            try:
                extent = self._storage.extent(group)
            except CorruptRecord as damaged:
                unsound = damaged
                extent = self._storage.estimated_extent(group)
            if extent is None:
                # Not kept: anybody may ask for any group.
                return OwnLog()
            log = self._logs[group] = OwnLog(extent.begin, extent.end, exists=True, unsound=unsound)
        return log

    def _sound_log(self, group: str) -> OwnLog:
        """For those who have to know where it ends."""
        log = self._log(group)
        if log.unsound is not None:
            raise log.unsound.with_traceback(None)
        return log

    def _log_to_replace(self, group: str) -> OwnLog:
        """Even if its beginning is damaged."""
        try:
            return self._log(group)
        except CorruptRecord:
            return OwnLog()

    def _change(self, log: OwnLog, ticket: int, group: str) -> None:
        log.changed = ticket
        self._logs[group] = self._unsettled[group] = log

    def _begin_anew(self, log: OwnLog, ticket: int, group: str, begin: Mark) -> BeginLog:
        log.begin = log.end = begin
        log.exists = True
        log.unsound = None
        log.pending.clear()
        self._repairs.pop(group, None)
        self._change(log, ticket, group)
        return BeginLog(group, begin, is_new=True)

    def _forget_repairs(self, group: str, before: int) -> None:
        repairs = self._repairs.get(group, {})
        for position in [p for p in repairs if p < before]:
            del repairs[position]

    def _mark(self, group: str, log: OwnLog, position: int) -> Mark:
        """The place before this entry, which may be the end."""
        if position == log.end.position:
            return log.end
        first = position - log.pending_from
        repaired = self._repairs.get(group, {}).get(position)
        if first >= 0:
            header = log.pending[first][1].header
        elif repaired is not None:
            header = repaired[1].header
        else:
            header = self._storage.header(group, position)
        return Mark(position, header.first_offset, header.bytes_before)

    def _mended_header(self, group: str, log: OwnLog, position: int, data: bytes, there: range) -> EntryHeader:
        """From the data and from the neighbours: what is behind the damaged entry's own header is lost."""
        try:
            entry = LogEntry.FromString(data)
        except DecodeError as error:
            raise BadEntryError(f"{group} at position {position}: not an entry: {error}") from error
        first, next_ = entry.first_offset, next_offset_of(entry)
        before = self._mark_before(group, log, position)
        after = self._header_after(group, log, position, there)
        if first < before.offset or (after is not None and next_ > after.first_offset):
            raise BadEntryError(f"{group} at position {position}: offsets {first} to {next_} do not fit there")
        # Rather too young than too old: retention drops nothing early.
        return EntryHeader(first, next_, self._wall_ms() if after is None else after.wall_ms, before.bytes)

    def _mark_before(self, group: str, log: OwnLog, position: int) -> Mark:
        if position == log.begin.position:
            return log.begin
        repaired = self._repairs.get(group, {}).get(position - 1)
        return self._storage.mark_before(group, position) if repaired is None else repaired[1].end()

    def _header_after(self, group: str, log: OwnLog, position: int, there: range) -> EntryHeader | None:
        if position + 1 in there:
            try:
                return self._storage.header(group, position + 1)
            except CorruptRecord:
                # Its turn comes when it is mended itself.
                return None
        return log.pending[0][1].header if log.pending else None
