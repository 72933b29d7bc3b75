"""What machines said of their cells' logs, as far as readers may hear it: see core.machine.Watermark.

A watermark is true for everybody as soon as it is said. But a reader may act on it only when it has read all
that comes before, and readers read what is on the disk. So each watermark waits here until the log on disk goes
as far as the machine's log went when it said so. After a restart nothing is here: whoever waits for a key asks
again.
"""

from collections import deque
from collections.abc import Callable

from ordercast.core.machine import Watermark

#: Of one cell: what waits for the disk. Of more than that, those in between are left out.
WAITING_MAX = 16


class Watermarks:
    def __init__(self) -> None:
        #: By cell: (position, key), both rising.
        self._said: dict[str, deque[tuple[int, bytes]]] = {}

    def note(self, watermark: Watermark) -> None:
        said = self._said.setdefault(watermark.group, deque())
        if said and watermark.key <= said[-1][1]:
            return
        if said and (watermark.position <= said[-1][0] or len(said) >= WAITING_MAX):
            said.pop()
        said.append((watermark.position, watermark.key))

    def readable(self, cell: str, ends: int) -> bytes:
        """The highest key that holds for whoever has read the log to its end, which is here; empty if there is
        none.
        """
        said = self._said.get(cell)
        if said is None:
            return b""
        while len(said) > 1 and said[1][0] <= ends:
            said.popleft()
        position, key = said[0]
        return key if position <= ends else b""

    def keep(self, is_here: Callable[[str], bool]) -> None:
        """Only what is about cells that are here."""
        self._said = {cell: said for cell, said in self._said.items() if is_here(cell)}
