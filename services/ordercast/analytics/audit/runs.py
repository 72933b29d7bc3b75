"""Which positions of a group each replica has delivered, as runs without holes; a hole that stays is a gap.

Telemetry may come in another order than it was sent in, so a hole is told only when it has been there for a while. A
replica may begin anywhere: what was before is not known. After a restart it delivers again from where its disk is; what
lies between the last word of a process that was killed and the first of the next was delivered, but its telemetry died
with the process. That is told as `unseen`, and not as a violation.
"""

from dataclasses import dataclass, field

import numpy as np

from ordercast.analytics.audit.findings import GAP, UNSEEN, VIOLATION, Finding

#: So many holes of one life of a replica are waited for; beyond that the oldest is told at once.
HOLES_MAX = 1000
#: So many lives of one replica are remembered.
LIVES_MAX = 4


@dataclass(slots=True)
class Life:
    """One incarnation of a replica."""

    #: First and last positions, rising, with holes between them.
    runs: list[tuple[int, int]] = field(default_factory=list)
    #: The first positions of runs before which nothing is missing.
    begins: set[int] = field(default_factory=set)

    def add(self, first: int, last: int, begins: bool) -> None:
        if begins:
            self.begins.add(first)
        if self.runs and self.runs[-1][1] + 1 == first and not begins:
            self.runs[-1] = (self.runs[-1][0], last)
            return
        merged: list[tuple[int, int]] = []
        for run in sorted([*self.runs, (first, last)]):
            if merged and run[0] <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], run[1]))
            else:
                merged.append(run)
        self.runs = merged

    def holes(self) -> list[tuple[int, int]]:
        """What is missing between runs, first and last position."""
        pairs = zip(self.runs, self.runs[1:], strict=False)
        return [(one[1] + 1, two[0] - 1) for one, two in pairs if two[0] not in self.begins]

    def fill(self, hole: tuple[int, int]) -> None:
        """It was told: it is not looked at again."""
        self.add(*hole, begins=False)


@dataclass(slots=True)
class GroupRuns:
    group_id: str
    domain: str = ""
    group: str = ""
    #: By node and incarnation.
    lives: dict[tuple[str, int], Life] = field(default_factory=dict)
    #: Holes and when they were seen first, in milliseconds of the receipts' clock. The second incarnation is that of
    #: the life behind the hole.
    waiting: dict[tuple[str, int, int, int, int], int] = field(default_factory=dict)

    def add(self, node: str, incarnation: int, packs: np.ndarray, now_ms: int) -> None:
        life = self.lives.setdefault((node, incarnation), Life())
        for first, last, begins in packs.tolist():
            life.add(first, last, begins)
        known = sorted(key for key in self.lives if key[0] == node)
        for key in known[:-LIVES_MAX]:
            del self.lives[key]
        holes = self._holes(node)
        self.waiting = {
            hole: self.waiting.get(hole, now_ms) for hole in [*self.waiting, *holes] if hole[0] != node or hole in holes
        }

    def told(self, until_ms: int | None) -> list[Finding]:
        """Gaps that are there since `until_ms` or longer; None: all of them."""
        found = []
        for hole, since_ms in sorted(self.waiting.items(), key=lambda item: (item[1], item[0])):
            if until_ms is None or since_ms <= until_ms or len(self.waiting) > HOLES_MAX:
                found.append(self._finding(hole))
                del self.waiting[hole]
                node, incarnation, _, first, last = hole
                self.lives[node, incarnation].fill((first, last))
        return found

    def next_ms(self) -> int | None:
        """Since when the oldest hole is there."""
        return min(self.waiting.values(), default=None)

    def _holes(self, node: str) -> dict[tuple[str, int, int, int, int], None]:
        """In each life, and between one and the next; what another life has delivered is no hole."""
        lives = sorted((key[1], life) for key, life in self.lives.items() if key[0] == node)
        found: dict[tuple[str, int, int, int, int], None] = {}
        for at, (incarnation, life) in enumerate(lives):
            for first, last in life.holes():
                found[node, incarnation, incarnation, first, last] = None
            if at:
                reached = max(older.runs[-1][1] for _, older in lives[:at])
                begin = life.runs[0][0]
                if begin > reached + 1 and begin not in life.begins:
                    found[node, lives[at - 1][0], incarnation, reached + 1, begin - 1] = None
        return found

    def _finding(self, hole: tuple[str, int, int, int, int]) -> Finding:
        node, incarnation, next_incarnation, first, last = hole
        is_gap = incarnation == next_incarnation
        detail = (
            f"{node} delivered what is around, and not this"
            if is_gap
            else f"{node} ended before it could say that it had delivered this; the next life began behind it"
        )
        return Finding(
            VIOLATION if is_gap else UNSEEN,
            self.domain,
            self.group,
            self.group_id,
            first,
            last,
            GAP if is_gap else None,
            detail,
            last - first + 1,
            node,
            incarnation,
            other_incarnation=next_incarnation,
        )
