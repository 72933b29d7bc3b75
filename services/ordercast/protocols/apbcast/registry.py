"""What membership's log says of a domain's streams: views, ends, root configurations, one change at a time.

A pure state and its commands. A command that must not be carried out raises Unfit, and changes nothing: whoever
drives a change begins it again from what is here. So nobody has to remember how far a change was.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ordercast.protocols.apbcast.bias import biases
from ordercast.v1.apbcast_pb2 import (
    BroadcasterStream,
    Removal,
    RootConfiguration,
    RootGroup,
    StreamEnd,
    Streams,
    StreamView,
)

#: Views that are kept at most. A newcomer that needs an older one takes a snapshot.
VIEWS_MAX = 64
#: Broadcasters of a domain, root groups, and roots of a group.
BROADCASTERS_MAX = 64
GROUPS_MAX = 64
ROOTS_MAX = 15


class Unfit(Exception):  # noqa: N818 (it says what the command is)
    """The state does not allow the command."""


class Registry:
    def __init__(self, state: Streams | None = None) -> None:
        self.state = Streams(next_stream=1) if state is None else state

    # ----------------------------------------------------------------------------------------------- looking up

    @property
    def last_view(self) -> StreamView | None:
        return self.state.views[-1] if self.state.views else None

    def streams(self) -> dict[int, BroadcasterStream]:
        """Of the last view."""
        return {stream.stream: stream for stream in self.last_view.streams} if self.last_view is not None else {}

    def group(self, name: str) -> RootGroup:
        found = find_group(self.state, name)
        if found is None:
            raise Unfit(f"there is no root group {name!r}")
        return found

    def is_settled(self, name: str) -> bool:
        """Whether the group's last defined configuration is the last started one."""
        group = find_group(self.state, name)
        return group is not None and 0 < group.started.number == group.defined.number

    def removal(self, stream: int) -> Removal | None:
        return next((removal for removal in self.state.removals if removal.stream == stream), None)

    # ----------------------------------------------------------------------------------------------- root
    # groups

    def define(self, name: str, members: Sequence[str]) -> None:
        """One that was defined and has not started is replaced. Hand-overs are always from the started one
        (R1).
        """
        if not members or len(members) > ROOTS_MAX or len(set(members)) != len(members):
            raise Unfit(f"a root group has 1 to {ROOTS_MAX} different members")
        for other in self.state.groups:
            taken = {*other.defined.members, *other.started.members}
            if other.group != name and taken.intersection(members):
                raise Unfit(f"a process is a root of one group: {sorted(taken.intersection(members))}")
        group = find_group(self.state, name)
        if group is None:
            if len(self.state.groups) >= GROUPS_MAX:
                raise Unfit("there are too many root groups")
            group = self.state.groups.add(group=name)
        self.state.revision += 1
        number = self.state.revision
        group.defined.CopyFrom(RootConfiguration(number=number, members=sorted(members)))

    def start(self, name: str, number: int) -> None:
        """A majority of its members has all that was handed over. Refused once a later one is defined (R1)."""
        group = self.group(name)
        if group.defined.number != number or group.started.number >= number:
            raise Unfit(f"configuration {number} of {name} is not the one that is to start")
        group.started.CopyFrom(group.defined)
        self.state.revision += 1

    def delete(self, name: str) -> None:
        """Whoever calls has seen that another group has begun the last view (R11)."""
        group = self.group(name)
        if any(stream.home == name for stream in self.streams().values()):
            raise Unfit(f"{name} is a home")
        if not any(self.is_settled(other.group) for other in self.state.groups if other.group != name):
            raise Unfit(f"no other root group than {name} has started")
        self.state.groups.remove(group)
        self.state.revision += 1

    # ---------------------------------------------------------------------------------------------------
    # streams

    def intend(self, stream: int) -> None:
        """The broadcaster is to be removed. In the log before anybody seals its stream (R6)."""
        home = self._home_of(stream)
        if not self.is_settled(home.group):
            raise Unfit(f"{home.group} changes its configuration")
        removal = self.removal(stream)
        if removal is not None and removal.configuration == home.started.number:
            return
        if removal is None:
            removal = self.state.removals.add(stream=stream)
        removal.configuration = home.started.number
        self.state.revision += 1

    def check_end(self, stream: int, configuration: int) -> None:
        """An end from a home's majority counts only if its configuration is still the last one of all (R6)."""
        home = self._home_of(stream)
        if not self.is_settled(home.group) or home.started.number != configuration:
            raise Unfit(f"{home.group} is not in configuration {configuration}: begin the removal again")

    def _home_of(self, stream: int) -> RootGroup:
        known = self.streams().get(stream)
        if known is None:
            raise Unfit(f"stream {stream} is not in the last view")
        return self.group(known.home)

    def append(self, joining: Iterable[BroadcasterStream], ends: Sequence[StreamEnd]) -> None:
        """The next view: any number of joinings and ends (R13). Numbers of streams and biases are given here."""
        last = self.last_view
        ended = {end.stream for end in ends}
        view = StreamView(number=last.number + 1 if last is not None else 1, ends=ends)
        view.streams.extend(stream for number, stream in self.streams().items() if number not in ended)
        for stream in joining:
            if len(view.streams) < BROADCASTERS_MAX and self.is_home(stream.home):
                added = view.streams.add()
                added.CopyFrom(stream)
                added.stream = self.state.next_stream
                self.state.next_stream += 1
        if not ended and len(view.streams) == len(self.streams()):
            raise Unfit("nobody joins, and nobody leaves")
        if len(self.state.views) >= VIEWS_MAX:
            raise Unfit("too many views have not begun")
        for stream, bias in zip(view.streams, biases([s.rate for s in view.streams]), strict=True):
            stream.bias_us = bias
        self.state.views.append(view)
        for removal in [removal for removal in self.state.removals if removal.stream in ended]:
            self.state.removals.remove(removal)
        self.state.revision += 1

    def is_home(self, name: str) -> bool:
        group = find_group(self.state, name)
        return group is not None and group.started.number > 0

    def forget_before(self, view: int) -> None:
        """A majority of one root group has begun this view durably: nobody needs what was before (R19)."""
        last = self.last_view
        if last is None or view > last.number or view <= self.state.views[0].number:
            return
        while self.state.views[0].number < view:
            del self.state.views[0]
        self.state.revision += 1


