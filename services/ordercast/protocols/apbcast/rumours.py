"""Recursive gossip with bounded rounds [apbcast 6, Fig.6 GOSSIP&DELIVER].

A rumour is a message with its number. It begins at level L - 1, among the representatives of a top-level
subdivision, and is told there for c ln(processes) rounds, in each to F processes chosen by chance. Then it goes
one level down. Whoever has seen a number takes it no more.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ordercast.protocols.apbcast.address import Address
from ordercast.protocols.apbcast.dice import Dice
from ordercast.protocols.apbcast.settings import Rounds, Settings
from ordercast.v1.apbcast_pb2 import Numbered

#: Rumours that a process tells at once, of all levels. What comes beyond that it does not pass on.
RUMOURS_MAX = 4096


@dataclass(slots=True)
class Told:
    """What goes to one process in this round, at one level."""

    to: Address
    level: int
    #: The message, and the round that its receiver is to count from.
    rumours: list[tuple[Numbered, int]]


class Rumours:
    def __init__(self, settings: Settings, size: Callable[[int], int]) -> None:
        """`size`: how many processes a level's view names."""
        self.settings = settings
        self.size = size
        #: By level: number -> the message and the rounds behind it.
        self.levels: dict[int, dict[int, tuple[Numbered, int]]] = {k: {} for k in range(1, settings.levels)}

    def __contains__(self, mseq: int) -> bool:
        return any(mseq in rumours for rumours in self.levels.values())

    def __len__(self) -> int:
        return sum(len(rumours) for rumours in self.levels.values())

    def add(self, item: Numbered, level: int, rounds: int) -> None:
        """[apbcast Fig.6 l.22]"""
        if len(self) < RUMOURS_MAX:
            self.levels[level][item.mseq] = (item, rounds)

    def rounds_at(self, level: int) -> float:
        """[apbcast Fig.6 l.15]: processes count, and not parts (E7)."""
        return self.settings.rounds_factor * math.log(max(self.size(level), 1))

    def tell(
        self, targets: Callable[[int, Numbered], Sequence[Address]], dice: Dice
    ) -> tuple[list[Told], list[Numbered]]:
        """One round [apbcast Fig.6 l.11-19]: what goes to whom, and which messages are told enough here.

        `targets`: whom a level's view names besides this process, and who wants the message.
        """
        told: dict[tuple[int, Address], Told] = {}
        finished = []
        for level in range(self.settings.levels - 1, 0, -1):
            rumours, limit = self.levels[level], self.rounds_at(level)
            for mseq in sorted(rumours):
                item, rounds = rumours.pop(mseq)
                if rounds < limit:
                    rumours[mseq] = (item, rounds + 1)
                    for to in dice.some(targets(level, item), self.settings.fanout):
                        each = told.setdefault((level, to), Told(to, level, []))
                        each.rumours.append((item, self._said(rounds)))
                elif level > 1:
                    self.levels[level - 1][mseq] = (item, 0)  # [apbcast REPOSITION, Fig.6 l.4-5]
                else:
                    finished.append(item)
        return list(told.values()), finished

    def _said(self, rounds: int) -> int:
        """[apbcast Fig.6 l.17], and E7."""
        return rounds + 1 if self.settings.rounds is Rounds.BOUNDED else rounds
