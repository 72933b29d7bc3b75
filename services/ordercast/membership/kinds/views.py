"""Groups whose views follow each other as processes come and go (changing_views.py, view_duties.py).

A change is about the placement: `next` says what it will be, and begins by becoming it. Which views follow from
that, and when, is decided apart from it.
"""

from collections.abc import Callable, Collection, Mapping

from ordercast.core.members.views import completed_of, lost_in
from ordercast.membership.kinds.members import Cluster, called, exchanged
from ordercast.membership.refusals import precondition
from ordercast.v1.membership_pb2 import Group, GroupProgress, Node


class ViewChanges:
    """See kinds.kind.Kind."""

    restores_lost = False

    def found(self, group: Group, nodes: Mapping[str, Node]) -> None:
        """The first view is complete from the beginning: there is nothing before it."""
        group.placement[:] = group.replicas
        group.incarnations[:] = [nodes[name].incarnation for name in group.replicas]

    def seats(self, group: Group) -> list[str]:
        return sorted(group.placement)

    def newcomers(self, group: Group) -> list[str]:
        return [name for name in group.next.replicas if name not in group.placement]

    def has_begun(self, group: Group) -> bool:
        """Views change whenever processes come and go, and that is no change of where the group should be."""
        return False

    def handing_over(self, group: Group) -> list[tuple[str, Collection[str]]]:
        return [("members of the last complete view", completed_of(group).replicas)]

    def lost(self, group: Group) -> Collection[str]:
        return lost_in(group)

    def next_members(
        self, group: Group, leaving: str, newcomer: str, cluster: Cluster
    ) -> tuple[list[str], list[str]]:
        return exchanged(group.placement, leaving, newcomer), []

    def begin(self, group: Group, incarnation_last: int) -> None:
        group.placement[:] = group.next.replicas
        group.ClearField("next")

    def check_can_start(self, group: Group) -> None:
        """The record is about a view that is complete: these have installed it."""
        if group.HasField("previous"):
            raise precondition(
                f"view {group.configuration} of {called(group)} is not complete: nobody has installed it"
            )

    def started(self, group: Group, reported: Callable[[str], GroupProgress]) -> list[str]:
        """Nobody: which members have installed a view is recorded by the duties about views (view_duties.py)."""
        return []

    def is_loss_from_now(self, group: Group, node: str, incarnation: int | None, *, before: bool) -> bool:
        """Whoever lost something is left out of the next view, and comes back behind it."""
        return True
