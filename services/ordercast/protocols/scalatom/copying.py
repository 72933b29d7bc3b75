"""Copying a log whose beginning is gone: first the entries that are left, as they are, then the state at a
position.

Whoever takes the state counts as having the bodies, so the bodies come first. They are on disk as they come, and
how far they go: after a crash the copy goes on there. The state (a Snapshot: positions, idempotence, what is
finished and buried) is made at one moment, kept by its sender for a while, and sent in parts. If the sender forgot
it, or has moved on, it begins again: it is small beside the log.
"""

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, ID_BYTES, KEY_BYTES, KEY_MIN, pack_u64, sn_of
from ordercast.core.machine import Deliver, Persist, Receive, ResetLog, Send
from ordercast.protocols.idempotence import Record
from ordercast.protocols.producer_records import check_records
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.replica import Replica
from ordercast.v1.sequencer_pb2 import LogChunk, Snapshot, SnapshotAsk, SnapshotPart

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom

#: A snapshot that nobody asked for so long is dropped.
KEPT_S = 30.0


@dataclass(slots=True)
class Made:
    """A snapshot for others, at the moment that it was asked for."""

    token: int
    position: int
    data: bytes
    checksum: int
    used_at: float


@dataclass(slots=True)
class Coming:
    """A snapshot of which parts have come."""

    source: str
    token: int
    parts: list[bytes] = field(default_factory=list)
    #: All of it is here, and waits for the log.
    snapshot: Snapshot | None = None


