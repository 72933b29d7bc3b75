"""Membership takes groups from view to view, under faults of its members and with nodes that come and go.

The nodes here run no protocol: they say that they have the cut, have installed a view or copied a log some time
after they should. The promises that are checked: a view is defined only if a majority of the last completed one
has its say; one is completed only while it is the latest, and only if a majority of its members, in the lives that
are meant, has said to have the cut; and once all is calm, every group is in a view, installed by all, of those of
its placement that are there.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from ordercast.core.errors import InvariantBroken
from ordercast.core.members import kind_of, learners_of
from ordercast.core.quorums import has_majority, majority
from ordercast.membership import changing_views, view_duties
from ordercast.membership.changes import has_survivors, loss_of
from ordercast.membership.machine import ROLE, HeartbeatReceived
from ordercast.membership.settings import LEVEL
from ordercast.membership.state import Code, State
from ordercast.v1.membership_pb2 import (
    REPLICA_CHANGE_ADD,
    REPLICA_CHANGE_REMOVE,
    REPLICA_CHANGE_REPLACE,
    ChangeReplicas,
    Command,
    CommandResult,
    CreateDomain,
    CreateGroup,
    DefineView,
    Group,
    GroupProgress,
    HeartbeatRequest,
    RegisterNode,
)
from tests.sim.test_membership import ALL, Client, Ledger, Run, Violation

NODES = ("v0", "v1", "v2", "v3", "v4")
GROUPS = ("w0", "w1", "w2")
BEAT_S = 0.05
CHANGES = (REPLICA_CHANGE_ADD, REPLICA_CHANGE_REMOVE, REPLICA_CHANGE_REPLACE)


@dataclass
class ViewLedger(Ledger):
    #: (group id, view, node, incarnation): who has said to have the cut.
    have_cut: set[tuple[str, int, str, int]] = field(default_factory=set)
    #: How many views were defined and completed.
    defined: dict[tuple[str, int], None] = field(default_factory=dict)
    completed: dict[tuple[str, int], None] = field(default_factory=dict)

    def ran(self, slot: int, command: Command, result: CommandResult) -> None:
        super().ran(slot, command, result)
        kind = command.WhichOneof("what")
        if result.code == Code.OK and kind == "define_view":
            self._check_defined(command.define_view, result.group)
        elif result.code == Code.OK and kind == "complete_view":
            self._check_completed(command.complete_view.number, result.group)

    def _check_defined(self, view: DefineView, group: Group) -> None:
        self.defined[group.id, view.number] = None
        there = [name for name in (*view.members, *view.leaving) if name not in group.previous.lost]
        if not has_majority(group.previous.replicas, there):
            raise Violation(f"view {view.number} of {group.name} follows without a majority")
        if (group.id, group.previous.number) not in self.completed and group.previous.number > 1:
            raise Violation(f"view {group.previous.number} of {group.name} was never completed")

    def _check_completed(self, number: int, group: Group) -> None:
        self.completed[group.id, number] = None
        if number != group.configuration:
            raise Violation(f"view {number} of {group.name} was completed after {group.configuration}")
        members = zip(group.replicas, group.incarnations, strict=True)
        have = sum((group.id, number, name, life) in self.have_cut for name, life in members)
        if have < majority(len(group.replicas)):
            raise Violation(f"view {number} of {group.name} was completed, and {have} members had the cut")


class ViewClient(Client):
    """Starts nodes, creates groups with views, and changes where they are."""

    def begin(self) -> None:
        if self.run.world.now >= self.run.healing_at:
            self.command = None
            return
        self.count += 1
        self.asked_at = self.run.world.now
        self.command = Command(request_id=b"%d/%d" % (self.number, self.count))
        index = self.number - 100
        if self.count == 1 or self.random.random() < 0.2:
            name = NODES[index]
            node = RegisterNode(name=name, node_id=name.encode(), services=ALL, peer_address="n:1", level=LEVEL)
            self.command.register.CopyFrom(node)
        elif self.random.random() < 0.3:
            self.command.create_domain.CopyFrom(CreateDomain(name="v", protocol="isis"))
        elif self.random.random() < 0.5:
            group = CreateGroup(name=self.random.choice(GROUPS), domain="v", replicas=3)
            self.command.create_group.CopyFrom(group)
        else:
            change = ChangeReplicas(group=self.random.choice(GROUPS), change=self.random.choice(CHANGES))
            self.command.change_replicas.CopyFrom(change)
        self.ask(None)


class ViewRun(Run):
    ledger: ViewLedger

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.ledger = ViewLedger()
        self.random = Random(f"{seed}/nodes")
        #: By node: until when it is silent, or says that it leaves.
        self.silent_until: dict[str, float] = {}
        self.leaving_until: dict[str, float] = {}
        #: When each of them has what it needs for a view, or to be taken into one.
        self.ready: dict[tuple[str, int, str, int], float] = {}
        #: One of them loses what it had stored.
        self.damaged = self.random.choice([None, *NODES])
        self.damaged_at = self.random.uniform(0.5, self.healing_at)
        clients = [ViewClient(self, 100 + number) for number in range(len(NODES))]
        self.clients += clients
        for client in clients:
            self.world.at(0.1, client.begin)
        self.world.at(0.2, self._beats)

    def _heartbeats(self) -> None:
        """Of the other run: here all nodes say what is true."""

    def _beats(self) -> None:
        is_calm = self.world.now >= self.healing_at
        for node in (*NODES, "n0", "n1"):
            if not is_calm and self.random.random() < 0.02:
                self.silent_until[node] = self.world.now + self.random.choice([0.3, 0.8, 1.5])
            if not is_calm and self.random.random() < 0.005:
                self.leaving_until[node] = self.world.now + 0.4
            if is_calm or self.silent_until.get(node, 0.0) <= self.world.now:
                self._beat(node, is_leaving=not is_calm and self.leaving_until.get(node, 0.0) > self.world.now)
        self.world.after(BEAT_S, self._beats)

    def _beat(self, node: str, *, is_leaving: bool) -> None:
        """To everyone, who may be the leader, with what each of them has told it."""
        for member in self.members:
            process = self.world.processes[member]
            if not process.up:
                continue
            state = self._machine(member).state
            if node not in state.nodes:
                continue
            request = HeartbeatRequest(
                name=node,
                incarnation=state.nodes[node].incarnation,
                revision=state.revision,
                oldest_open=2**40,
                leaving=is_leaving,
                level=LEVEL,
            )
            for name in sorted(state.groups):
                if self._is_damaged(node, request.incarnation, state.groups[name]):
                    request.damaged.append(state.groups[name].id)
                request.progress.extend(self._progress(node, request.incarnation, state.groups[name]))
            process.tell(ROLE, HeartbeatReceived(*process.clock(), request))

    def _is_damaged(self, node: str, life: int, group: Group) -> bool:
        """Whatever it holds at that time, until membership has noted it."""
        if node != self.damaged or not self.damaged_at <= self.world.now < self.damaged_at + 0.5:
            return False
        loss = loss_of(group, node, life)
        return kind_of(group).follows_processes and (loss.before or loss.now)

    def _progress(self, node: str, life: int, group: Group) -> list[GroupProgress]:
        if node not in (*group.starting, *learners_of(group)):
            return []
        key = (group.id, group.configuration, node, life)
        if key not in self.ready:
            self.ready[key] = self.world.now + self.random.choice([0.0, 0.05, 0.3])
        is_ready = self.world.now >= self.ready[key]
        progress = GroupProgress(group=group.id, configuration=group.configuration, started=is_ready)
        progress.caught_up = is_ready and (not group.HasField("previous") or node in learners_of(group))
        if is_ready:
            self.ledger.have_cut.add(key)
        return [progress]

    def _rests(self, alive: list[str]) -> bool:
        state = self._machine(alive[0]).state
        return super()._rests(alive) and all(self._is_in_view(state, group) for group in state.groups.values())

    def _is_in_view(self, state: State, group: Group) -> bool:
        if not kind_of(group).follows_processes or not has_survivors(group):
            return True
        if group.HasField("previous") or group.HasField("next") or group.starting or group.lost:
            return False
        up = [n for n in group.placement if not (state.nodes[n].suspected or state.nodes[n].ended)]
        lives = [state.nodes[name].incarnation for name in up]
        return list(group.replicas) == up and list(group.incarnations) == lives


def violation_of(seed: int) -> str | None:
    try:
        ViewRun(seed).judge()
    except (Violation, InvariantBroken) as error:
        return f"seed {seed}: {error}"
    return None


@pytest.mark.parametrize("block", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_views_follow_each_other_as_they_may_under_faults(block):
    assert [found for seed in range(block * 8, block * 8 + 8) if (found := violation_of(seed))] == []


def test_the_runs_have_views_that_are_completed_and_some_that_are_not():
    run = ViewRun(3)
    run.judge()
    assert len(run.ledger.defined) > len(run.ledger.completed) > 5


# ------------------------------------------------------------------------------------------------- mutants

_complete = changing_views.complete


def anything_has_its_say(group: Group, names: Any) -> None:
    pass


def whoever_is_there(now: Any, completed: Any, placement: Any, alive: dict[str, int], lost: Any) -> Any:
    """Without asking for a majority."""
    members = tuple(sorted(name for name in placement if name in alive))
    found = view_duties.Defined(members, tuple(alive[name] for name in members))
    is_same = (found.members, found.incarnations) == (now.members, now.incarnations)
    return found if members and not is_same else None


def complete_with_one(members: Any, have_cut: Any) -> bool:
    return bool(have_cut)


def reports_of_any_view(self: Any, group: Group, name: str) -> tuple[int, GroupProgress]:
    lives = dict(zip(group.replicas, group.incarnations, strict=True))
    found = self.progress.get((name, group.id))
    return (lives.get(name, 0), found[1]) if found is not None else (0, GroupProgress())


def newcomers_never(self: Any, group: Group, lost: Any) -> list[str]:
    return [name for name in group.placement if name in group.replicas]


def newcomers_wait_for_ever(self: Any, group: Group, lost: Any) -> list[str]:
    """For a view that is under way, though nobody is left who could complete it."""
    known = (*group.replicas, *group.previous.replicas)
    found = [name for name in group.placement if name not in self.leaving]
    is_changing = group.HasField("previous")
    return [n for n in found if n in known or (not is_changing and self._reported(group, n)[1].caught_up)]


MISTAKES: list[list[tuple[Any, str, Callable[..., Any]]]] = [
    [
        (changing_views, "_check_has_a_say", anything_has_its_say),
        (view_duties, "next_view", whoever_is_there),
    ],
    [(view_duties, "may_complete", complete_with_one)],
    [(view_duties._ViewRound, "_reported", reports_of_any_view)],
    [(view_duties._ViewRound, "_candidates", newcomers_never)],
    # About one seed in forty shows it.
    pytest.param([(view_duties._ViewRound, "_candidates", newcomers_wait_for_ever)], marks=pytest.mark.long),
]


@pytest.mark.parametrize("mistakes", MISTAKES, ids=lambda mistakes: mistakes[-1][2].__name__)
def test_a_mistake_with_views_is_noticed(mistakes, monkeypatch):
    for owner, name, mistake in mistakes:
        monkeypatch.setattr(owner, name, mistake)
    assert any(violation_of(seed) for seed in range(40))
