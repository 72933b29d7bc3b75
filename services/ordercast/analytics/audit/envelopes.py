"""One range of one gateway's envelopes, over all groups: each has one key everywhere, and one place in
each group.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ordercast.analytics.audit.findings import DUPLICATE, KEY, Finding, Who, against, told, who
from ordercast.analytics.audit.packs import ENTRY, RANGE
from ordercast.analytics.audit.positions import rises

NOBODY = -1
PLACE = np.dtype([("entry", ENTRY), ("by", "<i4")])


@dataclass(slots=True)
class EnvelopeRange:
    #: What the first to speak said of each envelope, by group.
    places: dict[str, np.ndarray] = field(default_factory=dict)
    #: (node, incarnation), by number.
    replicas: list[tuple[str, int]] = field(default_factory=list)
    #: Their names, by id.
    groups: dict[str, str] = field(default_factory=dict)

    def add(
        self,
        domain: str,
        protocol: str,
        group: tuple[str, str],
        replicas: list[tuple[str, int]],
        of: np.ndarray,
        entries: np.ndarray,
    ) -> list[Finding]:
        """What replicas of one group, (id, name), said; in the order in which it was received."""
        for replica in replicas:
            if replica not in self.replicas:
                self.replicas.append(replica)
        numbers = np.array([self.replicas.index(replica) for replica in replicas])[of]
        group_id, self.groups[group_id] = group
        places = self.places.setdefault(group_id, _empty())
        slots = _counters(entries) % RANGE
        new = _first(slots) & (places["by"][slots] == NOBODY)
        places["entry"][slots[new]] = entries[new]
        places["by"][slots[new]] = numbers[new]
        found = list(self._twice(domain, group_id, numbers, entries, slots))
        if rises(protocol):
            found += self._keys(domain, group_id, np.unique(slots[new]))
        return found

    def _twice(
        self, domain: str, group_id: str, numbers: np.ndarray, entries: np.ndarray, slots: np.ndarray
    ) -> Iterator[Finding]:
        """At two positions, by one replica in one life. If another one says so, positions contradict anyway."""
        places = self.places[group_id][slots]
        is_twice = (places["by"] == numbers) & (places["entry"]["position"] != entries["position"])
        for row, count in told(np.flatnonzero(is_twice)):
            own = self._who(group_id, int(numbers[row]), entries[row])
            other = self._at(group_id, int(slots[row]))
            detail = f"{own.node} delivered it at {other.position} and at {own.position}"
            yield against(DUPLICATE, detail, domain, group_id, own, other, count)

    def _keys(self, domain: str, group_id: str, slots: np.ndarray) -> Iterator[Finding]:
        """Keys of what was new in this group, against those of all others; whoever was received later is told."""
        own = self.places[group_id][slots]
        for other_id in sorted(self.places):
            others = self.places[other_id][slots]
            is_wrong = (others["by"] != NOBODY) & (others["entry"]["key"] != own["entry"]["key"])
            for row, count in told(np.flatnonzero(is_wrong)):
                is_later = own["entry"]["offset"][row] > others["entry"]["offset"][row]
                ids = (group_id, other_id) if is_later else (other_id, group_id)
                one, other = (self._at(id_, int(slots[row])) for id_ in ids)
                detail = f"its key in {one.group} is not its key in {other.group}"
                yield against(KEY, detail, domain, ids[0], one, other, count)

    def _at(self, group_id: str, slot: int) -> Who:
        place = self.places[group_id][slot]
        return self._who(group_id, int(place["by"]), place["entry"])

    def _who(self, group_id: str, replica: int, entry: np.void) -> Who:
        return who(self.replicas[replica], self.groups[group_id], entry)


def _counters(entries: np.ndarray) -> np.ndarray:
    pairs = np.frombuffer(entries["envelope"].tobytes(), ">u8").reshape(-1, 2)
    return pairs[:, 1].astype(np.int64)


def _first(slots: np.ndarray) -> np.ndarray:
    """Which of them are not repetitions of an earlier one."""
    is_first = np.zeros(len(slots), bool)
    is_first[np.unique(slots, return_index=True)[1]] = True
    return is_first


def _empty() -> np.ndarray:
    places = np.zeros(RANGE, PLACE)
    places["by"] = NOBODY
    return places
