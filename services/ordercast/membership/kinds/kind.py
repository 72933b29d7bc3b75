"""How the members of a group change: what a kind of group has to say about that.

A protocol's trait (`Traits.members`) chooses the kind. What is common to all of them is in changes.py: one change
is prepared at a time, newcomers copy the log first, and a majority has to have what went before. Methods are
functions of the agreed state alone, and what is refused has changed nothing.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from ordercast.membership.kinds.members import Cluster
from ordercast.v1.membership_pb2 import Group, GroupProgress, Node


class ChangeKind(Protocol):
    @property
    def restores_lost(self) -> bool:
        """Whether a member that lost what it had stored is taken in again by a change, perhaps in its own place.

        Otherwise it is left out and comes back by itself.
        """
        ...

    def found(self, group: Group, nodes: Mapping[str, Node]) -> None:
        """Add what a new group needs besides its replicas and acceptors."""
        ...

    def seats(self, group: Group) -> list[str]:
        """The nodes that should be members of the group."""
        ...

    def newcomers(self, group: Group) -> list[str]:
        """The nodes that have to have the log before `next` begins."""
        ...

    def has_begun(self, group: Group) -> bool:
        """Whether a change has begun and is not over: it cannot be cancelled, and no other can be prepared."""
        ...

    def handing_over(self, group: Group) -> list[tuple[str, Collection[str]]]:
        """Named sets of nodes: nothing can follow unless a majority of each has what it stored."""
        ...

    def lost(self, group: Group) -> Collection[str]:
        """Those of these nodes that have lost what they stored."""
        ...

    def next_members(
        self, group: Group, leaving: str, newcomer: str, cluster: Cluster
    ) -> tuple[list[str], list[str]]:
        """Replicas and acceptors after a change in which one leaves, one comes, or both."""
        ...

    def begin(self, group: Group, incarnation_last: int) -> None:
        """What was prepared as `next` is so from now on."""
        ...

    def check_can_start(self, group: Group) -> None:
        """Refuse a record of members that have started while nobody can have."""
        ...

    def started(self, group: Group, reported: Callable[[str], GroupProgress]) -> list[str]:
        """The members that report that they have started, for the leader's round of changes to record."""
        ...

    def is_loss_from_now(self, group: Group, node: str, incarnation: int | None, *, before: bool) -> bool:
        """Whether a member that lost what it had stored lost something of the present configuration.

        `before` says that it was a member of the one before and is not known to have lost that; `incarnation` is
        as in `loss_of`.
        """
        ...
