"""The same effects performed in the simulator and in the runtime, and what peers, disks and others saw of them."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from ordercast.core.ids import pack_u64
from ordercast.core.machine import (
    ChannelReset,
    Deliver,
    Effect,
    Event,
    Hand,
    Interrupted,
    LogRead,
    Observe,
    Persist,
    ReadLog,
    Receive,
    ResetLog,
    Send,
    SetTimer,
    TimerFired,
)
from ordercast.v1.scalatom_pb2 import Pull
from tests.unit.puppets import Theatre
from tests.unit.test_host import Rig, rigged
from tests.unit.test_storage import entry

PEERS = ("a", "b")
#: Stands for the process itself, whatever it is called in its world.
MYSELF = "myself"
GROUPS = ("g", "h")
#: Timers of which the first two fire before the world is looked at, and the third does not.
SOON = ("soon", "sooner")
LATE = "late"
SOON_S, LATE_S = 0.0, 3600.0

#: By who or what saw it. Each list is in the order in which it was seen.
Seen = dict[str, list[Any]]


@dataclass(slots=True)
class Own(Effect):
    """That of one kind of machine."""

    value: int


def say(value: int, *to: str) -> Send:
    return Send(to or ("b",), Pull(id=pack_u64(value)))


def put(*then: Effect, barrier: bool = True, key: bytes = b"k", value: bytes | None = b"v") -> Persist:
    return Persist([(key, value)], barrier=barrier, then=then)


def hand(value: int, role: str = "two") -> Hand:
    return Hand(role, ChannelReset(0.0, 0.0, "handed", value))


class RandomSteps:
    """The effects of some steps. What can be told apart is numbered, in the order in which the machine says it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"effects {seed}")
        self.numbers = count(1)
        self.ends = dict.fromkeys(GROUPS, 0)

    def __iter__(self) -> Iterator[list[Effect]]:
        for _ in range(4):
            yield [self._effect() for _ in range(self.random.randrange(6, 20))]
        yield [put()]  # With it all that was delivered is on disk.

    def _effect(self) -> Effect:
        random = self.random
        match random.randrange(10):
            case 0:
                return put(key=random.choice((b"x", b"y")), value=random.choice((None, self._bytes())))
            case 1 | 2:
                then = [self._harmless() for _ in range(random.randrange(3))]
                return put(*then, barrier=random.random() < 0.2, value=self._bytes())
            case 3:
                return self._delivery()
            case _:
                return self._harmless()

    def _harmless(self) -> Effect:
        """What does not go to the disk, and so may wait for it in `then`."""
        random, number = self.random, next(self.numbers)
        group = random.choice(GROUPS)
        match random.randrange(11):
            case 0:
                return hand(number, random.choice(("one", "two")))
            case 1:
                return SetTimer(random.choice(SOON), SOON_S)
            case 2:
                return SetTimer(random.choice((*SOON, LATE)), LATE_S)
            case 3:
                return ReadLog(group, random.randrange(self.ends[group] + 1), random.randrange(1, 4), str(number))
            case 4:
                return Observe("stage", pack_u64(number), blocked_on=random.choice(("", "replica:other")))
            case 5:
                return Deliver(group, 0, entry(number, 1), final=False)
            case 6:
                return Interrupted(group)
            case 7:
                return Own(number)
            case _:
                return say(number, *random.sample((*PEERS, MYSELF), random.choice((1, 2))))

    def _delivery(self) -> Effect:
        group = self.random.choice(GROUPS)
        position = self.ends[group]
        if self.random.random() < 0.2:
            self.ends[group] += 3
            return ResetLog(group, position + 3)
        self.ends[group] += 1
        return Deliver(group, position, entry(position, 1))

    def _bytes(self) -> bytes:
        return pack_u64(next(self.numbers))


def addressed(effects: Iterable[Effect], name: str) -> list[Effect]:
    """With the name that the process has in its world."""
    made = list(effects)
    for effect in made:
        if isinstance(effect, Send):
            effect.to = [name if to == MYSELF else to for to in effect.to]
        elif isinstance(effect, Persist):
            effect.then = addressed(effect.then, name)
    return made


def told(events: Iterable[Event], name: str) -> Seen:
    """What a machine was told, by kind; timers without their order, which is that of the clock."""
    seen: Seen = {"handed": [], "read": [], "received": [], "fired": []}
    for event in events:
        match event:
            case ChannelReset(peer="handed"):
                seen["handed"].append(event.incarnation)
            case LogRead():
                offsets = [found.first_offset for found in event.entries]
                seen["read"].append((event.tag, event.group, event.position, offsets, event.begins))
            case Receive(source=source) if source == name:
                seen["received"].append(int.from_bytes(event.message.id, "big"))
            case TimerFired(name=timer) if timer:
                seen["fired"].append(timer)
    seen["fired"].sort()
    return seen


