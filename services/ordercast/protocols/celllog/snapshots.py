"""The state at a position of a log, for whoever copies a log whose beginning is gone.

It is what follows from the log before that position (a Snapshot): how many messages there were, what is remembered
of producers, and what a protocol adds. It is made at one moment, kept by its giver for a while, and sent in parts.
If the giver forgot it, or is in another life by now, it begins again: it is small beside the log.
"""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic

from google.protobuf.message import DecodeError

from ordercast.core.cells import cell_of, shares_cell
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.core.machine import Receive, Send
from ordercast.protocols.celllog.producer_records import check_records
from ordercast.protocols.celllog.stepping import LogMachine, R
from ordercast.v1.sequencer_pb2 import ProducerRecord, Snapshot, SnapshotAsk, SnapshotPart

#: A snapshot that nobody asked for so long is dropped.
KEPT_S = 30.0
#: No snapshot has more parts than this: a giver makes them large enough, and a taker waits for no more.
PARTS_MAX = 4096


@dataclass(slots=True)
class Offer:
    """A state that can be given: the present one, or an earlier one that is remembered."""

    position: int
    is_present: bool
    make: Callable[[], Snapshot]


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
    token: int = 0
    parts: list[bytes] = field(default_factory=list)
    #: All of it is here, and waits for the log.
    snapshot: Snapshot | None = None


class Snapshots(ABC, Generic[R]):
    def __init__(self, machine: LogMachine[R]) -> None:
        self.machine = machine
        #: By group, and by whether it was of the present.
        self.made: dict[tuple[str, bool], Made] = {}
        #: By group.
        self.coming: dict[str, Coming] = {}
        self._made_count = 0

    # ------------------------------------------------------------------------------------ what a protocol gives

    @abstractmethod
    def offer(self, replica: R, ask: SnapshotAsk) -> Offer | None:
        """What there is for somebody who asks this; None if nothing here would be of use."""

    @abstractmethod
    def asks_for(self, replica: R) -> int:
        """What a question names as its configuration."""

    @abstractmethod
    def sn_end(self, snapshot: Snapshot) -> int:
        """Producers in this state were last heard of before this number of the order."""

    def check(self, replica: R, snapshot: Snapshot) -> None:
        """What a protocol demands of a state besides."""

    @abstractmethod
    def came(self, replica: R, snapshot: Snapshot, source: str) -> None:
        """All of it is here. It stays until it is dropped."""

    # --------------------------------------------------------------------------------------------------- giving

    def on_ask(self, event: Receive) -> None:
        ask: SnapshotAsk = event.message
        machine = self.machine
        replica = machine.log_asked_for(ask, event.source)
        offer = self.offer(replica, ask) if replica.copied is None else None
        if offer is None:
            return  # Others are asked in their turn, and so are we, when there is more here.
        made = self._made_of(replica, offer, is_begun=bool(ask.token))
        # If what it had parts of is no more, it begins with this one.
        part = ask.part if made.token == ask.token else 0
        size = max(1, machine.settings.log_chunk_bytes, -(-len(made.data) // PARTS_MAX))
        parts = max(1, -(-len(made.data) // size))
        if part >= parts:
            raise RemoteProtocolError("a snapshot has no such part")
        made.used_at = machine.now
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
        machine.wake_for_copy()

    def _made_of(self, replica: R, offer: Offer, *, is_begun: bool) -> Made:
        """The one that was made before, if it is of this state, or if the present is asked for by somebody who has
        begun: otherwise all who ask at once would take each other's away.
        """
        key = (replica.name, offer.is_present)
        kept = self.made.get(key)
        if kept is not None and (kept.position == offer.position or (is_begun and offer.is_present)):
            return kept
        data = offer.make().SerializeToString(deterministic=True)
        self._made_count += 1
        token = (self.machine.incarnation << 24) + self._made_count
        made = self.made[key] = Made(token, offer.position, data, zlib.crc32(data), self.machine.now)
        return made

    def on_tick(self) -> None:
        """Drop what nobody asked for any more."""
        now = self.machine.now
        self.made = {key: made for key, made in self.made.items() if now - made.used_at < KEPT_S}
        if self.made:
            self.machine.wake_for_copy()

    def forget(self, name: str) -> None:
        """The group is gone, or elsewhere."""
        self.drop(name)
        self.made = {key: made for key, made in self.made.items() if key[0] != name}

    # --------------------------------------------------------------------------------------------------- taking

    def whole(self, name: str) -> Snapshot | None:
        """All parts of it are here, and the log is not."""
        coming = self.coming.get(name)
        return coming.snapshot if coming is not None else None

    def waits_for(self, name: str, source: str) -> bool:
        """A whole state is here, and this is who made it, and so has the log that is missing."""
        coming = self.coming.get(name)
        return coming is not None and coming.snapshot is not None and coming.source == source

    def drop(self, name: str) -> None:
        self.coming.pop(name, None)

    def ask(self, replica: R, source: str) -> None:
        """For the next part, if that source has sent some; else for the first."""
        machine, name = self.machine, replica.name
        coming = self.coming.get(name)
        if coming is None or coming.source != source or coming.snapshot is not None:
            coming = self.coming[name] = Coming(source)
        ask = SnapshotAsk(
            group=name, configuration=self.asks_for(replica), token=coming.token, part=len(coming.parts)
        )
        replica.fetch_due = machine.now + machine.patience_s()
        machine.out.append(Send((source,), ask))
        machine.wake_for_copy()

    def on_part(self, event: Receive) -> None:
        part: SnapshotPart = event.message
        replica = self.machine.log_given_to(part, event.source)
        coming = self.coming.get(replica.name)
        if coming is None or coming.source != event.source or coming.snapshot is not None:
            return
        if part.token != coming.token:
            coming.token, coming.parts = part.token, []
        if part.part != len(coming.parts):
            return
        if part.parts > PARTS_MAX:
            raise RemoteProtocolError("a snapshot without an end")
        coming.parts.append(part.data)
        if len(coming.parts) < part.parts:
            self.ask(replica, event.source)
            return
        data = b"".join(coming.parts)
        self.drop(replica.name)  # Whatever is wrong with it, nobody knows with which part: it begins again.
        if zlib.crc32(data) != part.checksum:
            raise RemoteProtocolError("a snapshot that was damaged on the way")
        snapshot = self._checked(replica, data)
        self.coming[replica.name] = Coming(event.source, snapshot=snapshot)
        self.came(replica, snapshot, event.source)

    def _checked(self, replica: R, data: bytes) -> Snapshot:
        """Nothing of it is behind its own end."""
        try:
            snapshot = Snapshot.FromString(data)
        except DecodeError as error:
            raise RemoteProtocolError(f"not a snapshot: {error}") from error
        if snapshot.group != replica.name or max(snapshot.position, snapshot.offset) > CLOCK_MAX:
            raise RemoteProtocolError("not a snapshot of this group")
        self.check(replica, snapshot)
        check_records(snapshot.producers)
        end = self.sn_end(snapshot)
        if any(_is_beyond(record, end, snapshot.offset) for record in snapshot.producers):
            raise RemoteProtocolError("a snapshot with a producer from behind its end")
        for group in snapshot.ends:
            lives_here = shares_cell(group.group) and cell_of(group.group) == replica.name
            if not lives_here or group.offset > snapshot.offset:
                raise RemoteProtocolError("a snapshot with the end of a group that cannot be")
        return snapshot


def _is_beyond(record: ProducerRecord, sn_end: int, offset: int) -> bool:
    return record.last_sn >= sn_end or any(span.first_offset + span.count > offset for span in record.spans)
