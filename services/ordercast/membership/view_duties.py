"""The leader's duties about views: who is in the next one, whether the latest is complete, who has installed it.

[BSS91 7.4] Failure information comes from heartbeats, and may be wrong. A view that follows from a wrong belief
costs time and nothing else: those that were left out copy the log, and come back. Exclusion is of a process, in
the life that it has, from all its groups at once: the beliefs are the same for all of them, and so is the round.

Nothing here is remembered. What is agreed and what was heard last say what has to be done; a new leader goes on
when it has heard the same.
"""

from collections.abc import Collection, Iterator, Mapping

from ordercast.core.members import kind_of
from ordercast.core.members.views import completed_of, lost_in
from ordercast.membership.commands import VIEWS_LEVEL
from ordercast.membership.state import State
from ordercast.membership.views import Defined, may_complete, next_view
from ordercast.v1.membership_pb2 import (
    Command,
    CompleteView,
    DefineView,
    Group,
    GroupProgress,
    HeartbeatRequest,
    RecordStarted,
)

#: What a heartbeat says that views depend on: which group, in which view, has the cut, has installed or copied.
Reports = tuple[tuple[str, int, bool, bool], ...]


def reports_in(heartbeat: HeartbeatRequest) -> Reports:
    return tuple((one.group, one.configuration, one.started, one.caught_up) for one in heartbeat.progress)


def view_duties(
    state: State, heartbeats: Mapping[str, HeartbeatRequest], leaving: Collection[str]
) -> Iterator[tuple[str, Command]]:
    """`heartbeats` are the latest ones, of nodes that are there in the incarnation that sent them; those in
    `leaving` are about to stop, and take part until views go on without them.
    """
    groups = [group for group in state.placed() if kind_of(group).follows_processes]
    if groups and state.level >= VIEWS_LEVEL:
        round_ = _ViewRound(state, heartbeats, leaving)
        for group in groups:
            yield from round_.duties(group)


class _ViewRound:
    def __init__(self, state: State, heartbeats: Mapping[str, HeartbeatRequest], leaving: Collection[str]) -> None:
        self.leaving = leaving
        #: Who is believed to be up, in which life.
        self.alive = {
            name: node.incarnation
            for name, node in state.nodes.items()
            if "sequencer" in node.services and not node.ended and (not node.suspected or name in leaving)
        }
        #: (node, group id) -> in which life, and how far it is.
        self.progress = {
            (name, progress.group): (heartbeat.incarnation, progress)
            for name, heartbeat in heartbeats.items()
            for progress in heartbeat.progress
        }

    def duties(self, group: Group) -> Iterator[tuple[str, Command]]:
        """One of define and complete at a time: what may be defined depends on what is complete."""
        number = group.configuration
        about = f"view {group.id}"
        if group.HasField("previous"):
            lost = lost_in(group)
            have_cut = [
                name for name in group.replicas if name not in lost and self._of_member(group, name).started
            ]
            if may_complete(group.replicas, have_cut):
                epoch = max(self._of_member(group, name).epoch for name in have_cut)
                complete = CompleteView(group=group.id, number=number, epoch=epoch)
                yield about, Command(complete_view=complete)
                return
        else:
            installed = [name for name in group.starting if self._of_member(group, name).caught_up]
            if installed:
                record = RecordStarted(group=group.id, configuration=number, members=installed)
                yield f"started {group.id}", Command(record_started=record)
        found = self._next_view(group)
        if found is not None:
            view = DefineView(
                group=group.id,
                number=number + 1,
                members=found.members,
                incarnations=found.incarnations,
                leaving=found.leaving,
            )
            yield about, Command(define_view=view)

    def _next_view(self, group: Group) -> Defined | None:
        now = Defined(tuple(group.replicas), tuple(group.incarnations), tuple(group.leaving))
        completed, lost = completed_of(group).replicas, lost_in(group)
        return next_view(now, completed, self._candidates(group, lost), self.alive, lost)

    def _candidates(self, group: Group, lost: Collection[str]) -> list[str]:
        """Who may be in the next view: those of the placement that have the log, or can be expected to have it.

        A newcomer copies it first: as a member it would keep the others waiting meanwhile, who hold on to what it
        has not received. And it waits for the view that is under way, which it would make void, unless there is
        nobody else. Members of the last completed view never wait: without them there may be no majority.

        Where nobody of the placement can be in it, the others stay. View 1 = {a, b, c}; a and b are removed, and c
        loses its disk; view 2 = {b} with a leaving is defined, and b restarts. Nobody is left who could complete
        that, and c comes back only behind a view without it: view 3 = {a, b}.
        """
        staying = [name for name in group.placement if name not in self.leaving]
        completed = completed_of(group).replicas
        known = (*group.replicas, *completed)

        def are_there(names: Collection[str]) -> bool:
            return any(name in self.alive and name not in lost for name in names)

        members = [name for name in staying if name in known]
        if not (group.HasField("previous") and are_there(members)):
            members = [name for name in staying if name in known or self._reported(group, name)[1].caught_up]
        return members if are_there(members) else [name for name in completed if name not in self.leaving]

    def _of_member(self, group: Group, name: str) -> GroupProgress:
        """What the member of the view says of it, if it is in the life that is meant."""
        life, progress = self._reported(group, name)
        lives = dict(zip(group.replicas, group.incarnations, strict=True))
        return progress if life == lives[name] else GroupProgress()

    def _reported(self, group: Group, name: str) -> tuple[int, GroupProgress]:
        found = self.progress.get((name, group.id))
        is_present = found is not None and found[1].configuration == group.configuration
        return found if found is not None and is_present else (0, GroupProgress())
