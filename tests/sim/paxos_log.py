"""One simulated run of the replicated log: a scenario from a seed, faults, a client per member, and checks.

The promises that are checked: all members apply the same value in a slot; each incarnation applies slot after
slot, from 0 or from a snapshot; an append ends up in at most one slot and gets at most one answer, which is true;
nothing grows beyond its limit; and after healing all members that live reach the same end and vote, with all
answered.
"""

from dataclasses import dataclass, field
from random import Random

from ordercast.core.errors import InvariantBroken
from ordercast.core.machine import Effect, Event, Hand, Start
from ordercast.protocols.paxos.log import (
    Append,
    AppendRefused,
    LogApplied,
    LogReplica,
    LogSnapshot,
    MayVote,
    Truncate,
)
from ordercast.protocols.paxos.log_state import LogSettings
from ordercast.sim.network import NetworkSettings
from ordercast.sim.world import World
from ordercast.v1.membership_pb2 import DomainView, GroupView
from tests.sim.paxos_log_disks import Disks, LogFaults, join_of

PROCESS_FAULTS = ("crash", "crash_at_commit", "power_loss", "pause", "slow_disk")
NETWORK_FAULTS = ("partition", "one_way", "bridge", "break")
REST_S_MAX = 30.0


class Violation(Exception):  # noqa: N818 (it names what happened)
    pass


@dataclass
class Ledger:
    """What all clients together saw."""

    chosen: dict[int, bytes | None] = field(default_factory=dict)
    #: By tag: the value, and where it was appended.
    appended: dict[bytes, tuple[bytes, str, int]] = field(default_factory=dict)
    answers: dict[bytes, str] = field(default_factory=dict)
    slot_of: dict[bytes, int] = field(default_factory=dict)
    snapshots: int = 0

    def apply(self, who: str, slot: int, value: bytes | None) -> None:
        if slot in self.chosen:
            if self.chosen[slot] != value:
                raise Violation(f"slot {slot}: {who} applies {value!r}, another {self.chosen[slot]!r}")
            return
        self.chosen[slot] = value
        if value is not None and self.slot_of.setdefault(value, slot) != slot:
            raise Violation(f"{value!r} is in slots {self.slot_of[value]} and {slot}")

    def answer(self, tag: bytes, answer: str) -> None:
        if tag in self.answers:
            raise Violation(f"{tag!r} was answered {self.answers[tag]} and {answer}")
        self.answers[tag] = answer


class Client:
    """Applies the log, which it keeps as a list, and now and then drops the prefix for a snapshot."""

    handles = ()

    def __init__(self, name: str, disk: bytes, ledger: Ledger, every: int) -> None:
        self.name = name
        self.disk = disk
        self.ledger = ledger
        self.every = every
        self.values: list[bytes | None] = []
        self.incarnation = 0

    def buffers(self) -> dict[str, int]:
        return {}

    def step(self, event: Event) -> list[Effect]:
        match event:
            case Start():
                self.incarnation = event.incarnation
            case LogApplied():
                return self._on_applied(event)
            case LogSnapshot():
                return self._on_snapshot(event)
            case AppendRefused():
                self.ledger.answer(event.tag, "refused")
        return []

    def _on_applied(self, event: LogApplied) -> list[Effect]:
        if event.slot != len(self.values):
            raise Violation(f"{self.name} applies slot {event.slot} after {len(self.values)} slots")
        self.ledger.apply(self.name, event.slot, event.value)
        self.values.append(event.value)
        if event.tag is not None:
            self.ledger.answer(event.tag, "applied")
            value, process, incarnation = self.ledger.appended[event.tag]
            if (value, process, incarnation) != (event.value, self.name, self.incarnation):
                raise Violation(f"{event.tag!r} is said to have put {event.value!r} into slot {event.slot}")
        effects = self._may_vote(event, event.slot)
        if self.every and len(self.values) % self.every == 0:
            effects.append(Hand("log", Truncate(event.now, event.wall, len(self.values), encode(self.values))))
        return effects

    def _may_vote(self, event: Event, slot: int) -> list[Effect]:
        if join_of(self.values[slot]) != self.disk:
            return []
        return [Hand("log", MayVote(event.now, event.wall, slot + 1))]

    def _on_snapshot(self, event: LogSnapshot) -> list[Effect]:
        if event.slot < len(self.values):
            raise Violation(f"{self.name} goes back from {len(self.values)} to a snapshot before {event.slot}")
        self.values = decode(event.snapshot)
        if len(self.values) != event.slot:
            raise Violation("a snapshot of another slot")
        for slot, value in enumerate(self.values):
            self.ledger.apply(self.name, slot, value)
        for tag in event.unknown:
            self.ledger.answer(tag, "unknown")
        self.ledger.snapshots += 1
        return [effect for slot in range(len(self.values)) for effect in self._may_vote(event, slot)]


