"""What a process keeps about the log of one cell, whatever protocol orders it.

The log has one entry per envelope, numbered by position, and each message in it has an offset. A cell in which
several groups live counts the messages of each of them as well: those are the offsets that users see. What is
remembered of producers, and where groups end, is a function of the log before a position and of nothing else, so
replicas that have the same entries reach the same verdicts.
"""

from dataclasses import dataclass

from ordercast.core.cells import Tally, groups_within, shares_cell
from ordercast.core.view import Group
from ordercast.protocols.celllog.idempotence import ProducerTable, Record
from ordercast.protocols.celllog.records import copied_record, group_end_record
from ordercast.protocols.celllog.settings import LogSettings
from ordercast.v1.common_pb2 import Header, RangeOutcome
from ordercast.v1.sequencer_pb2 import GroupEnd, LogEntry, Snapshot

#: A learner that is no further behind than so many envelopes has caught up: the change of members brings the rest.
CLOSE = 64


class GroupLog:
    def __init__(
        self, group: Group, process: str, settings: LogSettings, *, counts_shared_sets: bool = True
    ) -> None:
        #: As in the latest view.
        self.group = group
        self.name = group.name
        self.process = process
        #: The next entry's place, and the next message's.
        self.position = 0
        self.offset = 0
        #: The same by group, of those that share the cell. A group that has never had a message is not among them.
        self.ends: dict[str, int] = {}
        self.producers = ProducerTable(
            group.name,
            settings.idempotence_distance,
            settings.idempotence_window,
            settings.idempotence_producers,
            counts_shared_sets=counts_shared_sets,
        )
        #: What the last verdicts changed on disk.
        self._changes: list[Record] = []
        #: How far it has copied a log whose beginning is gone. The entries are on disk, but as long as this is set
        #: nothing counts: the state that they lead to has not come.
        self.copied: int | None = None
        #: How far the log goes, as whoever sent a piece of it last said.
        self.head: int | None = None
        #: Until then an answer may still come, and how many sources were asked, for the next one to be another.
        self.fetch_due = 0.0
        self.fetches = 0

    @property
    def is_member(self) -> bool:
        """Of the present configuration or view, with what it had on disk."""
        return self.process in self.group.replicas and self.process not in self.group.lost

    @property
    def is_learner(self) -> bool:
        return self.process in self.group.learners

    @property
    def lacks_from(self) -> int:
        """The first position of which it has no entry."""
        return self.position if self.copied is None else self.copied

    @property
    def has_caught_up(self) -> bool:
        return self.copied is None and self.head is not None and self.position + CLOSE >= self.head

    def bases(self, header: Header) -> list[int]:
        """Where the cell's groups end before an envelope with targets, for `LogEntry.bases`."""
        return [self._end_of(group) for group in groups_within(self.name, header)] if header.targets else []

    def _end_of(self, group: str) -> int:
        """A group that has the cell to itself ends where the cell's own count does."""
        return self.ends.get(group, 0) if shares_cell(group) else self.offset

    def judge(self, header: Header, groups: tuple[str, ...], sn: int, order_key: bytes) -> list[RangeOutcome]:
        """One outcome per range of an entry that comes next in the log; offsets move on by what is new."""
        tally = Tally.of(self.name, header, self.bases(header)) if header.targets else None
        judged = []
        for range_ in header.ranges:
            outcome = self.producers.judge(range_, groups, sn, order_key, self.offset, tally)
            self.offset += sum(span.count for span in outcome.spans if not span.duplicate)
            judged.append(outcome)
        if tally is not None:
            self._move_ends(tally)
        return judged

    def complete(self, entry: LogEntry, groups: tuple[str, ...], sn: int) -> None:
        """One that comes next in the log, with all but its verdicts."""
        header = entry.envelope.header
        entry.outcomes.extend(self.judge(header, groups, sn, entry.order_key))
        if header.targets:
            of_groups = zip(groups_within(self.name, header), entry.bases, strict=True)
            entry.news.extend([self._end_of(group) - base for group, base in of_groups])

    def _move_ends(self, tally: Tally) -> None:
        for group, end in zip(tally.groups, tally.ends, strict=True):
            if shares_cell(group) and end != self.ends.get(group, 0):
                self.ends[group] = end
                self._changes.append(group_end_record(self.name, group, end))

    def judged_changes(self) -> list[Record]:
        """What `judge` changed on disk since the last call."""
        changes, self._changes = self._changes, []
        return self.producers.changes() + changes

    def forget_group(self, address: str) -> list[Record]:
        """A group of this cell is gone, and nothing names it any more."""
        if self.ends.pop(address, None) is None:
            return []
        return [group_end_record(self.name, address, None)]

    def clear(self) -> list[Record]:
        """Forget what the log led to, and delete it from the disk: a state replaces it, or the replica is gone."""
        ends, self.ends = self.ends, {}
        return self.producers.clear() + [group_end_record(self.name, group, None) for group in ends]

    def state(self) -> "CellState":
        """As it is now; a later one does not change it."""
        return CellState(self.position, self.offset, dict(self.ends), self.producers.copy())

    def present(self) -> "CellState":
        """The same, for whoever looks at it before anything else is delivered."""
        return CellState(self.position, self.offset, self.ends, self.producers)

    def take_state(self, snapshot: Snapshot) -> list[Record]:
        """The copy goes as far as this state, and becomes the log. What that changes on disk."""
        self.copied = None
        self.position, self.offset = snapshot.position, snapshot.offset
        changes = [*self.clear(), copied_record(self.name, None)]
        self.producers.load(list(snapshot.producers))
        self.ends = {end.group: end.offset for end in snapshot.ends}
        changes += [group_end_record(self.name, group, offset) for group, offset in self.ends.items()]
        return changes + self.producers.records()


@dataclass(slots=True)
class CellState:
    """What the log before a position leads to, as every replica has it."""

    position: int
    offset: int
    ends: dict[str, int]
    producers: ProducerTable

    def put_into(self, snapshot: Snapshot) -> None:
        snapshot.position, snapshot.offset = self.position, self.offset
        snapshot.producers.extend(self.producers.messages())
        snapshot.ends.extend(GroupEnd(group=group, offset=end) for group, end in sorted(self.ends.items()))
