"""A domain's groups as a machine sees them: where replicas and acceptors are, in which configuration."""

from collections.abc import Iterable
from dataclasses import dataclass

from ordercast.core.errors import RemoteProtocolError
from ordercast.v1.common_pb2 import Destination
from ordercast.v1.membership_pb2 import DomainView


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    configuration: int
    replicas: tuple[str, ...]
    acceptors: tuple[str, ...]


class View:
    """An index over a DomainView. Built anew when the view changes, never edited."""

    def __init__(self, view: DomainView) -> None:
        self.groups: dict[str, Group] = {
            g.group: Group(g.group, g.configuration, tuple(g.replicas), tuple(g.acceptors)) for g in view.groups
        }
        #: Everyone who holds a replica of some group.
        self.hosts = frozenset(process for group in self.groups.values() for process in group.replicas)
        self._replicas: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._acceptors: dict[tuple[str, ...], tuple[str, ...]] = {}

    def hosted_by(self, process: str) -> tuple[str, ...]:
        return tuple(name for name, group in sorted(self.groups.items()) if process in group.replicas)

    def replicas_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Every process with a replica of one of these groups, sorted."""
        found = self._replicas.get(names)
        if found is None:
            found = tuple(sorted({p for name in names for p in self.groups[name].replicas}))
            self._replicas[names] = found
        return found

    def acceptors_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        found = self._acceptors.get(names)
        if found is None:
            found = tuple(sorted({p for name in names for p in self.groups[name].acceptors}))
            self._acceptors[names] = found
        return found

    def destinations(self, names: Iterable[str]) -> list[Destination]:
        return [Destination(group=name, configuration=self.groups[name].configuration) for name in names]

    def checked_names(self, destinations: Iterable[Destination]) -> tuple[str, ...]:
        """The names of a peer's destinations; refuses what is empty, unsorted, unknown or out of date."""
        names: list[str] = []
        for destination in destinations:
            name = destination.group
            group = self.groups.get(name)
            if group is None:
                raise RemoteProtocolError(f"unknown group {name!r}")
            if group.configuration != destination.configuration:
                raise RemoteProtocolError(
                    f"group {name!r} is in configuration {group.configuration}, not {destination.configuration}"
                )
            if names and name <= names[-1]:
                raise RemoteProtocolError("destinations must be sorted, each group once")
            names.append(name)
        if not names:
            raise RemoteProtocolError("the destination set is empty")
        return tuple(names)
