"""A domain's groups as a machine sees them: where replicas and acceptors are, in which configuration."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ordercast.core.errors import RemoteProtocolError
from ordercast.v1.common_pb2 import Destination
from ordercast.v1.membership_pb2 import DomainView, GroupView

#: The configuration that a group is created with: its members begin with nothing, and wait for nobody.
FIRST = 1

Names = tuple[str, ...]
#: Groups of which the description is remembered.
GROUPS_REMEMBERED = 4096
#: Sets of groups whose processes a view remembers.
SETS_MAX = 4096


class LateView(RemoteProtocolError):  # noqa: N818 (it names what happened, not a kind of error)
    """Views change at different times, so this is nobody's mistake. What matters comes again."""

    def __init__(self, group: str, message: str) -> None:
        super().__init__(message)
        self.group = group


class UnknownGroup(LateView):
    """Not in our view: not yet, or no more."""

    def __init__(self, group: str) -> None:
        super().__init__(group, f"unknown group {group!r}")


class OtherConfiguration(LateView):
    """Not the group's configuration in our view, or we have not started in it."""


@dataclass(frozen=True, slots=True)
class Former:
    """The configuration before, which ends: its members hand over what they have."""

    number: int
    replicas: tuple[str, ...]
    acceptors: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    configuration: int
    replicas: tuple[str, ...]
    acceptors: tuple[str, ...]
    #: Until a majority has started from it in this one.
    former: Former | None = None
    #: Members that are not known to have started.
    starting: tuple[str, ...] = ()
    #: Copy the log, to be replicas in the next configuration.
    learners: tuple[str, ...] = ()
    #: Members that lost what they had stored.
    lost: tuple[str, ...] = ()
    #: In virtually synchronous groups: which life of each replica is meant, and who leaves of its own will.
    incarnations: tuple[int, ...] = ()
    leaving: tuple[str, ...] = ()
    #: Nothing that came before the last completed view is of a higher multicast epoch.
    epoch: int = 0
    #: What this group has otherwise than its domain, by name.
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def working(self) -> tuple[str, ...]:
        """The replicas that take part."""
        return tuple(name for name in self.replicas if name not in self.lost) if self.lost else self.replicas

    @property
    def former_replicas(self) -> tuple[str, ...]:
        return self.former.replicas if self.former is not None else ()

    @property
    def former_acceptors(self) -> tuple[str, ...]:
        return self.former.acceptors if self.former is not None else ()

    def ended_for(self, process: str) -> int:
        """The number of the configuration before, if this is a replica of it that has its disk; else 0."""
        former = self.former
        if former is None or process not in former.replicas or process in former.lost:
            return 0
        return former.number

    def check(self, configuration: int) -> None:
        if self.configuration != configuration:
            raise OtherConfiguration(
                self.name, f"group {self.name!r} is in configuration {self.configuration}, not {configuration}"
            )

    def check_not_later(self, configuration: int) -> None:
        """For what is as good in a later configuration as in the one that it names."""
        if configuration > self.configuration:
            self.check(configuration)

    def began_here(self, process: str, *, is_acceptor: bool) -> int:
        """The configuration that a process has started in though it has no record of it; 0 if there is none.

        It was a member from the first, has nothing from before, and may not have heard of it until later.
        """
        members = self.acceptors if is_acceptor else self.replicas
        if self.configuration == FIRST:
            return FIRST if process in members and process not in self.lost else 0
        former = self.former
        if former is None or former.number != FIRST:
            return 0
        members = former.acceptors if is_acceptor else former.replicas
        return FIRST if process in members and process not in former.lost else 0


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of a domain that has one view for all its groups."""

    number: int
    names: Names
    #: The view before, as long as its end is not agreed upon; 0 if there is none.
    previous: int = 0
    previous_names: Names = ()

    @property
    def completed(self) -> int:
        """The last view in which anybody may act."""
        return self.previous or self.number

    @property
    def completed_names(self) -> Names:
        return self.previous_names if self.previous else self.names


def group_of(view: GroupView) -> Group:
    """Of equal descriptions the same object: a view of a thousand groups differs from the one before in one."""
    return _group_of(view.SerializeToString())


@lru_cache(GROUPS_REMEMBERED)
def _group_of(serialized: bytes) -> Group:
    view = GroupView.FromString(serialized)
    former = None
    if view.HasField("previous"):
        p = view.previous
        former = Former(p.number, tuple(p.replicas), tuple(p.acceptors), tuple(p.lost))
    return Group(
        view.group,
        view.configuration,
        tuple(view.replicas),
        tuple(view.acceptors),
        former,
        tuple(view.starting),
        tuple(view.learners),
        tuple(view.lost),
        tuple(view.incarnations),
        tuple(view.leaving),
        view.epoch,
        tuple(sorted(view.settings.items())),
    )


def _processes_of(view: DomainView) -> Processes | None:
    if not view.HasField("processes"):
        return None
    p = view.processes
    return Processes(p.number, tuple(p.names), p.previous, tuple(p.previous_names))


def names_of(destinations: Iterable[Destination]) -> tuple[str, ...]:
    """The names of a peer's destinations, whether we know the groups or not; refuses what is empty or unsorted."""
    names = tuple(destination.group for destination in destinations)
    if not names:
        raise RemoteProtocolError("the destination set is empty")
    if any(name <= before for before, name in pairwise(names)):
        raise RemoteProtocolError("destinations must be sorted, each group once")
    return names


