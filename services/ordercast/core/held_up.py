"""What waits in a machine, for people who want to know why: which envelope, in which stage, since when, for whom.

Whoever asks changes nothing, and pays for the answer: machines look it up only then, among what they hold anyway.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest
from typing import Protocol, runtime_checkable

from ordercast.core.ids import group_name

#: Of one machine: nobody reads more, and a machine with a hundred thousand of them has better things to do.
HELD_UP_MAX = 100
#: Whom one envelope waits for. More say no more.
BLOCKERS_MAX = 16


@dataclass(frozen=True, slots=True)
class HeldUp:
    """One envelope, or messages that are in none yet."""

    #: The envelope's; nothing for messages that are in none.
    id: bytes
    #: As the machine calls them.
    groups: tuple[str, ...]
    #: By the name of its span (telemetry/schema/spans.toml), without what all begin with.
    stage: str
    #: By the machine's clock.
    since: float
    #: As in core.machine.Observe: "replica:n2", "message:0a0b...", "group:a#1", "view:a#1/7", "token:n1".
    blocked_on: tuple[str, ...] = ()


@runtime_checkable
class TellsHeldUp(Protocol):
    def held_up(self, count_max: int) -> list[HeldUp]:
        """What waits here, the oldest first, and not more than so many."""
        ...


def oldest(found: Iterable[HeldUp], count_max: int) -> list[HeldUp]:
    """In one order, however they were found."""
    return nsmallest(count_max, found, key=lambda each: (each.since, each.id, each.groups, each.stage))


def for_people(blocked_on: str) -> str:
    """Machines know groups by ids, people by names.

    >>> for_people("group:orders#17"), for_people("view:orders#17/3"), for_people("replica:n1")
    ('group:orders', 'view:orders/3', 'replica:n1')
    """
    kind, _, name = blocked_on.partition(":")
    if kind == "group":
        return f"{kind}:{group_name(name)}"
    if kind == "view":
        group, _, number = name.rpartition("/")
        return f"{kind}:{group_name(group)}/{number}"
    return blocked_on