def encode(values: list[bytes | None]) -> bytes:
    return b"\n".join(b"-" if value is None else b"+" + value for value in values)


def decode(snapshot: bytes) -> list[bytes | None]:
    return [None if line == b"-" else line[1:] for line in snapshot.split(b"\n")]


class Run:
    def __init__(self, seed: int, replica: type[LogReplica] = LogReplica, *, tracing: bool = False) -> None:
        self.random = random = Random(f"{seed}/scenario")
        self.members = tuple(f"n{number + 1}" for number in range(random.choice([1, 2, 3, 3, 3, 4, 5])))
        self.settings = draw_settings(random)
        self.ledger = Ledger()
        self.world = World(seed, draw_network(random), tracing=tracing)
        self.healing_at = random.choice([2.0, 4.0])
        every = random.choice([0, 0, 5, 20])
        self.disks = Disks(self, Random(f"{seed}/disks"))
        for name in self.members:
            self._add(name, replica, every)
        groups = [GroupView(group="log", acceptors=self.members)]
        kinds = PROCESS_FAULTS + (NETWORK_FAULTS if len(self.members) > 1 else ())
        rates = {kind: random.choice([0.3, 1.0]) for kind in kinds if random.random() < 0.4}
        self.faults = LogFaults(
            self.world, Random(f"{seed}/faults"), rates, self.healing_at, DomainView(groups=groups)
        )
        self.faults.disks = self.disks
        self.disks.schedule(random.choice([0.1, 1.0, 4.0]), self.healing_at)
        self.world.at(self.healing_at, self._calm_down)
        time = 0.0
        while time < self.healing_at:
            self.world.at(time, self._append_somewhere)
            time += random.expovariate(random.choice([10, 40, 200]))

    def _add(self, name: str, replica: type[LogReplica], every: int) -> None:
        process = self.world.add(
            name,
            {
                "client": lambda: Client(name, self.disks.present[name], self.ledger, every),
                "log": lambda: replica(name, self.members, "client", self.settings, self.disks.present[name]),
            },
        )
        process.disk_delay_s = self.random.choice([0.0, 0.001, 0.01])

    def _calm_down(self) -> None:
        """A network faster than what a leader is suspected for: from now on somebody has to stay leader."""
        network = self.world.network.settings
        network.delay_s, network.slow, network.loss = 0.001, 0.0, 0.0

    # ----------------------------------------------------------------------------------------- appending

    def _append_somewhere(self) -> None:
        """Mostly where a leader believes to be one, so that those who were overtaken get some too."""
        up = [name for name in self.members if self.is_up(name)]
        leading = [name for name in up if self.machine(name).reign is not None]
        if up and self.world.now < self.healing_at:
            self.append(self.random.choice(leading if leading and self.random.random() < 0.9 else up))

    def is_up(self, name: str) -> bool:
        return self.world.processes[name].up

    def append(self, name: str, what: bytes = b"value ") -> bytes:
        process = self.world.processes[name]
        tag = b"%d" % len(self.ledger.appended)
        value = what + tag
        self.ledger.appended[tag] = (value, name, process.incarnation)
        process.tell("log", Append(*process.clock(), value, tag))
        self._check_bounds()
        return tag

    def machine(self, name: str) -> LogReplica:
        machine = self.world.processes[name].slots["log"].machine
        assert isinstance(machine, LogReplica)
        return machine

    # ----------------------------------------------------------------------------------------- judging

    def judge(self) -> None:
        """Raises what is wrong with this run, if anything is."""
        for name in self.members:
            self.world.processes[name].start()
        self.world.run_until(self.healing_at)
        alive = [name for name in self.members if name not in self.faults.gone]
        while self.world.now < self.healing_at + REST_S_MAX:
            self.world.run_until(self.world.now + 0.5)
            if self._rests(alive):
                break
            leaders = [name for name in alive if self.machine(name).reign is not None]
            if len(leaders) == 1 and self._unanswered(alive):
                # Overtaken leaders hear of their appends when the slots they had chosen are decided.
                self.append(leaders[0])
        else:
            mute = [name for name in alive if not self.machine(name).state.votes]
            unanswered = self._unanswered(alive)
            raise Violation(f"no rest: {unanswered} unanswered, {self._ends(alive)} applied, mute: {mute}")
        self._check_ending()

    def _rests(self, alive: list[str]) -> bool:
        """Somebody leads, everyone votes, follows it and has applied the same, and no append waits."""
        if not all(self.machine(name).state.votes for name in alive):
            return False
        leaders = {self.machine(name).leader for name in alive}
        ends = {*self._ends(alive), len(self.ledger.chosen)}
        return len(leaders) == 1 and None not in leaders and len(ends) == 1 and not self._unanswered(alive)

    def _ends(self, alive: list[str]) -> list[int]:
        """How far each client has come. A machine may be ahead of it, behind a barrier."""
        clients = [self.world.processes[name].slots["client"].machine for name in alive]
        return [len(client.values) for client in clients if isinstance(client, Client)]

    def _unanswered(self, alive: list[str]) -> list[bytes]:
        """Of the incarnations that still live: the others took their answers with them."""
        lives = {(name, self.world.processes[name].incarnation) for name in alive}
        appended = self.ledger.appended.items()
        return [tag for tag, (_, *at) in appended if tuple(at) in lives and tag not in self.ledger.answers]

    def _check_ending(self) -> None:
        values = {value for value in self.ledger.chosen.values() if value is not None}
        for tag, (value, *_) in self.ledger.appended.items():
            answer = self.ledger.answers.get(tag)
            if answer == "refused" and value in values:
                raise Violation(f"{value!r} was refused and is in the log")
            if answer == "applied" and value not in values:
                raise Violation(f"{value!r} was applied and is not in the log")
        if values - {value for value, *_ in self.ledger.appended.values()}:
            raise Violation("a value that nobody appended")

    def _check_bounds(self) -> None:
        settings = self.settings
        for name in self.members:
            if not self.is_up(name):
                continue
            machine = self.machine(name)
            open_ = sum(1 for slot in machine.state.entries if slot >= machine.state.decided)
            sizes = machine.buffers()
            window = settings.window_count_max
            if open_ > window or sizes["flights"] > window or sizes["mine"] > window:
                raise Violation(f"{name} exceeds the window: {sizes}")
            if sizes["queue"] > settings.queue_count_max or sizes["promised_votes"] > window * len(self.members):
                raise Violation(f"{name} exceeds a limit: {sizes}")


