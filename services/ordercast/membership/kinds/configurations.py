"""Groups that keep their members until somebody asks for others.

A configuration begins with one command. Whoever hears of it is sealed for the one before, and starts with what
that hands over. The one before is left when a majority of the replicas and one of the acceptors have started.
"""

from collections.abc import Callable, Collection, Mapping

from ordercast.core.members import learners_of
from ordercast.membership.kinds.members import Cluster, called, exchanged, members_of
from ordercast.membership.placement import is_usable, place_one
from ordercast.membership.refusals import precondition
from ordercast.v1.membership_pb2 import Configuration, Group, GroupProgress, Node


class ConfigurationChanges:
    """See kinds.kind.Kind."""

    restores_lost = True

    def found(self, group: Group, nodes: Mapping[str, Node]) -> None:
        """Replicas and acceptors are all there is to a configuration."""

    def seats(self, group: Group) -> list[str]:
        return members_of(group)

    def newcomers(self, group: Group) -> list[str]:
        return learners_of(group)

    def has_begun(self, group: Group) -> bool:
        return group.HasField("previous")

    def handing_over(self, group: Group) -> list[tuple[str, Collection[str]]]:
        return [("replicas", group.replicas), ("acceptors", group.acceptors)]

    def lost(self, group: Group) -> Collection[str]:
        return group.lost

    def next_members(
        self, group: Group, leaving: str, newcomer: str, cluster: Cluster
    ) -> tuple[list[str], list[str]]:
        replicas = exchanged(group.replicas, leaving, newcomer)
        return replicas, _acceptors(group, leaving, newcomer, replicas, cluster)

    def begin(self, group: Group, incarnation_last: int) -> None:
        """Nobody has started in it."""
        previous = Configuration(
            number=group.configuration, replicas=group.replicas, acceptors=group.acceptors, lost=group.lost
        )
        group.configuration = group.next.number
        group.replicas[:] = group.next.replicas
        group.acceptors[:] = group.next.acceptors
        group.ClearField("next")
        group.ClearField("lost")
        group.previous.CopyFrom(previous)
        group.starting[:] = members_of(group)
        group.incarnation_before = incarnation_last

    def check_can_start(self, group: Group) -> None:
        """Members start as soon as they hear of the configuration."""

    def started(self, group: Group, reported: Callable[[str], GroupProgress]) -> list[str]:
        return [name for name in group.starting if reported(name).started]

    def is_loss_from_now(self, group: Group, node: str, incarnation: int | None, *, before: bool) -> bool:
        """Anything that it lost since the configuration began, or of which that cannot be excluded.

        A member that is not known to have started may have: then it has stamped and voted in this configuration,
        and must not start once more. But what was damaged when the configuration began is from before, and a life
        that is older than the configuration reports nothing else. It may be the very reason for the configuration,
        if the member is restored in its own place, and is reported until that is done.
        """
        is_old = incarnation is not None and incarnation <= group.incarnation_before
        return before or not (is_old and node in group.starting)


def _acceptors(
    group: Group, leaving: str, newcomer: str, replicas: Collection[str], cluster: Cluster
) -> list[str]:
    """Where the replicas are, if they were there; else they stay, but for the one on the node that leaves."""
    votes = bool(newcomer) and is_usable(cluster.nodes[newcomer], "consensus")
    if members_of(group) == sorted(group.replicas) == sorted(group.acceptors) and (votes or not newcomer):
        return list(replicas)
    if leaving not in group.acceptors:
        return list(group.acceptors)
    others = exchanged(group.acceptors, leaving, "")
    if votes and newcomer not in others:
        return [*others, newcomer]
    placed = place_one("consensus", others, cluster.nodes, cluster.groups, without=(leaving,), preferred=replicas)
    if placed is not None:
        return [*others, placed]
    if newcomer or not others:
        raise precondition(
            f"{leaving} is an acceptor of {called(group)}, and there is no other node with the service "
            "consensus that can take something new"
        )
    return others
