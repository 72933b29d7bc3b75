"""The configurations of a group: how the next one is made up, begins, and leaves the one before behind.

Who is replica and who is acceptor is a configuration, with a number. There is one change at a time:

    next       is being prepared: those of its replicas that do not have the log copy it. It can be cancelled.
    (current)  begins: whoever hears of it is sealed for the one before, and starts with what that hands over.
    previous   is left when a majority of the replicas and one of the acceptors have started.

What is on the disk of a member can be lost. Then it takes no part in the configuration (`lost`), for it has
forgotten what it promised there, and the next configuration takes it in again as a newcomer, or another in its
place. Majorities are still counted of all members: with too many lost ones there is no way on.

That is so in groups with configurations. What differs in others, such as those with views, is in kinds/: here is
what changes have in common.

Functions of the agreed state alone. What is refused has changed nothing.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ordercast.core.members import places_of
from ordercast.core.quorums import has_majority
from ordercast.membership.kinds import kind_of
from ordercast.membership.kinds.members import Cluster, called, exchanged, members_of
from ordercast.membership.names import quoted
from ordercast.membership.placement import is_usable, least_missed, place_one
from ordercast.membership.refusals import bad_argument, precondition
from ordercast.membership.settings import REPLICAS_MAX
from ordercast.v1.membership_pb2 import (
    GROUP_STATE_DELETING,
    REPLICA_CHANGE_ADD,
    REPLICA_CHANGE_REMOVE,
    REPLICA_CHANGE_REPLACE,
    ChangeReplicas,
    Configuration,
    Group,
    Node,
)


def everyone_of(group: Group) -> list[str]:
    """Whoever is, was or will be a member, as long as it matters."""
    configurations = {*members_of(group), *members_of(group.previous), *members_of(group.next)}
    return sorted({*configurations, *group.placement, *group.leaving})


def is_changing(group: Group) -> bool:
    return group.HasField("next") or group.HasField("previous")


# ---------------------------------------------------------------------------------------------- preparing


def prepared(group: Group, change: ChangeReplicas, cluster: Cluster) -> Configuration:
    """The configuration that the change asks for."""
    _check_arguments(change)
    _check_may_change(group)
    leaving = newcomer = ""
    if change.change == REPLICA_CHANGE_ADD:
        newcomer = _added(group, change.to, cluster)
    elif change.change == REPLICA_CHANGE_REMOVE:
        leaving = _removed(group, change.node, cluster)
    else:
        leaving = change.node or least_missed(group, cluster.nodes, cluster.groups)
        _check_member(group, leaving, kind_of(group).seats(group))
        newcomer = _replacement(group, leaving, change.to, cluster)
    if leaving == newcomer:
        replicas, acceptors = list(group.replicas), list(group.acceptors)
    else:
        replicas, acceptors = kind_of(group).next_members(group, leaving, newcomer, cluster)
    return Configuration(number=group.configuration + 1, replicas=sorted(replicas), acceptors=sorted(acceptors))


def _check_arguments(change: ChangeReplicas) -> None:
    if change.change not in (REPLICA_CHANGE_ADD, REPLICA_CHANGE_REMOVE, REPLICA_CHANGE_REPLACE):
        raise bad_argument("a change adds, removes or replaces a replica: it does not say which")
    if change.change == REPLICA_CHANGE_ADD and change.node:
        raise bad_argument("a replica that is added takes nobody's place: `to` says where it goes")
    if change.change == REPLICA_CHANGE_REMOVE and change.to:
        raise bad_argument("a replica that is removed goes nowhere: `node` says which one")


def _check_may_change(group: Group) -> None:
    if group.state == GROUP_STATE_DELETING:
        raise precondition(f"{called(group)} is being deleted")
    if group.HasField("next"):
        raise precondition(
            f"another change of {called(group)} is under way: configuration {group.next.number} is being "
            "prepared; wait until it is done, or cancel it"
        )
    if kind_of(group).has_begun(group):
        raise precondition(
            f"another change of {called(group)} is under way: configuration {group.configuration} has "
            "begun, and a majority has yet to start in it; wait until it is done"
        )
    check_has_survivors(group)


def has_survivors(group: Group) -> bool:
    """A majority hands over what it has, or nothing can follow: the lost ones may have decided something."""
    return all(
        has_majority(members, _left_of(group, members)) for _, members in kind_of(group).handing_over(group)
    )


def _left_of(group: Group, members: Iterable[str]) -> list[str]:
    lost = kind_of(group).lost(group)
    return [name for name in members if name not in lost]


def check_has_survivors(group: Group) -> None:
    for kind, members in kind_of(group).handing_over(group):
        left = _left_of(group, members)
        if not has_majority(members, left):
            raise precondition(
                f"{len(members) - len(left)} of the {len(members)} {kind} of {called(group)} lost what "
                "they had stored: without a majority there is nothing that a new configuration could start from"
            )


def _check_member(group: Group, node: str, members: Iterable[str]) -> None:
    if node not in members:
        raise precondition(f"{quoted(node)} holds no replica of {called(group)}")


def _added(group: Group, to: str, cluster: Cluster) -> str:
    count = len(places_of(group))
    if count >= REPLICAS_MAX:
        raise precondition(f"{called(group)} has {count} replicas: no group has more")
    return _newcomer(group, "", to, cluster)


def _removed(group: Group, node: str, cluster: Cluster) -> str:
    leaving = node or least_missed(group, cluster.nodes, cluster.groups)
    _check_member(group, leaving, places_of(group))
    if len(places_of(group)) == 1:
        raise precondition(f"{leaving} holds the only replica of {called(group)}: delete the group instead")
    return leaving


def _replacement(group: Group, leaving: str, to: str, cluster: Cluster) -> str:
    """Itself, if what it had is lost and it can start afresh, or nobody else can."""
    restores_lost = kind_of(group).restores_lost
    if to == leaving and not restores_lost:
        raise precondition(
            f"{leaving} needs no change to be a replica of {called(group)}: one that lost what it had "
            "stored comes back by itself when a view without it is complete"
        )
    is_lost = leaving in group.lost and restores_lost
    if to == leaving and not is_lost:
        raise precondition(
            f"{leaving} has what it stored of {called(group)}: only a member that lost it starts afresh "
            "in its own place"
        )
    if to:
        return to if to == leaving else _newcomer(group, leaving, to, cluster)
    service = "sequencer" if leaving in places_of(group) else "consensus"
    if is_lost and is_usable(cluster.nodes[leaving], service):
        return leaving
    found = _place(group, leaving, cluster)
    if found is None and not is_lost:
        raise _no_place(group)
    return found or leaving


def _newcomer(group: Group, leaving: str, to: str, cluster: Cluster) -> str:
    """Where the user says, if that can be, or else where there is the most room."""
    if not to:
        found = _place(group, leaving, cluster)
        if found is None:
            raise _no_place(group)
        return found
    # Who holds no replica is an acceptor, and another takes that over.
    replicas = places_of(group)
    is_replica = not leaving or leaving in replicas
    what, service, members = (
        ("a replica", "sequencer", replicas) if is_replica else ("an acceptor", "consensus", group.acceptors)
    )
    node = cluster.nodes.get(to)
    if node is None:
        raise precondition(f"there is no node {quoted(to)}")
    if to in members:
        raise precondition(f"{to} holds {what} of {called(group)} already")
    if service not in node.services:
        raise precondition(f"{to} does not run the service {service}")
    if not is_usable(node, service):
        raise precondition(f"{to} can take nothing new: {_why_unusable(node)}")
    return to


def _why_unusable(node: Node) -> str:
    marks = (
        (node.disk_lost, "its disk is given up, and it has not come back with another"),
        (node.ended, "it is down"),
        (node.suspected, "it does not answer"),
        (node.draining, "it is being drained"),
        (node.read_only, "its disk is full"),
    )
    return next(why for is_so, why in marks if is_so)


def _place(group: Group, leaving: str, cluster: Cluster) -> str | None:
    nodes = cluster.nodes
    replicas = places_of(group)
    if leaving and leaving not in replicas:
        others = exchanged(group.acceptors, leaving, "")
        return place_one("consensus", others, nodes, cluster.groups, without=(leaving,), preferred=group.replicas)
    # Where an acceptor is, or can be: so replicas and acceptors stay together.
    preferred = [name for name, node in nodes.items() if is_usable(node, "consensus")]
    others = exchanged(replicas, leaving, "")
    return place_one("sequencer", others, nodes, cluster.groups, without=(leaving,), preferred=preferred)


def _no_place(group: Group) -> Exception:
    return precondition(
        f"there is no other node that can take something of {called(group)}: register one, or wait for "
        "those that are suspected, drained or have a full disk"
    )


# ------------------------------------------------------------------------------------------------ changing


def begin(group: Group, incarnation_last: int) -> None:
    """What was prepared as `next` is so from now on."""
    check_has_survivors(group)
    kind_of(group).begin(group, incarnation_last)


def check_begins(group: Group, number: int) -> None:
    if not group.HasField("next"):
        raise precondition(f"no configuration of {called(group)} is being prepared")
    if group.next.number != number:
        raise precondition(f"configuration {group.next.number} of {called(group)} is being prepared, not {number}")


def record_started(group: Group, number: int, members: Collection[str]) -> bool:
    """Whether that was news. Who started in the meantime and lost it again does not count."""
    if group.configuration != number:
        raise precondition(f"{called(group)} is in configuration {group.configuration}, not {number}")
    kind_of(group).check_can_start(group)
    strangers = [name for name in members if name not in members_of(group)]
    if strangers:
        raise bad_argument(f"{quoted(strangers[0])} is no member of {called(group)}")
    starting = [name for name in group.starting if name not in members]
    is_news = len(starting) < len(group.starting)
    group.starting[:] = starting
    out = {*starting, *group.lost}
    left = [name for name in members_of(group) if name not in out]
    if group.HasField("previous") and has_majority(group.replicas, left) and has_majority(group.acceptors, left):
        group.ClearField("previous")
        is_news = True
    return is_news


@dataclass(frozen=True, slots=True)
class Loss:
    """Where it is news that a node lost what it had stored: in the configuration before, and in this one."""

    before: bool
    now: bool


def loss_of(group: Group, node: str, incarnation: int | None) -> Loss:
    """`incarnation` is the life that found it so when it started; None if the whole disk is gone."""
    before = node in members_of(group.previous) and node not in group.previous.lost
    if node not in members_of(group) or node in group.lost:
        return Loss(before, False)
    return Loss(before, kind_of(group).is_loss_from_now(group, node, incarnation, before=before))


def lose(group: Group, node: str, incarnation: int | None) -> bool:
    """It takes no part any more, nor hands over what it does not have. Whether that was news."""
    loss = loss_of(group, node, incarnation)
    if loss.before:
        group.previous.lost[:] = sorted([*group.previous.lost, node])
    if loss.now:
        group.lost[:] = sorted([*group.lost, node])
        group.starting[:] = [name for name in group.starting if name != node]
    return loss.before or loss.now
