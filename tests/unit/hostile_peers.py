"""A simulated world in which machines are also sent what no peer should send, in the middle of a conversation.

Whenever a machine of the chosen roles receives a message, it gets some changed ones before it: copies of that one,
or of others that came here before, so that each is nearly what the machine expects at that moment. What it makes
of them is performed, and the conversation goes on. A refusal must leave the machine as it was; nothing else may be
raised, then or later. Checkers of order do not look on: a peer that lies well is believed.

Each conversation is listened to once before anybody lies (`fuzz`): lies are made of all that is said in it, and
begin at any moment of it.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.machine import Effect, Event, Receive
from ordercast.sim.client import Dial
from ordercast.sim.process import Factory, Process
from ordercast.sim.world import World
from ordercast.v1.sequencer_pb2 import SnapshotPart
from tests.unit.fuzzing import changed, fields_of, first_difference, garbled, state_of, with_an_end

#: Messages of each type that are kept to be changed later.
KEPT = 24
#: By one accepted message a machine grows by no more than so much, and so many times its own size.
GROWTH_MAX, GROWTH_FACTOR = 4000, 30
#: Lies begin within this part of a conversation, so that something is left of it.
BEGIN_MAX = 0.8

Said = dict[type, list[Receive]]


class Misled(Exception):  # noqa: N818 (it names what happened)
    """A machine stopped, and it was right to: it was told two decisions of which one must be wrong."""


class Enough(Exception):  # noqa: N818 (it names what happened)
    """All that was to be thrown in this run is thrown."""


@dataclass
class Hostile:
    """What is thrown at the machines of these roles."""

    roles: Sequence[str]
    random: Random
    #: Messages that tell decisions: they may contradict what is known to be decided, and then the process stops.
    may_contradict: Sequence[type] = ()
    #: How many changed messages come before each real one, on average; and how often states are compared.
    rate: float = 0.5
    compare: float = 0.1
    #: Changes a message once more, so that it is looked at: with a checksum that is right, for example.
    seal: Callable[[Any, Random], None] = lambda message, random: None
    #: Messages whose refusal takes something along: parts of a snapshot that is wrong as a whole.
    leaves_a_trace: Sequence[type] = (SnapshotPart,)
    #: After so many it is over.
    enough: float = math.inf
    thrown: dict[type, int] = field(default_factory=dict)
    refused: dict[type, int] = field(default_factory=dict)
    kept: Said = field(default_factory=dict)
    misled: bool = False
    #: Messages of this conversation that came to these machines; nobody lies before so many have.
    received: int = 0
    begins: float = 0

    @property
    def count(self) -> int:
        return sum(self.thrown.values())

    def join(self, world: World) -> None:
        """Before its processes start."""
        nothing: Any = lambda *args: None  # noqa: E731
        world.on_deliver = world.on_commit = world.on_watermark = world.on_log_reset = nothing
        world.on_send = world.on_observe = nothing
        custom = world.on_custom
        world.on_custom = lambda process, effect: custom(process, effect) if isinstance(effect, Dial) else None
        for process in world.processes.values():
            for role, make in list(process.factories.items()):
                process.factories[role] = self._made(process, role, make)

    def _made(self, process: Process, role: str, make: Factory) -> Factory:
        def surrounded() -> Any:
            machine: Any = make()
            step = machine.step
            if role in self.roles:
                waiting: list[Effect] = []
                machine.step = lambda event: self._step(process.name, machine, step, event, waiting)
                machine.check_invariants = self._checked(machine.check_invariants)
            else:
                machine.step = lambda event: self._bystander(step, event)
            return machine

        return surrounded

    def _checked(self, check: Callable[[], None]) -> Callable[[], None]:
        """What a lie broke may be noticed only after the step."""

        def judged() -> None:
            try:
                check()
            except InvariantBroken as broken:
                self._judge(broken)
                raise Misled from broken

        return judged

    def _bystander(self, step: Callable[[Event], list[Effect]], event: Event) -> list[Effect]:
        """A client of the tests that is told nonsense says nothing."""
        try:
            return step(event)
        except Exception:
            return []

    def _step(
        self, name: str, machine: Any, step: Callable[[Event], list[Effect]], event: Event, waiting: list[Effect]
    ) -> list[Effect]:
        if isinstance(event, Receive):
            self.received += 1
            while self.received > self.begins and self.random.random() < self.rate / (1 + self.rate):
                false = self._choose(machine, event)
                if false.source != name:  # Who speaks is known from the connection: nobody speaks for us.
                    waiting += self._throw(machine, step, false)
            self._keep(Receive(event.now, event.wall, event.source, event.incarnation, event.message))
        try:
            effects = waiting + step(event)
        except InvariantBroken as broken:
            self._judge(broken)
            raise Misled from broken
        waiting.clear()
        return effects

    def _keep(self, event: Receive) -> None:
        kept = self.kept.setdefault(type(event.message), [])
        if len(kept) < KEPT or self.random.random() < 0.05:
            del kept[KEPT - 1 :]
            kept.insert(self.random.randrange(len(kept) + 1), event)

    def _check_same(self, machine: Any, before: list[Any], why: str) -> None:
        after = state_of(machine)
        assert before == after, f"refused, but not without a trace: {first_difference(before, after)}: {why}"

    def _judge(self, broken: InvariantBroken) -> None:
        if not self.misled:
            raise broken

    def _choose(self, machine: Any, event: Receive) -> Receive:
        """This one, or one of any type that came before: types that are rare are as good as others."""
        kinds = [kind for kind in self.kept if kind in machine.handles]
        if kinds and self.random.random() < 0.6:
            kind = self.random.choice(kinds)
            past = self.random.choice(self.kept[kind])
            source, incarnation = past.source, past.incarnation
            if self.random.random() < 0.2:
                source, incarnation = event.source, event.incarnation
            return Receive(event.now, event.wall, source, incarnation, past.message)
        return event

    def _throw(self, machine: Any, step: Callable[[Event], list[Effect]], real: Receive) -> list[Effect]:
        random = self.random
        message = garbled(real.message, random) if random.random() < 0.1 else changed(real.message, random)
        if message is None or type(message) not in machine.handles:
            return []
        if random.random() < 0.9:
            self.seal(message, random)
        kind = type(message)
        self.thrown[kind] = self.thrown.get(kind, 0) + 1
        if self.count > self.enough:
            raise Enough
        before = state_of(machine) if random.random() < self.compare else None
        try:
            effects = step(Receive(real.now, real.wall, real.source, real.incarnation, message))
        except RemoteProtocolError as why:
            self.refused[kind] = self.refused.get(kind, 0) + 1
            if before is not None and kind not in self.leaves_a_trace:
                self._check_same(machine, before, f"{why}: {message}")
            return []
        except InvariantBroken as broken:
            self.misled = self.misled or kind in self.may_contradict
            self._judge(broken)
            raise Misled from broken
        except Exception as error:
            error.add_note(f"from {real.source}: {kind.__name__} {message}")
            raise
        self.misled = self.misled or kind in self.may_contradict
        if before is not None:
            growth = fields_of(state_of(machine)) - fields_of(before)
            assert growth <= GROWTH_MAX + GROWTH_FACTOR * message.ByteSize(), f"grew by {growth}: {message}"
        return effects


def fuzz(
    hostile: Hostile, converse: Callable[[int], object], seeds: Sequence[int], count: int, *, each: int = 300
) -> Hostile:
    """So many inputs in all, no more than `each` in one conversation. `converse` has `hostile` join a world."""
    heard: dict[int, tuple[Said, int]] = {}
    round_ = 0
    while hostile.count < count:
        for seed in seeds:
            hostile.random, hostile.misled = Random(f"{seed}/{round_}/hostile"), False
            if seed not in heard:
                heard[seed] = _listen(hostile, converse, seed)
            said, received = heard[seed]
            hostile.kept = {kind: list(kept) for kind, kept in said.items()}
            hostile.received, hostile.begins = 0, hostile.random.random() * BEGIN_MAX * received
            hostile.enough = min(count, hostile.count + each)
            with with_an_end(), suppress(Enough, Misled):
                converse(seed)
        round_ += 1
    return hostile


def _listen(hostile: Hostile, converse: Callable[[int], object], seed: int) -> tuple[Said, int]:
    """What is said without a liar, and how many messages that takes."""
    hostile.kept, hostile.received, hostile.begins = {}, 0, math.inf
    with with_an_end():
        converse(seed)
    return hostile.kept, hostile.received


def check_all_were_fuzzed(hostile: Hostile, handled: Sequence[type], at_least: int) -> None:
    """No type that a machine handles was left out: who adds one adds a conversation in which it is said."""
    few = {
        kind.__name__: hostile.thrown.get(kind, 0) for kind in handled if hostile.thrown.get(kind, 0) < at_least
    }
    assert not few, f"these were thrown too seldom: {few}"
