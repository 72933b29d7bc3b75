"""Mutants of what readers of several groups see. It is the same code for every protocol whose logs are merged."""

from functools import partial
from heapq import heapify
from typing import Any

from ordercast.core.merge import Merge, Merged, Part
from ordercast.core.place import Place
from ordercast.core.watermarks import Watermarks
from ordercast.sim.mutant import Mutant, register

OF_MERGING: list[Mutant] = []
mutant = partial(register, OF_MERGING)


@mutant("watermark-heard-before-its-entries", "a watermark holds behind a position", (Watermarks, "readable"))
def _of_another_replica(self: Watermarks, cell: str, ends: int) -> bytes:
    said = self._said.get(cell)
    return said[-1][1] if said else b""


@mutant("merged-message-comes-twice", "an envelope comes out once", (Merge, "_taken"))
def _one_part(self: Merge[Any], key: bytes) -> list[Part[Any]]:
    """The entries of an envelope one by one, as if each were an envelope of its own."""
    there = [source for source in self.sources.values() if source.ahead and source.ahead[0][0] == key]
    source = min(there, key=lambda source: source.rank)
    _, entry, size = source.ahead.popleft()
    source.size -= size
    self._heads.remove((key, source.rank))
    self._heads += [(source.ahead[0][0], source.rank)] if source.ahead else []
    heapify(self._heads)
    return [Part(source.name, entry)]


@mutant("slow-group-not-waited-for", "what comes out, all have passed", (Merge, "take"))
def _takes_what_is_there(self: Merge[Any], count_max: int) -> list[Merged[Any]]:
    found: list[Merged[Any]] = []
    while len(found) < count_max and (key := self._head()) is not None:
        found.append(Merged(key, self._taken(key)))
        self.given = key
    return found


@mutant("cursor-resumed-one-batch-late", "a reader goes on where it was", (Merge, "_is_left_out"))
def _late(self: Merge[Any], key: bytes) -> bool:
    return bool(self.start.order_key) and key <= self.start.order_key


@mutant("cursor-resumed-one-message-early", "a reader goes on where it was", (Place, "behind"))
def _early(self: Place) -> Place:
    return self
