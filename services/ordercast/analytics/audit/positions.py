"""One range of positions of one group: what stands at each, by whoever said it first, and who said it too.

Whoever says something else later contradicts the first, and both are named. It is not known who of them is right:
with three replicas, the one that contradicts two others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from ordercast.analytics.audit.findings import (
    AUDITED,
    DUPLICATE,
    KEY,
    OFFSET,
    ORDER,
    Finding,
    Who,
    against,
    told,
    who,
)
from ordercast.analytics.audit.packs import ENTRY, RANGE
from ordercast.core.protocol import Orders
from ordercast.protocols.catalogue import protocols

#: What stands at a position, and which of the known replicas said so; no replica: nobody has yet.
PLACE = np.dtype([("entry", ENTRY), ("by", "<i4")])
NOBODY = -1


@cache
def rises(protocol: str) -> bool:
    """Whether its keys rise along every group, and are one for all groups of an envelope.

    Of a protocol that is not installed here nothing is known.
    """
    known = protocols().get(protocol)
    return known is not None and known.traits.orders == Orders.ACROSS


@dataclass(slots=True)
class PositionRange:
    group_id: str
    number: int
    domain: str = ""
    group: str = ""
    protocol: str = ""
    #: Slot 0 is the last position of the range before.
    places: np.ndarray = field(default_factory=lambda: _empty())
    #: (node, incarnation), by number.
    replicas: list[tuple[str, int]] = field(default_factory=list)
    #: For each of them, which slots it has delivered.
    seen: list[np.ndarray] = field(default_factory=list)

    def add(self, replicas: list[tuple[str, int]], of: np.ndarray, entries: np.ndarray) -> list[Finding]:
        """What these replicas said, and which of them said each; in the order in which it was received.

        So it is always the same who was first, however what comes is cut into batches.
        """
        numbers = np.array([self._number(replica) for replica in replicas])[of]
        slots = entries["position"] - (self.number * RANGE - 1)
        known = self.places["by"][slots] != NOBODY
        new, firsts = np.unique(slots[~known], return_index=True)
        self.places["entry"][new] = entries[~known][firsts]
        self.places["by"][new] = numbers[~known][firsts]
        found = [*self._duplicates(numbers, entries, slots), *self._contradictions(numbers, entries, slots)]
        return [*found, *self._followers(new)]

    def close(self) -> Finding:
        """What was looked at, when nobody will say anything about it any more."""
        slots = np.flatnonzero(self.places["by"][1:] != NOBODY)
        first = self.number * RANGE
        nodes = {node for node, _ in self.replicas}
        return Finding(
            AUDITED,
            self.domain,
            self.group,
            self.group_id,
            first + int(slots[0]) if len(slots) else first,
            first + int(slots[-1]) if len(slots) else first,
            count=int(sum(seen[1:].sum() for seen in self.seen)),
            replicas=len(nodes),
        )

    def _number(self, replica: tuple[str, int]) -> int:
        if replica not in self.replicas:
            self.replicas.append(replica)
            self.seen.append(np.zeros(RANGE + 1, bool))
        return self.replicas.index(replica)

    def _duplicates(self, numbers: np.ndarray, entries: np.ndarray, slots: np.ndarray) -> Iterator[Finding]:
        seen = np.array(self.seen)[numbers, slots]
        is_first = np.zeros(len(slots), bool)
        is_first[np.unique(numbers * (RANGE + 1) + slots, return_index=True)[1]] = True
        for number in np.unique(numbers).tolist():
            self.seen[number][slots[numbers == number]] = True
        for row, count in told(np.flatnonzero((seen | ~is_first) & (slots > 0))):
            # What it said the first time is not kept if others had said it before: their word stands for it.
            own, other = self._who(int(numbers[row]), entries[row]), self._at(int(slots[row]))
            detail = f"{own.node} delivered position {own.position} twice in one life"
            yield against(DUPLICATE, detail, self.domain, self.group_id, own, other, count)

    def _contradictions(self, numbers: np.ndarray, entries: np.ndarray, slots: np.ndarray) -> Iterator[Finding]:
        places = self.places["entry"][slots]
        is_other = entries["envelope"] != places["envelope"]
        is_key = ~is_other & (entries["key"] != places["key"])
        is_offset = ~is_other & (
            (entries["first_offset"] != places["first_offset"]) | (entries["messages"] != places["messages"])
        )
        for violation, is_wrong in ((ORDER, is_other), (KEY, is_key), (OFFSET, is_offset)):
            # Slot 0 is told by the range that it belongs to.
            for row, count in told(np.flatnonzero(is_wrong & (slots > 0))):
                own, other = self._who(int(numbers[row]), entries[row]), self._at(int(slots[row]))
                detail = _difference(violation, own, other, entries[row], places[row])
                yield against(violation, detail, self.domain, self.group_id, own, other, count)

    def _followers(self, new: np.ndarray) -> Iterator[Finding]:
        """Pairs of neighbours of which one was not there before."""
        pairs = np.unique(np.concatenate([new, new + 1]))
        pairs = pairs[(pairs > 0) & (pairs <= RANGE)]
        pairs = pairs[(self.places["by"][pairs] != NOBODY) & (self.places["by"][pairs - 1] != NOBODY)]
        entries, before = self.places["entry"][pairs], self.places["entry"][pairs - 1]
        if rises(self.protocol):
            is_above = entries["key"] > before["key"]
            # Ties are broken by the id.
            for row in np.flatnonzero(entries["key"] == before["key"]).tolist():
                is_above[row] = bytes(entries["envelope"][row]) > bytes(before["envelope"][row])
            for row, count in told(np.flatnonzero(~is_above)):
                yield self._pair(ORDER, "its key is not above that of the position before", int(pairs[row]), count)
        follows = entries["first_offset"] == before["first_offset"] + before["messages"]
        for row, count in told(np.flatnonzero(~follows)):
            expected = int(before[row]["first_offset"] + before[row]["messages"])
            detail = f"its offset is {int(entries[row]['first_offset'])}, and {expected} would follow on"
            yield self._pair(OFFSET, detail, int(pairs[row]), count)

    def _pair(self, violation: str, detail: str, slot: int, count: int) -> Finding:
        return against(violation, detail, self.domain, self.group_id, self._at(slot), self._at(slot - 1), count)

    def _at(self, slot: int) -> Who:
        return self._who(int(self.places["by"][slot]), self.places["entry"][slot])

    def _who(self, replica: int, entry: np.void) -> Who:
        return who(self.replicas[replica], self.group, entry)


def _difference(violation: str, own: Who, other: Who, said: np.void, known: np.void) -> str:
    if violation == ORDER:
        return f"{own.node} and {other.node} have different envelopes there"
    if violation == KEY:
        return f"{own.node} and {other.node} have different keys for it"
    offsets = [f"{int(e['first_offset'])}, {int(e['messages'])} messages" for e in (said, known)]
    return f"its offset is {offsets[0]} at {own.node}, and {offsets[1]} at {other.node}"


def _empty() -> np.ndarray:
    places = np.zeros(RANGE + 1, PLACE)
    places["by"] = NOBODY
    return places
