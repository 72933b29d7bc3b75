"""Dice for a machine, thrown from the random bits that the driver gives it."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_MASK = 2**64 - 1


class Dice:
    """SplitMix64: the same bits, the same throws, in any process."""

    __slots__ = ("_state",)

    def __init__(self, bits: int) -> None:
        self._state = bits & _MASK

    def bits(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, limit: int) -> int:
        return (self.bits() * limit) >> 64

    def one(self, of: Sequence[T]) -> T:
        return of[self.below(len(of))]

    def some(self, of: Sequence[T], count: int) -> Sequence[T]:
        """So many different ones; all, if there are no more."""
        size = len(of)
        if size <= count:
            return of
        chosen: dict[int, None] = {}
        while len(chosen) < count:
            chosen[self.below(size)] = None
        return [of[index] for index in chosen]