def find_group(state: Streams, name: str) -> RootGroup | None:
    return next((group for group in state.groups if group.group == name), None)


class Known:
    """The same, as it was told, for looking things up."""

    def __init__(self, state: Streams) -> None:
        self.state = state
        self.groups: dict[str, RootGroup] = {group.group: group for group in state.groups}
        self.views: dict[int, StreamView] = {view.number: view for view in state.views}
        self.streams: dict[int, BroadcasterStream] = {}
        self.ends: dict[int, StreamEnd] = {}
        for view in state.views:
            self.streams.update({stream.stream: stream for stream in view.streams})
            self.ends.update({end.stream: end for end in view.ends})
        self.removals: Mapping[int, int] = {r.stream: r.configuration for r in state.removals}

    @property
    def first_view(self) -> int:
        return self.state.views[0].number if self.state.views else 0

    @property
    def last_view(self) -> int:
        return self.state.views[-1].number if self.state.views else 0

    def current(self) -> Iterator[BroadcasterStream]:
        """The streams of the last view."""
        yield from self.state.views[-1].streams if self.state.views else ()

    def group_of(self, process: str) -> RootGroup | None:
        """The root group that the process is a member of, or is to be."""
        for group in self.groups.values():
            if process in group.started.members or process in group.defined.members:
                return group
        return None

    def roots(self) -> tuple[str, ...]:
        """Of all configurations that are defined or started (R5)."""
        names = (n for g in self.groups.values() for c in (g.started, g.defined) for n in c.members)
        return tuple(sorted(dict.fromkeys(names)))
