"""A broadcaster: one stream of messages, nulls and marks to all roots of all root groups [apbcast Fig.5].

It runs in a gateway. Its life is a sequence of *streams*: it joins, and gets a number; it speaks until the
stream has an end, which membership or itself decides; what has no receipt by then goes into the next stream, in
its order. What it has sent it keeps until a majority of its home group has merged it durably.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.core.errors import InvariantBroken
from ordercast.core.machine import (
    ChannelReset,
    Effect,
    Event,
    Hand,
    Receive,
    Send,
    SetTimer,
    Start,
    TimerFired,
)
from ordercast.protocols.apbcast.acknowledged import Acknowledged, of_majority
from ordercast.protocols.apbcast.bias import check_rate
from ordercast.protocols.apbcast.events import LEAF, Given, MoveHome, NotTaken, Publish, Quit, Receipted
from ordercast.protocols.apbcast.registry import Known
from ordercast.protocols.apbcast.root_base import BATCH
from ordercast.protocols.apbcast.settings import Settings
from ordercast.v1.apbcast_pb2 import (
    BroadcasterStream,
    Entries,
    Held,
    JoinStreams,
    LeaveStreams,
    Numbered,
    Publication,
    Receipt,
    StreamEntry,
    Streams,
    Want,
)

TICK = "tick"


@dataclass(slots=True)
class Speaking:
    """One stream, from its joining to its end."""

    stream: BroadcasterStream
    #: The view whose mark was put last; that of the joining, to begin with.
    marked: int
    base: int = 0
    entries: deque[StreamEntry] = field(default_factory=deque)
    #: The timestamp of the last entry.
    last: int = 0
    announced: int = 0
    acknowledged: Acknowledged = field(default_factory=Acknowledged)
    #: By root: so many it has; so many were sent to it, if it is known where to go on; how far its merge is on
    #: disk.
    held: dict[str, int] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    merged: dict[str, int] = field(default_factory=dict)
    #: By index, messages without a receipt.
    open: dict[int, Publication] = field(default_factory=dict)
    #: Of them, those that are merged, as of the last tick.
    overdue: dict[int, None] = field(default_factory=dict)
    #: When more was announced last, or nothing was left to announce.
    announced_at: float = 0.0
    #: It has ended itself there: it says nothing more, and waits until membership has read it.
    leaving: LeaveStreams | None = None

    @property
    def length(self) -> int:
        return self.base + len(self.entries)


class Broadcaster:
    handles: Sequence[type] = (Streams, Held, Want, Receipt)

    def __init__(self, process: str, settings: Settings, home: str, rate: int) -> None:
        self.process = process
        self.settings = settings
        self.home = home
        self.rate = check_rate(rate)
        self.incarnation = 0
        self.now = 0.0
        self.known = Known(Streams())
        self.registrar = ""
        self.connected: dict[str, int] = {}
        #: How often it has joined.
        self.attempt = 0
        self.speaking: Speaking | None = None
        #: Messages that are in no stream yet.
        self.queue: deque[Publication] = deque()
        #: By producer, the lowest sequence that was refused and did not come again.
        self.refused: dict[bytes, int] = {}
        #: Microseconds from the own clock to that of the fastest broadcaster.
        self.offset_us = 0
        self.highest = 0
        self.quits = False
        self.out: list[Effect] = []

    # --------------------------------------------------------------------------------------------------
    # stepping

    def step(self, event: Event) -> list[Effect]:
        self.now = event.now
        self.out = []
        match event:
            case Receive():
                self._on_received(event)
            case Publish():
                self._on_publish(event)
            case TimerFired():
                self._on_tick()
            case ChannelReset():
                self._on_connected(event)
            case MoveHome():
                self.home = event.home
            case Quit():
                self.quits = True
            case Start():
                self.incarnation = event.incarnation
                self.out.append(SetTimer(TICK, self.settings.tick_s))
        self._speak()
        return self.out

    def _on_received(self, event: Receive) -> None:
        message = event.message
        if isinstance(message, Streams):
            self._on_streams(event.source, message)
        elif self.speaking is None or message.stream != self.speaking.stream.stream:
            return  # of a stream that is over
        elif isinstance(message, Held):
            self._on_held(self.speaking, event.source, message)
        elif isinstance(message, Want):
            self._on_want(self.speaking, message)
        elif isinstance(message, Receipt):
            self._on_receipt(self.speaking, event.source, message)

    def _on_connected(self, event: ChannelReset) -> None:
        self.connected[event.peer] = event.incarnation
        if self.speaking is not None:
            self.speaking.sent.pop(event.peer, None)
            self.speaking.held.pop(event.peer, None)

    def _on_tick(self) -> None:
        self.out.append(SetTimer(TICK, self.settings.tick_s))
        speaking = self.speaking
        if speaking is None:
            self._join()
            return
        if speaking.leaving is not None:
            self._tell_registrar(speaking.leaving)
            return
        self._repeat(speaking)
        self._leave_home(speaking)
        self._quit(speaking)

    # ------------------------------------------------------------------------------------- joining and leaving

    def _join(self) -> None:
        """[apbcast Fig.5 START, l.28-31]"""
        homes = [name for name, group in sorted(self.known.groups.items()) if group.started.number]
        if self.home not in homes and homes:
            self.home = homes[0]  # that group is gone
        if not self.quits and self.incarnation:
            join = JoinStreams(
                incarnation=self.incarnation,
                attempt=self.attempt,
                rate=self.rate,
                home=self.home,
                first=self.highest,
            )
            self._tell_registrar(join)

    def _tell_registrar(self, message: JoinStreams | LeaveStreams) -> None:
        if self.registrar in self.connected:
            self.out.append(Send((self.registrar,), message))

    def _on_streams(self, source: str, message: Streams) -> None:
        self.registrar = source
        if message.revision <= self.known.state.revision:
            return
        self.known = Known(message)
        speaking = self.speaking
        if speaking is not None and self._is_over(speaking):
            self._give_up(speaking)
        if self.speaking is None:
            self._begin()
        if self.speaking is not None:
            self._configure(self.speaking)
            self._mark(self.speaking)

    def _is_over(self, speaking: Speaking) -> bool:
        """The end is known, or was and is forgotten."""
        return all(stream.stream != speaking.stream.stream for stream in self.known.current())

    def _give_up(self, speaking: Speaking) -> None:
        """What has no receipt is repeated in the next stream; delivery removes what was there (E4)."""
        self.queue.extendleft(cast for _, cast in sorted(speaking.open.items(), reverse=True))
        self.speaking = None
        self.attempt += 1

    def _begin(self) -> None:
        for stream in self.known.current():
            if (stream.process, stream.incarnation, stream.attempt) == self._joining:
                # It was not in the view before, so its stream begins in the one that it is in first.
                views = [v for v in self.known.state.views if any(s.stream == stream.stream for s in v.streams)]
                self.speaking = Speaking(stream, views[0].number, last=stream.first, announced_at=self.now)
                self.speaking.sent = dict.fromkeys((r for r in self.known.roots() if r in self.connected), 0)
                self._catch_up_with(stream.first)

    @property
    def _joining(self) -> tuple[str, int, int]:
        return self.process, self.incarnation, self.attempt

    def _configure(self, speaking: Speaking) -> None:
        """It sends to the roots of all configurations, and counts in each by itself (R2, R5)."""
        for name, group in self.known.groups.items():
            started = group.started
            speaking.acknowledged.configure(name, started.number, started.members)
        roots = self.known.roots()
        for told in (speaking.held, speaking.sent, speaking.merged):
            for name in [name for name in told if name not in roots]:
                del told[name]

    def _mark(self, speaking: Speaking) -> None:
        """Into each view that it is in, and was in the one before (E4)."""
        while speaking.leaving is None and speaking.marked < self.known.last_view:
            speaking.marked += 1
            self._append(speaking, StreamEntry(mark=speaking.marked))

    def _leave_home(self, speaking: Speaking) -> None:
        """A home without a majority announces nothing. The stream ends at what another group has (R12)."""
        if speaking.announced >= speaking.length or not speaking.open:
            speaking.announced_at = self.now
        is_stuck = self.now - speaking.announced_at > self.settings.home_s
        if speaking.stream.home != self.home:
            self._move_to(speaking, self.home)
        for name in sorted(self.known.groups) if is_stuck else ():
            if speaking.leaving is None and name != speaking.stream.home:
                self._move_to(speaking, name)

    def _move_to(self, speaking: Speaking, name: str) -> None:
        """If a majority of that group has all that was announced. It keeps the stream."""
        group = self.known.groups.get(name)
        number = speaking.acknowledged.by(name, group.started.number) if group is not None else 0
        if group is not None and group.started.number and number >= speaking.announced:
            self.home = name
            self._end_at(speaking, number, name, group.started.number)

    def _end_at(self, speaking: Speaking, length: int, keeper: str, configuration: int) -> None:
        speaking.leaving = LeaveStreams(
            stream=speaking.stream.stream, length=length, keeper=keeper, configuration=configuration
        )
        self._tell_registrar(speaking.leaving)

    def _quit(self, speaking: Speaking) -> None:
        home = speaking.stream.home
        group = self.known.groups.get(home)
        if not self.quits or speaking.open or self.queue or speaking.leaving is not None or group is None:
            return
        if speaking.acknowledged.by(home, group.started.number) >= speaking.announced:
            self._end_at(speaking, speaking.announced, home, group.started.number)

    # ------------------------------------------------------------------------------------------------- speaking

    def _on_publish(self, event: Publish) -> None:
        producer, sequence = event.cast.producer, event.cast.sequence
        if self.quits:
            self._refuse(event.cast, "this broadcaster is leaving")
        elif len(self.queue) >= self.settings.window:
            self._refuse(event.cast, "too many messages wait for this broadcaster's window")
        elif event.first_open <= self.refused.get(producer, sequence) < sequence:
            self._refuse(event.cast, "an earlier message of this producer was refused")
        else:
            self.refused.pop(producer, None)
            self.queue.append(event.cast)

    def _refuse(self, cast: Publication, reason: str) -> None:
        """Nothing overtakes a refusal: the producer begins again with what was refused first."""
        self.refused[cast.producer] = min(cast.sequence, self.refused.pop(cast.producer, cast.sequence))
        if len(self.refused) > self.settings.producers:
            del self.refused[next(iter(self.refused))]
        self.out.append(NotTaken(cast, reason))

    def _speak(self) -> None:
        """Messages as far as the window goes, and all that roots have not been sent [apbcast Fig.5 l.7-10]."""
        speaking = self.speaking
        if speaking is None or speaking.leaving is not None:
            return
        while self.queue and len(speaking.open) < self.settings.window and self._has_room(speaking):
            cast = self.queue.popleft()
            speaking.open[speaking.length] = cast
            self._append(speaking, StreamEntry(cast=cast))
        for root in self.known.roots():
            self._send_on(speaking, root)

    def _has_room(self, speaking: Speaking) -> bool:
        """W messages, and as many nulls and marks between them, that the home has not merged durably."""
        return len(speaking.entries) < 2 * self.settings.window

    def _append(self, speaking: Speaking, entry: StreamEntry, wanted: int = 0) -> None:
        """Timestamps rise strictly (E3)."""
        entry.timestamp = max(speaking.last + 1, self._clock_us(), wanted)
        speaking.last = entry.timestamp
        speaking.entries.append(entry)

    def _clock_us(self) -> int:
        return max(0, int(self.now * 1e6) + self.offset_us)

    def _catch_up_with(self, timestamp: int) -> None:
        self.highest = max(self.highest, timestamp)
        self.offset_us = max(self.offset_us, timestamp - int(self.now * 1e6))

    def _send_on(self, speaking: Speaking, root: str) -> None:
        """Once it is known where to go on."""
        sent = speaking.sent.get(root)
        if root not in self.connected or sent is None:
            return
        while sent < speaking.length:
            first = max(sent, speaking.base)
            entries = [
                speaking.entries[i - speaking.base] for i in range(first, min(first + BATCH, speaking.length))
            ]
            self._say(speaking, root, first, entries)
            sent = first + len(entries)
        speaking.sent[root] = sent

    def _say(self, speaking: Speaking, root: str, first: int, entries: Sequence[StreamEntry] = ()) -> None:
        message = Entries(
            stream=speaking.stream.stream, first=first, entries=entries, announced=speaking.announced
        )
        self.out.append(Send((root,), message))

    def _on_want(self, speaking: Speaking, message: Want) -> None:
        """At once a null at or above it, unless it was passed already (E3)."""
        if speaking.leaving is None and speaking.last < message.timestamp:
            self._catch_up_with(message.timestamp)
            self._append(speaking, StreamEntry(), message.timestamp)

    # ------------------------------------------------------------------------------------------------- answers

    def _on_held(self, speaking: Speaking, root: str, message: Held) -> None:
        self._catch_up_with(message.highest)
        speaking.held[root] = message.length
        if root not in speaking.sent:
            speaking.sent[root] = message.length
        speaking.merged[root] = max(message.merged, speaking.merged.get(root, 0))
        if message.configuration:
            speaking.acknowledged.add(message.group, message.configuration, root, message.synced)
        self._announce(speaking)
        self._take_credit(speaking)

    def _announce(self, speaking: Speaking) -> None:
        """So many a majority of one configuration of the home group has on disk (E4, R2)."""
        announced = min(speaking.acknowledged.by_group(speaking.stream.home), speaking.length)
        if announced <= speaking.announced or speaking.leaving is not None:
            return
        speaking.announced, speaking.announced_at = announced, self.now
        for root in self.known.roots():
            # With what is under way to it, if there is something.
            if root in self.connected and speaking.sent.get(root, 0) >= speaking.length:
                self._say(speaking, root, speaking.length)

    def _take_credit(self, speaking: Speaking) -> None:
        """What a majority of the home group has merged durably it never asks for again."""
        group = self.known.groups.get(speaking.stream.home)
        if group is None:
            return
        merged = of_majority(group.started.members, speaking.merged)
        while speaking.base < merged and speaking.entries:
            speaking.entries.popleft()
            speaking.base += 1

    def _repeat(self, speaking: Speaking) -> None:
        """Every tick: what is announced, and what a root should have by now."""
        for root in self.known.roots():
            held, sent = speaking.held.get(root), speaking.sent.get(root)
            if root not in self.connected or held is None or sent is None:
                continue
            if held < sent:
                speaking.sent[root] = held
            elif speaking.open:
                self._say(speaking, root, speaking.length)
        self._say_again(speaking)

    def _say_again(self, speaking: Speaking) -> None:
        """A majority has merged it, so its receipts were lost. Said again it is a duplicate, and gets another
        one.
        """
        merged = [index for index in speaking.open if index < speaking.base]
        for index in [index for index in merged if index in speaking.overdue]:
            if self._has_room(speaking):
                cast = speaking.open.pop(index)
                speaking.open[speaking.length] = cast
                self._append(speaking, StreamEntry(cast=cast))
        speaking.overdue = dict.fromkeys(merged)

    def _on_receipt(self, speaking: Speaking, source: str, message: Receipt) -> None:
        """[apbcast Fig.5 l.15-16]"""
        cast = speaking.open.pop(message.index, None)
        if cast is None:
            return
        places = tuple((place.group, place.offset) for place in message.places)
        home = speaking.stream.home
        self.out.append(Receipted(cast, message.duplicate, message.mseq, places, source, home))
        if not message.duplicate:
            item = Numbered(mseq=message.mseq, cast=cast, places=message.places)
            self.out.append(Hand(LEAF, Given(self.now, 0.0, (item,))))

    # --------------------------------------------------------------------------- what drivers and checkers ask

    def buffers(self) -> dict[str, int]:
        speaking = self.speaking
        return {
            "queue": len(self.queue),
            "refused": len(self.refused),
            "entries": len(speaking.entries) if speaking is not None else 0,
            "open": len(speaking.open) if speaking is not None else 0,
        }

    def check_invariants(self) -> None:
        speaking = self.speaking
        if speaking is not None and speaking.announced > speaking.length:
            raise InvariantBroken("more is announced than was said")
