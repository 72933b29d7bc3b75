"""Who is where in a group, as membership describes it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line asks, and does not want to wait for it
    from ordercast.v1.membership_pb2 import Group


def learners_of(group: "Group") -> list[str]:
    """Who copies the log, to be a replica in the next configuration: also one that was there, and lost its own."""
    has_it = [name for name in group.replicas if name not in group.lost]
    return [name for name in group.next.replicas if name not in has_it]


def holders_of(group: "Group") -> list[str]:
    """Whoever has the log, or is to have it."""
    return sorted({*group.replicas, *group.previous.replicas, *learners_of(group)})
