"""The state at a position of the log, for whoever copies a log whose beginning is gone.

It is what follows from the log before that position: how many messages there were, and the idempotence of their
producers (a Snapshot). It is made at one moment, kept by its giver for a while, and sent in parts. If the giver
forgot it, or is in another life by now, it begins again: it is small beside the log.

Not any state will do. A view begins, for all of its members, where the cut before it ends: who enters it with a
longer log would take positions of that view for those before it. So a copier may go up to that end and no
further, while a giver that is in the view has moved on. It could not go back, and therefore remembers the state
with which its view began. The question names a view (in `configuration`); the answer is the latest state at hand
that has nothing of that view in it, nor of a later one:

* of a giver that is not in that view, its present state;
* of one that is, what it remembers, until membership says that all members have installed the view.

So whoever has to be in a view gets what it needs. Until the view is complete, those that have the log are sealed
in the one before. None of them is beyond the cut's end, for all that was visible is in the cut; and once it has
the cut, none is before its first position. Whatever lies between the two will do. When the view is complete, those
that have adopted it remember its beginning as long as one member has not installed it, which the copier has not. A
giver that restarts forgets; but that ends its part in the view, so membership defines another one, of which all
this is true again. A learner may take what is of views that it knows to be complete: it hears of all of them in
the end, and until then nobody waits for it.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.core.machine import Receive, Send
from ordercast.protocols.idempotence import ProducerTable
from ordercast.protocols.isis.replica import Replica
from ordercast.protocols.producer_records import check_records
from ordercast.v1.sequencer_pb2 import LogEntry, ProducerRecord, Snapshot, SnapshotAsk, SnapshotPart

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis

#: A snapshot that nobody asked for so long is dropped.
KEPT_S = 30.0
#: No snapshot has more parts than this.
PARTS_MAX = 4096


@dataclass(slots=True)
class State:
    position: int
    offset: int
    producers: ProducerTable


@dataclass(slots=True)
class Beginning:
    """The state with which a view began, and the view that ended there."""

    view: int
    ends: int
    state: State


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


class Snapshots:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine
        #: By group; what was made also by whether it is of a beginning.
        self.beginnings: dict[str, Beginning] = {}
        self.made: dict[tuple[str, bool], Made] = {}
        self.coming: dict[str, Coming] = {}
        self._made_count = 0

    # -------------------------------------------------------------------------------------------- remembering

    def began(self, replica: Replica) -> None:
        """A view was adopted just now, and nothing of it is in the log."""
        cut = replica.last_cut
        if cut is None or cut.view != replica.view or replica.ending is None:
            return  # The first one, which began with nothing; or we are not in it.
        assert replica.position == replica.ending.start
        if replica.position != cut.first_position + len(cut.keys):
            # A peer sent a log that goes on behind the cut, so where the view began is not known here. Newcomers
            # that need the beginning get it from another member.
            return
        state = State(replica.position, replica.offset, replica.producers.copy())
        self.beginnings[replica.name] = Beginning(cut.view, cut.ends, state)
        self.machine.wake()

    def tidy(self, replica: Replica) -> None:
        """Drop what nobody needs any more."""
        machine, name, group = self.machine, replica.name, replica.group
        beginning = self.beginnings.get(name)
        if beginning is not None:
            is_installed = group.configuration == beginning.view and not group.starting
            if is_installed or replica.completed > beginning.view:
                del self.beginnings[name]
        for key in ((name, False), (name, True)):
            made = self.made.get(key)
            if made is not None and machine.now - made.used_at >= KEPT_S:
                del self.made[key]
            elif made is not None:
                machine.wake()

    def forget(self, name: str) -> None:
        self.beginnings.pop(name, None)
        self.coming.pop(name, None)
        self.made = {key: made for key, made in self.made.items() if key[0] != name}

    # ------------------------------------------------------------------------------------------------- giving

    def on_ask(self, event: Receive) -> None:
        ask: SnapshotAsk = event.message
        machine = self.machine
        replica = machine.replicas.get(ask.group)
        if replica is None or replica.copied is not None:
            return
        state = self._state_before(replica, ask.configuration)
        if state is None:
            return  # Others are asked in their turn, and so are we, when more is known.
        made = self._made_of(replica, state, is_begun=bool(ask.token))
        part = (
            ask.part if made.token == ask.token else 0
        )  # What it had parts of is no more: it begins with this one.
        size = machine.settings.log_chunk_bytes
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
        machine.wake()

    def _state_before(self, replica: Replica, view: int) -> State | None:
        """The latest at hand that has nothing of that view in it, nor of a later one."""
        if replica.view < view:
            return State(replica.position, replica.offset, replica.producers)
        beginning = self.beginnings.get(replica.name)
        return beginning.state if beginning is not None and beginning.ends < view else None

    def _made_of(self, replica: Replica, state: State, *, is_begun: bool) -> Made:
        """The one that was made before, if it is of this state, or if the present is asked for by somebody who has
        begun: otherwise all who ask at once would take each other's away.
        """
        is_present = state.producers is replica.producers
        key = (replica.name, not is_present)
        kept = self.made.get(key)
        if kept is not None and (kept.position == state.position or (is_begun and is_present)):
            return kept
        snapshot = Snapshot(
            group=replica.name,
            configuration=replica.view,
            position=state.position,
            offset=state.offset,
            producers=state.producers.messages(),
        )
        data = snapshot.SerializeToString(deterministic=True)
        self._made_count += 1
        token = (self.machine.incarnation << 24) + self._made_count
        made = self.made[key] = Made(token, state.position, data, zlib.crc32(data), self.machine.now)
        return made

    # ------------------------------------------------------------------------------------------------- taking

    def whole(self, name: str) -> Snapshot | None:
        """All parts of it are here, and the log is not."""
        coming = self.coming.get(name)
        return coming.snapshot if coming is not None else None

    def drop(self, name: str) -> None:
        self.coming.pop(name, None)

    def ask(self, replica: Replica, source: str) -> None:
        """For the latest state there that has nothing in it which is not for us yet."""
        machine, name = self.machine, replica.name
        coming = self.coming.get(name)
        if coming is None or coming.source != source or coming.snapshot is not None:
            coming = self.coming[name] = Coming(source)
        before = machine.copying.last_view(replica) + 1
        ask = SnapshotAsk(group=name, configuration=before, token=coming.token, part=len(coming.parts))
        replica.fetch_due = machine.now + machine.settings.silence_s
        machine.out.append(Send((source,), ask))
        machine.wake()

    def on_part(self, event: Receive) -> None:
        part: SnapshotPart = event.message
        replica = self.machine.replicas.get(part.group)
        coming = self.coming.get(part.group)
        if replica is None or coming is None or coming.source != event.source or coming.snapshot is not None:
            return
        if part.parts > PARTS_MAX:
            raise RemoteProtocolError("a snapshot without an end")
        if part.token != coming.token:
            coming.token, coming.parts = part.token, []
        if part.part != len(coming.parts):
            return
        coming.parts.append(part.data)
        if len(coming.parts) < part.parts:
            self.ask(replica, event.source)
            return
        data = b"".join(coming.parts)
        self.drop(replica.name)  # Whatever is wrong with it, nobody knows with which part: it begins again.
        if zlib.crc32(data) != part.checksum:
            raise RemoteProtocolError("a snapshot that was damaged on the way")
        snapshot = _checked(replica.name, data)
        self.coming[replica.name] = Coming(event.source, snapshot=snapshot)
        self.machine.copying.came(replica, snapshot, event.source)


def checksum_of(entries: Iterable[LogEntry]) -> int:
    """Of a piece of a log."""
    found = 0
    for entry in entries:
        found = zlib.crc32(entry.SerializeToString(deterministic=True), found)
    return found


def _checked(group: str, data: bytes) -> Snapshot:
    """Nothing of it is behind its own end."""
    try:
        snapshot = Snapshot.FromString(data)
    except DecodeError as error:
        raise RemoteProtocolError(f"not a snapshot: {error}") from error
    if snapshot.group != group or max(snapshot.position, snapshot.offset) > CLOCK_MAX:
        raise RemoteProtocolError("not a snapshot of this group")
    check_records(snapshot.producers)
    if any(_is_beyond(snapshot, record) for record in snapshot.producers):
        raise RemoteProtocolError("a snapshot with a producer from behind its end")
    return snapshot


def _is_beyond(snapshot: Snapshot, record: ProducerRecord) -> bool:
    return record.last_sn >= snapshot.position or any(
        span.first_offset + span.count > snapshot.offset for span in record.spans
    )
