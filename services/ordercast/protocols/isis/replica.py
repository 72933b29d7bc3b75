"""What a process keeps about one group that it is, or was, or will be a member of.

The log holds what is visible: what a majority of a view has on disk, with its place. So logs of members never
differ but in length, and nothing in them is ever taken back. What is not visible yet is in an Era.
"""

from collections import deque

from ordercast.core.ids import pack_u64
from ordercast.core.view import FIRST, Group, names_of
from ordercast.protocols.causal import times
from ordercast.protocols.causal.casts import Key
from ordercast.protocols.celllog.group_log import GroupLog
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.isis import past, records
from ordercast.protocols.isis.era import Era, key_of
from ordercast.protocols.isis.flush import Attempt
from ordercast.protocols.isis.settings import Settings
from ordercast.protocols.isis.stamps import bytes_of, stamp_in
from ordercast.v1.isis_pb2 import Cast, CastStamp, CutRecord, IsisRecord, Seen
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered, LogEntry


class Replica(GroupLog):
    def __init__(self, group: Group, process: str, settings: Settings) -> None:
        super().__init__(group, process, settings, counts_shared_sets=False)
        #: The latest completed view of which it has the whole past; 0 if of none.
        self.view = 0
        #: Views that this life takes part in and has not delivered all of, oldest first. It speaks in the last
        #: one, once that is the only one. None: it came from its disk, or is a newcomer, and waits for the next
        #: view.
        self.eras: deque[Era] = deque()
        #: What is left of the view that it was in when it went down, for its contribution.
        self.saved: Era | None = None
        #: The view change that it takes part in, and the cut that is on its disk.
        self.attempt: Attempt | None = None
        self.cut: CutRecord | None = None
        self.cut_casts: dict[Key, Cast] = {}
        self.has_synced_cut = False
        #: The one that its view began with, for members that missed it.
        self.last_cut: CutRecord | None = None
        #: Peers whose connection was new while it was in no view: what they sent in the next one may be lost.
        #: None: all.
        self.reset: dict[str, None] | None = None

    # --------------------------------------------------------------------------------------------- views

    @property
    def has_lost_everything(self) -> bool:
        """Something on its disk is damaged: the rest may be as it should, but nobody can tell what it lacks."""
        former = self.group.former
        return self.process in self.group.lost or (former is not None and self.process in former.lost)

    @property
    def is_concerned(self) -> bool:
        """It has a part in the group, and keeps its log."""
        group = self.group
        return self.process in (*group.replicas, *group.learners, *group.former_replicas, *group.leaving)

    @property
    def completed(self) -> int:
        """The latest completed view that we have heard of."""
        return self.group.former.number if self.group.former is not None else self.group.configuration

    @property
    def is_sealed(self) -> bool:
        """A later view is defined: nothing more of this one is sent, taken or acknowledged."""
        return self.group.configuration > self.view

    @property
    def current(self) -> Era | None:
        """The era that it speaks and listens in."""
        if not self.eras or self.is_sealed or self.eras[-1].view != self.view:
            return None
        return self.eras[-1]

    @property
    def installed(self) -> Era | None:
        """The same, once everything from before is delivered."""
        return self.current if len(self.eras) == 1 else None

    @property
    def ending(self) -> Era | None:
        """The era that it contributes from."""
        if self.eras and self.eras[-1].view == self.view:
            return self.eras[-1]
        return self.saved

    def has_delivered(self, time: times.Time) -> bool:
        """All that this time of the group names. Who is in no view cannot tell."""
        return bool(self.eras) and time.is_covered(self.eras[0].view, self.eras[0].delivered)

    def follow(self, group: Group) -> None:
        self.group = group
        if self.eras and self.is_sealed:
            self.eras[-1].is_sealed = True

    def start(self, view: int, members: tuple[str, ...], lives: dict[str, int], incarnation: int) -> None:
        """Everything before that view is in the log. Whoever is meant by it takes part; an earlier life of ours
        stored nothing in it, and so this one contributes nothing when it ends.
        """
        self.view, self.saved = view, None
        if self.process not in members:
            return  # What is left of the eras is delivered, and then it is out.
        incarnations = tuple(lives.get(name, 0) for name in members)
        era = Era(self.name, view, members, incarnations, members.index(self.process), self.position)
        era.is_sealed = self.is_sealed
        if lives.get(self.process) == incarnation:
            self.eras.append(era)
        else:
            self.eras.clear()
            self.saved = era

    def leave(self) -> list[Record]:
        """A view is complete without us: what we had beyond the log may have gone another way."""
        eras = [*self.eras, *([self.saved] if self.saved is not None else [])]
        changes = [record for era in eras for record in self.forget_era(era)]
        if self.cut is not None and self.cut.view <= self.completed:
            changes += self.forget_cut(keeping=None)
        if self.attempt is not None and self.attempt.view <= self.completed:
            self.attempt = None
        self.saved = None
        return changes

    def begins_in(self) -> int:
        """The view whose past is empty, and so known to a member that has nothing on disk."""
        return FIRST if self.group.began_here(self.process, is_acceptor=False) else 0

    # ----------------------------------------------------------------------------------------------- log

    def retained_from(self) -> int:
        """Retention may drop what is before this position, and nothing else.

        While a view begins, nothing goes: a member that was in the view before may lack the end of that one, and
        has to deliver it cast by cast. Once all have installed it, what every member has on its disk may go, be it
        in its log or not yet. Nobody who is in the view needs that from another one, and what is not everywhere is
        in the cut when the view ends. Who comes later takes the state. What may have to be reported again is not
        everywhere either.
        """
        era = self.installed
        if era is None or self.copied is not None or self.group.former is not None or self.group.starting:
            return 0
        return era.settled

    def slowest(self, wanted: int) -> int:
        """Who is behind is in `retained_from` already."""
        return wanted

    def entry_of(self, cast: Cast) -> LogEntry:
        """The next in the log; with its verdicts, so it is for the log alone."""
        header = cast.envelope.header
        groups = names_of(header.destinations)
        # It compares within the group, as there is no order across groups.
        order_key = pack_u64(self.position)
        entry = LogEntry(
            order_key=order_key,
            envelope=cast.envelope,
            first_offset=self.offset,
            bases=self.bases(header),
            protocol=stamp_of(cast).SerializeToString(),
        )
        self.complete(entry, groups, self.position)
        self.position += 1
        return entry

    def replay(self, entry: LogEntry) -> None:
        """An entry that somebody else has judged: the verdicts follow from the log, and so are the same."""
        header = entry.envelope.header
        self.judge(header, names_of(header.destinations), self.position, entry.order_key)
        self.position += 1

    def position_record(self) -> Record:
        record = IsisRecord(view=self.view, position=self.position, offset=self.offset)
        era = self.ending
        if era is not None:
            record.settled = era.settled
            record.settled_counts.extend(era.settled_counts)
        return (records.position(self.name), record.SerializeToString())

    def forget_era(self, era: Era) -> list[Record]:
        """What is on disk of a view whose end is in the log."""
        changes: list[Record] = [(records.cast(self.name, era.view, key), None) for key in era.casts]
        return changes + [(records.order(self.name, place), None) for place in era.places]

    @property
    def cut_ends(self) -> int:
        return self.cut.ends if self.cut is not None else 0

    def lacks_of_cut(self) -> bool:
        """Not all of its casts are here."""
        return self.cut is not None and any(key_of(key) not in self.cut_casts for key in self.cut.keys)

    def forget_cut(self, *, keeping: Era | None) -> list[Record]:
        """The cut that is on disk, with those of its casts that no era holds there."""
        if self.cut is None:
            return []
        ends = self.cut.ends
        kept = keeping.casts if keeping is not None and keeping.view == ends else {}
        changes: list[Record] = [
            (records.cast(self.name, ends, key), None) for key in self.cut_casts if key not in kept
        ]
        self.cut, self.cut_casts, self.has_synced_cut = None, {}, False
        return [*changes, (records.cut(self.name), None)]


