"""Where groups live, as far as a session knows: a message is numbered by the cells of its groups.

Gateways tell when they are asked, and messages to groups of which that is not known wait. A group that was
deleted, and made again under its name, may live elsewhere: then a gateway refuses what is numbered by the cells of
before, and it is asked for anew.
"""

from collections.abc import Callable, Iterable
from typing import Generic

from ordercast.client.lane import H, Lane
from ordercast.client.types import Groups
from ordercast.v1.gateway_pb2 import GroupPlace

#: Groups of which it is remembered.
PLACES_MAX = 65_536


class Places(Generic[H]):
    def __init__(self, cell_of: Callable[[str], str | None] | None = None) -> None:
        """`cell_of`: for those who know it without asking."""
        self._cells: dict[str, str] = {}
        self._cell_of = cell_of or self._cells.get
        #: What waits, by its groups.
        self._waiting: dict[Groups, Lane[H]] = {}
        #: Of which groups it was asked on the stream in use, without an answer yet.
        self.asked: dict[str, None] = {}
        #: The gateway in use answers. One of an early version does not: all groups that it has are alone in their
        #: cells.
        self.is_told = True

    def knows(self, groups: Groups) -> bool:
        return all(self._cell_of(group) is not None for group in groups)

    def cells_of(self, groups: Groups) -> Groups:
        """Of groups that it knows."""
        return tuple(sorted({self._cell_of(group) or group for group in groups}))

    def wait(self, groups: Groups) -> Lane[H]:
        """A lane that is no lane yet, and closed."""
        lane = self._waiting.get(groups)
        if lane is None:
            lane = self._waiting[groups] = Lane((), groups, "", is_open=False, is_known=True)
        return lane

    def ask(self, count_max: int) -> list[str]:
        """What is to be asked now, and no more than so many."""
        unknown = [name for name in self._unknown() if name not in self.asked][:count_max]
        self.asked.update(dict.fromkeys(unknown))
        return unknown

    def _unknown(self) -> list[str]:
        names = dict.fromkeys(name for groups in self._waiting for name in groups)
        return [name for name in names if self._cell_of(name) is None]

    def told(self, places: Iterable[GroupPlace]) -> list[tuple[Lane[H], Groups]]:
        """Returns what need not wait any more, and the groups that it is for."""
        for place in places:
            self.asked.pop(place.group, None)
            if len(self._cells) >= PLACES_MAX:
                self._cells.clear()  # They are asked for again, one by one.
            self._cells[place.group] = place.cell or place.group
        found = [(lane, groups) for groups, lane in self._waiting.items() if self.knows(groups)]
        for _, groups in found:
            del self._waiting[groups]
        return found

    def assume(self) -> list[tuple[Lane[H], Groups]]:
        """What is known without being told."""
        return [] if self.is_told else self.told([GroupPlace(group=name) for name in self._unknown()])

    def forget(self, groups: Iterable[str]) -> None:
        """One of these is not where it was."""
        for group in groups:
            self._cells.pop(group, None)
