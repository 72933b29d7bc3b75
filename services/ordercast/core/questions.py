"""What merged streams ask idle cells to pass: one question for all who wait, however many they are.

Each wait names a cell and an order key. The highest key is asked for, as it answers the others too. A question
goes out at once, the next about the same cell a moment later, and one without an answer is repeated, to other
replicas then: the one that was asked may be gone. Without I/O; `now` is an argument.
"""

from dataclasses import dataclass
from typing import NamedTuple

#: Between two questions about one cell: what is wanted meanwhile goes into the second.
PACE_S = 0.002
#: Without an answer after this time, somebody else is asked, too.
AGAIN_S = 0.5


class Question(NamedTuple):
    cell: str
    order_key: bytes
    #: It was asked before in vain: ask everybody.
    again: bool


@dataclass(slots=True)
class Open:
    wanted: bytes
    asked: bytes = b""
    #: When it was asked last, and since when it waits for an answer.
    asked_at: float = float("-inf")
    since: float = 0.0


class Questions:
    def __init__(self) -> None:
        self._open: dict[str, Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    def want(self, cell: str, order_key: bytes, now: float) -> None:
        found = self._open.get(cell)
        if found is None:
            self._open[cell] = Open(order_key, since=now)
        else:
            found.wanted = max(found.wanted, order_key)

    def passed(self, cell: str, order_key: bytes, now: float) -> None:
        found = self._open.get(cell)
        if found is None:
            return
        found.since = now  # somebody answers there
        if order_key >= found.wanted:
            del self._open[cell]

    def forget(self, cell: str) -> None:
        self._open.pop(cell, None)

    def due(self, now: float) -> list[Question]:
        """What is to be asked now; it counts as asked."""
        found = []
        for cell, open_ in self._open.items():
            if now < self._due_at(open_):
                continue
            again = now >= open_.since + AGAIN_S
            open_.asked, open_.asked_at = open_.wanted, now
            found.append(Question(cell, open_.wanted, again))
        return found

    def next_at(self) -> float | None:
        """When something will be due, if nothing else happens."""
        return min((self._due_at(open_) for open_ in self._open.values()), default=None)

    def _due_at(self, open_: Open) -> float:
        if open_.asked < open_.wanted:
            return open_.asked_at + PACE_S
        return open_.asked_at + AGAIN_S
