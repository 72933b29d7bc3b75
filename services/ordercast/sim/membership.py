"""Membership, as far as groups come and go: it never errs here, but everyone hears of its changes at another time.

A group is created by a view that has it. To delete one it is closed first: gateways take nothing new for it. When
no process mentions it any more, the next views do not have it.
"""

import zlib
from random import Random

from ordercast.core.machine import NamesGroups
from ordercast.gateway.machine import Gateway
from ordercast.sim.process import Process
from ordercast.sim.world import World
from ordercast.v1.membership_pb2 import DomainView, GroupView

#: The longest time after which a process hears of a change. Most hear of it much sooner.
LATE_S_MAX = 1.5
#: From one change to the next: the others are about other domains, nodes, cursors.
REVISIONS = 3


class Membership:
    def __init__(self, world: World, view: DomainView, absent: dict[str, None]) -> None:
        """`absent` are the processes that will never come back: nobody waits for them."""
        self.world = world
        self.absent = absent
        self.groups = {group.group: group for group in view.groups}
        #: The latest view, always this object.
        self.view = DomainView()
        self.view.CopyFrom(view)
        #: Groups that are being deleted; those that are gone; and all that were not there from beginning to end.
        self.closed: dict[str, None] = {}
        self.gone: dict[str, None] = {}
        self.passing: dict[str, None] = {}
        #: After each change: the view, and the closed groups.
        self.history: list[tuple[DomainView, tuple[str, ...]]] = [(view, ())]
        #: How many there were, by kind.
        self.changes: dict[str, int] = {}
        #: Groups that nobody mentioned, and what had to be synced then for that to last.
        self._marks: dict[str, dict[str, tuple[int, int]]] = {}
        #: Where delays come from; a director tells everyone himself.
        self.random: Random | None = None
        world.news_for = self._news_for
        #: Groups that have changed their configuration.
        self.changed: dict[str, None] = {}
        world.may_lack = lambda process, group: group in self.passing and group not in process.groups
        world.may_differ = lambda: bool(self.changed)

    def can_spare(self, process: str) -> bool:
        """Whether it may be gone for good, as far as that is not for majorities to say."""
        return True

    def describe(self, view: DomainView) -> None:
        """Add what is true of the domain besides its groups."""

    # ----------------------------------------------------------------------------------------- changes

    def create(self, group: GroupView) -> None:
        self.groups[group.group] = group
        self.passing[group.group] = None
        self.change("group_created", group.group)

    def close(self, name: str) -> None:
        self.closed[name] = self.passing[name] = None
        self.change("group_closed", name)

    def remove_clear(self) -> None:
        """Remove what nobody mentioned at one moment, nor when all that was under way then is synced."""
        awaited = self._awaited()
        for name in list(self.closed):
            marks = self._marks.pop(name, None)
            if self.who_needs(name):
                continue
            if marks is None or any(process.incarnation != marks[process.name][0] for process in awaited):
                marks = {process.name: process.mark() for process in awaited}
            if all(process.has_synced(marks[process.name]) for process in awaited):
                self._remove(name)
            else:
                self._marks[name] = marks

    def who_needs(self, name: str) -> str:
        """Why the group cannot go yet, or an empty string."""
        for process in self._awaited():
            if not process.is_answering:
                return f"{process.name} does not answer"
            for role, slot in process.slots.items():
                machine = slot.machine
                if isinstance(machine, Gateway) and name not in machine.closed:
                    return f"{process.name} still takes messages for {name}"
                if isinstance(machine, NamesGroups) and machine.mentions(name):
                    return f"{process.name}/{role} mentions {name}"
        return ""

    def _awaited(self) -> list[Process]:
        return [process for name, process in self.world.processes.items() if name not in self.absent]

    def _remove(self, name: str) -> None:
        del self.groups[name], self.closed[name]
        self.gone[name] = None
        self.change("group_deleted", name)

    def change(self, kind: str, name: str) -> None:
        if kind not in ("group_created", "group_closed", "group_deleted"):
            self.changed[name] = None
        self.changes[kind] = self.changes.get(kind, 0) + 1
        number = self.view.number + REVISIONS
        view = DomainView(domain=self.view.domain, number=number, level=self.view.level)
        view.groups.extend(self.groups[name] for name in sorted(self.groups))
        self.describe(view)
        self.view.CopyFrom(view)
        self.history.append((view, tuple(self.closed)))
        self.world.note("****", f"{kind}: {name}")
        if self.random is not None:
            for process in self.world.processes:
                late_s = self.random.random() ** 2 * LATE_S_MAX
                self.world.after(late_s, self.tell, process, len(self.history) - 1)

    # ----------------------------------------------------------------------------------------- telling

    def tell(self, name: str, number: int) -> None:
        self.world.processes[name].follow(number, *self._heard_by(name, number))

    def _heard_by(self, name: str, number: int) -> tuple[DomainView, tuple[str, ...]]:
        """Besides, it has heard of revisions that are about something else, and some hear of more than others."""
        view, closed = self.history[number]
        heard = DomainView()
        heard.CopyFrom(view)
        heard.changed = view.number
        heard.number += zlib.crc32(f"{name} {number}".encode()) % REVISIONS
        return heard, closed

    def tell_all(self) -> None:
        for name in self.world.processes:
            self.tell(name, len(self.history) - 1)

    def _news_for(self, process: Process) -> tuple[int, DomainView, tuple[str, ...]]:
        """Who starts again knows at least what it knew."""
        number = len(self.history) - 1
        if self.random is not None and process.followed < number:
            number = self.random.randint(process.followed, number)
            self.world.after(self.random.random() * LATE_S_MAX, self.tell, process.name, len(self.history) - 1)
        return (number, *self._heard_by(process.name, number))

    def who_is_late(self) -> str:
        """Who has not heard of everything yet, or an empty string."""
        late = (p.name for p in self.world.processes.values() if p.up and p.followed < len(self.history) - 1)
        return next(late, "")
