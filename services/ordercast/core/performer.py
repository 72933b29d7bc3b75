"""The order in which the effects of machines are performed, for the runtime and the simulator alike.

What happens when is decided here; how it is done is the world's. So what is simulated is what runs:

* Whatever goes to the disk is given to the world at once, in its order: a `Persist`, with the deliveries since the
  machine's last one. The world answers with a ticket, and says later which tickets are durable.
* What is behind a barrier waits for that barrier's ticket, and what is in `then` for that of its own Persist. Of
  what becomes due together, nothing overtakes what the machine said before it.
* Optimistic deliveries, that they are interrupted or revoked, wait for no disk: they are shown before they are
  certain anyway. Observations do wait: they say when something was reached, and a stamp is given when it is on
  disk.
* An event that is handed on gets the time at which it is handed on, so `now` never runs backwards.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from ordercast.core.errors import InvariantBroken
from ordercast.core.machine import (
    Deliver,
    Effect,
    Event,
    Hand,
    Interrupted,
    Machine,
    Observe,
    Persist,
    ReadLog,
    ResetLog,
    Revoked,
    Send,
    SetTimer,
    TimerFired,
    told_at,
)
from ordercast.v1.sequencer_pb2 import LogEntry

#: What a transaction adds to logs: (group, position, entry), or without an entry where the log begins anew.
LogChanges = list[tuple[str, int, LogEntry | None]]


class Slot:
    """One machine, what of its effects waits, and its timers."""

    def __init__(self, role: str, machine: Machine) -> None:
        self.role = role
        self.machine = machine
        #: The ticket that whatever is performed now has to wait for.
        self.barrier = 0
        #: What waits for a ticket, with its number among the machine's effects: behind barriers, and in `then`.
        self.backlog: deque[tuple[int, int, Effect]] = deque()
        self.then: deque[tuple[int, int, Effect]] = deque()
        self.effects = 0
        #: Delivered, and its Persist is still to come.
        self.log: LogChanges = []
        #: Those that are armed, by name, as the world knows them.
        self.timers: dict[str, Any] = {}


S = TypeVar("S", bound=Slot)
S_contra = TypeVar("S_contra", bound=Slot, contravariant=True)


class World(Protocol[S_contra]):
    """How effects are done. The performer calls each when its time has come."""

    def read_clock(self) -> tuple[float, float]:
        """(now, wall)."""
        ...

    def commit(self, slot: S_contra, persist: Persist, log: LogChanges) -> int:
        """Write it behind all that was given before; the ticket that it is part of. The list is the world's."""
        ...

    def send(self, slot: S_contra, effect: Send) -> None: ...

    def hand(self, slot: S_contra, role: str, event: Event) -> None:
        """To the machine with that role beside this one, behind all that it was told before."""
        ...

    def arm(self, slot: S_contra, name: str, delay: float) -> Any:
        """A wake-up, as something by which it can be disarmed. When it is due, tell the performer: `fired`."""
        ...

    def disarm(self, timer: Any) -> None: ...

    def read_log(self, slot: S_contra, effect: ReadLog) -> None: ...

    def observe(self, slot: S_contra, effect: Observe) -> None: ...

    def logged(self, slot: S_contra, effect: Deliver) -> None:
        """At once: the machine counts it as part of the log. It is committed with the next Persist."""
        ...

    def reset_log(self, slot: S_contra, effect: ResetLog) -> None:
        """At once, likewise."""
        ...

    def deliver(self, slot: S_contra, effect: Deliver) -> None:
        """In its turn behind barriers, if it is final; else at once."""
        ...

    def interrupt(self, slot: S_contra, effect: Interrupted) -> None: ...

    def revoke(self, slot: S_contra, effect: Revoked) -> None: ...

    def other(self, slot: S_contra, effect: Effect) -> None:
        """In its turn: a log that was reset, a watermark, and what only one kind of machine has."""
        ...


