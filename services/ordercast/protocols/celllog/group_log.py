"""What a process keeps about the log of one group, whatever protocol orders it.

The log has one entry per envelope, numbered by position, and each message in it has an offset. What is remembered
of producers is a function of the log before a position and of nothing else, so replicas that have the same entries
reach the same verdicts.
"""

from ordercast.core.view import Group
from ordercast.protocols.celllog.idempotence import ProducerTable, Record
from ordercast.protocols.celllog.records import copied_record
from ordercast.protocols.celllog.settings import LogSettings
from ordercast.v1.common_pb2 import Header, RangeOutcome
from ordercast.v1.sequencer_pb2 import Snapshot

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
        self.producers = ProducerTable(
            group.name,
            settings.idempotence_distance,
            settings.idempotence_window,
            settings.idempotence_producers,
            counts_shared_sets=counts_shared_sets,
        )
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

    def judge(self, header: Header, groups: tuple[str, ...], sn: int, order_key: bytes) -> list[RangeOutcome]:
        """One outcome per range of an entry that comes next in the log; the offset moves on by what is new."""
        judged = []
        for range_ in header.ranges:
            outcome = self.producers.judge(range_, groups, sn, order_key, self.offset)
            self.offset += sum(span.count for span in outcome.spans if not span.duplicate)
            judged.append(outcome)
        return judged

    def take_state(self, snapshot: Snapshot) -> list[Record]:
        """The copy goes as far as this state, and becomes the log. What that changes on disk."""
        self.copied = None
        self.position, self.offset = snapshot.position, snapshot.offset
        changes = [*self.producers.clear(), copied_record(self.name, None)]
        self.producers.load(list(snapshot.producers))
        return changes + self.producers.records()
