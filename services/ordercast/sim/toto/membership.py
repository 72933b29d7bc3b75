"""Membership of a domain that has one view for all its groups: it suspects, defines and completes."""

from collections.abc import Iterable, Sequence
from random import Random

from ordercast.core.quorums import has_majority
from ordercast.protocols.toto.machine import Toto
from ordercast.sim.membership import Membership
from ordercast.sim.suspicion import Suspicion
from ordercast.sim.world import World
from ordercast.v1.membership_pb2 import DomainView, ProcessView

LOOK_S = 0.02
ROLE = "toto"


class DomainMembership(Membership):
    def __init__(self, world: World, view: DomainView, absent: dict[str, None]) -> None:
        super().__init__(world, view, absent)
        self.processes = ProcessView()
        self.processes.CopyFrom(view.processes)
        self.suspicion = Suspicion(world, ROLE)
        self.delays: Random | None = None
        self._reported = 0

    def describe(self, view: DomainView) -> None:
        view.processes.CopyFrom(self.processes)

    def look(self) -> None:
        self.suspicion.look()
        self.look_for_completion()
        self.look_for_change()

    # ------------------------------------------------------------------------------------------- completing

    def look_for_completion(self) -> None:
        number = self.processes.number
        if not self.processes.previous or self._reported == number:
            return
        started = [name for name in self.processes.names if self._started(name) == number]
        if self.may_complete(started):
            self._reported = number
            self.world.after(self._delay(), self.complete, number)

    def _started(self, name: str) -> int:
        process = self.world.processes[name]
        if not process.is_answering or name not in self.suspicion.alive:
            return 0
        machine = process.slots[ROLE].machine
        assert isinstance(machine, Toto)
        return machine.started

    def may_complete(self, started: Sequence[str]) -> bool:
        """A majority of the view, and of each group's replicas, has the whole past of the view on disk."""
        return has_majority(self.processes.names, started) and self._keeps_groups(started)

    def _keeps_groups(self, names: Sequence[str]) -> bool:
        return all(has_majority(group.replicas, names) for group in self.groups.values())

    def complete(self, number: int) -> None:
        """Refused once a later view is defined: its flush may have begun without what this one completes."""
        if self.is_void(number):
            return
        self.processes.previous = 0
        del self.processes.previous_names[:]
        self.change("view_completed", f"view {number}")

    def is_void(self, number: int) -> bool:
        return self.processes.number != number or not self.processes.previous

    # --------------------------------------------------------------------------------------------- defining

    @property
    def completed(self) -> list[str]:
        """The members of the last completed view."""
        return list(self.processes.previous_names if self.processes.previous else self.processes.names)

    def look_for_change(self) -> None:
        names = list(self.processes.names)
        if self.processes.previous and all(name in self.suspicion.alive for name in names):
            return  # It is under way.
        found = self.next_view(self.completed)
        if found and found != names and (self.delays is None or self.delays.random() < 0.5):
            self.define(found)

    def next_view(self, completed: Sequence[str]) -> list[str]:
        """Survivors are a majority of the view before and of the new one, and hold a majority of each group."""
        survivors = [name for name in completed if name in self.suspicion.alive]
        if not self.may_go_on(completed, survivors):
            return []
        newcomers = [name for name in sorted(self.suspicion.alive) if name not in completed]
        return sorted([*survivors, *newcomers[: len(survivors) - 1]])

    def may_go_on(self, completed: Sequence[str], survivors: Sequence[str]) -> bool:
        return has_majority(completed, survivors) and self._keeps_groups(survivors)

    def define(self, names: Iterable[str]) -> None:
        processes = self.processes
        if not processes.previous:
            processes.previous, processes.previous_names[:] = processes.number, processes.names
        processes.number += 1
        processes.names[:] = names
        self.change("view_defined", f"view {processes.number}")

    def _delay(self) -> float:
        return self.delays.uniform(0.001, 0.1) if self.delays is not None else 0.001

    # ------------------------------------------------------------------------------------------ for faults

    def can_spare(self, process: str) -> bool:
        """The domain goes on without it, whatever has been lost already."""
        left = [name for name in self.completed if name != process and name not in self.absent]
        return self.may_go_on(self.completed, left)

    def unfinished(self) -> str:
        """Why views have not come to rest, or an empty string."""
        if self.processes.previous:
            return f"view {self.processes.number} is not complete"
        for name, process in self.world.processes.items():
            if ROLE not in process.factories or not process.up:
                continue
            if name not in self.processes.names:
                return f"{name} is not in view {self.processes.number}"
            if self._started(name) != self.processes.number:
                return f"{name} has not entered view {self.processes.number}"
        gone = [name for name in self.processes.names if name in self.absent]
        return f"{gone[0]} is gone, and in view {self.processes.number}" if gone else ""
