"""The literal definitions of the paper, by walking the graph."""

from ordercast.protocols.toto.ballot import INFINITE, UNHEARD, Key
from ordercast.protocols.toto.order import CHI
from ordercast.sim.toto.dags import Dag


class Literal:
    """[DKM93 4] Word by word, and slow."""

    def __init__(self, dag: Dag, phi: int) -> None:
        self.dag = dag
        self.n, self.phi = dag.size, phi
        self.there: dict[Key, None] = {}
        self.delivered: dict[Key, None] = {}
        self.is_closed = False

    def candidates(self) -> list[Key]:
        pending = [key for key in self.there if self.dag.agreed[key] and key not in self.delivered]
        return sorted(m for m in pending if not any(other != m and other in self.dag.past[m] for other in pending))

    def tail(self, m: Key) -> list[int]:
        return sorted({key[0] for key in self.there if m in self.dag.past[key]})

    def tail_of_all(self) -> list[int]:
        if self.is_closed:
            return list(range(self.n))
        return sorted({q for m in self.candidates() for q in self.tail(m)})

    def vt(self, m: Key) -> list[float | str]:
        result: list[float | str] = []
        for q in range(self.n):
            own = sorted(key for key in self.there if key[0] == q)
            behind = [key for key in own if any(c in self.dag.past[key] for c in self.candidates())]
            if q not in self.tail_of_all():
                result.append(UNHEARD)
            elif behind and m in self.dag.past[behind[0]]:
                result.append(behind[0][1])
            else:
                result.append(INFINITE)
        return result

    def nvt(self, m: Key) -> int:
        return sum(1 for entry in self.vt(m) if entry not in (UNHEARD, INFINITE))

    def _count(self, one: Key, other: Key, *, equal: bool) -> int:
        pairs = [(a, b) for a, b in zip(self.vt(one), self.vt(other), strict=True) if UNHEARD not in (a, b)]
        return sum(1 for a, b in pairs if a < b or (equal and a == b))  # type: ignore[operator]

    def win(self, one: Key, other: Key) -> int | str:
        if self._count(one, other, equal=False) > self.phi:
            return 1
        return 0 if self._count(other, one, equal=False) > self.phi else CHI

    def future(self, one: Key, other: Key) -> tuple[int | str, ...]:
        possible: list[int | str] = []
        if self._count(one, other, equal=True) < self.n - self.phi:
            possible.append(0)
        if self._count(other, one, equal=True) < self.n - self.phi:
            possible.append(1)
        if self.win(one, other) == CHI:
            possible.append(CHI)
        return tuple(possible)

    def deliverable(self) -> list[Key]:
        there = self.candidates()
        sources = [m for m in there if not any(o != m and 1 in self.future(o, m) for o in there)]
        internally = all(any(self.future(o, m) == (1,) for o in there) for m in there if m not in sources)
        followed = any(self.nvt(s) > self.phi for s in sources) and all(
            len(self.tail(s)) >= self.n - self.phi for s in sources
        )
        externally = followed or len(self.tail_of_all()) == self.n
        return sources if there and internally and externally else []

    def advance(self) -> list[tuple[Key, ...]]:
        found = []
        while keys := self.deliverable():
            self.delivered |= dict.fromkeys(keys)
            found.append(tuple(keys))
        return found

    def add(self, key: Key) -> list[tuple[Key, ...]]:
        self.there[key] = None
        return self.advance()

    def end(self) -> list[tuple[Key, ...]]:
        self.is_closed = True
        return self.advance()
