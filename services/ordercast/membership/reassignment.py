"""The leader's duties about who holds what: changes go on, drained and missing nodes are relieved, levels rise.

Which change is under way is agreed. How far the members are with it, the leader hears in heartbeats; that is a
belief, and so is who is missing for how long. A new leader hears for itself, and finds the rest in the state. If a
belief is wrong, a configuration begins before somebody has the log, and waits for it, or a replica moves that need
not have.

Every duty is a command that says what it is about, so that it is not begun twice. What differs between kinds of
groups is in kinds/; those with views have duties besides (view_duties.py).
"""

from collections.abc import Container, Iterator, Mapping
from functools import partial
from itertools import islice

from ordercast.core.level import INSTALLED_LEVEL
from ordercast.membership.changes import has_survivors, is_changing, loss_of, prepared
from ordercast.membership.commands import CHANGES_LEVEL
from ordercast.membership.kinds import kind_of
from ordercast.membership.kinds.members import Cluster, members_of
from ordercast.membership.refusals import Refused
from ordercast.membership.settings import LEVEL, LOST_PER_COMMAND_MAX, PROTOCOLS_MAX, MembershipSettings
from ordercast.membership.state import State
from ordercast.v1.membership_pb2 import (
    REPLICA_CHANGE_REPLACE,
    BeginConfiguration,
    CancelChange,
    ChangeReplicas,
    Command,
    Group,
    GroupProgress,
    HeartbeatRequest,
    Node,
    NoteProtocols,
    RaiseLevel,
    RecordLost,
    RecordStarted,
)

Duty = tuple[str, Command]

#: For so many groups a place is sought at a time: it takes long to find that there is none for any of many.
TRIES_MAX = 64


class Reassignment:
    def __init__(self, settings: MembershipSettings) -> None:
        self.settings = settings
        #: Whose incarnation is over, and since when we know.
        self.gone: dict[str, float] = {}
        #: By what is to be done: the group with which to go on next time, if not with the first.
        self.turn: dict[str, str] = {}

    def listen(self) -> None:
        """From now on time counts."""
        self.gone = {}

    def duties(self, state: State, heartbeats: Mapping[str, HeartbeatRequest], now: float) -> list[Duty]:
        """`heartbeats` are the latest ones, of nodes that are there in the incarnation that sent them."""
        self.gone = {name: self.gone.get(name, now) for name, node in state.nodes.items() if node.ended}
        return list(_ReassignmentRound(self, state, heartbeats, now).duties())

    def gone_for_s(self, name: str, now: float) -> float:
        found = self.gone.get(name)
        return now - found if found is not None else 0.0


