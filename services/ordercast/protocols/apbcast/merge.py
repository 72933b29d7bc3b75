"""The Bias merge: one order of all streams, a function of streams and views alone [apbcast 5.4, Fig.4 l.33-44].

Whose turn it is has the smallest (last timestamp + bias), and of equals the smallest stream. Its next entry is
taken, whatever it is: a null only moves its timestamp, a mark sets the stream aside until the next view begins,
and a message that is none of a producer's repeated ones gets the next number, and in each of its groups the
next offset. A view begins when every stream of the one before is set aside or at its end.

Everything here is the same at all roots of all root groups that have got so far. So numbers need no agreement,
and no disk of their own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ordercast.protocols.apbcast.producers import Producers
from ordercast.protocols.apbcast.streams import Stream
from ordercast.v1.apbcast_pb2 import (
    BroadcasterStream,
    MergeState,
    Numbered,
    PlaceInGroup,
    StreamEntry,
    StreamPosition,
    StreamView,
)


@dataclass(slots=True)
class Turn:
    """Where the merge is in a stream."""

    bias: int
    index: int
    #: The timestamp of the entry before that, or the stream's first.
    last: int
    aside: bool = False

    @property
    def key(self) -> int:
        return self.last + self.bias


@dataclass(slots=True)
class Merged:
    stream: int
    index: int
    entry: StreamEntry
    #: If it is a message that was not there before.
    numbered: Numbered | None


class Merge:
    def __init__(self, producers_max: int) -> None:
        #: The view that has begun; none has if it is 0.
        self.view = 0
        self.turns: dict[int, Turn] = {}
        #: The next number.
        self.mseq = 0
        #: The next offset of each group.
        self.offsets: dict[str, int] = {}
        self.producers = Producers(producers_max)
        #: The stream whose entry is waited for.
        self.waits_for: int | None = None

    # ------------------------------------------------------------------------------------------------- merging

    def advance(self, streams: Mapping[int, Stream], views: Mapping[int, StreamView]) -> Iterator[Merged]:
        """As far as it goes with what is here [apbcast Fig.4 l.34-44]."""
        while True:
            self.waits_for = number = self.whose_turn(streams)
            if number is None:
                if not self._begin_next(views):
                    return
                continue
            stream, turn = streams.get(number), self.turns[number]
            entry = stream.mergeable(turn.index) if stream is not None else None
            if entry is None:
                return
            yield self._take(number, turn, entry)

    def whose_turn(self, streams: Mapping[int, Stream]) -> int | None:
        """The stream that the next entry comes from [apbcast Fig.4 l.35-36]; None if all are aside or ended."""
        there = (number for number, turn in self.turns.items() if self.is_active(number, turn, streams))
        return min(there, key=self.order_of, default=None)

    def order_of(self, number: int) -> tuple[int, int]:
        """Ties go to the smaller stream."""
        return self.turns[number].key, number

    def is_active(self, number: int, turn: Turn, streams: Mapping[int, Stream]) -> bool:
        stream = streams.get(number)
        end = stream.end if stream is not None else None
        return not turn.aside and (end is None or turn.index < end)

    def _take(self, number: int, turn: Turn, entry: StreamEntry) -> Merged:
        index = turn.index
        turn.index += 1
        turn.last = entry.timestamp
        numbered = None
        if entry.mark:
            turn.aside = True
        elif entry.HasField("cast"):
            numbered = self._number(entry)
        return Merged(number, index, entry, numbered)

    def _number(self, entry: StreamEntry) -> Numbered | None:
        """Messages only, and none that was there before (E5)."""
        cast = entry.cast
        if not self.producers.is_new(cast.producer, cast.sequence, self.mseq):
            return None
        places = []
        for group in cast.groups:
            offset = self.offsets.get(group, 0)
            self.offsets[group] = offset + 1
            places.append(PlaceInGroup(group=group, offset=offset))
        self.mseq += 1
        return Numbered(mseq=self.mseq - 1, cast=cast, places=places)

    def _begin_next(self, views: Mapping[int, StreamView]) -> bool:
        """[apbcast TRANSIT, Fig.4 l.45-56]"""
        view = views.get(self.view + 1)
        if view is None:
            return False
        before, self.turns = self.turns, {}
        for stream in view.streams:
            self.turns[stream.stream] = self._turn_in(stream, before.get(stream.stream))
        self.view = view.number
        return True

    def _turn_in(self, stream: BroadcasterStream, before: Turn | None) -> Turn:
        if before is None:
            return Turn(stream.bias_us, 0, stream.first)
        return Turn(stream.bias_us, before.index, before.last)

    # --------------------------------------------------------------------------------------- what it waits for

    def wants(self, streams: Mapping[int, Stream]) -> dict[int, int]:
        """The timestamps that others have to reach so that all that is held here can be merged (R14).

        An entry's turn is over when its stream's timestamp *before* it is the smallest. So others have to get
        past that, and not past its own.
        """
        active = {n: turn for n, turn in self.turns.items() if self.is_active(n, turn, streams)}
        needed = max((self._needed(turn, streams.get(number)) for number, turn in active.items()), default=0)
        found = {}
        for number, turn in active.items():
            stream = streams.get(number)
            reached = turn.last if stream is None else stream.last_timestamp(turn.last)
            if needed and reached + turn.bias < needed and not _holds_mark(turn, stream):
                found[number] = needed - turn.bias
        return found

    def _needed(self, turn: Turn, stream: Stream | None) -> int:
        """The key that all others have to reach, for the last of the stream's entries here that is no null."""
        if stream is None:
            return 0
        needed, last = 0, turn.last
        for index in range(turn.index, stream.length):
            entry = stream.entry(index)
            if entry is None:
                break
            if entry.WhichOneof("what") is not None:
                needed = last + turn.bias + 1
            last = entry.timestamp
            if entry.mark:
                break
        return needed

    # ------------------------------------------------------------------------------------------------ snapshots

    def state(self, *, whole: bool = True) -> MergeState:
        """Where it stands; with all that it remembers, if it is to be continued from there."""
        state = MergeState(view=self.view, mseq=self.mseq)
        for number, turn in self.turns.items():
            state.positions.append(
                StreamPosition(stream=number, index=turn.index, last=turn.last, aside=turn.aside, bias=turn.bias)
            )
        if whole:
            state.offsets.extend(
                PlaceInGroup(group=g, offset=offset) for g, offset in sorted(self.offsets.items())
            )
            state.producers.extend(self.producers.states())
        return state

    def adopt(self, state: MergeState) -> None:
        """Continue from there."""
        self.view, self.mseq = state.view, state.mseq
        self.offsets = {each.group: each.offset for each in state.offsets}
        self.producers.adopt(state.producers)
        self.turns = {p.stream: Turn(p.bias, p.index, p.last, p.aside) for p in state.positions}


def is_ahead(state: MergeState, of: MergeState, ends: Mapping[int, int]) -> bool:
    """Whether a snapshot is worth taking for who is there (R9).

    Two merges that differ in nulls and marks alone have the same number; so positions count, too, up to known
    ends.
    """
    if (state.view, state.mseq) != (of.view, of.mseq):
        return (state.view, state.mseq) > (of.view, of.mseq)
    own = {position.stream: position.index for position in of.positions}
    further = False
    for position in state.positions:
        here, there = own.get(position.stream, 0), position.index
        end = ends.get(position.stream)
        if end is not None:
            here, there = min(here, end), min(there, end)
        if there < here:
            return False
        further = further or there > here
    return further


def _holds_mark(turn: Turn, stream: Stream | None) -> bool:
    """What comes behind its mark belongs to the next view: nothing more of it is wanted in this one."""
    if stream is None:
        return False
    return any((entry := stream.entry(i)) is not None and entry.mark for i in range(turn.index, stream.length))
