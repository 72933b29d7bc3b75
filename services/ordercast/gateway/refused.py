"""What a producer was refused and has to send again, in the order in which it meant it to come.

m1, m2 to {A, B} in one request, and m3, m4 to {A} in another, are refused: so many together are too many. The
client sends each alone. Once m1 is here, m2 still comes before m3. So a place is not where a request began, but
all of its sequences that did not come again yet.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ordercast.core.submission import Groups
from ordercast.gateway.rows import are_all_for

if TYPE_CHECKING:
    from ordercast.gateway.producer import WaitingRequest

#: Places that are remembered one by one. With more, everything new is refused until they come again.
REFUSED_MAX = 256


@dataclass(slots=True)
class RefusedPlace:
    """Sequences of one set of cells under one epoch, from `first` to before `end`, that are to come again."""

    cells: Groups
    epoch: int
    first: int
    end: int
    unordered: bool
    #: Sets of groups that its messages are for.
    targets: Sequence[Groups]

    def is_only_for(self, names: Collection[str]) -> bool:
        """Whether each of its messages is for one of these groups or cells."""
        return are_all_for(names, self.cells, self.targets)

    def overlaps(self, cells: Groups, epoch: int, first: int, end: int) -> bool:
        return (cells, epoch) == (self.cells, self.epoch) and first < self.end and self.first < end


class Refused:
    """In the order in which it is to come. A client that gives some of it up opens its set anew, or connects."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: list[RefusedPlace] = []

    def __len__(self) -> int:
        return len(self._places)

    def clear(self) -> None:
        self._places.clear()

    def is_before(self, item: "WaitingRequest") -> bool:
        """Whether something has to come again first."""
        for place in self._places:
            if place.cells == item.cells:
                if place.epoch == item.epoch and place.first < item.first_sequence:
                    return True
                if place.overlaps(*item.extent):
                    return False  # It brings the first of these, in whatever company.
            elif item.is_ordered_with(place.cells, place.unordered):
                return True
        return len(self._places) >= REFUSED_MAX

    def add(self, item: "WaitingRequest") -> None:
        """What came again, and is refused once more, keeps its place."""
        known = self._place_of(item)
        if known is not None:
            _, _, first, end = item.extent
            known.first, known.end = min(known.first, first), max(known.end, end)
            known.targets = list(dict.fromkeys((*known.targets, *item.rows.targets)))
        elif len(self._places) < REFUSED_MAX:
            self._places.append(RefusedPlace(*item.extent, item.unordered, item.rows.targets))

    def add_in_front(self, items: Iterable["WaitingRequest"]) -> None:
        """They were taken before what is here was refused, so they have to come again before it."""
        later, self._places = self._places, []
        for item in items:
            self.add(item)
        self._places = [*self._places, *later][:REFUSED_MAX]

    def _place_of(self, item: "WaitingRequest") -> RefusedPlace | None:
        return next((place for place in self._places if place.overlaps(*item.extent)), None)

    def came_again(self, item: "WaitingRequest") -> None:
        """Up to its end. The rest of a place stays where it is."""
        _, _, _, end = item.extent
        for place in self._places:
            if place.overlaps(*item.extent):
                place.first = end
        self._drop_empty()

    def never_comes(self, cells: Groups, epoch: int, first: int, count: int) -> None:
        """It is wrong for good: its numbers are free, and what follows it in its place closes up."""
        for place in self._places:
            if place.overlaps(cells, epoch, first, first + count):
                place.end -= count
        self._drop_empty()

    def forget(self, cells: Groups) -> None:
        """All of this set: it starts afresh."""
        self._places = [place for place in self._places if place.cells != cells]

    def forget_for(self, names: Collection[str]) -> None:
        """Whatever is for one of these groups or cells, and nothing else."""
        self._places = [place for place in self._places if not place.is_only_for(names)]

    def _drop_empty(self) -> None:
        self._places = [place for place in self._places if place.first < place.end]
