"""The views of a virtually synchronous group, as membership's log records them: defined, complete, installed.

    placement      where the group should be. Changes of replicas are about it (changes.py). Its views consist of
                   those of them that are there; and where nobody is, of those that were, until somebody is.
    configuration  the view that was defined last, with the lives of its members that are meant.
    previous       the last completed view, as long as the latest one is not complete: its members contribute to
                   its end. One view after the other may be defined meanwhile, and each makes the one before void.
    leaving        those of its members that are not in the latest view, and contribute of their own will.
    lost           those that lost what they had stored. They are left out of the next view. When one without them
                   is complete, their disks count for nothing any more, and they may come back as newcomers.

What is checked here holds whatever the leader believed (view_duties.py): it may have been wrong about failures, or
late. Functions of the agreed state alone. What is refused has changed nothing.
"""

from collections.abc import Mapping, Sequence

from ordercast.core.members import kind_of
from ordercast.core.members.views import completed_of, lost_in
from ordercast.core.quorums import has_majority
from ordercast.membership.kinds.members import called
from ordercast.membership.names import quoted
from ordercast.membership.refusals import bad_argument, precondition
from ordercast.v1.membership_pb2 import Configuration, DefineView, Group, Node


def define(group: Group, view: DefineView, nodes: Mapping[str, Node]) -> None:
    """From now on it is the latest, and no earlier one can be completed."""
    _check_has_views(group)
    _check_shape(view)
    if view.number != group.configuration + 1:
        raise precondition(
            f"the view after {group.configuration} of {called(group)} is {group.configuration + 1}, "
            f"not {view.number}"
        )
    _check_members(group, view, nodes)
    _check_has_a_say(group, [*view.members, *view.leaving])
    if not group.HasField("previous"):
        lost = [name for name in group.lost if name in group.replicas]
        group.previous.CopyFrom(Configuration(number=group.configuration, replicas=group.replicas, lost=lost))
    group.configuration = view.number
    group.replicas[:], group.incarnations[:] = view.members, view.incarnations
    group.leaving[:], group.starting[:] = view.leaving, view.members


def complete(group: Group, number: int, epoch: int) -> None:
    """Nobody needs the view before any more, but to read what it delivered."""
    _check_has_views(group)
    if number != group.configuration:
        raise precondition(f"view {group.configuration} of {called(group)} is the latest, not {number}")
    if not group.HasField("previous"):
        raise precondition(f"view {number} of {called(group)} is complete already")
    group.ClearField("previous")
    group.ClearField("leaving")
    group.epoch = max(group.epoch, epoch)
    group.starting[:] = group.replicas
    group.lost[:] = [name for name in group.lost if name in group.replicas]


def _check_has_views(group: Group) -> None:
    if not kind_of(group).follows_processes:
        raise precondition(f"{called(group)} has no views: its domain's protocol works without them")


def _check_shape(view: DefineView) -> None:
    if not view.members:
        raise bad_argument("a view has members")
    for names in (view.members, view.leaving):
        if list(names) != sorted({*names}):
            raise bad_argument("the names in a view are sorted, each of them once")
    if len(view.incarnations) != len(view.members):
        raise bad_argument(f"{len(view.members)} members with {len(view.incarnations)} incarnations are no view")
    if both := sorted({*view.members} & {*view.leaving}):
        raise bad_argument(f"{quoted(both[0])} cannot be in a view and leave with the one before")


def _check_members(group: Group, view: DefineView, nodes: Mapping[str, Node]) -> None:
    """The command may come late: nobody is in a view who has no place any more, or in a life that is over."""
    lost = lost_in(group)
    completed = completed_of(group).replicas
    for name, incarnation in zip(view.members, view.incarnations, strict=True):
        if name not in group.placement and name not in completed:
            raise precondition(f"{quoted(name)} has no place in {called(group)}")
        if nodes[name].incarnation != incarnation:
            raise precondition(f"the incarnation of {name} is {nodes[name].incarnation}, not {incarnation}")
    for name in view.leaving:
        if name not in completed:
            raise precondition(f"{quoted(name)} is not in the last complete view of {called(group)}")
    for name in (*view.members, *view.leaving):
        if name in lost:
            raise precondition(f"{name} lost what it had stored of {called(group)}")


def _check_has_a_say(group: Group, names: Sequence[str]) -> None:
    """[BSS91 7.4] Whatever was visible is on the disk of one of any majority of the last completed view.

    Of that, and not of the last one defined: v1 = {a..e}, and a, d and e have m; v2 = {a, b, c} is defined, and a
    dies before it contributes; v3 = {b, c} would be a majority of v2, and m would be lost.
    """
    completed = completed_of(group).replicas
    if not has_majority(completed, names):
        there = sum(1 for name in completed if name in names)
        raise precondition(
            f"{there} of the {len(completed)} members of the last complete view of {called(group)} take "
            "part: without a majority no view can follow it"
        )
