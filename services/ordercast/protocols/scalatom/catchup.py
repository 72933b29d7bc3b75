"""Catching up with the group: from its log, or, where that no longer begins early enough, from a snapshot.

[E5] A replica that comes back is a slow one, and asks for the delivered prefix it lacks. A learner does nothing
else. [E8] Nobody counts an envelope as delivered because somebody calls it closed; only its place in the log says
what came before it.

One piece is asked for at a time, by the position that it begins at: so whoever is interrupted goes on where it
was, and with another source if it must. copying.py is about logs whose beginning is gone.
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, KEY_BYTES, KEY_MIN, sn_of
from ordercast.core.machine import LogRead, ReadLog, Receive, Send, SetTimer
from ordercast.core.view import Group, OtherConfiguration, names_of
from ordercast.protocols.idempotence import Record
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.copying import Copying
from ordercast.protocols.scalatom.replica import Replica
from ordercast.v1.common_pb2 import Header
from ordercast.v1.sequencer_pb2 import FetchLog, LogChunk, LogEntry

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom

COPY_TIMER = "copy"
#: A learner that is no further behind than so many envelopes has caught up: the hand-over brings the rest.
CLOSE = 64


def checksum_of(entries: Iterable[LogEntry]) -> int:
    found = 0
    for entry in entries:
        found = zlib.crc32(entry.SerializeToString(deterministic=True), found)
    return found


class CatchUp:
    def __init__(self, machine: "Scalatom") -> None:
        self.machine = machine
        self.copying = Copying(machine)
        #: Groups whose next piece is asked for at that time, and of whom: not all at once.
        self.due: dict[str, tuple[float, str]] = {}

    # ------------------------------------------------------------------------------------------- fetching

    def on_tick(self, replica: Replica) -> None:
        """Stuck for a whole tick though somebody is further: its log has what we lack."""
        if not replica.is_active or replica.copied is not None:
            if self.machine.now >= replica.fetch_due and not replica.is_stopped:
                self.fetch_in_turn(replica, self.sources(replica))
            return
        if replica.position == replica.position_at_tick and self.machine.now >= replica.fetch_due:
            ahead = [name for name, peer in replica.peers.items() if peer.position > replica.position]
            if ahead:
                self.fetch_in_turn(replica, ahead)
            else:
                self._ask_those_who_forgot(replica)
        replica.position_at_tick = replica.position

    def fetch_in_turn(self, replica: Replica, sources: Sequence[str]) -> None:
        """One of them may be dead and never answer."""
        if sources:
            replica.fetches += 1
            self.fetch(replica, sources[replica.fetches % len(sources)])

    def sources(self, replica: Replica) -> list[str]:
        """Who has the log, for somebody who is no active replica."""
        group, process = replica.group, self.machine.process
        names = dict.fromkeys([*group.replicas, *group.former_replicas])
        return [name for name in names if name != process and name not in group.lost]

    def _ask_those_who_forgot(self, replica: Replica) -> None:
        for name, peer in replica.peers.items():
            if not replica.reached(peer.forgotten):
                self.fetch(replica, name)

    def fetch(self, replica: Replica, source: str) -> None:
        position = replica.position if replica.copied is None else replica.copied
        fetch = FetchLog(group=replica.name, configuration=replica.group.configuration, position=position)
        replica.fetch_due = self.machine.now + self.machine.patience_s()
        self.machine.out.append(Send((source,), fetch))

    def fetch_from_anyone(self, replica: Replica) -> None:
        """Once for all envelopes that are missed: after a pause they are thousands."""
        if self.machine.now >= replica.fetch_due:
            for name in replica.peers:
                self.fetch(replica, name)

    def fetch_next(self, replica: Replica, source: str, size: int) -> None:
        """After a piece of that size, at the rate that is allowed."""
        machine = self.machine
        wait_s = size / machine.settings.copy_bytes_per_s
        if wait_s < 0.001:
            self.fetch(replica, source)
            return
        replica.fetch_due = machine.now + wait_s + machine.patience_s()
        self.due[replica.name] = (machine.now + wait_s, source)
        machine.out.append(SetTimer(COPY_TIMER, min(at for at, _ in self.due.values()) - machine.now))

    def on_timer(self) -> None:
        machine = self.machine
        for name, (at, source) in list(self.due.items()):
            if machine.now >= at:
                del self.due[name]
                if name in machine.replicas:
                    self.fetch(machine.replicas[name], source)
        if self.due:
            machine.out.append(SetTimer(COPY_TIMER, min(at for at, _ in self.due.values()) - machine.now))

    # ------------------------------------------------------------------------------------------- answering

    def checked(self, name: str, configuration: int, source: str, *, asks: bool) -> Replica:
        """Logs are the same in every configuration. Who may ask and who may tell is for our view to say.

        Who copies, and who was a member before, changes within a configuration: others may not have heard of it.
        """
        machine = self.machine
        assert machine.view is not None
        group = machine.view.present(name, configuration)
        if source not in self._concerned(group, asks=asks):
            raise OtherConfiguration(name, f"{source} has no part in {name!r}")
        replica = machine.replicas.get(name)
        if replica is None:
            raise OtherConfiguration(name, f"no replica of {name!r} here")
        return replica

    def _concerned(self, group: Group, *, asks: bool) -> tuple[str, ...]:
        return (*group.replicas, *group.former_replicas, *(group.learners if asks else ()))

    def on_fetch(self, event: Receive) -> None:
        fetch: FetchLog = event.message
        replica = self.checked(fetch.group, fetch.configuration, event.source, asks=True)
        if replica.copied is not None:
            return
        if fetch.position < replica.position:
            count = self.machine.settings.log_chunk
            self.machine.out.append(ReadLog(replica.name, fetch.position, count, tag=event.source))
        else:
            # Who is no active replica hears of our position in no other way.
            self._send_chunk(replica, event.source, fetch.position, (), 0)

    def on_log_read(self, event: LogRead) -> None:
        machine = self.machine
        replica = machine.replicas.get(event.group)
        if replica is None:
            return  # The group is gone since we asked.
        if event.tag.startswith(records.REPORT):
            id_ = bytes.fromhex(event.tag.removeprefix(records.REPORT))
            machine.on_report_read(event.group, id_, event.entries)
        elif event.entries or event.position < event.begins:
            self._send_chunk(replica, event.tag, event.position, self._as_fit(event.entries), event.begins)

    def _send_chunk(
        self, replica: Replica, to: str, position: int, entries: Sequence[LogEntry], begins: int
    ) -> None:
        chunk = LogChunk(
            group=replica.name,
            configuration=replica.group.configuration,
            position=position,
            entries=entries,
            head=replica.position,
            begins=begins,
            checksum=checksum_of(entries),
        )
        self.machine.out.append(Send((to,), chunk))

    def _as_fit(self, entries: Sequence[LogEntry]) -> Sequence[LogEntry]:
        """As many as a chunk may have bytes, but one at least; whoever catches up asks for the rest."""
        total = 0
        for count, entry in enumerate(entries):
            total += entry.ByteSize()
            if count and total > self.machine.settings.log_chunk_bytes:
                return entries[:count]
        return entries

    # ------------------------------------------------------------------------------------------- hearing

    def on_chunk(self, event: Receive) -> None:
        chunk: LogChunk = event.message
        machine = self.machine
        replica = self.checked(chunk.group, chunk.configuration, event.source, asks=False)
        # While nodes are upgraded, some senders are of an early version, which has no checksum.
        if chunk.HasField("checksum") and chunk.checksum != checksum_of(chunk.entries):
            raise RemoteProtocolError("a piece of a log that was damaged on the way")
        if not chunk.begins <= chunk.head <= CLOCK_MAX or chunk.position > CLOCK_MAX:
            raise RemoteProtocolError("a log that ends before it begins")
        self._check_entries(replica, chunk.entries)
        peer = replica.peers.get(event.source)
        if peer is not None:
            peer.position = max(peer.position, chunk.head)
        replica.head = chunk.head
        if replica.is_stopped:
            return
        replica.fetch_due = machine.now  # answered: whoever wants more may ask
        if self.copying.is_about(replica, chunk):
            self.copying.on_chunk(replica, chunk, event.source)
        else:
            self._deliver(replica, chunk, event.source)
        machine.hand_over.on_progress(replica)

    def _deliver(self, replica: Replica, chunk: LogChunk, source: str) -> None:
        machine = self.machine
        new = list(chunk.entries)[max(replica.position - chunk.position, 0) :]
        if chunk.position <= replica.position and any(replica.is_in_prefix(e.envelope.header.id) for e in new):
            raise RemoteProtocolError("an entry that was delivered before")
        news = False
        for index, entry in enumerate(chunk.entries):
            if chunk.position + index == replica.position:
                machine.deliver(replica, entry.order_key, entry.envelope)
                news = True
        machine.raise_clock(replica, sn_of(replica.last_key) + 1)
        machine.touched[replica.name] = None
        if news and replica.position < chunk.head:
            self.fetch_next(replica, source, chunk.ByteSize())

    def _check_entries(self, replica: Replica, entries: Sequence[LogEntry]) -> None:
        last = KEY_MIN
        for entry in entries:
            self._check_header(replica, entry.envelope.header)
            key = entry.order_key
            if len(key) != KEY_BYTES or key[8:] != entry.envelope.header.id:
                raise RemoteProtocolError("not an entry of this group's log")
            if key <= last or sn_of(key) > CLOCK_MAX:
                raise RemoteProtocolError("a log that is out of order")
            last = key

    def _check_header(self, replica: Replica, header: Header) -> None:
        """By its own group only: others that it names may be gone by now, or not yet in our view."""
        self.machine.stamping.check_form(header)
        if replica.name not in names_of(header.destinations):
            raise RemoteProtocolError("not an entry of this group's log")
        for destination in header.destinations:
            if destination.group == replica.name and destination.configuration > replica.group.configuration:
                raise OtherConfiguration(replica.name, "an entry of a later configuration")

    # --------------------------------------------------------------------------------------------- state

    def has_caught_up(self, replica: Replica) -> bool:
        return replica.copied is None and replica.head is not None and replica.position + CLOSE >= replica.head

    def clear(self, replica: Replica) -> list[Record]:
        """Everything but the position: a snapshot replaces it, or the group is gone."""
        changes: list[Record] = [(records.delivered(replica.name, id_), None) for id_ in replica.delivered]
        changes += [(records.done(replica.name, i), None) for i in replica.done]
        changes += replica.producers.clear()
        replica.delivered, replica.done = {}, {}
        return changes
