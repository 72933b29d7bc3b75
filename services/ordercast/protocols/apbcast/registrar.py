"""Who drives changes of streams: joinings, removals, ends, root configurations, forgetting.

It keeps the state (registry.py) on its disk and tells it to everybody. Of a change it remembers nothing but
what is in that state: after a crash it asks again, and everybody answers as before. One process runs it: the
one that leads membership's log.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ordercast.core.machine import (
    ChannelReset,
    Effect,
    Ended,
    Event,
    Persist,
    Receive,
    Send,
    SetTimer,
    Start,
    TimerFired,
)
from ordercast.core.quorums import has_majority, majority
from ordercast.protocols.apbcast.acknowledged import of_majority
from ordercast.protocols.apbcast.bias import InvalidRate, check_rate
from ordercast.protocols.apbcast.events import PlaceRoots
from ordercast.protocols.apbcast.registry import Registry, Unfit
from ordercast.protocols.apbcast.settings import Settings
from ordercast.v1.apbcast_pb2 import (
    Begun,
    BroadcasterStream,
    Fill,
    JoinStreams,
    LeaveStreams,
    Ready,
    Silent,
    StreamEnd,
    Streams,
    StreamSealed,
)

TICK = "tick"
STATE = b"streams"


class Registrar:
    def __init__(self, process: str, settings: Settings) -> None:
        self.process = process
        self.settings = settings
        self.registry = Registry()
        self.connected: dict[str, int] = {}
        #: Who wants to join; ends that broadcasters gave themselves; and what roots have said, all since the
        #: start.
        self.joining: dict[str, BroadcasterStream] = {}
        self.own_ends: dict[int, StreamEnd] = {}
        self.sealed: dict[tuple[int, int], dict[str, int]] = {}
        self.ready: dict[tuple[str, int], dict[str, None]] = {}
        self.begun: dict[tuple[str, int], dict[str, int]] = {}
        #: Root groups that are to go.
        self.leaving: dict[str, None] = {}
        self._handlers: dict[type, Callable[[Receive, Any], None]] = {
            JoinStreams: self._on_join,
            LeaveStreams: self._on_leave,
            Silent: self._on_silent,
            StreamSealed: self._on_sealed,
            Ready: self._on_ready,
            Begun: self._on_begun,
        }
        self.out: list[Effect] = []
        self._told = 0

    @property
    def handles(self) -> Sequence[type]:
        return tuple(self._handlers)

    # --------------------------------------------------------------------------------------------------
    # stepping

    def step(self, event: Event) -> list[Effect]:
        self.out = []
        match event:
            case Receive():
                self._handlers[type(event.message)](event, event.message)
            case TimerFired():
                self._drive()
                self.out.append(SetTimer(TICK, self.settings.tick_s))
            case ChannelReset():
                self.connected[event.peer] = event.incarnation
                self.out.append(Send((event.peer,), self._copy()))
            case PlaceRoots():
                self._place(event)
            case Ended():
                self._on_ended(event)
            case Start():
                for _, value in event.records:
                    self.registry = Registry(Streams.FromString(value))
                self._told = self.registry.state.revision
                self.out.append(SetTimer(TICK, self.settings.tick_s))
        return self._told_when_durable()

    def _told_when_durable(self) -> list[Effect]:
        state = self.registry.state
        if state.revision == self._told:
            return self.out
        self._told = state.revision
        told = Send(tuple(self.connected), self._copy())
        return [Persist([(STATE, state.SerializeToString())]), *self.out, told]

    def _copy(self) -> Streams:
        copy = Streams()
        copy.CopyFrom(self.registry.state)
        return copy

    # ------------------------------------------------------------------------------------------- what it is
    # told

    def _on_join(self, event: Receive, message: JoinStreams) -> None:
        try:
            check_rate(message.rate)
        except InvalidRate:
            return
        self.joining[event.source] = BroadcasterStream(
            process=event.source,
            incarnation=event.incarnation,
            attempt=message.attempt,
            home=message.home,
            first=message.first,
            rate=message.rate,
        )
        self._intend_older(event.source, event.incarnation, message.attempt)

    def _intend_older(self, process: str, incarnation: int, attempt: int) -> None:
        """Streams of a broadcaster that is in a later life, or has given this one up."""
        for number, stream in self.registry.streams().items():
            if stream.process == process and (stream.incarnation, stream.attempt) < (incarnation, attempt):
                self._try(self.registry.intend, number)

    def _on_ended(self, event: Ended) -> None:
        joining = self.joining.get(event.process)
        if joining is not None and joining.incarnation <= event.incarnation:
            del self.joining[event.process]
        self._intend_older(event.process, event.incarnation + 1, 0)

    def _on_leave(self, event: Receive, message: LeaveStreams) -> None:
        """The broadcaster has stopped, and knows who has its stream (R12)."""
        stream = self.registry.streams().get(message.stream)
        if stream is None or (stream.process, stream.incarnation) != (event.source, event.incarnation):
            return
        self.own_ends[message.stream] = StreamEnd(
            stream=message.stream, length=message.length, keeper=message.keeper
        )

    def _on_silent(self, event: Receive, message: Silent) -> None:
        self._try(self.registry.intend, message.stream)

    def _on_sealed(self, event: Receive, message: StreamSealed) -> None:
        told = self.sealed.setdefault((message.stream, message.configuration), {})
        told[event.source] = max(message.length, told.get(event.source, 0))

    def _on_ready(self, event: Receive, message: Ready) -> None:
        self.ready.setdefault((message.group, message.configuration), {})[event.source] = None

    def _on_begun(self, event: Receive, message: Begun) -> None:
        told = self.begun.setdefault((message.group, message.configuration), {})
        told[event.source] = max(message.view, told.get(event.source, 0))

    def _place(self, event: PlaceRoots) -> None:
        if event.members:
            self._try(self.registry.define, event.group, event.members)
            self.leaving.pop(event.group, None)
        elif any(g.group not in self.leaving and g.group != event.group for g in self.registry.state.groups):
            # The last one stays: somebody has to be at home somewhere.
            self.leaving[event.group] = None

    def _try(self, command: Callable[..., None], *args: object) -> bool:
        try:
            command(*args)
        except Unfit:
            return False
        return True

    # ------------------------------------------------------------------------------------------------- driving

    def _drive(self) -> None:
        for group in list(self.registry.state.groups):
            members, number = group.defined.members, group.defined.number
            if group.started.number < number and has_majority(members, self.ready.get((group.group, number), {})):
                self._try(self.registry.start, group.group, number)
        for removal in list(self.registry.state.removals):
            # Its home may have changed its configuration: then it begins again.
            self._try(self.registry.intend, removal.stream)
        self._append_view()
        self._forget()
        for name in list(self.leaving):
            self._delete(name)
        self._drop_what_is_over()

    def _append_view(self) -> None:
        ends = [end for end in self.own_ends.values() if self._has_keeper(end)]
        own = {end.stream for end in ends}
        ends += [
            end for r in self.registry.state.removals if r.stream not in own and (end := self._end_of(r.stream))
        ]
        self.joining = {n: joining for n, joining in self.joining.items() if not self._is_there(joining)}
        joining = [joining for joining in self.joining.values() if self._may_join(joining)]
        if (ends or joining) and self._try(self.registry.append, joining, ends):
            self.own_ends.clear()

    def _has_keeper(self, end: StreamEnd) -> bool:
        return end.stream in self.registry.streams() and self.registry.is_home(end.keeper)

    def _is_there(self, joining: BroadcasterStream) -> bool:
        key = (joining.process, joining.incarnation, joining.attempt)
        return any((s.process, s.incarnation, s.attempt) == key for s in self.registry.streams().values())

    def _may_join(self, joining: BroadcasterStream) -> bool:
        """A home that is to go takes nobody new."""
        return self.registry.is_home(joining.home) and joining.home not in self.leaving

    def _end_of(self, stream: int) -> StreamEnd | None:
        """The longest prefix among a majority that has sealed it; once a majority has as much (E4, R6)."""
        removal, known = self.registry.removal(stream), self.registry.streams().get(stream)
        if removal is None or known is None:
            return None
        if not self._try(self.registry.check_end, stream, removal.configuration):
            return None
        members = self.registry.group(known.home).started.members
        told = self.sealed.get((stream, removal.configuration), {})
        sealed = {name: length for name, length in told.items() if name in members}
        if not has_majority(members, sealed):
            return None
        length = self._safe_length(members, sealed)
        holders = [name for name, reached in sealed.items() if reached >= length]
        if not has_majority(members, holders):
            behind = [name for name, reached in sealed.items() if reached < length and name in self.connected]
            fill = Fill(stream=stream, configuration=removal.configuration, length=length, holder=holders[0])
            self.out.append(Send(tuple(behind), fill))
            return None
        return StreamEnd(stream=stream, length=length, keeper=known.home)

    def _safe_length(self, members: Sequence[str], sealed: Mapping[str, int]) -> int:
        """What any majority of them has sealed is long enough, for it meets everyone that ever acknowledged.

        So it is the longest prefix of those who have least. If a majority has more than that, it is what they
        have: what one root alone has, who may be gone by now, need not be waited for.
        """
        lengths = sorted(sealed.values())
        least = lengths[majority(len(members)) - 1]
        return max(least, of_majority(list(sealed) + [""] * (len(members) - len(sealed)), sealed))

    def _have_begun(self, group: str, view: int) -> bool:
        """Whether a majority of the group's started configuration has begun the view durably."""
        started = self.registry.group(group).started
        told = self.begun.get((group, started.number), {})
        return has_majority(started.members, {name: None for name, begun in told.items() if begun >= view})

    def _forget(self) -> None:
        for view in [view.number for view in self.registry.state.views][1:]:
            if any(self._have_begun(g.group, view) for g in self.registry.state.groups if g.started.number):
                self.registry.forget_before(view)

    def _delete(self, name: str) -> None:
        """A group may go when nobody is at home there, and another one has begun the last view (R11)."""
        names = [g.group for g in self.registry.state.groups]
        last = self.registry.last_view
        number = last.number if last is not None else 0
        settled = [other for other in names if other != name and self.registry.is_settled(other)]
        may_go = any(self._have_begun(other, number) for other in settled)
        if name not in names or (may_go and self._try(self.registry.delete, name)):
            del self.leaving[name]

    def _drop_what_is_over(self) -> None:
        streams = self.registry.streams()
        numbers = {g.group: (g.started.number, g.defined.number) for g in self.registry.state.groups}
        self.sealed = {key: told for key, told in self.sealed.items() if key[0] in streams}
        self.own_ends = {number: end for number, end in self.own_ends.items() if number in streams}
        self.ready = {key: told for key, told in self.ready.items() if key[1] == numbers.get(key[0], (0, 0))[1]}
        self.begun = {key: told for key, told in self.begun.items() if key[1] == numbers.get(key[0], (0, 0))[0]}

    def buffers(self) -> dict[str, int]:
        return {"joining": len(self.joining), "sealed": len(self.sealed), "own_ends": len(self.own_ends)}
