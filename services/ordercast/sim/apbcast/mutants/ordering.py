"""Mutants of streams and of the merge."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ordercast.core.machine import Receive
from ordercast.protocols.apbcast.acknowledged import Acknowledged
from ordercast.protocols.apbcast.broadcaster import Broadcaster, Speaking
from ordercast.protocols.apbcast.merge import Merge, Merged, Turn, is_ahead
from ordercast.protocols.apbcast.root import Root
from ordercast.protocols.apbcast.root_base import RootBase
from ordercast.protocols.apbcast.root_snapshots import RootSnapshots
from ordercast.protocols.apbcast.streams import Stream, is_null
from ordercast.sim.mutant import Mutant, register
from ordercast.v1.apbcast_pb2 import MergeSnapshot, Publication, StreamEntry, StreamView, Want

ORDERING: list[Mutant] = []

_whose_turn, _take = Merge.whose_turn, Merge._take


@register(ORDERING, "by_receipt", "whatever has come is merged, whosever turn it is", (Merge, "whose_turn"))
def _by_receipt(self: Merge, streams: Mapping[int, Stream]) -> int | None:
    there = [n for n, turn in self.turns.items() if self.is_active(n, turn, streams)]
    held = [n for n in there if n in streams and streams[n].mergeable(self.turns[n].index) is not None]
    return held[0] if held else _whose_turn(self, streams)


@register(
    ORDERING,
    "ties_by_receipt",
    "of equal turns the one whose entry is here comes first",
    (Merge, "whose_turn"),
    seed=6,
)
def _ties_by_receipt(self: Merge, streams: Mapping[int, Stream]) -> int | None:
    first = _whose_turn(self, streams)
    if first is None:
        return None
    key = self.turns[first].key
    equal = [n for n, turn in self.turns.items() if turn.key == key and self.is_active(n, turn, streams)]
    held = [n for n in reversed(equal) if n in streams and streams[n].mergeable(self.turns[n].index) is not None]
    return held[0] if held else first


@register(ORDERING, "local_rate", "a bias is measured where it is needed", (Merge, "whose_turn"), seed=6)
def _local_rate(self: Merge, streams: Mapping[int, Stream]) -> int | None:
    for number, turn in self.turns.items():
        turn.bias = 100_000 // (1 + len(streams[number].entries) if number in streams else 1)
    return _whose_turn(self, streams)


@register(ORDERING, "null_stays", "a null does not rise", (Broadcaster, "_on_want"), seed=3)
def _null_stays(self: Broadcaster, speaking: Speaking, message: Want) -> None:
    if speaking.leaving is None and speaking.last < message.timestamp:
        speaking.entries.append(StreamEntry(timestamp=speaking.last))


@register(ORDERING, "null_numbered", "a null gets a number", (Merge, "_take"), seed=3)
def _null_numbered(self: Merge, number: int, turn: Turn, entry: StreamEntry) -> Merged:
    merged = _take(self, number, turn, entry)
    if is_null(entry):
        merged.numbered = self._number(StreamEntry(cast=Publication(producer=b"null", sequence=entry.timestamp)))
    return merged


@register(ORDERING, "duplicate_numbered", "a repeated message gets another number", (Merge, "_number"))
def _duplicate_numbered(self: Merge, entry: StreamEntry) -> Any:
    self.producers.known.pop(entry.cast.producer, None)
    return _number(self, entry)


_number = Merge._number


@register(ORDERING, "unannounced", "an entry is merged before its home majority has it", (Stream, "mergeable"))
def _unannounced(self: Stream, index: int) -> StreamEntry | None:
    return self.entry(index)


@register(ORDERING, "mark_skipped", "only the last of several views gets a mark", (Broadcaster, "_mark"))
def _mark_skipped(self: Broadcaster, speaking: Speaking) -> None:
    if speaking.leaving is None and speaking.marked < self.known.last_view:
        speaking.marked = self.known.last_view
        self._append(speaking, StreamEntry(mark=speaking.marked))


@register(
    ORDERING, "view_early", "a view begins while one of the last still may speak", (Merge, "advance"), seed=5
)
def _view_early(self: Merge, streams: Mapping[int, Stream], views: Mapping[int, StreamView]) -> Iterator[Merged]:
    while True:
        self.waits_for = number = self.whose_turn(streams)
        stream = streams.get(number) if number is not None else None
        entry = stream.mergeable(self.turns[stream.number].index) if stream is not None else None
        if number is None or entry is None:
            if not self._begin_next(views):
                return
            continue
        yield self._take(number, self.turns[number], entry)


@register(ORDERING, "past_the_end", "what is behind the end counts", (Merge, "is_active"), seed=5)
def _past_the_end(self: Merge, number: int, turn: Turn, streams: Mapping[int, Stream]) -> bool:
    stream = streams.get(number)
    is_over = stream is not None and stream.end is not None and turn.index >= stream.length
    return not turn.aside and not is_over


_begin_stream_at = RootBase.begin_stream_at


@register(ORDERING, "snapshot_shortens", "a snapshot takes away what is behind it", (RootSnapshots, "_adopt"))
def _snapshot_shortens(self: RootSnapshots) -> None:
    state = self._copying
    _adopt(self)
    for position in state.positions if state is not None else ():
        stream = self.streams.get(position.stream)
        if stream is not None:
            _begin_stream_at(self, stream, self.merge.turns[position.stream].index)


_adopt = RootSnapshots._adopt


@register(
    ORDERING,
    "snapshot_again",
    "a second snapshot is taken, ahead or not",
    (RootSnapshots, "is_worth_taking"),
    seed=7,
)
def _snapshot_again(self: RootSnapshots, state: Any) -> bool:
    return True


@register(
    ORDERING,
    "snapshot_without_log",
    "a snapshot counts before its log is here",
    (RootSnapshots, "on_snapshot"),
    seed=2,
)
def _snapshot_without_log(self: RootSnapshots, event: Receive, message: MergeSnapshot) -> None:
    if is_ahead(message.state, self.merge.state(whole=False), self.ends):
        self.begin_log_at(message.state.mseq)
        self.merge.adopt(message.state)
        self.write_merge()


@register(ORDERING, "receipt_from_anywhere", "any root gives receipts", (Root, "gives_receipts"))
def _receipt_from_anywhere(self: Root, stream: int) -> bool:
    return True


@register(
    ORDERING, "majority_of_all", "acknowledgements of different configurations add up", (Acknowledged, "by_group")
)
def _majority_of_all(self: Acknowledged, group: str) -> int:
    told: dict[str, int] = {}
    for key, numbers in self.numbers.items():
        for member, number in numbers.items() if key[0] == group else ():
            told[member] = max(number, told.get(member, 0))
    size = min((len(members) for key, members in self.members.items() if key[0] == group), default=1)
    reached: Sequence[int] = sorted(told.values(), reverse=True)
    return reached[size // 2] if len(reached) > size // 2 else 0