class Performer(Generic[S]):
    def __init__(self, process: str, world: World[S], durable: int = 0) -> None:
        self.process = process
        #: This ticket and all before it are on disk.
        self.durable = durable
        #: Effects that wait, of all machines.
        self.held = 0
        self._world = world
        # Effects are many, so what does them is looked up once.
        self._send = world.send
        self._other: Callable[[S, Any], None] = world.other
        self._how: dict[type, Callable[[S, Any], None]] = {
            Send: world.send,
            Hand: self._hand,
            SetTimer: self._set_timer,
            ReadLog: world.read_log,
            Observe: world.observe,
            Deliver: world.deliver,
            Interrupted: world.interrupt,
            Revoked: world.revoke,
        }

    def perform(self, slot: S, effects: Sequence[Any]) -> None:
        """In order; what is behind a barrier waits, but goes to the disk in its turn."""
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                if slot.barrier > self.durable:
                    self._hold(slot, slot.backlog, slot.barrier, effect)
                else:
                    self._send(slot, effect)
                continue
            if kind is Persist:
                self._persist(slot, effect)
                continue
            if kind is Deliver:
                if not effect.final:
                    self._world.deliver(slot, effect)
                    continue
                slot.log.append((effect.group, effect.position, effect.entry))
                self._world.logged(slot, effect)
            elif kind is ResetLog:
                slot.log.append((effect.group, effect.position, None))
                self._world.reset_log(slot, effect)
            elif kind is Interrupted:
                self._world.interrupt(slot, effect)
                continue
            elif kind is Revoked:
                self._world.revoke(slot, effect)
                continue
            if slot.barrier > self.durable:
                self._hold(slot, slot.backlog, slot.barrier, effect)
            else:
                self._how.get(kind, self._other)(slot, effect)

    def release(self, slots: Iterable[S], ticket: int) -> None:
        """It is durable, and all before it: perform what waited for that, of each machine in the order it said."""
        self.durable = ticket
        for slot in slots:
            if slot.backlog or slot.then:
                self._release(slot, ticket)

    def fired(self, slot: S, name: str, chance: int) -> None:
        """A timer that is armed was due, and so is armed no more."""
        del slot.timers[name]
        self._world.hand(slot, slot.role, TimerFired(*self._world.read_clock(), name, chance))

    def _persist(self, slot: S, effect: Persist) -> None:
        log, slot.log = slot.log, []
        ticket = self._world.commit(slot, effect, log)
        if effect.barrier:
            slot.barrier = ticket
        for each in effect.then:
            if type(each) is not Send and _is_for_the_disk(each):
                raise InvariantBroken(f"{slot.role} would write {each} only once something else is written")
            self._hold(slot, slot.then, ticket, each)

    def _hold(self, slot: S, queue: deque[tuple[int, int, Effect]], ticket: int, effect: Effect) -> None:
        slot.effects += 1
        self.held += 1
        if type(effect) is Observe and effect.blocked_on:
            # Whatever it waited for before, the last is our own disk.
            effect.blocked_on = f"replica:{self.process}"
        queue.append((ticket, slot.effects, effect))

    def _release(self, slot: S, ticket: int) -> None:
        backlog, then = slot.backlog, slot.then
        while True:
            queue = backlog if backlog and backlog[0][0] <= ticket else None
            if then and then[0][0] <= ticket and (queue is None or then[0][1] < queue[0][1]):
                queue = then
            if queue is None:
                return
            self.held -= 1
            effect = queue.popleft()[2]
            self._how.get(type(effect), self._other)(slot, effect)

    def _hand(self, slot: S, effect: Hand) -> None:
        self._world.hand(slot, effect.role, told_at(effect.event, self._world.read_clock()))

    def _set_timer(self, slot: S, effect: SetTimer) -> None:
        name = effect.name
        earlier = slot.timers.get(name)
        if earlier is not None:
            self._world.disarm(earlier)
        slot.timers[name] = self._world.arm(slot, name, effect.delay)


def _is_for_the_disk(effect: Effect) -> bool:
    return isinstance(effect, Persist | ResetLog) or (isinstance(effect, Deliver) and effect.final)
