"""Gossip at the paper's size: thousands of processes in synchronous rounds, each with its real rumours.

A regular subdivision in a stable phase, as the paper analyses it [apbcast 8.1]: every subgroup has A parts, all
views are complete, and a round's messages arrive in that round. A process here is what is left of a leaf when
its views do not change and one message is under way: its `Rumours`, the very class that leaves have, and
whether it has the message. A test compares it with whole leaves on a small subdivision.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from random import Random

from ordercast.protocols.apbcast.address import Address
from ordercast.protocols.apbcast.dice import Dice
from ordercast.protocols.apbcast.rumours import Rumours
from ordercast.protocols.apbcast.settings import Rounds, Settings
from ordercast.v1.apbcast_pb2 import Numbered

#: The paper's [apbcast 9.1].
LEVELS, PARTS, REPRESENTATIVES, FANOUT = 3, 20, 3, 3
CRASHES, LOSSES = 0.1, 0.1


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of the simulation."""

    parts: int = PARTS
    representatives: int = REPRESENTATIVES
    fanout: int = FANOUT
    rounds: Rounds = Rounds.FIGURE
    crashes: float = CRASHES
    losses: float = LOSSES

    @property
    def processes(self) -> int:
        return self.parts**LEVELS

    @property
    def settings(self) -> Settings:
        return Settings(
            levels=LEVELS, representatives=self.representatives, fanout=self.fanout, rounds=self.rounds
        )


@dataclass(frozen=True, slots=True)
class Broadcast:
    """What one broadcast came to."""

    #: Of the processes that are up, those that got it.
    reached: float
    messages: int
    #: Until the last one had it; and until nobody told it any more.
    rounds_to_last: int
    rounds: int


class Subdivision:
    """A regular one. Who is where does not change, so views are made once and shared."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.settings = point.settings
        everyone = range(point.parts)
        self.addresses: list[Address] = list(product(everyone, everyone, everyone))
        first = range(min(point.representatives, point.parts))
        #: By prefix: an own subgroup; and who represents the parts of a top-level one.
        self._lowest: dict[Address, list[Address]] = {}
        for i, j in product(everyone, everyone):
            self._lowest[i, j] = [(i, j, k) for k in everyone]
        self._above: dict[int, list[Address]] = {i: [(i, j, k) for j in everyone for k in first] for i in everyone}
        self.roots = [(i, j, 0) for i in everyone for j in first]

    def view(self, address: Address, level: int) -> list[Address]:
        """Everybody that the level's view names."""
        return self._lowest[address[:2]] if level == 1 else self._above[address[0]]

    def broadcast(self, random: Random, bits: Callable[[Address, int], int] | None = None) -> Broadcast:
        """One message, whose number all roots have [apbcast 9.1]. Who is down was so from the beginning.

        `bits`: the chance of a process in a round; that of `random`, if nobody says.
        """
        point, roots = self.point, dict.fromkeys(self.roots)
        down = {a for a in self.addresses if a not in roots and random.random() < point.crashes}
        item = Numbered(mseq=0)
        telling: dict[Address, Rumours] = {}
        has: dict[Address, None] = {}
        for root in self.roots:
            self._take(root, item, LEVELS - 1, 0, telling, has)
        messages = rounds = last = 0
        while telling:
            rounds += 1
            sent: list[tuple[Address, int, int]] = []
            for address in sorted(telling):
                dice = Dice(random.getrandbits(64) if bits is None else bits(address, rounds))
                messages += self._tell(address, telling[address], dice, random, sent)
                if not len(telling[address]):
                    del telling[address]
            before = len(has)
            for to, level, behind in sent:
                if to not in down and to not in has:
                    self._take(to, item, level, behind, telling, has)
            if len(has) > before:
                last = rounds
        return Broadcast(len(has) / (len(self.addresses) - len(down)), messages, last, rounds)

    def _take(
        self,
        address: Address,
        item: Numbered,
        level: int,
        behind: int,
        telling: dict[Address, Rumours],
        has: dict[Address, None],
    ) -> None:
        has[address] = None
        rumours = telling[address] = Rumours(self.settings, lambda k: len(self.view(address, k)))
        rumours.add(item, level, behind)

    def _tell(
        self,
        address: Address,
        rumours: Rumours,
        dice: Dice,
        random: Random,
        sent: list[tuple[Address, int, int]],
    ) -> int:
        """One round of one process: how many messages it sends, and those of them that arrive."""

        def others(level: int, item: Numbered) -> list[Address]:
            return [other for other in self.view(address, level) if other != address]

        told, _ = rumours.tell(others, dice)
        for each in told:
            if random.random() >= self.point.losses:
                sent.append((each.to, each.level, each.rumours[0][1]))
        return len(told)


