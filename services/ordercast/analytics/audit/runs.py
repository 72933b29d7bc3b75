"""Which positions of a group each replica has delivered, as runs without holes; a hole that stays is a gap.

Telemetry may come in another order than it was sent in, so a hole is told only when it has been there for a while.
A replica may begin anywhere: what was before is not known. After a restart it delivers again from where its disk
is; what lies between the last word of a process that was killed and the first of the next was delivered, but its
telemetry died with the process. That is told as `unseen`, and not as a violation.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ordercast.analytics.audit.findings import GAP, UNSEEN, VIOLATION, Finding

#: So many holes of one life of a replica are waited for; beyond that the oldest is told at once.
HOLES_MAX = 1000
#: So many lives of one replica are remembered.
LIVES_MAX = 4


class Run(NamedTuple):
    """Positions without a hole, and the traces of the first and the last."""

    first: int
    last: int
    first_trace: bytes = b""
    last_trace: bytes = b""
    #: When the first was.
    time_ns: int = 0


@dataclass(slots=True)
class Life:
    """One incarnation of a replica."""

    #: First and last positions, rising, with holes between them.
    runs: list[Run] = field(default_factory=list)
    #: The first positions of runs before which nothing is missing.
    begins: set[int] = field(default_factory=set)

    def add(self, run: Run, begins: bool = False) -> None:
        if begins:
            self.begins.add(run.first)
        merged: list[Run] = []
        # Mostly it goes on where the last one ended: the others need not be looked at.
        at = len(self.runs)
        while at and self.runs[at - 1].last + 1 >= run.first:
            at -= 1
        for one in sorted([*self.runs[at:], run]):
            if merged and one.first <= merged[-1].last + 1:
                before = merged[-1]
                end = one if one.last > before.last else before
                merged[-1] = Run(before.first, end.last, before.first_trace, end.last_trace, before.time_ns)
            else:
                merged.append(one)
        self.runs[at:] = merged

    def holes(self) -> list[tuple[Run, Run]]:
        """The runs before and behind each hole in which something is missing."""
        pairs = zip(self.runs, self.runs[1:], strict=False)
        return [(one, two) for one, two in pairs if two.first not in self.begins]


class Hole(NamedTuple):
    node: str
    #: Of the lives before and behind it.
    incarnation: int
    next_incarnation: int
    first: int
    last: int
    #: The last delivery before it, and the first behind it.
    trace: bytes
    next_trace: bytes
    #: When that was.
    time_ns: int


@dataclass(slots=True)
class GroupRuns:
    group_id: str
    domain: str = ""
    group: str = ""
    #: By node and incarnation.
    lives: dict[tuple[str, int], Life] = field(default_factory=dict)
    #: When holes were seen first, in milliseconds of the receipts' clock.
    waiting: dict[Hole, int] = field(default_factory=dict)

    def add(self, node: str, incarnation: int, runs: np.ndarray, now_ms: int) -> None:
        life = self.lives.setdefault((node, incarnation), Life())
        for first, last, begins, *rest in runs.tolist():
            life.add(Run(first, last, *rest), begins)
        known = sorted(key for key in self.lives if key[0] == node)
        for key in known[:-LIVES_MAX]:
            del self.lives[key]
        holes = self._holes(node)
        others = {hole: since for hole, since in self.waiting.items() if hole.node != node}
        self.waiting = others | {hole: self.waiting.get(hole, now_ms) for hole in holes}

    def told(self, until_ms: int | None) -> list[Finding]:
        """Gaps that are there since `until_ms` or longer; None: all of them."""
        found = []
        for hole, since_ms in sorted(self.waiting.items(), key=lambda item: (item[1], item[0])):
            if until_ms is None or since_ms <= until_ms or len(self.waiting) > HOLES_MAX:
                found.append(self._finding(hole))
                del self.waiting[hole]
                # It is not looked at again.
                self.lives[hole.node, hole.incarnation].add(Run(hole.first, hole.last))
        return found

    def next_ms(self) -> int | None:
        """Since when the oldest hole is there."""
        return min(self.waiting.values(), default=None)

    def _holes(self, node: str) -> list[Hole]:
        """In each life, and between one and the next; what another life has delivered is no hole."""
        lives = sorted(
            ((key[1], life) for key, life in self.lives.items() if key[0] == node), key=lambda of: of[0]
        )
        found = []
        for at, (incarnation, life) in enumerate(lives):
            for one, two in life.holes():
                told = one.last_trace, two.first_trace, two.time_ns
                found.append(Hole(node, incarnation, incarnation, one.last + 1, two.first - 1, *told))
            if not at:
                continue
            reached = max((older.runs[-1] for _, older in lives[:at]), key=lambda run: run.last)
            begin = life.runs[0]
            if begin.first > reached.last + 1 and begin.first not in life.begins:
                told = reached.last_trace, begin.first_trace, begin.time_ns
                older = lives[at - 1][0]
                found.append(Hole(node, older, incarnation, reached.last + 1, begin.first - 1, *told))
        return found

    def _finding(self, hole: Hole) -> Finding:
        is_gap = hole.incarnation == hole.next_incarnation
        detail = (
            f"{hole.node} delivered what is around, and not this"
            if is_gap
            else f"{hole.node} ended before it could say that it had delivered this; its next life began behind it"
        )
        return Finding(
            VIOLATION if is_gap else UNSEEN,
            self.domain,
            self.group,
            self.group_id,
            hole.first,
            hole.last,
            GAP if is_gap else None,
            detail,
            hole.last - hole.first + 1,
            hole.node,
            hole.incarnation,
            trace=hole.trace.hex(),
            other_node=hole.node,
            other_incarnation=hole.next_incarnation,
            other_group=self.group,
            other_position=hole.last + 1,
            other_trace=hole.next_trace.hex(),
            time_ns=hole.time_ns,
        )