def observed(effect: Observe, name: str) -> tuple[bytes, str]:
    return effect.id, effect.blocked_on.replace(f"replica:{name}", "our disk")


class OneTransaction(Random):
    """A disk whose transactions are never split: whatever a step persists is durable at once."""

    def random(self) -> float:
        return 0.5


# ------------------------------------------------------------------------------------------------- the simulator


class Simulated:
    def __init__(self) -> None:
        self.theatre = Theatre()
        world = self.theatre.world
        world.disk_random = OneTransaction()
        self.seen: Seen = {"observed": [], "live": [], "interrupted": [], "own": []}
        world.on_observe = lambda process, effect: self.seen["observed"].append(observed(effect, "d"))
        world.on_deliver = self._on_deliver
        world.on_custom = self._on_custom

    def _on_deliver(self, process: str, effect: Deliver) -> None:
        if not effect.final:
            self.seen["live"].append((effect.group, effect.entry.first_offset))

    def _on_custom(self, process: str, effect: Effect) -> None:
        if isinstance(effect, Interrupted):
            self.seen["interrupted"].append(effect.group)
        elif isinstance(effect, Own):
            self.seen["own"].append(effect.value)

    def look(self) -> Seen:
        theatre, process = self.theatre, self.theatre.process("d")
        seen = {key: list(value) for key, value in self.seen.items()}
        for role, slot in process.slots.items():
            events = theatre.puppet("d", role).events
            seen |= {f"{role} {kind}": values for kind, values in told(events, "d").items()}
            seen[f"{role} armed"] = sorted(slot.timers)
        seen |= {peer: theatre.heard(peer) for peer in PEERS}
        seen["records"] = sorted(process.disk.records.get("one", {}).items())
        logs = process.disk.logs
        seen["logs"] = [(name, logs[name].begins, logs[name].ends) for name in GROUPS if name in logs]
        return seen


def in_the_simulator(steps: Iterable[list[Effect]]) -> list[Seen]:
    """Before the disk has synced what a step says, and after that, for each step."""
    world, seen = Simulated(), []
    for effects in steps:
        world.theatre.slow_disk("d")
        world.theatre.perform("d", *addressed(effects, "d"), role="one")
        world.theatre.run(5.0)
        seen.append(world.look())
        world.theatre.sync("d")
        world.theatre.run(5.0)
        seen.append(world.look())
    return seen


# --------------------------------------------------------------------------------------------------- the runtime


class Running:
    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.seen: Seen = {"observed": [], "live": [], "interrupted": [], "own": []}
        host = rig.host
        host.on_observe = lambda domain, effect: self.seen["observed"].append(observed(effect, "me"))
        host.on_live = lambda group, found: self.seen["live"].append((group, found.first_offset))
        host.on_interrupted = self.seen["interrupted"].append
        host.slots["d", "one"].on_effect = self._on_effect

    def _on_effect(self, effect: Effect) -> None:
        if isinstance(effect, Own):
            self.seen["own"].append(effect.value)

    async def come_to_rest(self) -> None:
        """All events are told, and whatever fires soon has fired."""
        slots, late = self.rig.host.slots.values(), asyncio.get_running_loop().time() + LATE_S / 2
        while any(timer.when() < late for slot in slots for timer in slot.timers.values()):
            await asyncio.sleep(0)
        await self.rig.host.caught_up()

    def look(self) -> Seen:
        rig = self.rig
        seen = {key: list(value) for key, value in self.seen.items()}
        for role, puppet in (("one", rig.machine), ("two", rig.sibling)):
            seen |= {f"{role} {kind}": values for kind, values in told(puppet.told, "me").items()}
            seen[f"{role} armed"] = sorted(rig.host.slots["d", role].timers)
        for name in PEERS:
            seen[name] = [int.from_bytes(text.encode(), "big") for peer, text in rig.sent if peer == name]
        seen["records"] = sorted(rig.storage.records("d", "one"))
        bounds = {name: rig.storage.bounds(name) for name in GROUPS if name in rig.storage.groups()}
        seen["logs"] = [(name, found.begins, found.ends) for name, found in bounds.items()]
        return seen


def in_the_runtime(steps: Iterable[list[Effect]], directory: Path) -> list[Seen]:
    """As in_the_simulator."""

    async def performed() -> list[Seen]:
        seen = []
        async with asyncio.timeout(60), rigged(directory) as rig:
            world = Running(rig)
            for effects in steps:
                with rig.held():
                    rig.poke(*addressed(effects, "me"))
                    await rig.host.caught_up()
                    await world.come_to_rest()
                    seen.append(world.look())
                await rig.settle()
                await world.come_to_rest()
                seen.append(world.look())
            assert rig.broken == []
        return seen

    return asyncio.run(performed())
