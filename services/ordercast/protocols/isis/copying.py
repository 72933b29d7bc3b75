"""Copying the log: what a newcomer does before it is a member, and a member that missed the end of a view.

Logs hold what is visible and never differ but in length, so anybody's will do. One piece is asked for at a time,
by the position that it begins at: whoever is interrupted goes on where it was, with another source if it must.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.core.machine import Deliver, LogRead, ReadLog, Receive, Send
from ordercast.core.view import names_of
from ordercast.protocols.isis.era import key_of
from ordercast.protocols.isis.replica import Replica, cast_of
from ordercast.v1.sequencer_pb2 import FetchLog, LogChunk, LogEntry

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis

#: A learner that is no further behind than so many envelopes has caught up: the flush brings the rest.
CLOSE = 64


class Copying:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine

    # --------------------------------------------------------------------------------------------- asking

    def target(self, replica: Replica) -> int | None:
        """How far the log must come, if it is behind; None if it needs no copy."""
        if replica.process in replica.group.learners:
            return CLOCK_MAX
        cut = replica.cut
        if cut is None or replica.view >= cut.view:
            return None
        end = cut.first_position + (len(cut.keys) if replica.lacks_of_cut() else 0)
        return end if replica.position < end else None

    def look(self, replica: Replica) -> None:
        """Ask for the next piece, unless one is on its way."""
        if self.target(replica) is None or self.machine.now < replica.fetch_due:
            return
        sources = self.sources(replica)
        if sources:
            replica.fetches += 1
            self._fetch(replica, sources[replica.fetches % len(sources)])

    def sources(self, replica: Replica) -> list[str]:
        group, process = replica.group, self.machine.process
        names = dict.fromkeys([*group.replicas, *group.former_replicas])
        return [name for name in names if name != process and name not in group.lost]

    def _fetch(self, replica: Replica, source: str) -> None:
        machine = self.machine
        replica.fetch_due = machine.now + machine.settings.silence_s
        fetch = FetchLog(group=replica.name, configuration=replica.group.configuration, position=replica.position)
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
        if replica is not None and (event.entries or event.position < event.begins):
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
        if not chunk.begins <= chunk.head <= CLOCK_MAX or chunk.position > CLOCK_MAX:
            raise RemoteProtocolError("a log that ends before it begins")
        replica.head = chunk.head
        target = self.target(replica)
        if target is None:
            return
        news = False
        for index, entry in enumerate(chunk.entries):
            if entry.stamp.view > replica.completed:
                break  # We may be in that view, and not have heard of it.
            if chunk.position + index == replica.position < target:
                self._take(replica, entry)
                news = True
        replica.fetch_due = machine.now  # answered: whoever wants more may ask
        if news:
            machine.changes.append(replica.position_record())
            machine.flushing.report(replica)
            machine.touched[replica.name] = None
        if news and replica.position < min(chunk.head, target):
            self._fetch(replica, event.source)

    def _take(self, replica: Replica, entry: LogEntry) -> None:
        if replica.name not in names_of(entry.envelope.header.destinations):
            raise RemoteProtocolError("not an entry of this group's log")
        if replica.cut is not None and entry.stamp.view == replica.cut.ends:
            # Others ended the view with it, and it may be here to be delivered as such.
            replica.cut_casts[key_of(entry.stamp.key)] = cast_of(replica.name, entry)
        position = replica.position
        replica.replay(entry)
        self.machine.out.append(Deliver(replica.name, position, entry))
        self.machine.changes += replica.producers.changes()

    def has_caught_up(self, replica: Replica) -> bool:
        return replica.copied is None and replica.head is not None and replica.position + CLOSE >= replica.head