# ------------------------------------------------------------------------------------------------- the analysis


def reach_of(point: Point) -> float:
    """[apbcast 8.5]: the closed form of the expected reliability degree."""
    contacts = point.fanout * (1 - point.crashes) * (1 - point.losses)
    lowest = 1 / (1 + point.parts ** (1 - contacts))
    above = 1 - (1 - 1 / (1 + (point.representatives * point.parts) ** (1 - contacts))) ** point.representatives
    return float(lowest * above ** (LEVELS - 2))


def messages_of(point: Point) -> float:
    """[apbcast 8.4]: the sum, and not the line that is made of it there, which differs."""
    parts, telling = point.parts, point.representatives
    above = sum(telling * parts**level * math.log(telling * parts) for level in range(2, LEVELS))
    return point.fanout * (above + parts**LEVELS * math.log(parts))


def rounds_of(point: Point) -> float:
    """[apbcast 8.3]"""
    return (LEVELS - 2) * math.log(point.representatives * point.parts) + math.log(point.parts)


def known_of(point: Point) -> int:
    """[apbcast 8.2]"""
    return point.representatives * (point.parts - 1) * (LEVELS - 1) + point.parts


@dataclass(frozen=True, slots=True)
class Measured:
    point: Point
    runs: int
    reached: float
    #: Half of a confidence interval of 95 %, over runs.
    within: float
    messages: float
    rounds_to_last: float
    rounds: float


def measure(point: Point, runs: int, seed: int = 1, say: Callable[[], None] = lambda: None) -> Measured:
    """The mean of some broadcasts, each with other processes down."""
    subdivision = Subdivision(point)
    found = []
    for run in range(runs):
        found.append(subdivision.broadcast(Random(f"{seed}/{point}/{run}")))
        say()
    reached = [each.reached for each in found]
    mean = sum(reached) / runs
    spread = math.sqrt(sum((r - mean) ** 2 for r in reached) / max(runs - 1, 1))
    return Measured(
        point,
        runs,
        mean,
        1.96 * spread / math.sqrt(runs),
        sum(each.messages for each in found) / runs,
        sum(each.rounds_to_last for each in found) / runs,
        sum(each.rounds for each in found) / runs,
    )


def summary(processes: int, runs: int, say: Callable[[], None]) -> dict[str, str]:
    """With the size that is nearest: a regular subdivision has A ** L processes."""
    parts = max(2, round(processes ** (1 / LEVELS)))
    found = {"processes": str(parts**LEVELS)}
    for kind in Rounds:
        point = Point(parts=parts, rounds=kind)
        each = measure(point, runs, say=say)
        found |= {
            f"reached, rounds {kind}": f"{each.reached:.4f} ± {each.within:.4f} (8.5: {reach_of(point):.4f})",
            f"messages, rounds {kind}": f"{each.messages:.0f} (the sum of 8.4: {messages_of(point):.0f})",
            f"rounds, rounds {kind}": f"{each.rounds_to_last:.1f} until the last has it, {each.rounds:.1f} in all "
            f"(8.3: {rounds_of(point):.1f})",
        }
    return found
