"""Thousands of commands in any order, sensible or not, and what has to hold after each; and proof that it is seen.

The checks keep books of their own: they read the commands and the outcome, and ask the code under test nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from ordercast.membership import changes, commands
from ordercast.membership import settings as limits
from ordercast.membership.state import Code, State
from ordercast.v1.membership_pb2 import (
    BeginConfiguration,
    CancelChange,
    ChangeReplicas,
    Command,
    CommandResult,
    Configuration,
    CreateGroup,
    DeleteGroup,
    DrainNode,
    EndIncarnation,
    GiveUpDisk,
    Group,
    MarkNode,
    RecordLost,
    RecordStarted,
    RegisterNode,
    RemoveGroup,
    RemoveNode,
)
from tests.unit.test_membership_state import Cluster

NAMES = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
GROUPS = ("x", "y", "z")
BOTH = ("consensus", "sequencer")
KINDS = {
    "register": 14,
    "mark": 6,
    "end": 1,
    "drain": 5,
    "remove_node": 8,
    "give_up": 2,
    "create": 6,
    "delete": 3,
    "remove_group": 12,
    "change": 30,
    "cancel": 4,
    "begin": 30,
    "started": 30,
    "lost": 1,
}


class Violation(Exception):  # noqa: N818 (it names what happened)
    pass


def check(holds: bool, message: str) -> None:
    if not holds:
        raise Violation(message)


def members(configuration: Group | Configuration) -> list[str]:
    return sorted({*configuration.replicas, *configuration.acceptors})


def is_majority(of: Any, names: set[str]) -> bool:
    return 2 * sum(1 for name in of if name in names) > len(of)


@dataclass
class Books:
    """What became of each configuration: (group id, number) -> who started there, and who lost it."""

    started: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    lost: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    #: The last incarnation that was given out before it began.
    begun: dict[tuple[str, int], int] = field(default_factory=dict)

    def of(self, book: dict[tuple[str, int], set[str]], group: Group, number: int = 0) -> set[str]:
        return book.setdefault((group.id, number or group.configuration), set())


class Run:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = Cluster()
        self.books = Books()
        self.disks = 0
        #: How often each kind of command was accepted.
        self.accepted = dict.fromkeys(KINDS, 0)
        for name in NAMES[:7]:
            self.do("register", register=self.registration(name))
        check(self.cluster.raise_level().code == Code.OK, "all nodes have the level")
        for name in GROUPS:
            self.do("create", create_group=CreateGroup(name=name))

    @property
    def state(self) -> State:
        return self.cluster.state

    # ----------------------------------------------------------------------------------------- commands

    def registration(self, name: str) -> RegisterNode:
        known = self.state.nodes.get(name)
        self.disks += 1
        fresh = b"disk %d" % self.disks
        node_id = known.node_id if known is not None and self.random.random() < 0.6 else fresh
        services = self.random.choice([BOTH, BOTH, BOTH, ("sequencer",), ("consensus",)])
        if known is not None and self.random.random() < 0.8:
            services = tuple(known.services)
        zone = self.random.choice("uvw")
        return RegisterNode(name=name, node_id=node_id, services=services, peer_address="a:1", zone=zone, level=1)

    def name_for(self, kind: str) -> str:
        """Anybody; or with luck somebody to whom it matters."""
        starting = [name for group in self.state.groups.values() for name in group.starting]
        down = [name for name, node in self.state.nodes.items() if node.ended or node.suspected]
        matter = {"end": starting, "lost": starting, "register": down, "give_up": down, "remove_node": down}
        some = matter.get(kind) or []
        return self.random.choice(some if some and self.random.random() < 0.6 else NAMES)

    def command_of(self, kind: str) -> dict[str, Any]:
        random, state = self.random, self.state
        name = self.name_for(kind)
        node = state.nodes.get(name)
        incarnation = node.incarnation if node is not None and random.random() < 0.9 else 1
        group = Group(name="nothing", id="nothing#1")
        if state.groups and random.random() < 0.95:
            group = random.choice(list(state.groups.values()))
        match kind:
            case "register":
                return {"register": self.registration(name)}
            case "mark":
                marks = {"suspected": random.random() < 0.2, "read_only": random.random() < 0.1}
                return {"mark_node": MarkNode(name=name, incarnation=incarnation, **marks)}
            case "end":
                return {"end_incarnation": EndIncarnation(name=name, incarnation=incarnation)}
            case "drain":
                return {"drain_node": DrainNode(node=name, draining=random.random() < 0.2)}
            case "remove_node":
                return {"remove_node": RemoveNode(node=name)}
            case "give_up":
                return {"give_up_disk": GiveUpDisk(node=name)}
            case "create":
                create = CreateGroup(name=random.choice(GROUPS), replicas=random.choice([0, 1, 3, 3, 4]))
                return {"create_group": create}
            case "delete":
                broken = [one for one in state.groups.values() if len(one.lost) > 1]
                group = random.choice(broken or [group])
                return {"delete_group": DeleteGroup(name=group.name)}
            case "remove_group":
                return {"remove_group": RemoveGroup(id=group.id)}
            case _:
                return self.change_of(kind, group, name, incarnation)

    def change_of(self, kind: str, group: Group, name: str, incarnation: int) -> dict[str, Any]:
        random = self.random
        match kind:
            case "change":
                change = random.choice([1, 2, 3, 3])
                here, to = random.choice(["", name, *group.replicas]), random.choice(["", "", name])
                change_replicas = ChangeReplicas(
                    group=random.choice([group.name, group.id]),
                    change=change,  # type: ignore[arg-type]
                    node="" if change == 1 else here,
                    to="" if change == 2 else random.choice([to, here]),
                )
                return {"change_replicas": change_replicas}
            case "cancel":
                prepared = [one for one in self.state.groups.values() if one.HasField("next")]
                group = random.choice([*prepared, group])
                return {"cancel_change": CancelChange(group=group.name)}
            case "begin":
                prepared = [one for one in self.state.groups.values() if one.HasField("next")]
                group = random.choice([*prepared, group])
                number = group.configuration + random.choice([0, 1, 1, 1, 2])
                return {"begin_configuration": BeginConfiguration(group=group.id, configuration=number)}
            case "started":
                share = random.choice([0.3, 1.0])
                some = [one for one in (*group.starting, *group.replicas) if random.random() < share]
                number = group.configuration - (random.random() < 0.1)
                record = RecordStarted(group=group.id, configuration=max(0, number), members=some)
                return {"record_started": record}
            case _:
                ids = [group.id, *(one.id for one in self.state.groups.values() if random.random() < 0.2)]
                return {"record_lost": RecordLost(node=name, incarnation=incarnation, groups=ids)}

    # ------------------------------------------------------------------------------------------ judging

    def step(self) -> None:
        kind = self.random.choices(list(KINDS), list(KINDS.values()))[0]
        self.do(kind, **self.command_of(kind))
        if self.random.random() < 0.05:
            data = self.state.to_bytes()
            self.cluster.state = State.from_bytes(data)
            check(self.state.to_bytes() == data, "a snapshot is not what it was made of")

    def do(self, kind: str, **what: Any) -> None:
        before = State.from_bytes(self.state.to_bytes())
        result = self.cluster.do(**what)
        if result.code == Code.OK:
            self.accepted[kind] += 1
        else:
            check(substance(self.state) == substance(before), f"{result.message!r}, but something changed")
        self.note(before, Command(**what), result)
        check(self.state.level >= before.level, "the level fell")
        for name, group in self.state.groups.items():
            self.check_shape(group)
            old = before.groups.get(name)
            if old is not None and old.id == group.id:
                if old.configuration != group.configuration:
                    self.books.begun[group.id, group.configuration] = before.incarnation_last
                self.check_transition(old, group)

    def note(self, before: State, command: Command, result: CommandResult) -> None:
        """Into the books: what the command says about disks and starts, if it was accepted."""
        if result.code != Code.OK:
            return
        for group in before.groups.values():
            started, lost = self.books.of(self.books.started, group), self.books.of(self.books.lost, group)
            if command.HasField("record_started") and command.record_started.group == group.id:
                # A loss is for good: whoever says so later is a life that has not heard of it.
                started.update(name for name in command.record_started.members if name not in lost)
            if command.HasField("give_up_disk") and not before.nodes[command.give_up_disk.node].disk_lost:
                self.lose(group, command.give_up_disk.node)
            if command.HasField("record_lost") and group.id in command.record_lost.groups:
                name = command.record_lost.node
                is_later = command.record_lost.incarnation > self.books.begun.get(
                    (group.id, group.configuration), 0
                )
                if name in started or is_later:
                    self.lose(group, name)

    def lose(self, group: Group, name: str) -> None:
        if name in members(group):
            self.books.of(self.books.lost, group).add(name)
        if name in members(group.previous):
            self.books.of(self.books.lost, group, group.previous.number).add(name)

    def check_shape(self, group: Group) -> None:
        nodes = self.state.nodes
        check(not (group.HasField("next") and group.HasField("previous")), "two changes at a time")
        numbers = [(group.next, group.configuration + 1), (group.previous, group.configuration - 1)]
        for one, number in numbers:
            check(not one.ByteSize() or one.number == number, f"number {one.number} beside {group.configuration}")
        for one in (group, group.next, group.previous):
            for service, names in (("sequencer", one.replicas), ("consensus", one.acceptors)):
                check(list(names) == sorted(set(names)), "members have to be sorted, each once")
                check(len(names) <= limits.REPLICAS_MAX, "too many")
                for name in names:
                    check(name in nodes, f"{name} is a member and no node")
                    check(service in nodes[name].services, f"{name} does not run {service}")
            is_there = one is group or one.ByteSize() > 0
            check(not is_there or bool(one.replicas and one.acceptors), "nobody holds it")
        out = [*group.starting, *group.lost]
        check(len(out) == len(set(out)), "a member that is lost does not start")
        check(set(out) <= set(members(group)), "a stranger is lost or starts")
        check(set(group.previous.lost) <= set(members(group.previous)), "a stranger is lost")
        self.check_lost(group)

    def check_lost(self, group: Group) -> None:
        """Whoever forgot what it promised in a configuration has no say in it ever again."""
        forgotten = self.books.of(self.books.lost, group)
        check(forgotten <= set(group.lost), f"{forgotten} forgot what they promised in {group.configuration}")
        if group.HasField("previous"):
            forgotten = self.books.of(self.books.lost, group, group.previous.number)
            check(forgotten <= set(group.previous.lost), f"{forgotten} hand over what they do not have")

    def check_transition(self, old: Group, new: Group) -> None:
        if new.configuration == old.configuration:
            check(members(new) == members(old), "members changed within a configuration")
            check(set(new.starting) <= set(old.starting), "somebody starts twice")
            if old.HasField("previous") and not new.HasField("previous"):
                started = self.books.of(self.books.started, new) - set(new.lost)
                both = is_majority(new.replicas, started) and is_majority(new.acceptors, started)
                check(both, f"the old configuration is left with {started} of {members(new)}")
            return
        check(new.configuration == old.configuration + 1, "a configuration is left out")
        check(not old.HasField("previous"), "a configuration begins while the one before has not ended")
        former = (list(new.previous.replicas), list(new.previous.acceptors), list(new.previous.lost))
        check(former == (list(old.replicas), list(old.acceptors), list(old.lost)), "another one is left behind")
        check(list(new.starting) == members(new), "somebody has started before it began")
        kept = set(members(old)) - set(old.lost)
        check(is_majority(old.replicas, kept) and is_majority(old.acceptors, kept), "it starts from too few")


def substance(state: State) -> list[Any]:
    """All but the count of slots and the answers."""
    return [
        state.nodes,
        state.groups,
        state.removed,
        state.deleted,
        state.level,
        state.incarnation_last,
        state.group_last,
        state.changes_from,
    ]


def violation_of(seed: int, steps: int) -> str | None:
    try:
        run = Run(seed)
        for _ in range(steps):
            run.step()
    except Violation as violation:
        return f"seed {seed}: {violation}"
    return None


@pytest.mark.parametrize("block", [0, 1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 3))])
def test_whatever_is_asked_for_configurations_follow_each_other_one_by_one(block):
    assert [found for seed in range(block * 8, block * 8 + 8) if (found := violation_of(seed, 400))] == []


def test_every_kind_of_command_is_accepted_often_enough_to_mean_something():
    accepted = dict.fromkeys(KINDS, 0)
    for seed in range(12):
        run = Run(seed)
        for _ in range(400):
            run.step()
        for kind, count in run.accepted.items():
            accepted[kind] += count
    assert min(accepted.values()) >= 10, accepted
    assert min(accepted["change"], accepted["begin"], accepted["started"]) >= 50, accepted


# ------------------------------------------------------------------------------------------------- mutants


def leave_with_the_first_one(members: Any, voters: Any) -> bool:
    return any(member in voters for member in members)


def allow_two_at_a_time(group: Group) -> None:
    pass


def keep_who_has_not_started(group: Group, node: str, incarnation: int | None) -> bool:
    """Who is not known to have started has nothing to lose, it seems."""
    return changes_lose(group, node, incarnation) if node not in group.starting else False


def forget_the_lost_of_the_one_before(group: Group, incarnation_last: int) -> None:
    changes_begin(group, incarnation_last)
    group.previous.ClearField("lost")


def count_the_lost_as_survivors(group: Group) -> None:
    pass


def remove_whoever_is_down(group: Group) -> list[str]:
    return []


changes_lose, changes_begin = changes.lose, changes.begin


@pytest.mark.parametrize(
    ("owner", "name", "mistake"),
    [
        (changes, "has_majority", leave_with_the_first_one),
        (changes, "_check_may_change", allow_two_at_a_time),
        (commands, "lose", keep_who_has_not_started),
        (commands, "begin", forget_the_lost_of_the_one_before),
        (changes, "check_has_survivors", count_the_lost_as_survivors),
        (commands, "everyone_of", remove_whoever_is_down),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_mistake_is_noticed(
    owner: Any, name: str, mistake: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, mistake)
    assert any(violation_of(seed, 400) for seed in range(20))
