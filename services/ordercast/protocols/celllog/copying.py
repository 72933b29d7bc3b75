"""Taking over the log of others, piece by piece.

Entries are replayed, one after the other: the state that they lead to follows from them. If retention has dropped
the beginning of the source's log, the entries that are left are taken as they are, and then the state at a
position that they reach (snapshots.py). Whoever takes the state counts as having the bodies, so the bodies come
first. They are on disk as they come, with how far they go (`GroupLog.copied`): after a crash the copy goes on
there. Until the state is there too, the replica counts for nothing, and has nothing to give.

A state may be further than the log of everyone who is left, for its maker may be gone; and so may be what was
copied. Neither must be waited for without end:

* A state that waits for its log gives way to that of another source whose log goes no further than the copy.
* Once all sources were asked in vain, the state of one that is behind the copy will do, if the protocol says that
  it is enough to go on with: the copy begins again, and goes up to that state.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic

from ordercast.core.dropping import check_dropped
from ordercast.core.ids import CLOCK_MAX
from ordercast.core.machine import Deliver, Receive, ResetLog
from ordercast.protocols.celllog import who
from ordercast.protocols.celllog.fetching import Fetching
from ordercast.protocols.celllog.giving import Giving
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.celllog.pieces import check_piece
from ordercast.protocols.celllog.records import copied_record
from ordercast.protocols.celllog.snapshots import Snapshots
from ordercast.protocols.celllog.stepping import LogMachine, R
from ordercast.v1.sequencer_pb2 import FetchLog, LogChunk, LogEntry, Snapshot, SnapshotAsk, SnapshotPart

#: What a machine that has logs handles, beside what is its protocol's own.
MESSAGES = (FetchLog, LogChunk, SnapshotAsk, SnapshotPart)


class Copying(ABC, Generic[R]):
    #: While nodes are upgraded, some senders may be of an early version, which has no checksum.
    may_lack_checksum = False

    def __init__(self, machine: LogMachine[R], snapshots: Snapshots[R], *, waits_for_disk: bool) -> None:
        """With `waits_for_disk` a piece of our log leaves behind what is on its way to the disk here."""
        self.machine = machine
        self.snapshots = snapshots
        self.fetching = Fetching(machine)
        self.giving = Giving(machine, waits_for_disk=waits_for_disk)
        #: By group: how many sources were asked since something came of a log whose beginning is gone.
        self.vain: dict[str, int] = {}

    def handlers(self) -> dict[type, Callable[[Receive], None]]:
        """Of the messages about logs."""
        return {
            FetchLog: self.giving.on_fetch,
            LogChunk: self.on_chunk,
            SnapshotAsk: self.snapshots.on_ask,
            SnapshotPart: self.snapshots.on_part,
        }

    # ------------------------------------------------------------------------------------ what a protocol gives

    @abstractmethod
    def target(self, replica: R) -> int | None:
        """How far the log must come, if it is behind; None if it needs no copy."""

    def limit(self, replica: R) -> int | None:
        """How far it may come; None if it needs no copy."""
        return CLOCK_MAX

    @abstractmethod
    def check_entries(self, replica: R, entries: Sequence[LogEntry]) -> None:
        """They can be entries of this group's log."""

    def heard(self, replica: R, source: str, head: int) -> None:
        """A source's log goes so far."""

    def is_for_us(self, replica: R, entry: LogEntry) -> bool:
        """It may be taken now; if not, neither may those that come behind it."""
        return True

    @abstractmethod
    def replay(self, replica: R, entries: Sequence[LogEntry]) -> None:
        """Append these to the log, which they follow on, with all that follows from them."""

    def take(self, replica: R, position: int, entry: LogEntry) -> None:
        """Into the log as it is, with whatever verdicts it has."""
        self.machine.out.append(Deliver(replica.name, position, entry))

    def may_begin(self, replica: R, begins: int) -> bool:
        """A log that begins there can take the place of what is here."""
        return True

    @abstractmethod
    def is_enough(self, replica: R, snapshot: Snapshot) -> bool:
        """A state that is behind what was copied is all that this replica needs to go on."""

    @abstractmethod
    def install(self, replica: R, snapshot: Snapshot, source: str) -> None:
        """The log is here as far as the state goes: see GroupLog.take_state. From here on entries are replayed."""

    def check_news(self, replica: R, chunk: LogChunk) -> None:
        """Refuse it, before anything changes, if what comes next in it cannot."""

    def progressed(self, replica: R) -> None:
        """Something came that others may have waited for."""

    # --------------------------------------------------------------------------------------------------- asking

    def ask_around(self, replica: R) -> None:
        """Ask the next of those who have the log."""
        sources = who.sources(replica.group, self.machine.process)
        if replica.copied is not None and sources:
            self.vain[replica.name] = self.vain.get(replica.name, 0) + 1
        self.fetching.fetch_in_turn(replica, sources)

    def _is_in_vain(self, replica: R) -> bool:
        """All sources were asked."""
        return self.vain.get(replica.name, 0) > len(who.sources(replica.group, self.machine.process))

    # -------------------------------------------------------------------------------------------------- hearing

    def on_chunk(self, event: Receive) -> None:
        chunk: LogChunk = event.message
        replica = self.machine.log_given_to(chunk, event.source)
        check_piece(chunk, may_lack_checksum=self.may_lack_checksum)
        for entry in chunk.entries:
            check_dropped(replica.name, entry)
        self.check_entries(replica, chunk.entries)
        self.check_news(replica, chunk)
        self.heard(replica, event.source, chunk.head)
        replica.head = chunk.head
        target = self.target(replica)
        if target is None:
            return
        replica.fetch_due = self.machine.now  # answered: whoever wants more may ask
        if replica.copied is not None or chunk.begins > replica.position:
            self._copy(replica, chunk, event.source)
        else:
            self._replay(replica, chunk, target, event.source)
        self.progressed(replica)

    def news_in(self, replica: R, chunk: LogChunk, target: int) -> list[LogEntry]:
        """Those that come next here."""
        known = replica.position - chunk.position
        news: list[LogEntry] = []
        for entry in chunk.entries[known:] if known >= 0 else ():
            if replica.position + len(news) >= target or not self.is_for_us(replica, entry):
                break
            news.append(entry)
        return news

    def _replay(self, replica: R, chunk: LogChunk, target: int, source: str) -> None:
        news = self.news_in(replica, chunk, target)
        self.replay(replica, news)
        if news and replica.position < min(chunk.head, target):
            self.fetching.fetch_next(replica, source, chunk.ByteSize())

    # ----------------------------------------------------------------------------- a log whose beginning is gone

    def _copy(self, replica: R, chunk: LogChunk, source: str) -> None:
        name, before, limit = replica.name, replica.copied, self.limit(replica)
        if limit is None:
            return
        if replica.copied is None or chunk.begins > replica.copied:
            # Before that there is nothing, or what came is cut off from the rest: begin where the log begins.
            if not self.may_begin(replica, chunk.begins):
                return
            self._begin(replica, chunk.begins)
        assert replica.copied is not None
        snapshot = self.snapshots.whole(name)
        is_later = self._take_all(replica, chunk, limit if snapshot is None else min(limit, snapshot.position))
        is_news = replica.copied != before
        if is_news:
            self.vain.pop(name, None)
            self.machine.changes.append(copied_record(name, replica.copied))
        if snapshot is not None and snapshot.position == replica.copied:
            self._install(replica, snapshot, source)
        elif snapshot is not None and (is_later or snapshot.position > limit):
            self.snapshots.drop(name)  # It is of a time that is not for us yet, or not any more.
        elif is_later or replica.copied >= min(chunk.head, limit):
            # One that is behind us has no state of use, unless nobody else has one.
            is_useful = chunk.head >= replica.copied and not self.snapshots.waits_for(name, source)
            if is_useful or self._is_in_vain(replica):
                self.snapshots.ask(replica, source)
        elif is_news:
            self.fetching.fetch_next(replica, source, chunk.ByteSize())

    def _take_all(self, replica: R, chunk: LogChunk, end: int) -> bool:
        """What of the piece comes next in the copy. Returns whether one of them is not for us yet."""
        assert replica.copied is not None
        for position, entry in enumerate(chunk.entries, chunk.position):
            if position == replica.copied < end:
                if not self.is_for_us(replica, entry):
                    return True
                self.take(replica, position, entry)
                replica.copied += 1
        return False

    def _begin(self, replica: R, position: int) -> None:
        snapshot = self.snapshots.whole(replica.name)
        if snapshot is None or snapshot.position < position:
            self.snapshots.drop(replica.name)
        replica.copied = position
        self.machine.out.append(ResetLog(replica.name, position))

    def came(self, replica: R, snapshot: Snapshot, source: str) -> None:
        """The state at a position of the log. The log may go further by now, or not as far."""
        limit = self.limit(replica)
        if replica.copied is None or limit is None or snapshot.position > limit:
            self.snapshots.drop(replica.name)
        elif snapshot.position == replica.copied:
            self._install(replica, snapshot, source)
        elif snapshot.position > replica.copied:
            self.fetching.fetch(replica, source)
        elif self._is_in_vain(replica) and self.is_enough(replica, snapshot):
            # Another source's log went further than everyone's who is left: copy this one's, up to its state.
            self._begin(replica, 0)
            self.machine.changes.append(copied_record(replica.name, 0))
            self.fetching.fetch(replica, source)
        else:
            self.snapshots.drop(replica.name)  # The next tick asks for another.
        self.progressed(replica)

    def _install(self, replica: R, snapshot: Snapshot, source: str) -> None:
        self.snapshots.drop(replica.name)
        self.vain.pop(replica.name, None)
        self.install(replica, snapshot, source)

    # ---------------------------------------------------------------------------------------------------- state

    def has_caught_up(self, replica: R) -> bool:
        return replica.has_caught_up

    def forget(self, name: str) -> list[Record]:
        """The group is gone, or elsewhere."""
        self.snapshots.forget(name)
        self.fetching.due.pop(name, None)
        self.vain.pop(name, None)
        return [copied_record(name, None)]
