"""The configurations of a cluster's groups, as a gateway sees them: what is under way, and who is needed."""

import contextlib
from collections.abc import Collection, Sequence

import ordercast
from ordercast.client.errors import OrdercastError
from ordercast.core.members import kind_of, places_of
from ordercast.core.quorums import has_majority
from ordercast.v1.gateway_pb2 import DescribeClusterResponse
from ordercast.v1.membership_pb2 import Configuration, Group

#: A cluster in trouble does not answer; the next attempt may find a better gateway.
CALL_S_MAX = 3.0


def is_changing(group: Group) -> bool:
    return group.HasField("next") or group.HasField("previous")


def is_settled(group: Group) -> bool:
    """No change is under way, everybody is there who should be, and has a full part in the group."""
    is_whole = sorted(group.replicas) == sorted(places_of(group))
    return is_whole and not (is_changing(group) or group.starting or group.lost)


def configurations_of(group: Group) -> list[Group | Configuration]:
    """Those that count: the present one, the one before until it is left, and the one to come."""
    others = [(group.HasField("previous"), group.previous), (group.HasField("next"), group.next)]
    return [group, *(configuration for is_there, configuration in others if is_there)]


def can_do_without(group: Group, name: str) -> bool:
    """Whether a majority is left in every configuration."""
    return all(has_majorities(configuration, [name]) for configuration in configurations_of(group))


def has_majorities(configuration: Group | Configuration, away: Collection[str]) -> bool:
    return all(
        has_majority(members, [member for member in members if member not in away])
        for members in (list(configuration.replicas), list(configuration.acceptors))
        if members  # Views have no acceptors.
    )


def can_work(group: Group, away: Collection[str]) -> bool:
    """A majority of it is there, and of the configuration before, as long as that hands over."""
    needed: list[Group | Configuration] = [group]
    if group.HasField("previous"):
        needed.append(group.previous)
    return all(has_majorities(one, {*away, *one.lost}) for one in needed)


def text_of(group: Group) -> str:
    stage = (
        f"{group.next.number} is being prepared with {', '.join(group.next.replicas)}"
        if group.HasField("next")
        else f"{group.previous.number} is not left"
        if group.HasField("previous")
        else "nothing is under way"
    )
    away = [name for name in places_of(group) if name not in group.replicas]
    noun = kind_of(group).noun
    return (
        f"{group.name} is in {noun} {group.configuration} with {', '.join(group.replicas)}; {stage}; "
        f"not started: {', '.join(group.starting) or '-'}; lost: {', '.join(group.lost) or '-'}"
        + (f"; left out: {', '.join(away)}" if away else "")
    )


def cluster_of(gateways: Sequence[str], timeout_s: float = CALL_S_MAX) -> DescribeClusterResponse | None:
    """As some gateway sees it; None if nobody answers."""
    with contextlib.suppress(OrdercastError), ordercast.connect_sync(*gateways, timeout=timeout_s) as connection:
        return connection.cluster(shared_groups=True)
    return None