def draw_settings(random: Random) -> LogSettings:
    # The shortest is less than a slow message takes: leaders are suspected all the time.
    heartbeat_s = random.choice([0.02, 0.05, 0.1])
    return LogSettings(
        heartbeat_s=heartbeat_s,
        suspect_s=3 * heartbeat_s,
        retry_s=2 * heartbeat_s,
        window_count_max=random.choice([1, 4, 32]),
        batches_open_max=random.choice([1, 3]),
        value_bytes_max=100,
        batch_bytes_max=random.choice([20, 10_000]),
        fetch_count_max=random.choice([2, 64]),
        queue_count_max=random.choice([3, 100]),
    )


def draw_network(random: Random) -> NetworkSettings:
    network = NetworkSettings(
        delay_s=random.choice([0.001, 0.003, 0.01, 0.03]),
        slow=random.choice([0.0, 0.1, 0.4]),
        loss=random.choice([0.0, 0.0, 0.05, 0.3]),
    )
    if random.random() < 0.15:
        network.datagrams, network.loss, network.duplication = True, 0.1, 0.2
    return network


def violation_of(seed: int, replica: type[LogReplica] = LogReplica) -> str | None:
    """What is wrong with the run of this seed. A broken invariant is a violation that the machine saw itself."""
    try:
        Run(seed, replica).judge()
    except (Violation, InvariantBroken) as error:
        return f"seed {seed}: {error}"
    return None
