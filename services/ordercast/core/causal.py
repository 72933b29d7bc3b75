"""What an entry of a causal log says of the cast that it comes from, whatever protocol wrote it.

Whoever reads several logs in causal order, or judges whether logs can be so, compares these. Protocols whose trait
is `causal` have a `CausalCodec` that reads them from `LogEntry.protocol`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol as Interface


@dataclass(frozen=True, slots=True)
class Past:
    """Of one group: all from before the view, and in it so many casts of each member, by its place."""

    group: str
    view: int
    counts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class CastPlace:
    """Which cast of its group it is, and what it comes after."""

    #: 0 if the entry does not say where it comes from.
    view: int = 0
    #: The caster's place in the view, and the number among its casts there, from 1.
    member: int = 0
    number: int = 0
    #: It has its place in a total order of its group.
    is_total: bool = False
    #: In any groups, its own among them. A group may be named more than once.
    past: Sequence[Past] = field(default=())


class CausalCodec(Interface):
    """Both methods raise RemoteProtocolError if that is nothing to read."""

    def place_of(self, protocol: bytes) -> CastPlace:
        """Where an entry comes from whose `protocol` this is."""
        ...

    def in_log(self, group: str, protocol: bytes) -> Past | None:
        """What of the group's view is in a log, whose `DescribeReplicaResponse.protocol` this is.

        None if the replica does not say.
        """
        ...
