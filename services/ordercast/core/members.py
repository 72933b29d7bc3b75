"""Who is where in a group, as membership describes it."""

from collections.abc import Container
from typing import TYPE_CHECKING

from ordercast.core.protocol import Members
from ordercast.core.quorums import has_majority

if TYPE_CHECKING:  # the command line asks, and does not want to wait for it
    from ordercast.v1.membership_pb2 import Configuration, Group


def how_members_change(group: "Group") -> Members:
    """How its members change: only a group with views has a placement beside its members."""
    return Members.VIEWS if group.placement else Members.CONFIGURATIONS


def has_views(group: "Group") -> bool:
    """Its configurations are views, which follow each other as processes come and go."""
    return how_members_change(group) == Members.VIEWS


def places_of(group: "Group") -> list[str]:
    """Where its replicas should be: in a group with views, not all of them may be there now."""
    return list(group.placement or group.replicas)


def completed_of(group: "Group") -> "Group | Configuration":
    """The last completed view of a group that has views: what follows needs a majority of it."""
    return group.previous if group.HasField("previous") else group


def learners_of(group: "Group") -> list[str]:
    """Who copies the log, to be a replica in the next configuration: also one that was there, and lost its own.

    In a group with views, also those that should be there, and were left out when they did not answer.
    """
    if has_views(group):
        out = (*group.replicas, *group.leaving)
        return sorted({name for name in (*group.placement, *group.next.replicas) if name not in out})
    has_it = [name for name in group.replicas if name not in group.lost]
    return [name for name in group.next.replicas if name not in has_it]


def is_changing(group: "Group", name: str) -> bool:
    """Whether it has to start in the present configuration, or to copy the log for the next one."""
    if name in group.starting:
        return True
    # Most groups change seldom, and there may be many: this is asked of each of them often.
    return (has_views(group) or group.HasField("next")) and name in learners_of(group)


def holders_of(group: "Group") -> list[str]:
    """Whoever has the log, or is to have it."""
    there = (*group.replicas, *group.previous.replicas, *group.leaving, *group.placement)
    return sorted({*there, *learners_of(group)})


def can_leave(group: "Group", process: str, up: Container[str]) -> bool:
    """Whether a view without this process may follow in the group, while the process is there to take part."""
    completed = completed_of(group)
    lost = (*group.lost, *group.previous.lost)
    with_a_say = [n for n in completed.replicas if (n in up or n == process) and n not in lost]
    stays = any(name in up and name != process for name in (*group.placement, *completed.replicas))
    return stays and has_majority(completed.replicas, with_a_say)
