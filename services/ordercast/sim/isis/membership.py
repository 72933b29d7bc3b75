"""Membership as the views of virtually synchronous groups need it: it suspects, defines and completes.

Its rules are the service's own (membership/views.py), and its failure detector errs.
"""

from collections.abc import Callable, Iterable
from random import Random

from ordercast.core.machine import Progress
from ordercast.membership.views import Defined, may_complete, next_view
from ordercast.protocols.isis.machine import Isis
from ordercast.sim.membership import Membership
from ordercast.sim.suspicion import Suspicion
from ordercast.sim.world import World
from ordercast.v1.membership_pb2 import Configuration, DomainView, GroupView

LOOK_S = 0.02


class ViewMembership(Membership):
    def __init__(self, world: World, view: DomainView, absent: dict[str, None]) -> None:
        super().__init__(world, view, absent)
        #: Where each group should be, which is where it began, until somebody changes it.
        self.placement = {group.group: list(group.replicas) for group in view.groups}
        self.suspicion = Suspicion(world, "isis")
        #: Reports that a view can be completed are on their way for a while.
        self._reported: dict[tuple[str, int], None] = {}
        #: By group and view: the epoch of its cut.
        self._epochs: dict[tuple[str, int], int] = {}
        self.delays: Random | None = None
        #: Every view that was defined, and the members of those that were completed.
        self.defined: dict[tuple[str, int], Defined] = {}
        self.completed: dict[str, list[int]] = {group: [1] for group in self.groups}
        self.changed.update(dict.fromkeys(self.groups))
        self.tell_checkers: Callable[[GroupView], None] = lambda group: None

    def change(self, kind: str, name: str) -> None:
        self.tell_checkers(self.groups[name])
        super().change(kind, name)

    def found(self) -> None:
        """The first views: everyone is about to start, one after the other."""
        lives = {name: index + 1 for index, name in enumerate(self.world.processes)}
        for group in self.groups.values():
            group.incarnations[:] = [lives[name] for name in group.replicas]
            self.defined[(group.group, group.configuration)] = self._defined(group)
        self.view.ClearField("groups")
        self.view.groups.extend(self.groups[name] for name in sorted(self.groups))
        first = DomainView()
        first.CopyFrom(self.view)
        self.history[0] = (first, ())

    # ---------------------------------------------------------------------------------------------- views

    def look(self) -> None:
        self.suspicion.look()
        for name in sorted(self.groups):
            group = self.groups[name]
            self._look_for_completion(group)
            self._look_for_change(group)

    def _progress(self, group: GroupView) -> dict[str, Progress]:
        """Of members that answer."""
        found = {}
        for name, incarnation in zip(group.replicas, group.incarnations, strict=True):
            process = self.world.processes[name]
            if process.is_answering and self.suspicion.alive.get(name) == process.incarnation == incarnation:
                machine = process.slots["isis"].machine
                assert isinstance(machine, Isis)
                progress = machine.progress().get(group.group)
                if progress is not None and progress.configuration == group.configuration:
                    found[name] = progress
        return found

    def _look_for_completion(self, group: GroupView) -> None:
        progress = self._progress(group)
        if group.HasField("previous"):
            have = [name for name, found in progress.items() if found.started]
            key = (group.group, group.configuration)
            if self.may_complete(list(group.replicas), have) and key not in self._reported:
                self._reported[key] = None
                self._epochs[key] = max(progress[name].epoch for name in have)
                self.world.after(self._delay(), self.complete, *key)
        else:
            starting = [n for n in group.starting if n not in progress or not progress[n].caught_up]
            if starting != list(group.starting):
                group.starting[:] = starting
                self.change("view_installed", group.group)

    def may_complete(self, members: list[str], have_cut: list[str]) -> bool:
        return may_complete(members, have_cut)

    def complete(self, name: str, number: int) -> None:
        """Refused once a later view is defined: its flush may have begun without what this one completes."""
        group = self.groups[name]
        if self.is_void(group, number):
            return
        group.ClearField("previous")
        del group.leaving[:]
        group.epoch = max(group.epoch, self._epochs[(name, number)])
        self.completed[name].append(number)
        self.change("view_completed", name)

    def is_void(self, group: GroupView, number: int) -> bool:
        return group.configuration != number or not group.HasField("previous")

    def _look_for_change(self, group: GroupView) -> None:
        completed = group.previous if group.HasField("previous") else None
        members = list(completed.replicas) if completed is not None else list(group.replicas)
        found = self.next_view(group, members)
        if found is not None and self._is_new(found):
            self._define(group, found)

    def next_view(self, group: GroupView, completed: list[str]) -> Defined | None:
        return next_view(self._defined(group), completed, self.placement[group.group], self.suspicion.alive)

    def _is_new(self, found: Defined) -> bool:
        """Not at once: changes pile up for a moment."""
        return self.delays is None or self.delays.random() < 0.5

    def _define(self, group: GroupView, found: Defined) -> None:
        if not group.HasField("previous"):
            previous = Configuration(number=group.configuration, replicas=group.replicas)
            group.previous.CopyFrom(previous)
        group.configuration += 1
        group.replicas[:], group.incarnations[:] = found.members, found.incarnations
        group.leaving[:], group.starting[:] = found.leaving, found.members
        group.learners[:] = [n for n in sorted(self.placement[group.group]) if n not in found.members]
        self.defined[(group.group, group.configuration)] = found
        self.change("view_defined", group.group)

    def _defined(self, group: GroupView) -> Defined:
        return Defined(tuple(group.replicas), tuple(group.incarnations), tuple(group.leaving))

    def _delay(self) -> float:
        return self.delays.uniform(0.001, 0.1) if self.delays is not None else 0.001

    # ------------------------------------------------------------------------------------------ placement

    def can_spare(self, process: str) -> bool:
        """Each group is still to be where somebody is."""
        return all(self.can_be_at(p for p in placement if p != process) for placement in self.placement.values())

    def can_be_at(self, placement: Iterable[str]) -> bool:
        return any(name not in self.absent for name in placement)

    def place(self, name: str, placement: list[str]) -> None:
        self.placement[name] = placement
        self.groups[name].learners[:] = [n for n in sorted(placement) if n not in self.groups[name].replicas]
        self.change("placed", name)

    def unfinished(self) -> str:
        """Why views are not at rest, or an empty string."""
        for name, group in self.groups.items():
            if group.HasField("previous"):
                return f"view {group.configuration} of {name} is not complete"
            if group.starting:
                return f"{group.starting[0]} has not installed view {group.configuration} of {name}"
            if self.next_view(group, list(group.replicas)) is not None:
                return f"{name} should have another view than {group.configuration}"
        return ""