def stamp_of(cast: Cast) -> CastStamp:
    assert cast.whole
    return CastStamp(
        view=cast.view,
        key=cast.key,
        times=cast.times,
        carried=cast.carried,
        epoch=cast.epoch,
        total=cast.total,
    )


def seen_of(group: str, stamp: CastStamp) -> Seen:
    """All that precedes a cast, and the cast."""
    seen = past.stamp_from(stamp).all()
    times.merge_one(seen, group, stamp.view, {stamp.key.member: stamp.key.number})
    return Seen(times=times.encode(seen), epoch=stamp.epoch)


def report_of(group: str, entry: LogEntry, read: Seen | None) -> EnvelopeDelivered:
    """To the gateway: it is visible, and this is where; and what its log says besides."""
    return EnvelopeDelivered(
        id=entry.envelope.header.id,
        group=group,
        order_key=entry.order_key,
        outcomes=entry.outcomes,
        bases=entry.bases,
        protocol=entry.protocol,
        besides=bytes_of(read),
    )


def cast_of(group: str, entry: LogEntry) -> Cast:
    """The cast that an entry of the log came from."""
    stamp = stamp_in(entry)
    cast = Cast(group=group, view=stamp.view, key=stamp.key, envelope=entry.envelope, whole=True)
    cast.total, cast.epoch = stamp.total, stamp.epoch
    cast.times.extend(stamp.times)
    cast.carried.extend(stamp.carried)
    return cast
