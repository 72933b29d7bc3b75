"""Which casts the log of a virtually synchronous group shows, and whether it can be so.

An entry says where it comes from: its view, its caster, its number among the caster's casts there, and what it
comes after, in its own group and in others. Each log has to agree with that by itself; and what an entry comes
after in another group has to be in that group's log.

Readers are not shown entries without a new message, such as repetitions, though those are casts too and have a
position. So a number that was skipped is no mistake as long as there are enough positions that were skipped where
the cast could be. Where all entries are shown, nothing can hide.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ordercast.core.causal import CastPlace, CausalCodec
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import unpack_u64
from ordercast.core.view import FIRST
from ordercast.v1.sequencer_pb2 import LogEntry

#: An order key of these groups is the position in the log.
POSITION_BYTES = 8

#: (view, the caster's place in it)
Caster = tuple[int, int]


@dataclass(slots=True)
class Named:
    """A cast that an entry comes after: that caster's, up to this number."""

    group: str
    view: int
    member: int
    number: int

    def __str__(self) -> str:
        return f"{self.group}/{self.view}:{self.member}.{self.number}"


def place_in(entry: LogEntry, codec: CausalCodec) -> CastPlace:
    """Where it comes from. What cannot be read says nothing of that."""
    try:
        return codec.place_of(entry.protocol)
    except RemoteProtocolError:
        return CastPlace()


def named_by(place: CastPlace) -> Iterator[Named]:
    """Whatever precedes a cast, by its own word. Times without counts name a view, and no cast in it."""
    for time in place.past:
        for member, number in time.counts.items():
            yield Named(time.group, time.view, member, number)


def position_of(entry: LogEntry) -> int:
    return unpack_u64(entry.order_key)


@dataclass(slots=True)
class CastLog:
    """One group's log, entry by entry. It keeps a few numbers for each caster of each view."""

    group: str
    codec: CausalCodec
    #: From the group's first cast on. Otherwise retention has dropped some.
    is_whole: bool = True
    #: The position after the last entry.
    following: int = 0
    #: Of the first and the last entry.
    first_view: int = 0
    view: int = 0
    entries: int = 0
    #: The last number that was shown of each caster, and how many positions of its view were skipped before that.
    shown: dict[Caster, int] = field(default_factory=dict)
    _skipped_before: dict[Caster, int] = field(default_factory=dict)
    #: Positions that were skipped between two entries of one view; and between those of two views.
    _skipped: dict[int, int] = field(default_factory=dict)
    _bridges: list[tuple[int, int, int]] = field(default_factory=list)
    #: What entries came after although it had not been shown: it may not come any more.
    _named: dict[Caster, int] = field(default_factory=dict)

    def take(self, entry: LogEntry) -> list[str]:
        """The next one; what is wrong with it."""
        place = place_in(entry, self.codec)
        if not place.view or len(entry.order_key) != POSITION_BYTES:
            return [f"the entry at offset {entry.first_offset} says nothing of where it comes from"]
        position = position_of(entry)
        problems = []
        if self.entries and position < self.following:
            problems.append(f"position {position} comes behind {self.following - 1}")
        if place.view < self.view:
            problems.append(f"view {place.view} comes behind view {self.view}, at position {position}")
        self._skip(position, place.view)
        problems += self._check_number(place, position)
        problems += [text for named in named_by(place) for text in self._check_named(named, place, position)]
        self.following, self.view = position + 1, max(self.view, place.view)
        self.entries += 1
        return problems

    def lacks(self, named: Named, end: int = 0) -> bool:
        """It should be in this log, and cannot be there. The log goes up to `end`, or as far as it is shown."""
        if self._is_before(named):
            return False
        caster = (named.view, named.member)
        hidden_max = self._skipped_since(caster)
        if named.view >= self.view:
            hidden_max += max(0, end - self.following)
        return named.number - self.shown.get(caster, 0) > hidden_max

    # ----------------------------------------------------------------------------------------- one entry

    def _skip(self, position: int, view: int) -> None:
        if not self.entries:
            self.first_view = view
            if not self.is_whole:
                return  # What came before is not known, and nothing is said about it.
        count = position - self.following
        if count <= 0:
            return
        if self.entries and view == self.view:
            self._skipped[view] = self._skipped.get(view, 0) + count
        else:
            self._bridges.append((max(self.view, FIRST), view, count))

    def _skipped_in(self, view: int) -> int:
        """Positions at which a cast of that view may be hidden."""
        return self._skipped.get(view, 0) + sum(n for low, high, n in self._bridges if low <= view <= high)

    def _skipped_since(self, caster: Caster) -> int:
        return self._skipped_in(caster[0]) - self._skipped_before.get(caster, 0)

    def _check_number(self, place: CastPlace, position: int) -> Iterator[str]:
        """A caster's casts are in the log in its order, and none is left out before one that is there."""
        caster, number = (place.view, place.member), place.number
        name = f"{place.view}:{place.member}.{number}"
        last = self.shown.get(caster)
        if last is None and not self.is_whole and place.view == self.first_view:
            last = number - 1
        last = last or 0
        if number <= last:
            yield f"cast {name} at position {position} comes behind number {last} of its caster"
        elif number - last - 1 > self._skipped_since(caster):
            yield f"cast {name} at position {position} is there without number {last + 1} of its caster"
        if number <= self._named.get(caster, 0):
            yield f"cast {name} at position {position} comes behind one that comes after it"
        self.shown[caster] = max(last, number)
        self._skipped_before[caster] = self._skipped_in(place.view)

    def _check_named(self, named: Named, place: CastPlace, position: int) -> Iterator[str]:
        """A cast of the own group has to be in the log already."""
        if named.group != self.group:
            return
        where = f"the cast at position {position}, of view {place.view}, comes after {named}"
        if named.view > place.view:
            yield f"{where}, of a later view"
        elif self.lacks(named):
            yield f"{where}, which is not before it"
        caster = (named.view, named.member)
        if named.number > self.shown.get(caster, 0):
            self._named[caster] = max(named.number, self._named.get(caster, 0))

    def _is_before(self, named: Named) -> bool:
        """Where this log begins, it is not known what was there."""
        if self.is_whole:
            return False
        if not self.entries or named.view < self.first_view:
            return True
        return named.view == self.first_view and (named.view, named.member) not in self.shown
