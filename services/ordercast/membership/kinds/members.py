"""What all kinds of groups have: members, and a cluster to choose others from."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ordercast.v1.membership_pb2 import Configuration, Group, Node


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a change may look at."""

    nodes: Mapping[str, Node]
    groups: Collection[Group]


def called(group: Group) -> str:
    """In what users read."""
    return f"the cell {group.name}" if group.is_cell else f"the group {group.name}"


def members_of(configuration: Group | Configuration) -> list[str]:
    return sorted({*configuration.replicas, *configuration.acceptors})


def exchanged(members: Iterable[str], leaving: str, newcomer: str) -> list[str]:
    """The newcomer in the place of the leaving one, where that is; or besides, if nobody leaves."""
    members = list(members)
    if leaving and leaving not in members:
        return members
    left = [name for name in members if name != leaving]
    return [*left, newcomer] if newcomer else left
