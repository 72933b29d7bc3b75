"""Groups that keep their members until somebody asks for others."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from ordercast.core.members.kind import check_members, copying

if TYPE_CHECKING:
    from ordercast.v1.membership_pb2 import Configuration, Group


class Configurations:
    """See kind.Kind."""

    noun = "configuration"
    follows_processes = False

    def learners(self, group: "Group") -> list[str]:
        """Also one that is a replica, and lost its log."""
        has_it = [name for name in group.replicas if name not in group.lost]
        return [name for name in group.next.replicas if name not in has_it]

    def has_newcomers(self, group: "Group") -> bool:
        return group.HasField("next")

    def needed(self, group: "Group") -> list[tuple[str, Sequence[str], Collection[str]]]:
        return [("acceptors", group.acceptors, group.lost)] if group.acceptors else []

    def is_at_rest(self, group: "Group") -> bool:
        """What is handed over is delivered in its place, as everything is."""
        return True

    def is_waited_for(self, group: "Group", process: str, up: Collection[str]) -> bool:
        """Nothing follows by itself."""
        return False

    def begins_without(self, group: "Group", incarnation: int) -> bool:
        """In a configuration that began later than the life, its process is a newcomer."""
        return group.incarnation_before >= incarnation

    def keeps_log_of(self, group: "Group", process: str) -> bool:
        return False

    def wanted(self, begun: "Group") -> "Configuration":
        """A change that nobody has to copy anything for has begun when it is answered."""
        from ordercast.v1.membership_pb2 import Configuration

        if begun.HasField("next"):
            return begun.next
        return Configuration(number=begun.configuration, replicas=begun.replicas, acceptors=begun.acceptors)

    def has_come(self, group: "Group", wanted: "Configuration", up: Callable[[], Collection[str]]) -> bool:
        if group.configuration > wanted.number:
            # Another change came behind it, which it could not while this one was under way.
            return True
        if group.configuration == wanted.number:
            check_members(group.replicas, wanted)
            return not group.HasField("previous")
        check_members(group.next.replicas, wanted)
        return False

    def stage(self, group: "Group") -> str:
        if group.HasField("next"):
            learners = self.learners(group)
            if not learners:
                return f"configuration {group.next.number} is about to begin"
            return f"{copying(learners)} for configuration {group.next.number}"
        if group.HasField("previous"):
            text = f"configuration {group.configuration} has begun"
            return f"{text}, not yet started on {', '.join(group.starting)}" if group.starting else text
        if group.starting:
            return f"not yet started on {', '.join(group.starting)}"
        return ""

    def lines(self, group: "Group") -> list[tuple[str, str]]:
        return [("configuration", str(group.configuration)), ("acceptors", ", ".join(group.acceptors))]