class _ReassignmentRound:
    """What has to be done now, by what is agreed and by what was heard."""

    def __init__(
        self, duty: Reassignment, state: State, heartbeats: Mapping[str, HeartbeatRequest], now: float
    ) -> None:
        self.duty = duty
        self.settings = duty.settings
        self.state = state
        self.now = now
        self.heartbeats = heartbeats
        #: And cells that groups share.
        self.groups = state.placed()
        self.cluster = Cluster(state.nodes, self.groups)
        #: (node, group id) -> how far it is.
        self.progress = {
            (name, progress.group): progress
            for name, heartbeat in heartbeats.items()
            for progress in heartbeat.progress
        }

    def duties(self) -> Iterator[Duty]:
        if self.state.level < LEVEL:
            yield from self._raise_level()
        if self.state.level < CHANGES_LEVEL:
            return
        if self.state.level >= INSTALLED_LEVEL:
            yield from self._note_protocols()
        yield from self._record_lost()
        for group in self.groups:
            yield from self._go_on(group)
        yield from self._restore()
        yield from self._relieve()

    def _raise_level(self) -> Iterator[Duty]:
        """A member whose software was older when a node registered only knows from heartbeats what that has."""
        nodes = self.state.nodes
        levels = [
            max(node.level, self.heartbeats[name].level if name in self.heartbeats else 0)
            for name, node in nodes.items()
            # One that is over registers again before it does anything, and is refused if its software is too old.
            if not node.ended or "membership" in node.services
        ]
        level = min([LEVEL, *levels])
        if nodes and level > self.state.level:
            incarnations = {name: nodes[name].incarnation for name in sorted(nodes)}
            yield "level", Command(raise_level=RaiseLevel(level=level, incarnations=incarnations))

    def _note_protocols(self) -> Iterator[Duty]:
        """Note the installed protocols of nodes that registered before all members knew of such protocols."""
        for name in sorted(self.heartbeats):
            heartbeat, node = self.heartbeats[name], self.state.nodes[name]
            found = sorted(set(heartbeat.protocols))
            if found != list(node.protocols) and len(found) <= PROTOCOLS_MAX:
                note = NoteProtocols(node=name, incarnation=heartbeat.incarnation, protocols=heartbeat.protocols)
                yield f"protocols {name}", Command(note_protocols=note)

    # ------------------------------------------------------------------------------------- what is under way

    def _record_lost(self) -> Iterator[Duty]:
        for name in sorted(self.heartbeats):
            heartbeat = self.heartbeats[name]
            if not heartbeat.damaged:
                continue
            damaged = frozenset(heartbeat.damaged)
            news = (
                group.id for group in self.groups if group.id in damaged and self._is_news(group, name, heartbeat)
            )
            # The rest next time.
            lost = list(islice(news, LOST_PER_COMMAND_MAX))
            if lost:
                record = RecordLost(node=name, incarnation=heartbeat.incarnation, groups=lost)
                yield f"lost {name}", Command(record_lost=record)

    def _is_news(self, group: Group, node: str, heartbeat: HeartbeatRequest) -> bool:
        loss = loss_of(group, node, heartbeat.incarnation)
        return loss.before or loss.now

    def _go_on(self, group: Group) -> Iterator[Duty]:
        yield from self._record_started(group)
        if not (group.HasField("next") and has_survivors(group)):
            return
        newcomers = kind_of(group).newcomers(group)
        if all(self._has_caught_up(group, name) for name in newcomers):
            begin = BeginConfiguration(group=group.id, configuration=group.next.number)
            yield f"change {group.id}", Command(begin_configuration=begin)
        elif any(self.duty.gone_for_s(name, self.now) >= self.settings.cancel_after_s for name in newcomers):
            yield f"change {group.id}", Command(cancel_change=CancelChange(group=group.id))

    def _record_started(self, group: Group) -> Iterator[Duty]:
        started = kind_of(group).started(group, partial(self._reported, group))
        if started:
            record = RecordStarted(group=group.id, configuration=group.configuration, members=started)
            yield f"started {group.id}", Command(record_started=record)

    def _reported(self, group: Group, name: str) -> GroupProgress:
        """What the node says of the group, in its present configuration."""
        progress = self.progress.get((name, group.id))
        is_present = progress is not None and progress.configuration == group.configuration
        return progress if progress is not None and is_present else GroupProgress()

    def _has_caught_up(self, group: Group, name: str) -> bool:
        """Whether it reports so since this change began: an earlier copy may have been cancelled."""
        node, heartbeat = self.state.nodes.get(name), self.heartbeats.get(name)
        if node is None or node.suspected or heartbeat is None or heartbeat.revision < group.revision:
            return False
        return self._reported(group, name).caught_up

    # ----------------------------------------------------------------------------------------- new changes

    def _restore(self) -> Iterator[Duty]:
        """Members that lost what they had, and are there, unless their kind of group takes them in by itself."""
        restored = [group for group in self.groups if is_changing(group) and _stays_in_place(group)]
        room = self.settings.moves_at_once - len(restored)
        wanted = (
            (group, name)
            for group in self._in_turn("restore")
            if kind_of(group).restores_lost
            for name in group.lost
            if not (self.state.nodes[name].suspected or self.state.nodes[name].ended)
        )
        yield from self._replacements("restore", wanted, room, in_place=True)

    def _relieve(self) -> Iterator[Duty]:
        """Draining nodes, and those that are missing for too long."""
        leaving = frozenset(name for name, node in self.state.nodes.items() if self._is_relieved(node))
        if not leaving:
            return
        under_way = [group for group in self.groups if _is_relieving(group, leaving)]
        room = self.settings.moves_at_once - len(under_way)
        groups = self._in_turn("relieve")
        wanted = ((group, name) for group in groups for name in kind_of(group).seats(group) if name in leaving)
        # Whoever is lost and has no other place stays, and is restored when it is there.
        yield from self._replacements("relieve", wanted, room, in_place=False)

    def _is_relieved(self, node: Node) -> bool:
        after_s = self.settings.replace_after_s
        return node.draining or (node.ended and 0 < after_s <= self.duty.gone_for_s(node.name, self.now))

    def _in_turn(self, purpose: str) -> list[Group]:
        first = self.duty.turn.get(purpose, "")
        return sorted(self.groups, key=lambda group: (group.name < first, group.name))

    def _replacements(
        self, purpose: str, wanted: Iterator[tuple[Group, str]], room: int, *, in_place: bool
    ) -> Iterator[Duty]:
        """As many as there is room for, of those for which there is a place."""
        tries = 0
        chosen: dict[str, None] = {}
        self.duty.turn.pop(purpose, None)
        for group, name in wanted:
            if len(chosen) >= room:
                return
            if group.id in chosen or is_changing(group):
                continue
            tries += 1
            if tries > TRIES_MAX:
                self.duty.turn[purpose] = group.name
                return
            change = ChangeReplicas(group=group.id, change=REPLICA_CHANGE_REPLACE, node=name)
            if self._is_possible(group, change, in_place):
                chosen[group.id] = None
                yield f"change {group.id}", Command(change_replicas=change)

    def _is_possible(self, group: Group, change: ChangeReplicas, in_place: bool) -> bool:
        try:
            configuration = prepared(group, change, self.cluster)
        except Refused:
            return False
        return in_place or change.node not in members_of(configuration)


def _stays_in_place(group: Group) -> bool:
    other = group.next if group.HasField("next") else group.previous
    return kind_of(group).restores_lost and members_of(group) == members_of(other)


def _is_relieving(group: Group, nodes: Container[str]) -> bool:
    """Whether a change is under way after which one of the nodes is no member any more."""
    if not is_changing(group):
        return False
    if group.HasField("next"):
        old, new = kind_of(group).seats(group), members_of(group.next)
    else:
        old, new = members_of(group.previous), kind_of(group).seats(group)
    return any(name in nodes and name not in new for name in old)