def _remember(sets: dict[Names, Names], names: Names, found: Names) -> None:
    """Peers and clients name any sets they like, so they are not remembered without end."""
    if len(sets) >= SETS_MAX:
        sets.clear()
    sets[names] = found


class View:
    """An index over a DomainView. Built anew when the view changes, never edited.

    A group that is gone has no replicas and no acceptors: where several groups are named, the others count.
    """

    def __init__(self, view: DomainView) -> None:
        self.number: int = view.number
        #: What others have to have heard to know these groups: their numbers are not lower.
        self.changed: int = view.changed or view.number
        #: What all nodes understand.
        self.level: int = view.level
        self.processes = _processes_of(view)
        self.groups: dict[str, Group] = {g.group: group_of(g) for g in view.groups}
        #: Everyone who holds a replica of some group.
        self.hosts = frozenset(process for group in self.groups.values() for process in group.replicas)
        #: Whether somebody has lost what it had stored of some group.
        self.has_lost = any(group.lost for group in self.groups.values())
        self._replicas: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._acceptors: dict[tuple[str, ...], tuple[str, ...]] = {}

    def present(self, name: str, configuration: int) -> Group:
        """The group, for what counts in its present configuration alone."""
        group = self.groups.get(name)
        if group is None:
            raise UnknownGroup(name)
        group.check(configuration)
        return group

    def known(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name in self.groups)

    def replicas_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Every process with a replica of one of these groups, sorted."""
        found = self._replicas.get(names)
        if found is None:
            found = tuple(sorted({p for name in self.known(names) for p in self.groups[name].replicas}))
            _remember(self._replicas, names, found)
        return found

    def acceptors_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        found = self._acceptors.get(names)
        if found is None:
            found = tuple(sorted({p for name in self.known(names) for p in self.groups[name].acceptors}))
            _remember(self._acceptors, names, found)
        return found

    def is_awaited_elsewhere(self, names: Iterable[str], process: str) -> bool:
        """A decision for these groups: one without a replica in the process learns of it from a message alone."""
        groups = (self.groups.get(name) for name in names)
        return any(group is None or process not in group.replicas for group in groups)

    def destinations(self, names: Iterable[str]) -> list[Destination]:
        return [Destination(group=name, configuration=self.groups[name].configuration) for name in names]

    def configurations(self, names: Iterable[str]) -> tuple[int, ...]:
        """0 for a group that is not there."""
        groups = (self.groups.get(name) for name in names)
        return tuple(0 if group is None else group.configuration for group in groups)

    def is_as_addressed(self, destinations: Iterable[Destination]) -> bool:
        """None of these groups has changed since, and all are there."""
        for destination in destinations:
            group = self.groups.get(destination.group)
            if group is None or group.configuration != destination.configuration:
                return False
        return True

    def checked_names(self, destinations: Iterable[Destination]) -> tuple[str, ...]:
        """The names of a peer's destinations; refuses what is empty, unsorted, unknown or ahead of us."""
        names: list[str] = []
        for destination in destinations:
            name = destination.group
            group = self.groups.get(name)
            if group is None:
                raise UnknownGroup(name)
            group.check_not_later(destination.configuration)
            if names and name <= names[-1]:
                raise RemoteProtocolError("destinations must be sorted, each group once")
            names.append(name)
        if not names:
            raise RemoteProtocolError("the destination set is empty")
        return tuple(names)
