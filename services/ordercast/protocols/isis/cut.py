"""How a view ends: a function of what its surviving members contribute, the same wherever it is computed.

[BSS91 5.5] The union of what they have, less orphans. First what was ordered, in that order, as far as no position
is unknown to all; then the rest, by causality and key. A cast is lost if it was ordered and nobody has it; one
that follows what is lost is an orphan of an execution that the failures erased, and goes too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ordercast.protocols.causal.casts import Key
from ordercast.protocols.causal.flush import between, union
from ordercast.protocols.causal.times import Times


@dataclass(slots=True)
class Contribution:
    #: By member of the view: casts received, without a gap.
    received: list[int]
    #: Of those: how many everyone has, with positions, all below `settled`.
    settled_counts: list[int]
    settled: int
    epoch: int
    #: Positions from there on that it knows.
    places: dict[int, Key]


@dataclass(slots=True)
class Ending:
    first_position: int
    keys: list[Key]
    #: The highest that a contributor knows of.
    epoch: int


def needed(contributions: Sequence[Contribution]) -> list[Key]:
    """What has to be at hand to compute the end: what is not known to be everywhere."""
    most = max(contributions, key=lambda c: c.settled)
    return between(most.settled_counts, union(c.received for c in contributions))


def compute(
    contributions: Sequence[Contribution],
    group: str,
    view: int,
    times_of: Callable[[Key], Times],
    epoch_of: Callable[[Key], int],
) -> Ending:
    most = max(contributions, key=lambda c: c.settled)
    have = union(c.received for c in contributions)
    #: By member: casts that are in the log or in the cut so far.
    accepted = list(most.settled_counts)
    keys: list[Key] = []

    def is_acceptable(key: Key) -> bool:
        member, number = key
        if number != accepted[member] + 1 or number > have[member]:
            return False
        time = times_of(key).get(group)
        return time is None or time.is_covered(view, accepted)

    def accept(key: Key) -> None:
        accepted[key[0]] = key[1]
        keys.append(key)

    places: dict[int, Key] = {}
    for contribution in contributions:
        places.update(contribution.places)
    position = most.settled
    while position in places:
        if is_acceptable(places[position]):
            accept(places[position])
        position += 1
    while True:
        following = [(member, count + 1) for member, count in enumerate(accepted)]
        rest = [key for key in following if is_acceptable(key)]
        if not rest:
            return Ending(most.settled, keys, max(contribution.epoch for contribution in contributions))
        accept(min(rest, key=lambda key: (epoch_of(key), key)))
