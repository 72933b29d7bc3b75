"""A root: stores streams, merges them, and tells broadcasters, gossip and membership what came of it.

[apbcast Fig.4], with the corrections of README.md. What it does for changes of roots and broadcasters is in
root_changes.py, for those who lack something in root_snapshots.py, for its disk in root_base.py.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ordercast.core.errors import InvariantBroken
from ordercast.core.machine import (
    ChannelReset,
    Effect,
    Ended,
    Event,
    Hand,
    LogRead,
    ReadLog,
    Receive,
    Send,
    SetTimer,
    Start,
    TimerFired,
)
from ordercast.protocols.apbcast.events import LEAF, LOG, Asked, Given, Written
from ordercast.protocols.apbcast.merge import Merged
from ordercast.protocols.apbcast.registry import Known
from ordercast.protocols.apbcast.root_base import TOLD
from ordercast.protocols.apbcast.root_changes import RootChanges
from ordercast.protocols.apbcast.root_snapshots import items_of
from ordercast.protocols.apbcast.settings import Settings
from ordercast.protocols.apbcast.streams import Stream
from ordercast.v1.apbcast_pb2 import (
    AskHead,
    AskSnapshot,
    CopyLog,
    Entries,
    Fetch,
    Fill,
    Head,
    LogPiece,
    MergeSnapshot,
    Missed,
    PlaceInGroup,
    Receipt,
    RootHandOver,
    SealConfiguration,
    Silent,
    Streams,
    Want,
)

TICK = "tick"
#: Entries of one stream that are not merged durably. A broadcaster's window is far below it.
ENTRIES_MAX = 65_536
#: Messages in the answer to one question for what a leaf missed.
ANSWER = 64


class Root(RootChanges):
    def __init__(self, process: str, settings: Settings) -> None:
        super().__init__(process, settings)
        self._handed = {}
        self._copied = []
        self._handlers: dict[type, Callable[[Receive, Any], None]] = {
            Streams: self._on_streams,
            Entries: self._on_entries,
            Fetch: self.on_fetch,
            AskSnapshot: self.on_ask_snapshot,
            MergeSnapshot: self.on_snapshot,
            CopyLog: self.on_fetch_log,
            LogPiece: self.on_piece,
            SealConfiguration: self.on_seal_configuration,
            RootHandOver: self.on_hand_over,
            Fill: self.on_fill,
        }
        #: By stream: the timestamp that was wanted last.
        self._wanted: dict[int, int] = {}
        #: The stream that is waited for, and since when nothing has come of it.
        self._waits_for: int | None = None
        self._waits_since = 0.0
        self._ticks = 0
        self._given = 0

    @property
    def handles(self) -> Sequence[type]:
        return tuple(self._handlers)

    # --------------------------------------------------------------------------------------------------
    # stepping

    def step(self, event: Event) -> list[Effect]:
        self.begin_step(event)
        match event:
            case Receive():
                handler = self._handlers[type(event.message)]
                handler(event, event.message)
            case Written():
                self._on_written(event)
            case TimerFired():
                self._on_tick()
            case ChannelReset():
                self._on_connected(event)
            case LogRead():
                self._on_log_read(event)
            case Asked():
                self._on_asked(event)
            case Start():
                self.incarnation = event.incarnation
                self.load(event.records)
                self._given = self.merge.mseq
                self.out.append(SetTimer(TICK, self.settings.tick_s))
            case Ended():
                pass  # a life that is over is removed when the merge waits for it
        self._merge_on()
        return self.end_step()

    def _on_written(self, event: Written) -> None:
        before = self.durable
        if self.take_written(event.ticket):
            for number, stream in self.streams.items():
                lengths = self.durable.length(number), self.durable.merged.get(number, 0)
                if lengths != (before.length(number), before.merged.get(number, 0)):
                    self.send_held(stream)
            self.tell_sealed()

    def _on_tick(self) -> None:
        self._ticks += 1
        self.out.append(SetTimer(TICK, self.settings.tick_s))
        self.write_merge()
        self._wanted.clear()
        for stream in self.streams.values():
            self._fetch_missing(stream)
            if stream.length > self.durable.length(stream.number) or self._ticks % 4 == 0:
                self.send_held(stream)
        if self.known.first_view > self.merge.view + 1 and self.group is not None:
            self.ask_for_snapshot(self.known.roots(), self._ticks)
        if self._ticks % 4 == 0:
            self.stop_copying()
        self.take_part(self._ticks)
        self.tell_sealed()
        if self._ticks % 4 == 0:
            self.tell_begun()
        self._notice_silence()

    def _on_connected(self, event: ChannelReset) -> None:
        self.connected[event.peer] = event.incarnation
        if event.peer == self._giver:
            self.stop_copying()
        for stream in self.streams.values():
            known = self.known.streams.get(stream.number)
            if known is not None and known.process == event.peer:
                self.send_held(stream)

    def _on_streams(self, event: Receive, message: Streams) -> None:
        """Membership's word. It never goes back."""
        self.registrar = event.source
        if message.revision <= self.known.state.revision:
            return
        before = self._places
        self.known = Known(message)
        self.changes.append((TOLD, message.SerializeToString()))
        there = set(self.streams)
        self.make_streams()
        self.skip_what_is_over()
        self.seal_streams()
        for number, stream in self.streams.items():
            # A broadcaster learns what is here when there is a new stream, or a new configuration to
            # acknowledge in.
            if number not in there or self._places != before:
                self.send_held(stream)
        self.take_part(self._ticks)

    @property
    def _places(self) -> tuple[str, int, int]:
        group = self.group
        return (group.group, group.defined.number, group.started.number) if group is not None else ("", 0, 0)

    # ---------------------------------------------------------------------------------------------------
    # streams

    def _on_entries(self, event: Receive, message: Entries) -> None:
        """[apbcast Fig.4 l.30-32]"""
        stream = self.streams.get(message.stream)
        if stream is None:
            return  # of a view that has not been heard of, or is over: its broadcaster hears of the length later
        if not message.fetched:
            if self.is_sealed(message.stream):
                return
            if message.stream == self._waits_for:
                self._waits_since = self.now
        stream.announced = max(stream.announced, message.announced)
        if len(stream.entries) < ENTRIES_MAX:
            stream.put(message.first, message.entries)
        if message.first > stream.length:
            self._fetch_missing(stream)
        elif message.fetched and message.entries and stream.needed > stream.length:
            self.out.append(Send((event.source,), Fetch(stream=stream.number, first=stream.length)))

    def _fetch_missing(self, stream: Stream) -> None:
        if stream.needed > stream.length and self.group is not None:
            holder = self.holder_of(stream.number, self._ticks)
            if holder is not None:
                self.fetch_from(stream.number, holder)

    # -----------------------------------------------------------------------------------------------------
    # merge

    def _merge_on(self) -> None:
        view = self.merge.view
        items = []
        for merged in self.merge.advance(self.streams, self.known.views):
            if merged.numbered is not None:
                self.log(merged.numbered)
                items.append(merged.numbered)
            if merged.entry.HasField("cast"):
                self._receipt(merged)
        if self.merge.view != view:
            self.write_merge()
        if items or self._given < self.merge.mseq:
            self._given = self.merge.mseq
            self.out.append(Hand(LEAF, Given(self.now, 0.0, items, self.merge.mseq)))
        self._want()
        self._note_waiting()

    def _receipt(self, merged: Merged) -> None:
        """Home roots only: what it rests on is on the disks of a majority of theirs (R22)."""
        known = self.known.streams.get(merged.stream)
        if known is None or not self.gives_receipts(merged.stream) or known.process not in self.connected:
            return
        receipt = Receipt(stream=merged.stream, index=merged.index, duplicate=merged.numbered is None)
        if merged.numbered is not None:
            receipt.mseq = merged.numbered.mseq
            receipt.places.extend(merged.numbered.places)
        self.out.append(Send((known.process,), receipt))

    def gives_receipts(self, stream: int) -> bool:
        group = self.group
        return self.is_home_of(stream) and group is not None and self.process in group.started.members

    def _want(self) -> None:
        """Of every broadcaster that is behind what is held here, at once (R14)."""
        for number, timestamp in (self.merge.wants(self.streams) if self.group is not None else {}).items():
            known = self.known.streams.get(number)
            if known is not None and known.process in self.connected and self._wanted.get(number, 0) < timestamp:
                self._wanted[number] = timestamp
                self.out.append(Send((known.process,), Want(stream=number, timestamp=timestamp)))

    def _note_waiting(self) -> None:
        number = self.merge.waits_for if self._has_work() else None
        if number != self._waits_for:
            self._waits_for, self._waits_since = number, self.now

    def _has_work(self) -> bool:
        """Whether the merge waits for one stream while there is something to be merged, or a view to begin."""
        if self.group is None:
            return False
        if self.merge.view + 1 in self.known.views or self.merge.wants(self.streams):
            return True
        turns = self.merge.turns.items()
        return any(n in self.streams and self.streams[n].length > turn.index for n, turn in turns)

    def _notice_silence(self) -> None:
        """Whoever the merge waits for without a word is to be removed (R16). A wrong guess costs a joining."""
        if self._waits_for is not None and self.now - self._waits_since > self.settings.silent_s:
            self.tell_registrar(Silent(stream=self._waits_for))

    # ------------------------------------------------------------------------------------------------- for
    # leaves

    def _on_asked(self, event: Asked) -> None:
        question = event.question
        if isinstance(question, AskHead):
            places = [PlaceInGroup(group=g, offset=self.merge.offsets.get(g, 0)) for g in question.groups]
            self.out.append(Send((event.source,), Head(mseq=self.merge.mseq, offsets=places)))
        else:
            count, groups = min(question.count, ANSWER), "/".join(question.groups)
            self.out.append(ReadLog(LOG, question.first, count, f"missed/{event.source}/{groups}"))

    def _on_log_read(self, event: LogRead) -> None:
        what, *rest = event.tag.split("/")
        if what != "missed":
            self.on_log_read(event)
            return
        to, groups = rest[0], rest[1:]
        read = items_of(event)
        items = [item for item in read if groups == [""] or any(place.group in groups for place in item.places)]
        through = event.position + len(read)
        missed = Missed(items=items, begins=event.begins, first=event.position, through=through)
        self.out.append(Send((to,), missed))

    # --------------------------------------------------------------------------- what drivers and checkers ask

    def retained_from(self) -> int:
        """Retention may drop what is before this number: all of it that is on disk."""
        return self.durable.state.mseq

    def buffers(self) -> dict[str, int]:
        return {
            "entries": sum(len(stream.entries) for stream in self.streams.values()),
            "streams": len(self.streams),
            "producers": len(self.merge.producers.known),
            "copied": len(self._copied),
            "handed": len(self._handed),
        }

    def check_invariants(self) -> None:
        for number, turn in self.merge.turns.items():
            stream = self.streams.get(number)
            if stream is None or turn.index < stream.base:
                raise InvariantBroken(f"stream {number} was forgotten before it was merged")
            if stream.end is None and turn.index > stream.length:
                raise InvariantBroken(f"stream {number} is merged past what is here")
