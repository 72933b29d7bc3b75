"""How a view ends [BSS91 5.5]: who contributes to the cut, and what has come of it.

Membership defines a view. From then on nothing of the one that ends, the last completed one, is sent, taken or
acknowledged; each of its surviving members contributes what it has. The cut follows from all contributions, and
what of it a protocol makes is its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ordercast.protocols.causal.casts import Key
from ordercast.protocols.causal.times import Times


class Contribution(Protocol):
    @property
    def behind(self) -> bool:
        """Its sender has not the whole past of the view that ends, and contributes nothing."""
        ...


C = TypeVar("C")
F = TypeVar("F", bound=Contribution)


@dataclass(slots=True)
class Attempt(Generic[C, F]):
    """One view that was defined, and what has come for its flush."""

    view: int
    #: The last completed one, which ends, and its members: counts are by their places.
    ends: int
    members: tuple[str, ...]
    #: Of those, who must contribute: survivors, and those that leave of their own will.
    contributors: tuple[str, ...]
    #: Of those, who computes the cut for all, if one does.
    coordinator: str
    #: Which life of each member of the new view is meant.
    lives: dict[str, int] = field(default_factory=dict)
    flushes: dict[str, F] = field(default_factory=dict)
    casts: dict[Key, C] = field(default_factory=dict)
    times: dict[Key, Times] = field(default_factory=dict)

    def add(self, key: Key, cast: C, times: Times) -> None:
        if key not in self.casts:
            self.casts[key] = cast
            self.times[key] = times

    @property
    def is_heard(self) -> bool:
        return all(name in self.flushes for name in self.contributors)

    def said(self) -> dict[str, F]:
        """Of those that have something to contribute."""
        return {name: flush for name, flush in self.flushes.items() if not flush.behind}


def contributors_of(members: Iterable[str], there: Sequence[str], lost: Sequence[str]) -> tuple[str, ...]:
    """Of the members of the view that ends: those that are there and have their disks."""
    return tuple(name for name in members if name in there and name not in lost)


def coordinator_of(contributors: Sequence[str], staying: Sequence[str]) -> str:
    """Somebody who is in the next view as well, if there is one."""
    first = [name for name in contributors if name in staying]
    return (first or list(contributors) or [""])[0]


def union(received: Iterable[Sequence[int]]) -> list[int]:
    """By member: casts that some contributor has. Each has all up to its own count, or everyone has them."""
    return [max(counts) for counts in zip(*received, strict=True)]


def between(low: Sequence[int], high: Sequence[int]) -> list[Key]:
    """By member the casts beyond the first counts, up to the others."""
    return [(member, number) for member, count in enumerate(high) for number in range(low[member] + 1, count + 1)]
