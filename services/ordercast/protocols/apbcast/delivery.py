"""In which order a leaf hands messages to its program, and what it lacks [apbcast 6.3, 10.2].

Three kinds of leaves. All of them hand over in the order of numbers, and none a number twice:

* An *exact* one hands over every number, without a gap, as soon as there is none below it missing.
* A *live* one hands over what gossip brings; a number that it skipped is never handed over later.
* One with an *interest* in some groups hands over their messages alone. It sees gaps by (group, offset): the
  numbers between are other groups'. And it goes on only up to a *head*, a number with the offsets that its
  groups had reached there: else it could not know that nothing with a smaller number is still to come (R21).
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from ordercast.protocols.apbcast.settings import Leaves, Settings
from ordercast.v1.apbcast_pb2 import Head, Numbered


class Delivery(Protocol):
    #: Numbers below it are handed over, or never will be.
    next: int

    def has_seen(self, item: Numbered) -> bool:
        """Whether it is here already, or too late."""
        ...

    def take(self, item: Numbered) -> None: ...

    def due(self, rumoured: Iterable[int]) -> list[Numbered]:
        """What can be handed over now. `rumoured` are the numbers that are still being told here."""
        ...

    def missing(self, head: int) -> tuple[int, int] | None:
        """The numbers among which something is missing below the head: the first, and how many."""
        ...

    def begin_at(self, place: int) -> None:
        """What is before this is not to be had any more."""
        ...

    def held(self) -> int: ...


class Exact:
    def __init__(self, settings: Settings, first: int = 0) -> None:
        self.settings = settings
        self.next = first
        self.waiting: dict[int, Numbered] = {}

    def has_seen(self, item: Numbered) -> bool:
        return item.mseq < self.next or item.mseq in self.waiting

    def take(self, item: Numbered) -> None:
        """If too much waits behind a gap the highest are dropped: the lowest are needed first (E9)."""
        self.waiting[item.mseq] = item
        if len(self.waiting) > self.settings.hold:
            del self.waiting[max(self.waiting)]

    def due(self, rumoured: Iterable[int]) -> list[Numbered]:
        items = []
        while (item := self.waiting.pop(self.next, None)) is not None:
            items.append(item)
            self.next += 1
        return items

    def missing(self, head: int) -> tuple[int, int] | None:
        end = min(self.waiting, default=head)
        return (self.next, end - self.next) if end > self.next else None

    def begin_at(self, place: int) -> None:
        self.next = max(self.next, place)
        self.waiting = {mseq: item for mseq, item in self.waiting.items() if mseq >= self.next}

    def held(self) -> int:
        return len(self.waiting)


class Live(Exact):
    """[apbcast Fig.6 l.6-8]: in order, unless a lower number is still being told here; and skipping what never
    came.
    """

    def __init__(self, settings: Settings, first: int = 0) -> None:
        super().__init__(settings, first)
        #: How many rounds the lowest one has waited for what is missing below it.
        self._patience = 0

    def due(self, rumoured: Iterable[int]) -> list[Numbered]:
        lowest_told = min(rumoured, default=None)
        items: list[Numbered] = []
        while self.waiting:
            mseq = min(self.waiting)
            if lowest_told is not None and lowest_told < mseq:
                break
            if mseq > self.next and self._patience < self.settings.patience_rounds:
                self._patience += 1
                break
            self._patience = 0
            items.append(self.waiting.pop(mseq))
            self.next = mseq + 1
        return items


class Interested:
    def __init__(self, settings: Settings, groups: Sequence[str]) -> None:
        self.settings = settings
        #: The next offset of each group.
        self.offsets = dict.fromkeys(sorted(groups), 0)
        self.next = 0
        #: By number; and which numbers are at which place.
        self.waiting: dict[int, Numbered] = {}
        self.places: dict[tuple[str, int], int] = {}
        self.head = Head()
        self._due: list[Numbered] = []

    def has_seen(self, item: Numbered) -> bool:
        """A message has a place in each of its groups; each counts by itself, for here it is one of several."""
        places = [place for place in item.places if place.group in self.offsets]
        return item.mseq in self.waiting or all(place.offset < self.offsets[place.group] for place in places)

    def take(self, item: Numbered) -> None:
        self.waiting[item.mseq] = item
        for place in item.places:
            if place.group in self.offsets:
                self.places[place.group, place.offset] = item.mseq
        if len(self.waiting) > self.settings.hold:
            self._drop(max(self.waiting))

    def _drop(self, mseq: int) -> Numbered:
        item = self.waiting.pop(mseq)
        for place in item.places:
            self.places.pop((place.group, place.offset), None)
        return item

    def start_at(self, head: Head) -> None:
        """Without a past it begins there."""
        self.offsets.update({place.group: place.offset for place in head.offsets if place.group in self.offsets})
        self.next = head.mseq

    def learn(self, head: Head) -> None:
        """Of a root: numbers below it are given, and its groups had reached these offsets there."""
        told = {place.group for place in head.offsets}
        if head.mseq > self.head.mseq and told.issuperset(self.offsets):
            self.head = head

    def due(self, rumoured: Iterable[int]) -> list[Numbered]:
        if self.head.mseq > self.next and self.missing(self.head.mseq) is None:
            self._go_on_to(self.head.mseq)
        items, self._due = self._due, []
        return items

    def complete(self, first: int, through: int) -> None:
        """Somebody who has every number has given all that is wanted from `first` on and below `through`."""
        if first <= self.next < through:
            self._go_on_to(through)

    def _go_on_to(self, mseq: int) -> None:
        for each in sorted(number for number in self.waiting if number < mseq):
            item = self._drop(each)
            self._due.append(item)
            for place in item.places:
                if place.group in self.offsets:
                    self.offsets[place.group] = place.offset + 1
        self.next = mseq

    def missing(self, head: int) -> tuple[int, int] | None:
        """Below the head that a root has told. What numbers there are says nothing about these groups."""
        is_whole = all(
            (place.group, offset) in self.places
            for place in self.head.offsets
            for offset in range(self.offsets.get(place.group, place.offset), place.offset)
        )
        return None if is_whole else (self.next, self.head.mseq - self.next)

    def begin_at(self, place: int) -> None:
        """The offsets that went by are those of the next head."""
        self.next = max(self.next, place)
        for mseq in [mseq for mseq in self.waiting if mseq < self.next]:
            self._drop(mseq)
        for head in self.head.offsets:
            known = [o for (group, o) in self.places if group == head.group]
            self.offsets[head.group] = max(self.offsets[head.group], min(known, default=head.offset))

    def held(self) -> int:
        return len(self.waiting)


def delivery_of(settings: Settings, interest: Sequence[str]) -> Exact | Interested:
    if interest:
        return Interested(settings, interest)
    return Exact(settings) if settings.leaves is Leaves.EXACT else Live(settings)
