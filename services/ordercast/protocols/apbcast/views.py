"""Weakly consistent views: what a process knows of each level of the subdivision [apbcast 4, Fig.2].

It knows its immediate neighbours, and of every other part of its subgroups at most R representatives. Of each
process it knows (incarnation, counter), which only that process raises; so of two words about a process the
later one is known, and no clocks are compared. How old something is, is measured here, from its last rise. A
process that is gone leaves a tombstone, or gossip would revive it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ordercast.protocols.apbcast.address import Address, common_level, component, subgroup
from ordercast.protocols.apbcast.election import elect
from ordercast.v1.apbcast_pb2 import Neighbour

#: Tombstones that are kept. The oldest go first.
TOMBSTONES_MAX = 256
#: Groups that a representative may stand for by name. With more of them it stands for all.
INTEREST_MAX = 64


@dataclass(slots=True)
class Member:
    process: str
    address: Address
    incarnation: int
    counter: int
    #: When that rose last, by the own clock.
    risen_at: float
    interest: tuple[str, ...] = ()

    @property
    def stamp(self) -> tuple[int, int]:
        return self.incarnation, self.counter


class Views:
    def __init__(self, process: str, address: Address, representatives: int, interest: Sequence[str] = ()) -> None:
        self.process = process
        self.address = address
        self.levels = len(address)
        self.representatives = representatives
        self.own = Member(process, address, 0, 0, 0.0, tuple(interest))
        self.members: dict[Address, Member] = {}
        #: (incarnation, counter) up to which a process is gone, and since when that is known.
        self.tombstones: dict[Address, tuple[tuple[int, int], float]] = {}
        self._levels: dict[int, dict[int, list[Address]]] = {}

    # ----------------------------------------------------------------------------------------------- looking up

    def level(self, k: int) -> dict[int, list[Address]]:
        """view[k]: by component of that level, who represents that part; this process counts [apbcast 4.1]."""
        known = self._levels.get(k)
        if known is None:
            known = self._levels[k] = self._arrange(k)
        return known

    def _arrange(self, k: int) -> dict[int, list[Address]]:
        """[apbcast ORCHESTRATE, Fig.2 l.33-37]"""
        parts: dict[int, list[Address]] = {}
        for address in (*self.members, self.address):
            if common_level(address, self.address) <= k and component(address, k) != component(self.address, k):
                parts.setdefault(component(address, k), []).append(address)
        for infix, addresses in parts.items():
            parts[infix] = sorted(addresses)[: self.representatives]
        own = component(self.address, k)
        parts[own] = [self.address] if k == 1 else elect(self.level(k - 1), self.representatives)
        return dict(sorted(parts.items()))

    def everyone(self, k: int) -> list[Address]:
        """All processes that view[k] names, by address."""
        return [address for addresses in self.level(k).values() for address in addresses]

    def others(self, k: int) -> list[Member]:
        return [self.members[address] for address in self.everyone(k) if address != self.address]

    def size(self, k: int) -> int:
        """Processes, and not parts, limit the rounds of a rumour (E7)."""
        return len(self.everyone(k))

    def rank(self) -> int:
        """The highest level at which this process appears [apbcast Definition 4]."""
        rank = 1
        while rank < self.levels and self.address in self.level(rank + 1).get(
            component(self.address, rank + 1), ()
        ):
            rank += 1
        return rank

    def known(self) -> int:
        """How many processes, this one among them [apbcast 8.2]."""
        return len(self.members) + 1

    # ------------------------------------------------------------------------------------------------- changing

    def raise_own(self, incarnation: int, now: float) -> None:
        """With each update [apbcast Fig.2 l.4-5]."""
        own = self.own
        own.counter = own.counter + 1 if own.incarnation == incarnation else 1
        own.incarnation, own.risen_at = incarnation, now

    def merge(self, told: Iterable[Neighbour], now: float) -> None:
        """[apbcast Fig.2 l.26-32]"""
        for neighbour in told:
            address, stamp = tuple(neighbour.address), (neighbour.incarnation, neighbour.counter)
            if address == self.address or len(address) != self.levels:
                continue
            if neighbour.gone:
                self._bury(address, stamp, now)
            elif stamp > self._buried(address):
                self._rise(address, stamp, neighbour, now)
        self._prune()
        self._levels.clear()

    def _buried(self, address: Address) -> tuple[int, int]:
        return self.tombstones[address][0] if address in self.tombstones else (0, 0)

    def _rise(self, address: Address, stamp: tuple[int, int], told: Neighbour, now: float) -> None:
        member = self.members.get(address)
        if member is None or stamp > member.stamp:
            self.tombstones.pop(address, None)
            self.members[address] = Member(told.process, address, *stamp, now, tuple(told.interest))

    def _bury(self, address: Address, stamp: tuple[int, int], now: float) -> None:
        member = self.members.get(address)
        if member is not None and member.stamp <= stamp:
            del self.members[address]
        if stamp > self._buried(address) and (member is None or member.stamp <= stamp):
            self.tombstones[address] = (stamp, now)
            while len(self.tombstones) > TOMBSTONES_MAX:
                del self.tombstones[min(self.tombstones, key=lambda a: (self.tombstones[a][1], a))]

    def _prune(self) -> None:
        """Of each part of a subgroup but the lowest, R are enough: those with the smallest addresses."""
        parts: dict[Address, list[Address]] = {}
        for address in self.members:
            level = common_level(address, self.address)
            if level > 1:
                parts.setdefault(subgroup(address, level - 1), []).append(address)
        for addresses in parts.values():
            for address in sorted(addresses)[self.representatives :]:
                del self.members[address]

    def monitor(self, now: float, suspect_s: float, tombstone_s: float) -> None:
        """Who has not risen for too long is believed to be gone [apbcast Fig.2 MONITOR l.10-14, 4.3].

        Of others than immediate neighbours it is their own neighbours who notice; here it takes longer.
        """
        for address, member in list(self.members.items()):
            patience = suspect_s * (1 if common_level(address, self.address) == 1 else self.levels)
            if now - member.risen_at > patience:
                self._bury(address, member.stamp, now)
        for address, (_, since) in list(self.tombstones.items()):
            if now - since > tombstone_s:
                del self.tombstones[address]
        self._levels.clear()

    # ------------------------------------------------------------------------------------------------- telling

    def tell(self, other: Address) -> list[Neighbour]:
        """What is also relevant for that process: view[comm..L], and who of there is gone [apbcast Fig.2
        l.6-9].
        """
        common = max(common_level(other, self.address), 1)
        addresses = dict.fromkeys(address for k in range(common, self.levels + 1) for address in self.everyone(k))
        told = [self._as_told(self._at(address)) for address in addresses]
        if self.address not in addresses:
            told.append(self._as_told(self.own))
        told += [
            self._as_gone(a, stamp) for a, (stamp, _) in self.tombstones.items() if self._is_shared(a, common)
        ]
        return told

    def _at(self, address: Address) -> Member:
        return self.own if address == self.address else self.members[address]

    def _is_shared(self, address: Address, common: int) -> bool:
        """Only neighbours judge each other; their word goes up with the views."""
        return common_level(address, self.address) <= max(common, 1)

    def _as_told(self, member: Member) -> Neighbour:
        return Neighbour(
            process=member.process,
            address=member.address,
            incarnation=member.incarnation,
            counter=member.counter,
            interest=self._stands_for(member),
        )

    def _as_gone(self, address: Address, stamp: tuple[int, int]) -> Neighbour:
        return Neighbour(address=address, incarnation=stamp[0], counter=stamp[1], gone=True)

    def _stands_for(self, member: Member) -> Sequence[str]:
        """A representative wants what anybody below it wants [apbcast 10.1]; this process speaks for itself
        alone.
        """
        if member is not self.own or not self.own.interest:
            return member.interest
        level = max(1, self.rank() - 1)
        below = (m.interest for a, m in self.members.items() if common_level(a, self.address) <= level)
        return union([self.own.interest, *below])

    def neighbours(self) -> Iterator[Member]:
        """The immediate ones: of the own subgroup of level 1."""
        return (m for address, m in self.members.items() if common_level(address, self.address) == 1)

    def farewell(self) -> Neighbour:
        """LEAVE [apbcast Fig.2 l.45-47]."""
        return self._as_gone(self.address, self.own.stamp)


def union(interests: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Of several processes; empty if one of them wants everything, or together they want too much to be listed."""
    names: dict[str, None] = {}
    for interest in interests:
        if not interest:
            return ()
        names.update(dict.fromkeys(interest))
    return tuple(sorted(names)) if len(names) <= INTEREST_MAX else ()
