"""Getting what gossip did not bring: from a neighbour, then from a representative, then from a root (E9 in
README.md).

A leaf that lacks numbers waits a moment, for they may be under way, and then asks. Whom it asks goes up with
each question that did not help. It asks for a bounded range, and chance spreads the questions of many leaves.
"""

from collections.abc import Sequence

from ordercast.protocols.apbcast.dice import Dice
from ordercast.protocols.apbcast.settings import Settings
from ordercast.protocols.apbcast.views import Views

#: Numbers in one question.
RANGE_MAX = 64


class Recovery:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        #: The first number that is missing, since when, when to ask, and how often it was asked.
        self.first: int | None = None
        self.due_at = 0.0
        self.asked = 0
        #: Of a filtered range: everything below is here.
        self.through = 0

    def look(self, missing: tuple[int, int] | None, now: float, dice: Dice) -> tuple[int, int] | None:
        """The question to ask now, if there is one: the first number, and how many."""
        if missing is None:
            self.first = None
            return None
        first, count = missing
        if self.first != first:
            self.first, self.asked, self.through = first, 0, first
            self.due_at = now + self.settings.missed_s * (0.5 + dice.below(1000) / 1000)
        if now < self.due_at:
            return None
        self.asked += 1
        self.due_at = now + self.settings.missed_s * (0.5 + dice.below(1000) / 1000)
        begin = self.through if first <= self.through < first + count else first
        return begin, min(first + count - begin, RANGE_MAX)

    def whom(self, views: Views, roots: Sequence[str], dice: Dice) -> str | None:
        """The first time a neighbour, the second time somebody from further up, and then roots."""
        for level in range(1, views.levels) if self.asked <= 2 else ():
            others = [member.process for member in views.others(level)]
            if others and level >= self.asked:
                return dice.one(others)
        others = [root for root in roots if root != views.process]
        return dice.one(others) if others else None

    def answered(self, through: int) -> bool:
        """Whether there is more to ask at once."""
        further = through > self.through
        self.through = max(self.through, through)
        if further:
            self.asked, self.due_at = max(self.asked - 1, 0), 0.0
        return further
