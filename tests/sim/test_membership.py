"""Membership on its log under crashes, lost writes, partitions and snapshots; and proof that the checks see.

The promises that are checked: members with the same revision have the same state, byte for byte; a command is
executed once, however often it is repeated and whoever answers; incarnations are unique, and one that is asked
for after another was acknowledged is higher; nothing acknowledged is lost; no question is answered twice; and
after healing every client is done and all members agree.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ordercast.core.errors import InvariantBroken
from ordercast.core.machine import Effect, Event
from ordercast.membership.machine import (
    LOG,
    ROLE,
    Execute,
    Executed,
    HeartbeatReceived,
    Membership,
    NotLeading,
)
from ordercast.membership.settings import LEVEL, MembershipSettings
from ordercast.membership.state import Code, State
from ordercast.protocols.paxos.log import LogApplied, LogReplica
from ordercast.protocols.paxos.log_state import LogSettings
from ordercast.sim.faults import Faults
from ordercast.sim.network import NetworkSettings
from ordercast.sim.world import World
from ordercast.v1.membership_pb2 import (
    REPLICA_CHANGE_ADD,
    REPLICA_CHANGE_REMOVE,
    REPLICA_CHANGE_REPLACE,
    ChangeReplicas,
    Command,
    CommandBatch,
    CommandResult,
    CreateGroup,
    Cursor,
    DomainView,
    FoundCluster,
    GroupProgress,
    GroupView,
    HeartbeatRequest,
    MoveCursors,
    RegisterNode,
)

ROOT = Path(__file__).resolve().parents[2]
FAULTS = ("crash", "crash_at_commit", "power_loss", "pause", "partition", "one_way", "bridge", "break")
CLIENTS = 4
REST_S_MAX = 30.0
ALL = ("consensus", "gateway", "sequencer")


class Violation(Exception):  # noqa: N818 (it names what happened)
    pass


@dataclass
class Ledger:
    """What all members and clients together saw."""

    #: Revision -> the state that the first member there had.
    states: dict[int, bytes] = field(default_factory=dict)
    #: Request id -> the slot in which it first had an effect, for commands that may have one only once.
    executed: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    #: (asked at, acknowledged at, incarnation)
    incarnations: list[tuple[float, float, int]] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)

    def see(self, who: str, state: State) -> None:
        data = state.to_bytes()
        if self.states.setdefault(state.revision, data) != data:
            raise Violation(f"{who} has another state than others at revision {state.revision}")

    def ran(self, slot: int, command: Command, result: CommandResult) -> None:
        """A repeated command is in several slots, and its answer is always the one of the first."""
        if command.WhichOneof("what") not in ("register", "create_group", "change_replicas"):
            return
        data = result.SerializeToString(deterministic=True)
        if result.code == Code.UNAVAILABLE:
            return
        first = self.executed.setdefault(command.request_id, (slot, data))
        if first[1] != data:
            raise Violation(f"{command.request_id!r} was executed in slot {first[0]} and again in {slot}")

    def acknowledged(self, client: "Client", result: CommandResult, now: float) -> None:
        if result.HasField("registered"):
            self._register(client.asked_at, now, result.registered.incarnation)
        elif result.HasField("group"):
            self.groups[result.group.id] = result.group.name

    def _register(self, asked: float, now: float, incarnation: int) -> None:
        for _, acknowledged, earlier in self.incarnations:
            if incarnation == earlier or (acknowledged < asked and incarnation < earlier):
                raise Violation(f"incarnation {incarnation} is given out after {earlier} was acknowledged")
        self.incarnations.append((asked, now, incarnation))


class Watched(Membership):
    """Tells the ledger what it applies."""

    ledger: Ledger

    def step(self, event: Event) -> list[Effect]:
        revision = self.state.revision
        effects = super().step(event)
        if self.state.revision != revision:
            self.ledger.see(self.process, self.state)
        return effects

    def _on_applied(self, event: LogApplied) -> None:
        state, apply = self.state, self.state.apply

        def watched(slot: int, batch: bytes | None) -> list[tuple[Command, CommandResult]]:
            results = apply(slot, batch)
            for command, result in results:
                self.ledger.ran(slot, command, result)
            return results

        state.apply = watched  # type: ignore[method-assign]
        super()._on_applied(event)
        del state.apply  # type: ignore[method-assign]


class Client:
    """One command at a time, repeated with its id wherever there is hope, until it is answered."""

    def __init__(self, run: "Run", number: int) -> None:
        self.run = run
        self.number = number
        self.random = Random(f"{run.seed}/client {number}")
        self.count = 0
        self.command: Command | None = None
        self.asked_at = 0.0
        self.tag = b""
        self.tags = 0
        self.offset = 0

    def begin(self) -> None:
        if self.run.world.now >= self.run.healing_at:
            self.command = None
            return
        self.count += 1
        self.asked_at = self.run.world.now
        self.command = Command(request_id=b"%d/%d" % (self.number, self.count))
        kind = self.random.choice(["register", "register", "group", "move", "move", "change", "change"])
        if kind == "register":
            # Two clients share a name and a disk: a process that was started again while its past still asks. Some
            # are gateways alone, which never say anything again, and the next one has another name.
            is_gateway = self.count % 4 == 0
            name = f"gateway-{self.number}-{self.count}" if is_gateway else f"n{self.number // 2}"
            node = RegisterNode(name=name, node_id=name.encode(), peer_address="n:1", level=LEVEL)
            node.services.extend(("gateway",) if is_gateway else ALL)
            self.command.register.CopyFrom(node)
        elif kind == "group":
            name = f"g{self.random.randrange(30)}"
            self.command.create_group.CopyFrom(CreateGroup(name=name, replicas=1))
        elif kind == "change":
            # Nobody says where: that is for the members to agree on.
            change = self.random.choice([REPLICA_CHANGE_ADD, REPLICA_CHANGE_REMOVE, REPLICA_CHANGE_REPLACE])
            name = f"g{self.random.randrange(30)}"
            self.command.change_replicas.CopyFrom(ChangeReplicas(group=name, change=change))
        else:
            self.offset = self.random.randrange(1000)
            cursors = [Cursor(group=f"g{self.number}", name="c", offset=self.offset)]
            self.command.move_cursors.CopyFrom(MoveCursors(cursors=cursors))
        self.ask(None)

    def ask(self, leader: str | None) -> None:
        """At the leader if somebody named one, else anywhere; and again elsewhere if no answer comes."""
        world = self.run.world
        up = [name for name in self.run.members if world.processes[name].up]
        self.tags += 1
        self.tag = b"%d/%d" % (self.number, self.tags)
        self.run.pending[self.tag] = self
        world.after(self.random.uniform(0.3, 0.6), self.give_up, self.tag)
        if up and self.command is not None:
            name = leader if leader in up else self.random.choice(up)
            process = world.processes[name]
            process.tell(ROLE, Execute(*process.clock(), self.command, self.tag))

    def give_up(self, tag: bytes) -> None:
        if tag == self.tag and self.command is not None:
            self.ask(None)

    def answered(self, effect: Executed | NotLeading) -> None:
        if effect.tag != self.tag or self.command is None:
            return  # It had given up on this one, and asked elsewhere.
        world = self.run.world
        self.tag = b""
        if isinstance(effect, NotLeading):
            world.after(0.02, self.ask, effect.leader)
        elif effect.result.code in (Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED):
            world.after(0.1, self.ask, None)
        else:
            self.run.ledger.acknowledged(self, effect.result, world.now)
            if self.command.WhichOneof("what") == "move_cursors" and effect.result.code == Code.OK:
                self.run.moved[f"g{self.number}"] = self.offset
            world.after(self.random.expovariate(20), self.begin)


class Run:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        random = Random(f"{seed}/scenario")
        self.members = tuple(f"m{number + 1}" for number in range(random.choice([3, 5])))
        self.ledger = Ledger()
        self.healing_at = 3.0
        network = NetworkSettings(delay_s=random.choice([0.001, 0.005]), loss=random.choice([0.0, 0.1]))
        self.world = World(seed, network)
        self.world.on_custom = self._on_effect
        self.pending: dict[bytes, Client] = {}
        self.answered: dict[bytes, Effect] = {}
        self.moved: dict[str, int] = {}
        self.settings = MembershipSettings(
            tick_s=0.1,
            suspect_s=0.5,
            end_after_s=1.0,
            snapshot_every=random.choice([3, 10, 1000]),
            batch_count_max=random.choice([2, 100]),
            log=LogSettings(heartbeat_s=0.05, suspect_s=0.15, retry_s=0.1, fetch_count_max=4),
        )
        for name in self.members:
            self._add(name)
        rates = {kind: random.choice([0.3, 1.0]) for kind in FAULTS if random.random() < 0.5}
        view = DomainView(groups=[GroupView(group="log", acceptors=self.members)])
        self.faults = Faults(self.world, Random(f"{seed}/faults"), rates, self.healing_at, view)
        self.clients = [Client(self, number) for number in range(CLIENTS)]
        for client in self.clients:
            self.world.at(0.1, client.begin)
        self.world.at(0.2, self._heartbeats)
        self.world.at(self.healing_at, self._calm_down)

    def _add(self, name: str) -> None:
        founding = FoundCluster(cluster_id=name.encode(), key=b"key of " + name.encode())

        def membership() -> Membership:
            machine = Watched(name, founding, self.settings)
            machine.ledger = self.ledger
            return machine

        process = self.world.add(
            name,
            {ROLE: membership, LOG: lambda: LogReplica(name, self.members, ROLE, self.settings.log)},
        )
        process.disk_delay_s = 0.002

    def _calm_down(self) -> None:
        network = self.world.network.settings
        network.delay_s, network.slow, network.loss = 0.001, 0.0, 0.0

    def _heartbeats(self) -> None:
        """Of one node alone, so that the other is suspected and ended now and then."""
        for name in self.members:
            process = self.world.processes[name]
            if process.up:
                node = self._machine(name).state.nodes.get("n0")
                incarnation = node.incarnation if node is not None else 1
                request = HeartbeatRequest(name="n0", incarnation=incarnation, revision=2**40, oldest_open=2**40)
                request.progress.extend(
                    GroupProgress(group=one.id, configuration=one.configuration, caught_up=True, started=True)
                    for one in self._machine(name).state.groups.values()
                )
                process.tell(ROLE, HeartbeatReceived(*process.clock(), request))
        self.world.after(0.2, self._heartbeats)

    def _machine(self, name: str) -> Membership:
        machine = self.world.processes[name].slots[ROLE].machine
        assert isinstance(machine, Membership)
        return machine

    def _on_effect(self, process: str, effect: Effect) -> None:
        if not isinstance(effect, Executed | NotLeading):
            return
        if effect.tag in self.answered:
            raise Violation(f"{effect.tag!r} was answered {self.answered[effect.tag]} and {effect}")
        self.answered[effect.tag] = effect
        self.pending[effect.tag].answered(effect)

    # ----------------------------------------------------------------------------------------- judging

    def judge(self) -> None:
        """Raises what is wrong with this run, if anything is."""
        for name in self.members:
            self.world.processes[name].start()
        self.world.run_until(self.healing_at)
        alive = [name for name in self.members if name not in self.faults.gone]
        while self.world.now < self.healing_at + REST_S_MAX:
            self.world.run_until(self.world.now + 0.25)
            if self._rests(alive):
                break
        else:
            raise Violation("no rest: a client waits, members differ, or a gateway that is over is not forgotten")
        self._check_ending(self._machine(alive[0]).state)

    def _rests(self, alive: list[str]) -> bool:
        revisions = {self._machine(name).state.revision for name in alive}
        busy = [client for client in self.clients if client.command is not None]
        gateways = [name for name in self._machine(alive[0]).state.nodes if name.startswith("gateway")]
        return len(revisions) == 1 and not busy and not gateways

    def _check_ending(self, state: State) -> None:
        for id_, name in self.ledger.groups.items():
            if name not in state.groups or state.groups[name].id != id_:
                raise Violation(f"the group {id_} was acknowledged and is not there")
        last = max((incarnation for _, _, incarnation in self.ledger.incarnations), default=0)
        if last > state.incarnation_last:
            raise Violation(f"incarnation {last} was acknowledged and is not there")
        for group, offset in self.moved.items():
            if state.cursors.get((group, "c")) != offset:
                raise Violation(f"the cursor of {group} was moved to {offset} and is elsewhere")


def violation_of(seed: int) -> str | None:
    """What is wrong with the run of this seed. A broken invariant is a violation that the machine saw itself."""
    try:
        Run(seed).judge()
    except (Violation, InvariantBroken) as error:
        return f"seed {seed}: {error}"
    return None


@pytest.mark.parametrize("block", range(4))
def test_membership_keeps_its_promises_under_faults(block):
    assert [found for seed in range(block * 12, block * 12 + 12) if (found := violation_of(seed))] == []


def test_a_seed_is_one_run_byte_for_byte_whatever_the_hash_seed():
    script = "from tests.sim.test_membership import Run; r = Run(7); r.judge(); print(r.world.digest())"
    digests = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", script]
        run = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
        digests.append(run.stdout)
    assert digests[0] == digests[1] != ""


# ------------------------------------------------------------------------------------------------- mutants

_from_bytes, _register = State.from_bytes, State._register


def forget_executed_at_a_snapshot(data: bytes) -> State:
    state = _from_bytes(data)
    state.executed, state.executed_bytes = {}, 0
    return state


def forget_changes_at_a_snapshot(data: bytes) -> State:
    state = _from_bytes(data)
    for group in state.groups.values():
        group.ClearField("next")
    return state


def reuse_the_number_of_a_node(self: State, register: RegisterNode, result: CommandResult) -> None:
    """Whoever is known keeps its incarnation."""
    known = self.nodes.get(register.name)
    last = self.incarnation_last
    _register(self, register, result)
    if known is not None:
        self.nodes[register.name].incarnation = result.registered.incarnation = known.incarnation
        self.incarnation_last = last


def remember_nothing(self: State, request_id: bytes, result: CommandResult) -> None:
    pass


def answer_before_the_log_does(self: Membership, waiting: Any) -> bool:
    """Executes on a copy, as if what is appended were decided."""
    copy = State.from_bytes(self.state.to_bytes())
    batch = CommandBatch(commands=[waiting.command]).SerializeToString()
    if waiting.tag is not None:
        self.out.append(Executed(waiting.tag, copy.apply(copy.revision, batch)[0][1]))
        waiting.tag = None
    self.next.commands.append(waiting)
    return True


@pytest.mark.parametrize(
    ("owner", "name", "mistake"),
    [
        (State, "from_bytes", forget_executed_at_a_snapshot),
        (State, "from_bytes", forget_changes_at_a_snapshot),
        (State, "_register", reuse_the_number_of_a_node),
        (State, "_remember", remember_nothing),
        (Membership, "_queue", answer_before_the_log_does),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_mistake_is_noticed(
    owner: Any, name: str, mistake: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, mistake)
    assert any(violation_of(seed) for seed in range(60))
