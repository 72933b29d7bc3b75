"""What all parts of a root share: its streams, its merge, what is on its disk, and how a step ends.

Nothing waits for the disk but what speaks of the disk. A step gives what it changed to the disk, with a ticket,
and hears of the ticket again when it is durable (`Written`); acknowledgements are given then. Numbers, receipts
and rumours leave at once, for they are a function of what a majority of a home group has on disk already.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.core.ids import pack_u64, unpack_u64
from ordercast.core.machine import Deliver, Effect, Event, Hand, Persist, ResetLog, Send
from ordercast.protocols.apbcast.events import LOG, ROOT, Written
from ordercast.protocols.apbcast.merge import Merge
from ordercast.protocols.apbcast.registry import Known
from ordercast.protocols.apbcast.settings import Settings
from ordercast.protocols.apbcast.streams import Stream
from ordercast.v1.apbcast_pb2 import (
    Entries,
    Held,
    MergeState,
    Numbered,
    RootGroup,
    StreamEntry,
    Streams,
)
from ordercast.v1.sequencer_pb2 import LogEntry

#: Records: s<stream><index> a StreamEntry; m the MergeState; q<stream> the configuration in which it is sealed;
#: c the configuration for which this root has sealed its own; t the latest Streams.
ENTRY, MERGE, STREAM_SEAL, GROUP_SEAL, TOLD = b"s", b"m", b"q", b"c", b"t"

#: Entries in one message.
BATCH = 64


@dataclass(slots=True)
class Durable:
    """What is on the disk for certain."""

    #: By stream: so many entries, or the durable merge is past them.
    lengths: dict[int, int] = field(default_factory=dict)
    merged: dict[int, int] = field(default_factory=dict)
    state: MergeState = field(default_factory=MergeState)
    #: By stream, the home's configuration in which it is sealed.
    stream_seals: dict[int, int] = field(default_factory=dict)
    #: The configuration to come for which everything here is sealed.
    group_seal: int = 0

    def length(self, stream: int) -> int:
        return max(self.lengths.get(stream, 0), self.merged.get(stream, 0))


class RootBase:
    def __init__(self, process: str, settings: Settings) -> None:
        self.process = process
        self.settings = settings
        self.incarnation = 0
        self.now = 0.0
        self.known = Known(Streams())
        self.streams: dict[int, Stream] = {}
        self.merge = Merge(settings.producers)
        self.stream_seals: dict[int, int] = {}
        self.group_seal = 0
        self.durable = Durable()
        #: Processes that there is a connection to.
        self.connected: dict[str, int] = {}
        # What a step leads to.
        self.out: list[Effect] = []
        self.delivered: list[Effect] = []
        self.changes: list[tuple[bytes, bytes | None]] = []
        self._ticket = 0
        self._on_the_way: deque[tuple[int, Durable]] = deque()
        #: As the disk has it, or will have it.
        self._merge_written = MergeState()

    # -------------------------------------------------------------------------------------------------- who I
    # am

    @property
    def group(self) -> RootGroup | None:
        """In which this process is a root, or is to be one."""
        return self.known.group_of(self.process)

    @property
    def configuration(self) -> int:
        """In which it may acknowledge (R2); 0 if it may not."""
        group = self.group
        if group is None or self.process not in group.started.members or group.started.number < self.group_seal:
            return 0
        return group.started.number

    def is_home_of(self, stream: int) -> bool:
        group, known = self.group, self.known.streams.get(stream)
        return group is not None and known is not None and known.home == group.group

    # ------------------------------------------------------------------------------------------------- the disk

    def end_step(self) -> list[Effect]:
        self._write_entries()
        if self.delivered:
            self.write_merge()
        if self.changes:
            self._ticket += 1
            self._on_the_way.append((self._ticket, self._as_written()))
            written = Hand(ROOT, Written(self.now, 0.0, self._ticket))
            self.delivered.append(Persist(self.changes, barrier=False, then=(written,)))
        effects = self.out + self.delivered
        self.out, self.delivered, self.changes = [], [], []
        return effects

    def write_merge(self) -> None:
        """As it stands now."""
        state = self.merge.state()
        if state != self._merge_written:
            self._merge_written = state
            self.changes.append((MERGE, state.SerializeToString()))

    def _write_entries(self) -> None:
        for stream in self.streams.values():
            upto = stream.worth_writing()
            for index in range(max(stream.written, stream.base), upto):
                entry = stream.entries[index - stream.base]
                self.changes.append((entry_key(stream.number, index), entry.SerializeToString()))
            stream.written = max(stream.written, upto)

    def _as_written(self) -> Durable:
        state = self._merge_written
        return Durable(
            {number: stream.written for number, stream in self.streams.items()},
            {position.stream: position.index for position in state.positions},
            state,
            dict(self.stream_seals),
            self.group_seal,
        )

    def take_written(self, ticket: int) -> bool:
        """Whether anything became durable that others want to hear of."""
        before = self.durable
        while self._on_the_way and self._on_the_way[0][0] <= ticket:
            self.durable = self._on_the_way.popleft()[1]
        self._forget_merged()
        return self.durable != before

    def _forget_merged(self) -> None:
        """An entry goes when the own merge past it is on disk, log included (R17)."""
        for number, index in self.durable.merged.items():
            stream = self.streams.get(number)
            if stream is not None:
                self._forget_below(stream, index)
        needed = {*self.known.streams, *self.merge.turns}
        for number in [number for number in self.streams if number not in needed]:
            stream = self.streams.pop(number)
            self._forget_below(stream, stream.length)
            if self.stream_seals.pop(number, None):
                self.changes.append((STREAM_SEAL + pack_u64(number), None))

    def _forget_below(self, stream: Stream, index: int) -> None:
        written = stream.written
        for gone in range(stream.drop_below(index), min(stream.base, written)):
            self.changes.append((entry_key(stream.number, gone), None))

    def load(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        found: dict[int, dict[int, StreamEntry]] = {}
        told = Streams()
        for key, value in records:
            kind, rest = key[:1], key[1:]
            if kind == ENTRY:
                found.setdefault(unpack_u64(rest[:8]), {})[unpack_u64(rest[8:])] = StreamEntry.FromString(value)
            elif kind == MERGE:
                self._merge_written = MergeState.FromString(value)
            elif kind == STREAM_SEAL:
                self.stream_seals[unpack_u64(rest)] = unpack_u64(value)
            elif kind == GROUP_SEAL:
                self.group_seal = unpack_u64(value)
            elif kind == TOLD:
                told = Streams.FromString(value)
        self.known = Known(told)
        self.make_streams()
        self.merge.adopt(self._merge_written)
        for number, entries in sorted(found.items()):
            stream = self.streams.setdefault(number, Stream(number))
            first = min(entries)
            stream.begin_at(first)
            stream.entries = [entries[index] for index in range(first, first + len(entries))]
            stream.written = stream.length
        for number, turn in self.merge.turns.items():
            stream = self.streams.setdefault(number, Stream(number))
            if turn.index > stream.length:
                # The merge went on over nulls, and what is before them may still be on the disk.
                self.begin_stream_at(stream, turn.index)
        self.skip_what_is_over()
        self.durable = self._as_written()

    # -------------------------------------------------------------------------------------------------- streams

    def make_streams(self) -> None:
        """Of all that membership names; and their ends."""
        for number in self.known.streams:
            self.streams.setdefault(number, Stream(number))
        for number, end in self.known.ends.items():
            if number in self.streams:
                self.streams[number].end = end.length

    def holder_of(self, stream: int, turn: int) -> str | None:
        """A root to ask for what this one lacks of a stream: each in turn, those of its keeper or home first."""
        known, end = self.known.streams.get(stream), self.known.ends.get(stream)
        keeper = end.keeper if end is not None else known.home if known is not None else ""
        group = self.known.groups.get(keeper)
        names = [*(group.started.members if group is not None and turn % 3 < 2 else self.known.roots())]
        names = [name for name in names if name != self.process and name in self.connected]
        return names[turn % len(names)] if names else None

    def send_held(self, stream: Stream) -> None:
        """To its broadcaster: what is here, and an acknowledgement if this root may give one."""
        known = self.known.streams.get(stream.number)
        if known is None or known.process not in self.connected or stream.end is not None:
            return
        group, number = self.group, stream.number
        turn = self.merge.turns.get(number)
        sealed = self.stream_seals.get(number, 0)
        may = self.configuration if not (sealed and sealed == self.configuration) else 0
        held = Held(
            stream=number,
            length=stream.length,
            synced=self.durable.length(number),
            group=group.group if group is not None else "",
            configuration=may,
            merged=self.durable.merged.get(number, 0),
            highest=max((t.last for t in self.merge.turns.values()), default=0) if turn is not None else 0,
        )
        self.out.append(Send((known.process,), held))

    def entries_from(self, stream: Stream, first: int, *, fetched: bool = False) -> Entries:
        entries = stream.entries[first - stream.base :][:BATCH]
        return Entries(
            stream=stream.number, first=first, entries=entries, announced=stream.announced, fetched=fetched
        )

    def begin_stream_at(self, stream: Stream, index: int) -> None:
        """A snapshot is past all that was here of it."""
        for gone in range(stream.base, stream.written):
            self.changes.append((entry_key(stream.number, gone), None))
        stream.begin_at(index)

    def skip_what_is_over(self) -> None:
        """A snapshot of a later view is past the ends of streams that it does not name any more.

        Whoever hands over speaks of those streams still, and nobody has their entries.
        """
        for view in self.known.state.views:
            for end in view.ends if view.number <= self.merge.view else ():
                stream = self.streams.get(end.stream)
                if stream is not None and stream.length < end.length:
                    self.begin_stream_at(stream, end.length)

    @property
    def ends(self) -> dict[int, int]:
        return {number: end.length for number, end in self.known.ends.items()}

    def log(self, item: Numbered) -> None:
        entry = LogEntry(order_key=pack_u64(item.mseq), protocol=item.SerializeToString())
        self.delivered.append(Deliver(LOG, item.mseq, entry))

    def begin_log_at(self, mseq: int) -> None:
        self.delivered.append(ResetLog(LOG, mseq))

    def begin_step(self, event: Event) -> None:
        self.now = event.now


def entry_key(stream: int, index: int) -> bytes:
    return ENTRY + pack_u64(stream) + pack_u64(index)