class Copying:
    def __init__(self, machine: "Scalatom") -> None:
        self.machine = machine
        self.made: dict[str, Made] = {}
        self.coming: dict[str, Coming] = {}
        self._made = 0

    # ------------------------------------------------------------------------------------------- the log

    def is_about(self, replica: Replica, chunk: LogChunk) -> bool:
        """It belongs to a copy that is under way, or has to be begun."""
        return replica.copied is not None or chunk.begins > replica.position

    def on_chunk(self, replica: Replica, chunk: LogChunk, source: str) -> None:
        machine = self.machine
        is_news = False
        if replica.copied is None or chunk.begins > replica.copied:
            # Before that there is nothing, or what came is cut off from the rest: begin where the log begins.
            self.coming.pop(replica.name, None)
            replica.copied, is_news = chunk.begins, True
            machine.out.append(ResetLog(replica.name, chunk.begins))
        coming = self.coming.get(replica.name)
        is_another = coming is None or coming.source != source
        end = coming.snapshot.position if coming is not None and coming.snapshot is not None else None
        for index, entry in enumerate(chunk.entries):
            if chunk.position + index == replica.copied and (end is None or replica.copied < end):
                machine.out.append(Deliver(replica.name, replica.copied, entry))
                replica.copied, is_news = replica.copied + 1, True
        machine.changes.append((records.copied(replica.name), pack_u64(replica.copied)))
        if end is not None and replica.copied == end:
            self._install(replica)
        elif replica.copied >= chunk.head and (end is None or is_another):
            # Also if a state is here that waits for more of the log: who made it may be gone, and this one lives.
            self._ask(replica, source)
        elif is_news:
            machine.catch_up.fetch_next(replica, source, chunk.ByteSize())

    # ----------------------------------------------------------------------------------- making the state

    def snapshot(self, replica: Replica) -> Snapshot:
        """Everything that follows from the log, for someone to whom the log itself is no longer available."""
        return Snapshot(
            group=replica.name,
            configuration=replica.group.configuration,
            position=replica.position,
            offset=replica.offset,
            order_key=replica.last_key,
            producers=replica.producers.messages(),
            done=[replica.done_message(incarnation) for incarnation in replica.done],
            delivered=[replica.delivered_message(id_) for id_ in replica.delivered],
            retired=self.machine.retired,
        )

    def on_ask(self, event: Receive) -> None:
        ask: SnapshotAsk = event.message
        machine = self.machine
        replica = machine.catch_up.checked(ask.group, ask.configuration, event.source, asks=True)
        if replica.copied is not None:
            return
        made, part = self.made.get(replica.name), ask.part
        if made is None or (not ask.token and made.position < replica.position):
            made = self._make(replica)
        if made.token != ask.token:
            part = 0  # What it had parts of is no more: it begins with this one.
        made.used_at = machine.now
        size = machine.settings.log_chunk_bytes
        parts = max(1, -(-len(made.data) // size))
        if part >= parts:
            raise RemoteProtocolError("a snapshot has no such part")
        answer = SnapshotPart(
            group=replica.name,
            configuration=ask.configuration,
            token=made.token,
            part=part,
            parts=parts,
            data=made.data[part * size : (part + 1) * size],
            checksum=made.checksum,
        )
        # Behind the deliveries that are still on their way to the disk.
        machine.then.append(Send((event.source,), answer))

    def _make(self, replica: Replica) -> Made:
        data = self.snapshot(replica).SerializeToString(deterministic=True)
        self._made += 1
        token = (self.machine.incarnation << 24) + self._made
        made = self.made[replica.name] = Made(token, replica.position, data, zlib.crc32(data), self.machine.now)
        return made

    def on_tick(self) -> None:
        now = self.machine.now
        self.made = {name: made for name, made in self.made.items() if now - made.used_at < KEPT_S}

    # ---------------------------------------------------------------------------------- taking the state

    def _ask(self, replica: Replica, source: str) -> None:
        coming = self.coming.get(replica.name)
        if coming is None or coming.source != source:
            coming = self.coming[replica.name] = Coming(source, 0)
        ask = SnapshotAsk(
            group=replica.name,
            configuration=replica.group.configuration,
            token=coming.token,
            part=len(coming.parts),
        )
        replica.fetch_due = self.machine.now + self.machine.patience_s()
        self.machine.out.append(Send((source,), ask))

    def on_part(self, event: Receive) -> None:
        part: SnapshotPart = event.message
        replica = self.machine.catch_up.checked(part.group, part.configuration, event.source, asks=False)
        coming = self.coming.get(replica.name)
        if coming is None or coming.source != event.source or coming.snapshot is not None:
            return
        if part.token != coming.token:
            coming.token, coming.parts = part.token, []
        if part.part != len(coming.parts):
            return
        coming.parts.append(part.data)
        if len(coming.parts) < part.parts:
            self._ask(replica, event.source)
            return
        data = b"".join(coming.parts)
        del self.coming[replica.name]
        if zlib.crc32(data) != part.checksum:
            raise RemoteProtocolError("a snapshot that was damaged on the way")
        self._came(replica, self._checked(replica, data), event.source)

    def _came(self, replica: Replica, snapshot: Snapshot, source: str) -> None:
        if replica.copied is None or snapshot.position < replica.copied:
            return  # It is from before what we have by now: the next tick asks for another.
        self.coming[replica.name] = Coming(source, 0, snapshot=snapshot)
        if snapshot.position == replica.copied:
            self._install(replica)
            self.machine.hand_over.on_progress(replica)
        else:
            self.machine.catch_up.fetch(replica, source)

    def _checked(self, replica: Replica, data: bytes) -> Snapshot:
        """Nothing of it is behind its own end, and its end is not behind ours."""
        try:
            snapshot = Snapshot.FromString(data)
        except DecodeError as error:
            raise RemoteProtocolError(f"not a snapshot: {error}") from error
        end = snapshot.order_key
        if snapshot.group != replica.name or len(end) != KEY_BYTES or sn_of(end) > CLOCK_MAX:
            raise RemoteProtocolError("not a snapshot of this group")
        check_records(snapshot.producers)
        if snapshot.retired > CLOCK_MAX:
            raise RemoteProtocolError("not an incarnation")
        for record in snapshot.delivered:
            if len(record.id) != ID_BYTES or len(record.order_key) != KEY_BYTES:
                raise RemoteProtocolError("a snapshot with a record of no envelope")
            if record.order_key > end or record.position >= snapshot.position:
                raise RemoteProtocolError("a snapshot with a record behind its end")
        if snapshot.position > replica.position and end <= replica.last_key != KEY_MIN:
            raise RemoteProtocolError("a snapshot that is further and behind at once")
        return snapshot

    def _install(self, replica: Replica) -> None:
        """The log is here as far as the state goes."""
        machine = self.machine
        snapshot = self.coming.pop(replica.name).snapshot
        assert snapshot is not None
        replica.copied = None
        changes = machine.catch_up.clear(replica)
        changes.append((records.copied(replica.name), None))
        machine.retire(snapshot.retired)
        replica.position, replica.offset = snapshot.position, snapshot.offset
        replica.last_key = snapshot.order_key
        replica.producers.load(list(snapshot.producers))
        for done in snapshot.done:
            replica.load_done(done)
        for record in snapshot.delivered:
            held = machine.held.get(record.id)
            mine = held.own.get(replica.name) if held is not None and not record.buried else None
            replica.load_delivered(record, mine)
            replica.delivered[record.id].configuration = replica.started  # of our stamp, and not the sender's
        machine.raise_clock(replica, sn_of(replica.last_key) + 1)
        changes += self._records(replica)
        self._settle_delivered(replica)
        machine.out.append(Persist(machine.changes + changes))
        machine.changes = []
        machine.touched[replica.name] = None

    def _records(self, replica: Replica) -> list[Record]:
        changes = [replica.delivered_record(id_) for id_ in replica.delivered]
        changes += replica.producers.records()
        changes += [replica.done_record(incarnation) for incarnation in replica.done]
        changes.append(replica.position_record())
        return changes

    def _settle_delivered(self, replica: Replica) -> None:
        """Own entries that the snapshot covers: kept if its table has them, else they count as forgotten."""
        machine = self.machine
        replica.drop_open()
        for held in list(machine.held.values()):
            if not replica.has_delivered(held.id):
                continue
            delivered = replica.delivered.get(held.id)
            held.undelivered.pop(replica.name, None)
            if delivered is not None:
                machine.learn(held, sn_of(delivered.key))
            if held.own and (delivered is None or delivered.buried):
                # Groups here that did stamp it may have forgotten it before, and left it for our old table alone.
                replica.forgotten.append(held.id)
                if replica.name in held.own:
                    replica.history.forget(held.id, replica.last_key)
            machine.settle(held)
        replica.history.forget_all_below(replica.clock, replica.last_key)
        machine.release_forgotten(replica)
