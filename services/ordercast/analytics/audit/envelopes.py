"""One range of one gateway's envelopes, over all groups: each has one key everywhere, and one place in
each group.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ordercast.analytics.audit.findings import DUPLICATE, KEY, Finding, Who, against, told
from ordercast.analytics.audit.packs import ENTRY, RANGE
from ordercast.analytics.audit.positions import RISING

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
        group_id: str,
        group: str,
        node: str,
        incarnation: int,
        entries: np.ndarray,
    ) -> list[Finding]:
        if (node, incarnation) not in self.replicas:
            self.replicas.append((node, incarnation))
        replica = self.replicas.index((node, incarnation))
        self.groups[group_id] = group
        places = self.places.setdefault(group_id, _empty())
        slots = _counters(entries) % RANGE
        new = _first(slots) & (places["by"][slots] == NOBODY)
        places["entry"][slots[new]] = entries[new]
        places["by"][slots[new]] = replica
        found = list(self._twice(domain, group_id, replica, entries, slots))
        if protocol in RISING:
            found += self._keys(domain, group_id, replica, entries[new], slots[new])
        return found

    def _twice(
        self, domain: str, group_id: str, replica: int, entries: np.ndarray, slots: np.ndarray
    ) -> Iterator[Finding]:
        """At two positions, by one replica in one life. If another one says so, the positions contradict
        anyway.
        """
        places = self.places[group_id]
        is_twice = (places["by"][slots] == replica) & (places["entry"]["position"][slots] != entries["position"])
        for row, count in told(np.flatnonzero(is_twice)):
            own = self._who(group_id, replica, entries[row])
            other = self._who(group_id, replica, places["entry"][slots[row]])
            detail = f"{own.node} delivered it at {other.position} and at {own.position}"
            yield against(DUPLICATE, detail, domain, group_id, own, other, count)

    def _keys(
        self, domain: str, group_id: str, replica: int, entries: np.ndarray, slots: np.ndarray
    ) -> Iterator[Finding]:
        """Keys of what was new in this group, against those of all others."""
        for other_id, places in self.places.items():
            if other_id == group_id:
                continue
            others = places[slots]
            is_wrong = (others["by"] != NOBODY) & (others["entry"]["key"] != entries["key"])
            for row, count in told(np.flatnonzero(is_wrong)):
                own = self._who(group_id, replica, entries[row])
                other = self._who(other_id, int(others["by"][row]), others["entry"][row])
                detail = f"its key in {own.group} is not its key in {other.group}"
                yield against(KEY, detail, domain, group_id, own, other, count)

    def _who(self, group_id: str, replica: int, entry: np.void) -> Who:
        node, incarnation = self.replicas[replica]
        position, envelope, trace = int(entry["position"]), bytes(entry["envelope"]), bytes(entry["trace"])
        return Who(node, incarnation, self.groups[group_id], position, envelope, trace)


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
