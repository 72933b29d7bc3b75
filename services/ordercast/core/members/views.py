"""Groups whose configurations are views, which follow each other as processes come and go."""

from collections.abc import Callable, Collection, Container, Sequence
from typing import TYPE_CHECKING

from ordercast.core.members.kind import check_members, copying
from ordercast.core.quorums import has_majority

if TYPE_CHECKING:
    from ordercast.v1.membership_pb2 import Configuration, Group


def completed_of(group: "Group") -> "Group | Configuration":
    """The last completed view: what follows needs a majority of it."""
    return group.previous if group.HasField("previous") else group


def lost_in(group: "Group") -> list[str]:
    """Whose disks do not count, neither for the last completed view nor for what came after it."""
    return sorted({*group.lost, *group.previous.lost})


def can_leave(group: "Group", process: str, up: Container[str]) -> bool:
    """Whether a view without this process may follow, while the process is there to take part."""
    completed, lost = completed_of(group), lost_in(group)
    with_a_say = [n for n in completed.replicas if (n in up or n == process) and n not in lost]
    stays = any(name in up and name != process for name in (*group.placement, *completed.replicas))
    return stays and has_majority(completed.replicas, with_a_say)


def members_text(group: "Group") -> str:
    """
    >>> from ordercast.v1.membership_pb2 import Group
    >>> members_text(Group(replicas=["n1", "n2"], incarnations=[4, 9]))
    'n1 (life 4), n2 (life 9)'
    """
    lives = zip(group.replicas, group.incarnations, strict=True)
    return ", ".join(f"{name} (life {incarnation})" for name, incarnation in lives)


def progress_of(group: "Group") -> str:
    """How far the latest view is: one of three words."""
    if group.HasField("previous"):
        return "defined"
    return "complete" if group.starting else "installed"


class Views:
    """See kind.Kind."""

    noun = "view"
    follows_processes = True

    def learners(self, group: "Group") -> list[str]:
        """Also those that should be there, and were left out when they did not answer."""
        out = (*group.replicas, *group.leaving)
        return sorted({name for name in (*group.placement, *group.next.replicas) if name not in out})

    def has_newcomers(self, group: "Group") -> bool:
        return True

    def needed(self, group: "Group") -> list[tuple[str, Sequence[str], Collection[str]]]:
        """Without a majority of the last complete view no other can follow."""
        return [("members of the last complete view", completed_of(group).replicas, lost_in(group))]

    def is_at_rest(self, group: "Group") -> bool:
        """While one view follows another, members deliver what they had received before, each in its time."""
        return not (group.HasField("previous") or group.starting)

    def is_waited_for(self, group: "Group", process: str, up: Collection[str]) -> bool:
        """In a view that is about to be left. One that nothing can follow is left as it is."""
        return process in (*group.replicas, *group.leaving) and can_leave(group, process, up)

    def begins_without(self, group: "Group", incarnation: int) -> bool:
        """A view takes along what its members have on their disks, whenever it began."""
        return False

    def keeps_log_of(self, group: "Group", process: str) -> bool:
        """Who was left out of a view goes on copying from where its own log ends."""
        return process in self.learners(group)

    def wanted(self, begun: "Group") -> "Configuration":
        """A change is about the placement, and without a next one nobody has to copy anything for it."""
        from ordercast.v1.membership_pb2 import Configuration

        if begun.HasField("next"):
            return begun.next
        return Configuration(number=begun.configuration, replicas=begun.placement)

    def has_come(self, group: "Group", wanted: "Configuration", up: Callable[[], Collection[str]]) -> bool:
        """The latest view consists of those of the wanted places that are there. Others come and go meanwhile, and
        say nothing about the change.
        """
        check_members(group.next.replicas if group.HasField("next") else group.placement, wanted)
        if group.HasField("next") or group.HasField("previous"):
            return False
        there = up()
        return list(group.replicas) == [name for name in wanted.replicas if name in there]

    def stage(self, group: "Group") -> str:
        number = group.configuration
        parts = []
        newcomers = [name for name in group.next.replicas if name not in group.placement]
        if newcomers:
            parts.append(f"{copying(newcomers)} for a later view")
        elif group.HasField("next"):
            parts.append("other places are about to count")
        if group.HasField("previous"):
            parts.append(f"view {number} is defined, and {group.previous.number} is the last complete one")
        elif group.starting:
            parts.append(f"view {number} not yet installed on {', '.join(group.starting)}")
        left_out = [name for name in self.learners(group) if name in group.placement]
        if left_out:
            parts.append(f"left out: {', '.join(left_out)}")
        return "; ".join(parts)

    def lines(self, group: "Group") -> list[tuple[str, str]]:
        lines = [("view", f"{group.configuration}, {progress_of(group)}"), ("members", members_text(group))]
        if group.HasField("previous"):
            lines.append(("last complete", f"{group.previous.number}: {', '.join(group.previous.replicas)}"))
        elif group.starting:
            lines.append(("not installed", ", ".join(group.starting)))
        if group.leaving:
            lines.append(("leaving", ", ".join(group.leaving)))
        if list(group.placement) != list(group.replicas):
            lines.append(("placement", ", ".join(group.placement)))
        return lines
