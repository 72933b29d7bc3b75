"""A domain's groups as a machine sees them: where replicas and acceptors are, in which configuration."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from ordercast.core.errors import RemoteProtocolError
from ordercast.v1.common_pb2 import Destination
from ordercast.v1.membership_pb2 import DomainView


class UnknownGroup(RemoteProtocolError):  # noqa: N818 (it names what happened, not a kind of error)
    """Not in our view: not yet, or no more. Views change at different times, so this is nobody's mistake."""

    def __init__(self, group: str) -> None:
        super().__init__(f"unknown group {group!r}")
        self.group = group


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    configuration: int
    replicas: tuple[str, ...]
    acceptors: tuple[str, ...]

    def check(self, configuration: int) -> None:
        if self.configuration != configuration:
            raise RemoteProtocolError(
                f"group {self.name!r} is in configuration {self.configuration}, not {configuration}"
            )


def names_of(destinations: Iterable[Destination]) -> tuple[str, ...]:
    """The names of a peer's destinations, whether we know the groups or not; refuses what is empty or unsorted."""
    names = tuple(destination.group for destination in destinations)
    if not names:
        raise RemoteProtocolError("the destination set is empty")
    if any(name <= before for before, name in pairwise(names)):
        raise RemoteProtocolError("destinations must be sorted, each group once")
    return names


class View:
    """An index over a DomainView. Built anew when the view changes, never edited.

    A group that is gone has no replicas and no acceptors: where several groups are named, the others count.
    """

    def __init__(self, view: DomainView) -> None:
        self.number: int = view.number
        self.groups: dict[str, Group] = {
            g.group: Group(g.group, g.configuration, tuple(g.replicas), tuple(g.acceptors)) for g in view.groups
        }
        #: Everyone who holds a replica of some group.
        self.hosts = frozenset(process for group in self.groups.values() for process in group.replicas)
        self._replicas: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._acceptors: dict[tuple[str, ...], tuple[str, ...]] = {}

    def hosted_by(self, process: str) -> tuple[str, ...]:
        return tuple(name for name, group in sorted(self.groups.items()) if process in group.replicas)

    def known(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name in self.groups)

    def replicas_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Every process with a replica of one of these groups, sorted."""
        found = self._replicas.get(names)
        if found is None:
            found = tuple(sorted({p for name in self.known(names) for p in self.groups[name].replicas}))
            self._replicas[names] = found
        return found

    def acceptors_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        found = self._acceptors.get(names)
        if found is None:
            found = tuple(sorted({p for name in self.known(names) for p in self.groups[name].acceptors}))
            self._acceptors[names] = found
        return found

    def is_awaited_elsewhere(self, names: Iterable[str], process: str) -> bool:
        """A decision for these groups: one without a replica in the process learns of it from a message alone."""
        groups = (self.groups.get(name) for name in names)
        return any(group is None or process not in group.replicas for group in groups)

    def destinations(self, names: Iterable[str]) -> list[Destination]:
        return [Destination(group=name, configuration=self.groups[name].configuration) for name in names]

    def checked_names(self, destinations: Iterable[Destination]) -> tuple[str, ...]:
        """The names of a peer's destinations; refuses what is empty, unsorted, unknown or out of date."""
        names: list[str] = []
        for destination in destinations:
            name = destination.group
            group = self.groups.get(name)
            if group is None:
                raise UnknownGroup(name)
            group.check(destination.configuration)
            if names and name <= names[-1]:
                raise RemoteProtocolError("destinations must be sorted, each group once")
            names.append(name)
        if not names:
            raise RemoteProtocolError("the destination set is empty")
        return tuple(names)
