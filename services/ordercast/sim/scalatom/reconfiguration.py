"""Membership, as far as configurations change: newcomers copy the log, a configuration begins, its members start.

As with groups that come and go, membership never errs here, but it looks at the processes only now and then, and
everyone hears of its changes at another time. Which process does what is drawn beforehand; what cannot be done at
that time is left out.
"""

from collections.abc import Callable, Collection
from random import Random

from ordercast.core.machine import ChangesConfigurations, Progress
from ordercast.core.quorums import has_majority, majority
from ordercast.sim.membership import Membership
from ordercast.sim.process import Process
from ordercast.sim.world import World
from ordercast.v1.membership_pb2 import Configuration, GroupView

Members = tuple[tuple[str, ...], tuple[str, ...]]


class Reconfiguration:
    def __init__(self, world: World, membership: Membership, tell_checkers: Callable[[GroupView], None]) -> None:
        self.world = world
        self.membership = membership
        self.tell_checkers = tell_checkers
        #: Replicas and acceptors of the configuration that is prepared, by group.
        self.next: dict[str, Members] = {}
        #: (group, configuration, process) that were seen to have started, and what had to be synced for that to
        #: last.
        self._marks: dict[tuple[str, int, str], tuple[int, int]] = {}

    # ----------------------------------------------------------------------------------------- changes

    def group(self, name: str) -> GroupView:
        group = GroupView()
        group.CopyFrom(self.membership.groups[name])
        return group

    def may_change(self, name: str) -> bool:
        """One change at a time, and the next when a majority has started."""
        membership = self.membership
        if name not in membership.groups or name in membership.closed or name in self.next:
            return False
        return not membership.groups[name].HasField("previous")

    def prepare(self, name: str, replicas: tuple[str, ...], acceptors: tuple[str, ...]) -> None:
        if not self.may_change(name) or not self.can_work(replicas, acceptors):
            return
        self.next[name] = (tuple(sorted(replicas)), tuple(sorted(acceptors)))
        group = self.group(name)
        learners = [p for p in self.next[name][0] if p not in group.replicas or p in group.lost]
        if not learners:
            self.begin(name)
            return
        group.learners.extend(learners)
        self._publish("change_prepared", group)

    def can_work(self, *roles: Collection[str]) -> bool:
        """Membership begins no configuration in which those who are gone for good leave no majority of a role."""
        there = [name for name in self.world.processes if name not in self.membership.absent]
        return all(has_majority(members, there) for members in roles)

    def cancel(self, name: str) -> None:
        del self.next[name]
        group = self.group(name)
        del group.learners[:]
        self._publish("change_cancelled", group)

    def begin(self, name: str) -> None:
        replicas, acceptors = self.next.pop(name)
        old = self.group(name)
        previous = Configuration(
            number=old.configuration, replicas=old.replicas, acceptors=old.acceptors, lost=old.lost
        )
        group = GroupView(
            group=name,
            configuration=old.configuration + 1,
            replicas=replicas,
            acceptors=acceptors,
            previous=previous,
            starting=sorted({*replicas, *acceptors}),
        )
        self._publish("configuration_begun", group)

    def record_started(self, name: str, members: list[str]) -> None:
        group = self.group(name)
        starting = [p for p in group.starting if p not in members]
        del group.starting[:]
        group.starting.extend(starting)
        kind = "member_started"
        if group.HasField("previous") and self.has_started(group):
            group.ClearField("previous")
            kind = "configuration_started"
        self._publish(kind, group)

    def has_started(self, group: GroupView) -> bool:
        started = [p for p in (*group.replicas, *group.acceptors) if p not in group.starting]
        return has_majority(group.replicas, started) and has_majority(group.acceptors, started)

    def lose_disk(self, process: str) -> None:
        """It comes back without it, as somebody new. Unless that would be too many of some group."""
        groups = [
            g
            for g in self.membership.groups.values()
            if process in (*g.replicas, *g.acceptors, *g.previous.replicas, *g.previous.acceptors)
        ]
        if not all(self._can_lose(group, process) for group in groups):
            return
        for name in [g.group for g in groups]:
            group = self.group(name)
            group.lost.append(process)
            self._publish("disk_lost", group)
        self.world.processes[process].wipe(len(self.membership.history) - 1)

    def _can_lose(self, group: GroupView, process: str) -> bool:
        if not self.may_change(group.group) or process in group.lost or group.starting:
            return False
        for members in (group.replicas, group.acceptors):
            left = [p for p in members if p != process and p not in group.lost and p not in self.membership.absent]
            if process in members and len(left) < majority(len(members)):
                return False
        return True

    def replace_lost(self) -> None:
        """Who came back without its disk starts afresh, in the same place."""
        for name, group in list(self.membership.groups.items()):
            gone = [process for process in group.lost if process in self.membership.absent]
            if len(group.lost) > len(gone) and self.may_change(name):
                replicas, acceptors = (
                    [p for p in all_ if p not in gone] for all_ in (group.replicas, group.acceptors)
                )
                self.prepare(name, tuple(replicas), tuple(acceptors))

    def _publish(self, kind: str, group: GroupView) -> None:
        self.tell_checkers(group)
        self.membership.groups[group.group] = group
        self.membership.change(kind, group.group)

    # ----------------------------------------------------------------------------------------- looking

    def look(self) -> None:
        """At everyone who has to get somewhere."""
        for name in list(self.next):
            if name not in self.membership.groups or name in self.membership.closed:
                self.cancel(name) if name in self.membership.groups else self.next.pop(name)
                continue
            group = self.membership.groups[name]
            if any(p in self.membership.absent for p in group.learners) or not self.can_work(*self.next[name]):
                self.cancel(name)
            elif all(self._progress(p, group, "scalatom", "caught_up") for p in group.learners):
                self.begin(name)
        for name in list(self.membership.groups):
            group = self.membership.groups[name]
            started = [p for p in group.starting if self._has_started(p, group)]
            if started:
                self.record_started(name, started)
        self.replace_lost()

    def _has_started(self, process: str, group: GroupView) -> bool:
        """In every role that it has; and it will not have forgotten that after a crash."""
        roles = [("scalatom", group.replicas), ("acceptor", group.acceptors)]
        if not all(self._progress(process, group, role, "started") for role, all_ in roles if process in all_):
            return False
        key = (group.group, group.configuration, process)
        there = self.world.processes[process]
        mark = self._marks.get(key)
        if mark is None or mark[0] != there.incarnation:
            mark = self._marks[key] = there.mark()
        return there.has_synced(mark)

    def _progress(self, process: str, group: GroupView, role: str, what: str) -> bool:
        there: Process = self.world.processes[process]
        machine = there.slots[role].machine if there.is_answering else None
        if not isinstance(machine, ChangesConfigurations):
            return False
        progress: Progress | None = machine.progress().get(group.group)
        return progress is not None and progress.configuration == group.configuration and getattr(progress, what)

    def unfinished(self) -> str:
        """Why changes are not over, or an empty string."""
        for name, group in self.membership.groups.items():
            if name in self.next or group.HasField("previous"):
                return f"a change of {name} is not over"
            waiting = [p for p in (*group.starting, *group.lost) if p not in self.membership.absent]
            if waiting:
                return f"{waiting[0]} has not started in {name}"
        return ""


# ------------------------------------------------------------------------------------------------- drawing


def draw_members(random: Random, group: GroupView, nodes: list[str]) -> Members:
    """Mostly one other replica, or one more, or one less; sometimes anybody."""
    replicas, others = list(group.replicas), [node for node in nodes if node not in group.replicas]
    kind = random.random()
    if kind < 0.5 and others:
        replicas.remove(random.choice(replicas))
        replicas.append(random.choice(others))
    elif kind < 0.65 and others:
        replicas.append(random.choice(others))
    elif kind < 0.8 and len(replicas) > 1:
        replicas.remove(random.choice(replicas))
    else:
        replicas = random.sample(nodes, min(len(nodes), random.choice([1, 3, 3, 5])))
    acceptors = replicas
    if random.random() < 0.3:
        acceptors = random.sample(nodes, min(3, len(nodes)))
    return tuple(sorted(replicas)), tuple(sorted(acceptors))
