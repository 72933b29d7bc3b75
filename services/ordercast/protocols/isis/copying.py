"""Copying the log: what a newcomer does before it is a member, and a member that missed the end of a view.

Logs hold what is visible and never differ but in length, so anybody's will do. One piece is asked for at a time,
by the position that it begins at: whoever is interrupted goes on where it was, with another source if it must.

Entries are replayed, one after the other: the state that they lead to follows from them. If retention has dropped
the beginning of the source's log, those that are left are taken as they are, and then the state at a position that
they reach (snapshot.py). Whoever takes the state counts as having the bodies, so the bodies come first. They are
on disk as they come, with how far they go (`copied`): after a crash the copy goes on there. Until the state is
there too, this replica counts for nothing: it is not ready for a view, and has nothing to give.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, pack_u64
from ordercast.core.machine import Deliver, LogRead, ReadLog, Receive, ResetLog, Send
from ordercast.protocols.idempotence import Record
from ordercast.protocols.isis import records
from ordercast.protocols.isis.checking import check_entry
from ordercast.protocols.isis.era import key_of
from ordercast.protocols.isis.replica import Replica, cast_of
from ordercast.protocols.isis.snapshot import Snapshots, checksum_of
from ordercast.v1.sequencer_pb2 import FetchLog, LogChunk, LogEntry, Snapshot

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis

#: A learner that is no further behind than so many envelopes has caught up: the flush brings the rest.
CLOSE = 64


class Copying:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine
        self.snapshots = Snapshots(machine)
        #: By group: how many sources were asked since something came of a log whose beginning is gone.
        self.vain: dict[str, int] = {}

    # --------------------------------------------------------------------------------------------- asking

    def limit(self, replica: Replica) -> int | None:
        """How far the log may come: to where the view begins that is to be entered; None if it needs no copy."""
        if replica.process in replica.group.learners:
            return CLOCK_MAX
        cut = replica.cut
        if cut is None or replica.view >= cut.view:
            return None
        return cut.first_position + len(cut.keys)

    def target(self, replica: Replica) -> int | None:
        """How far the log must come, if it is behind; None if it needs no copy."""
        limit, cut = self.limit(replica), replica.cut
        if limit is None or limit == CLOCK_MAX or replica.copied is not None:
            return limit
        end = limit if replica.lacks_of_cut() or cut is None else cut.first_position
        return end if replica.position < end else None

    def last_view(self, replica: Replica) -> int:
        """The latest one of which entries may be taken: complete, as far as we know, and not one to be entered.

        A member of v2 hears of its completion late, together with v3, which is defined without it. It is a learner
        now, but the cut before v2 may still come, and then it is in v2: from where v2 began.
        """
        group, completed = replica.group, replica.completed
        if replica.process not in group.learners:
            return min(completed, replica.cut.view - 1) if replica.cut is not None else completed
        members = group.former_replicas if group.former is not None else group.replicas
        return completed - 1 if replica.process in members and replica.view < completed else completed

    def look(self, replica: Replica) -> None:
        """Ask for the next piece, unless one is on its way."""
        self.snapshots.tidy(replica)
        if self.target(replica) is None or self.machine.now < replica.fetch_due:
            return
        sources = self.sources(replica)
        if not sources:
            return
        if replica.copied is not None:
            self.vain[replica.name] = self.vain.get(replica.name, 0) + 1
            if self._is_in_vain(replica):
                # Who gave us a state may be gone, and nobody else's log goes as far.
                self.snapshots.drop(replica.name)
        replica.fetches += 1
        self._fetch(replica, sources[replica.fetches % len(sources)])

    def _is_in_vain(self, replica: Replica) -> bool:
        """All sources were asked."""
        return self.vain.get(replica.name, 0) > len(self.sources(replica))

    def sources(self, replica: Replica) -> list[str]:
        group, process = replica.group, self.machine.process
        names = dict.fromkeys([*group.replicas, *group.former_replicas])
        return [name for name in names if name != process and name not in group.lost]

    def _fetch(self, replica: Replica, source: str) -> None:
        machine = self.machine
        replica.fetch_due = machine.now + machine.settings.silence_s
        position = replica.position if replica.copied is None else replica.copied
        fetch = FetchLog(group=replica.name, configuration=replica.group.configuration, position=position)
        machine.out.append(Send((source,), fetch))
        machine.wake()

    # ------------------------------------------------------------------------------------------- answering

    def on_fetch(self, event: Receive) -> None:
        """Whoever asks: what is visible is no secret among processes."""
        fetch: FetchLog = event.message
        replica = self.machine.replicas.get(fetch.group)
        if replica is None or replica.copied is not None:
            return
        if fetch.position < replica.position:
            tag = f"copy {event.source}"
            self.machine.out.append(ReadLog(replica.name, fetch.position, self.machine.settings.log_chunk, tag))
        else:
            self._send(replica, event.source, fetch.position, (), 0)

    def on_read(self, event: LogRead) -> None:
        replica = self.machine.replicas.get(event.group)
        if replica is None or replica.copied is not None:
            return  # That changed since we asked.
        if event.entries or event.position < event.begins:
            to = event.tag.removeprefix("copy ")
            self._send(replica, to, event.position, self._as_fit(event.entries), event.begins)

    def _send(self, replica: Replica, to: str, position: int, entries: Sequence[LogEntry], begins: int) -> None:
        chunk = LogChunk(
            group=replica.name,
            configuration=replica.group.configuration,
            position=position,
            entries=entries,
            head=replica.position,
            begins=begins,
            checksum=checksum_of(entries),
        )
        # Behind what is on its way to the disk: it counts with whoever copies it.
        self.machine.then.append(Send((to,), chunk))

    def _as_fit(self, entries: Sequence[LogEntry]) -> Sequence[LogEntry]:
        total = 0
        for count, entry in enumerate(entries):
            total += entry.ByteSize()
            if count and total > self.machine.settings.log_chunk_bytes:
                return entries[:count]
        return entries

    # --------------------------------------------------------------------------------------------- hearing

    def on_chunk(self, event: Receive) -> None:
        chunk: LogChunk = event.message
        machine = self.machine
        replica = machine.replicas.get(chunk.group)
        if replica is None:
            return
        self._check(chunk)
        replica.head = chunk.head
        target = self.target(replica)
        if target is None:
            return
        replica.fetch_due = machine.now  # answered: whoever wants more may ask
        if replica.copied is not None or chunk.begins > replica.position:
            self._copy(replica, chunk, event.source)
        else:
            self._replay(replica, chunk, target, event.source)

    def _check(self, chunk: LogChunk) -> None:
        if chunk.checksum != checksum_of(chunk.entries):
            raise RemoteProtocolError("a piece of a log that was damaged on the way")
        if not chunk.begins <= chunk.head <= CLOCK_MAX or chunk.position > CLOCK_MAX:
            raise RemoteProtocolError("a log that ends before it begins")
        for entry in chunk.entries:
            check_entry(chunk.group, entry)

    def _replay(self, replica: Replica, chunk: LogChunk, target: int, source: str) -> None:
        machine = self.machine
        before = replica.position
        for index, entry in enumerate(chunk.entries):
            if entry.stamp.view > self.last_view(replica):
                break  # We may be in that view, and not have heard of it.
            if chunk.position + index == replica.position < target:
                self._take(replica, replica.position, entry)
                replica.replay(entry)
                machine.changes += replica.producers.changes()
        if replica.position == before:
            return
        machine.changes.append(replica.position_record())
        machine.flushing.report(replica)
        machine.touched[replica.name] = None
        if replica.position < min(chunk.head, target):
            self._fetch(replica, source)

    def _take(self, replica: Replica, position: int, entry: LogEntry) -> None:
        cut = replica.cut
        if cut is not None and entry.stamp.view == cut.ends and position >= cut.first_position:
            # Others ended the view with it, and it may be here to be delivered as such.
            replica.cut_casts[key_of(entry.stamp.key)] = cast_of(replica.name, entry)
        self.machine.out.append(Deliver(replica.name, position, entry))

    def has_caught_up(self, replica: Replica) -> bool:
        return replica.copied is None and replica.head is not None and replica.position + CLOSE >= replica.head

    # ------------------------------------------------------------------------ a log whose beginning is gone

    def _copy(self, replica: Replica, chunk: LogChunk, source: str) -> None:
        machine, name = self.machine, replica.name
        before, limit = replica.copied, self.limit(replica)
        if limit is None or not self._may_begin(replica, chunk.begins, limit):
            return
        if replica.copied is None or chunk.begins > replica.copied:
            # Before that there is nothing, or what came is cut off from the rest: begin where the log begins.
            self._begin(replica, chunk.begins)
        assert replica.copied is not None
        snapshot = self.snapshots.whole(name)
        end = limit if snapshot is None else min(limit, snapshot.position)
        is_later = False
        for index, entry in enumerate(chunk.entries):
            if chunk.position + index == replica.copied < end:
                is_later = entry.stamp.view > self.last_view(replica)
                if is_later:
                    break  # As above.
                self._take(replica, replica.copied, entry)
                replica.copied += 1
        is_news = replica.copied != before
        if is_news:
            self.vain.pop(name, None)
            machine.changes.append((records.copied(name), pack_u64(replica.copied)))
        if snapshot is not None and snapshot.position == replica.copied:
            self._install(replica, snapshot, source)
        elif snapshot is not None and (is_later or snapshot.position > limit):
            self.snapshots.drop(name)  # It is of a time that is not for us yet, or not any more.
        elif snapshot is None and (is_later or replica.copied >= min(chunk.head, limit)):
            # One that is behind us has no state of use, unless nobody else has one.
            if chunk.head >= replica.copied or self._is_in_vain(replica):
                self.snapshots.ask(replica, source)
        elif is_news:
            self._fetch(replica, source)

    def _may_begin(self, replica: Replica, begins: int, limit: int) -> bool:
        """The log goes on, or a new one can take its place.

        Whoever has a part in the view that ends has more of it than the log, and that counts with the log that it
        has. It lacks nothing that is gone elsewhere: see Replica.retained_from.
        """
        if replica.copied is not None and begins <= replica.copied:
            return True
        is_learner = replica.process in replica.group.learners
        ends = replica.completed if is_learner else replica.cut_ends
        return begins <= limit and (replica.ending is None or replica.view < ends)

    def _begin(self, replica: Replica, position: int) -> None:
        snapshot = self.snapshots.whole(replica.name)
        if snapshot is None or snapshot.position < position:
            self.snapshots.drop(replica.name)
        replica.copied = position
        self.machine.out.append(ResetLog(replica.name, position))

    def came(self, replica: Replica, snapshot: Snapshot, source: str) -> None:
        """The state at a position of the log. The log may go further by now, or not as far."""
        limit = self.limit(replica)
        if replica.copied is None or limit is None or snapshot.position > limit:
            self.snapshots.drop(replica.name)
        elif snapshot.position == replica.copied:
            self._install(replica, snapshot, source)
        elif snapshot.position > replica.copied:
            self._fetch(replica, source)
        elif self._is_good_enough(replica, snapshot):
            # Another source's log went further than everyone's who is left: copy this one's, up to its state.
            self._begin(replica, 0)
            self.machine.changes.append((records.copied(replica.name), pack_u64(0)))
            self._fetch(replica, source)
        else:
            self.snapshots.drop(replica.name)  # The next tick asks for another.

    def _is_good_enough(self, replica: Replica, snapshot: Snapshot) -> bool:
        """It is before what we have copied, but it is all that a member needs, and nobody has a later one.

        Of the view v1 = {A, B, D}, B shows 9 entries and A shows 7, for it has not heard yet what others have on
        disk. C copies B's log, and B is gone. A and D show no more before v2 = {A, C, D} is complete, and that may
        need C. Learners wait: nobody waits for them.
        """
        if replica.cut is None or replica.process in replica.group.learners:
            return False
        return snapshot.position >= replica.cut.first_position and self._is_in_vain(replica)

    def _install(self, replica: Replica, snapshot: Snapshot, source: str) -> None:
        """The log is here as far as the state goes. From here on entries are replayed."""
        machine, name = self.machine, replica.name
        self.snapshots.drop(name)
        self.vain.pop(name, None)
        replica.copied = None
        machine.changes += replica.producers.clear()
        replica.position, replica.offset = snapshot.position, snapshot.offset
        replica.producers.load(list(snapshot.producers))
        machine.changes += replica.producers.records()
        machine.changes += [replica.position_record(), (records.copied(name), None)]
        machine.flushing.report(replica)
        machine.touched[name] = None
        target = self.target(replica)
        if target is not None:
            self._fetch(replica, source)

    # ------------------------------------------------------------------------------------------- for others

    def began(self, replica: Replica) -> None:
        """A view was adopted just now."""
        self.snapshots.began(replica)

    def forget(self, name: str) -> list[Record]:
        """The group is gone, or elsewhere."""
        self.snapshots.forget(name)
        self.vain.pop(name, None)
        return [(records.copied(name), None)]
