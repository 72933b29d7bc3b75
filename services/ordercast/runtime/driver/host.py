"""Hosts the machines of one process and performs their effects, as core/machine.py promises.

Everything here runs on the event loop, in slices: events that came in meanwhile are stepped together, what the
machines have for others leaves as one frame for each peer, and what they persist goes into one commit. The writer
commits in a thread of its own and says which ticket is durable.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import structlog
from google.protobuf.message import DecodeError

from ordercast.core import packets
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import (
    ChecksItself,
    Deliver,
    Effect,
    Event,
    Interrupted,
    LogRead,
    Machine,
    Observe,
    Persist,
    ReadLog,
    Receive,
    ResetLog,
    Revoked,
    Send,
    Start,
    Watermark,
    told_at,
)
from ordercast.core.performer import LogChanges, Performer, Slot
from ordercast.core.view import LateView
from ordercast.runtime.driver.clock import Clock
from ordercast.runtime.driver.profile import Profile
from ordercast.runtime.storage.store import CorruptRecord, Storage
from ordercast.runtime.storage.writer import Writer
from ordercast.v1.sequencer_pb2 import LogEntry

log = structlog.get_logger("host")

#: After so many events the loop gets its turn, so that frames are read and written meanwhile.
SLICE_EVENTS = 500
#: After every so many-th event its machine is asked for its invariants. A prime, for machines are told things in a
#: rhythm, and none of them is to be left out.
CHECKED_EVERY = 101
#: How long a commit that nothing waits for waits for one that something does.
COMMIT_PATIENCE_S = 0.006
#: Events that are not stepped and effects behind barriers: with more, nothing is read from peers and clients.
WAITING_MAX = 50_000
#: Machines say how many entries they want, and are handed so much at most: they would not send more at once.
READ_BYTES_MAX = 1 << 20
REFUSALS_MAX = 256
REFUSAL_CHARS_MAX = 200
#: A damaged entry that nobody could mend is looked for again: other replicas may have been away.
MEND_AGAIN_S = 1.0


class HostSlot(Slot):
    """A machine of a domain."""

    def __init__(
        self, domain: str, role: str, machine: Machine, on_effect: Callable[[Effect], None] | None
    ) -> None:
        super().__init__(role, machine)
        self.domain = domain
        #: Asked now and then, if the machine has something to say about itself.
        self.check = machine.check_invariants if isinstance(machine, ChecksItself) else None
        #: Takes the effects that are this machine's own.
        self.on_effect = on_effect
        self.incarnation = 0


class Host:
    def __init__(
        self,
        process: str,
        storage: Storage,
        clock: Clock,
        *,
        send: Callable[[str, str, bytes, bool], None],
        on_broken: Callable[[BaseException], None],
        profile: Profile | None = None,
    ) -> None:
        """`send` takes (peer, domain, packet, is it urgent); `on_broken` ends the process."""
        self.process = process
        self.storage = storage
        self.clock = clock
        self.writer: Writer
        self.profile = profile
        self.slots: dict[tuple[str, str], HostSlot] = {}
        self._routes: dict[tuple[str, type], HostSlot] = {}
        #: Clients that are connected here, by the name under which machines know them.
        self.endpoints: dict[str, Callable[[Any], None]] = {}
        #: Told which groups have new entries on disk.
        self.on_logged: Callable[[str], None] = lambda group: None
        self.on_observe: Callable[[str, Observe], None] = lambda domain, effect: None
        self.on_live: Callable[[str, LogEntry], None] = lambda group, entry: None
        self.on_interrupted: Callable[[str], None] = lambda group: None
        #: Told what readers of a cell's log may count on, once its entries are on disk.
        self.on_watermark: Callable[[Watermark], None] = lambda watermark: None
        #: Told of every entry of a log here, as it is added, and of logs that begin anew.
        self.on_delivered: Callable[[str, Deliver], None] | None = None
        self.on_reset: Callable[[str, str], None] = lambda domain, group: None
        #: By the kind of a peer's message: takes those that are no machine's.
        self.on_message: dict[type, Callable[[str, Any], None]] = {}
        #: Mends a damaged log entry, or says that it cannot.
        self.mend: Callable[[CorruptRecord], asyncio.Future[None]] | None = None
        #: What peers sent that they must not send, by reason.
        self.refusals: dict[str, int] = {}
        #: How often somebody's view was late.
        self.late = 0
        #: Whoever reads from peers and clients waits for it.
        self.room = asyncio.Event()
        self.room.set()
        self._send_to_peer = send
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._events: deque[tuple[HostSlot, Event]] = deque()
        #: Events, since the start.
        self.stepped = 0
        self._last_ticket = 0
        #: Set and replaced whenever something was stepped or became durable.
        self._moved = asyncio.Event()
        self._logged: deque[tuple[int, str]] = deque()
        self._scheduled = False
        #: Something waits for the writer, and something waits for that.
        self._has_written = self._has_barrier = False
        self._commit_soon: asyncio.TimerHandle | None = None
        self._is_broken = False
        self._performer = Performer(process, self)

    @property
    def waiting(self) -> int:
        """Events that are not stepped, and effects behind barriers."""
        return len(self._events) + self._performer.held

    # ----------------------------------------------------------------------------------------- machines

    def add(
        self, domain: str, role: str, machine: Machine, on_effect: Callable[[Effect], None] | None = None
    ) -> None:
        slot = HostSlot(domain, role, machine, on_effect)
        self.slots[domain, role] = slot
        for type_ in machine.handles:
            self._routes[domain, type_] = slot

    def start(self, domain: str, incarnation: int, after: Sequence[Event]) -> None:
        """Start the machines of a domain; the events after Start come before anything else."""
        for slot in self.of(domain):
            slot.incarnation = incarnation
            records = self._records(domain, slot.role)
            clock = self.clock.read()
            self._enqueue(slot, Start(*clock, incarnation, records))
            for event in after:
                self._enqueue(slot, told_at(event, clock))

    def _records(self, domain: str, role: str) -> Sequence[tuple[bytes, bytes]]:
        """For user domains, only undamaged records: views report the damaged groups (disbelief.py)."""
        if domain.startswith("#"):
            return self.storage.records(domain, role)
        return self.storage.sound_records(domain, role)[0]

    def of(self, domain: str) -> list[HostSlot]:
        return [slot for slot in self.slots.values() if slot.domain == domain]

    def stop(self) -> None:
        """Nothing more is done: what has not left by now never will."""
        self._is_broken = True
        for slot in self.slots.values():
            for timer in slot.timers.values():
                timer.cancel()
        self._events.clear()

    # ------------------------------------------------------------------------------------------ events in

    def tell(self, domain: str, role: str, event: Event) -> None:
        self._enqueue(self.slots[domain, role], event)

    def tell_domain(self, domain: str, event: Event) -> None:
        for slot in self.of(domain):
            self._enqueue(slot, event)

    def receive(self, domain: str, source: str, incarnation: int, data: Sequence[bytes]) -> None:
        """Packets of one section, in order."""
        now, wall = self.clock.read()
        for packet in data:
            try:
                message = packets.decode(packet)
            except DecodeError:
                self._refused(source, "malformed packet")
                continue
            slot = self._routes.get((domain, type(message)))
            if slot is None:
                take = self.on_message.get(type(message))
                if take is not None:
                    take(domain, message)
                else:
                    self._refused(source, f"nobody here handles {type(message).__name__}")
                continue
            self._events.append((slot, Receive(now, wall, source, incarnation, message)))
        self._schedule()

    def hand_in(self, domain: str, client: str, message: Any) -> None:
        """A message of a client that is connected here."""
        slot = self._routes[domain, type(message)]
        self._enqueue(slot, Receive(*self.clock.read(), client, 0, message))

    def _enqueue(self, slot: HostSlot, event: Event) -> None:
        self._events.append((slot, event))
        self._schedule()

    def _schedule(self) -> None:
        if self.waiting > WAITING_MAX:
            self.room.clear()
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._work)

    def _timer(self, slot: HostSlot, name: str) -> None:
        self._performer.fired(slot, name, self.clock.chance())

    # ------------------------------------------------------------------------------------------- stepping

    def _work(self) -> None:
        """A slice: step machines, perform what may be performed, and start a commit if there is need."""
        self._scheduled = False
        if self._is_broken:
            return
        try:
            for _ in range(SLICE_EVENTS):
                if not self._events:
                    break
                slot, event = self._events.popleft()
                self._step(slot, event)
                self.stepped += 1
            else:
                self._schedule()
            if self._has_barrier:
                self._commit()
            elif self._has_written and self._commit_soon is None:
                self._commit_soon = self._loop.call_later(COMMIT_PATIENCE_S, self._commit)
            self._has_moved()
        except Exception as error:  # A machine that raised this cannot be trusted with what it holds in memory.
            self._break(error)

    def _commit(self) -> None:
        self._has_barrier = self._has_written = False
        if self._commit_soon is not None:
            self._commit_soon.cancel()
            self._commit_soon = None
        self.writer.kick()

    def _has_moved(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        if self.waiting <= WAITING_MAX // 2:
            self.room.set()

    @property
    def goal(self) -> int:
        """What `stepped` will be when all events that came so far were stepped."""
        return self.stepped + len(self._events)

    async def caught_up(self, goal: int | None = None) -> None:
        """Returns when all events that came before were stepped, or those up to an earlier goal."""
        goal = self.goal if goal is None else goal
        while self.stepped < goal:
            await self._moved.wait()

    async def synced(self) -> None:
        """Returns when all that machines have persisted before is durable."""
        ticket = self._last_ticket
        while self.writer.durable < ticket:
            await self._moved.wait()

    def _step(self, slot: HostSlot, event: Event) -> None:
        profile = self.profile
        begun = profile.begin() if profile is not None else 0.0
        try:
            effects = slot.machine.step(event)
        except RemoteProtocolError as error:
            if not isinstance(event, Receive):
                raise  # Nobody else sent it: a machine that goes on without it would lose a view, say, for good.
            self._on_mistake(slot, event, error)
            return
        if slot.check is not None and self.stepped % CHECKED_EVERY == 0:
            slot.check()
        if effects:
            self._performer.perform(slot, effects)
        if profile is not None:
            profile.end(begun, slot.role, event)

    def _on_mistake(self, slot: HostSlot, event: Receive, error: RemoteProtocolError) -> None:
        if isinstance(error, LateView):
            # While views change, this is how it is. It comes again.
            self.late += 1
            log.debug("another view", machine=slot.role, why=str(error))
        else:
            self._refused(event.source, str(error))

    def _refused(self, source: str, why: str) -> None:
        why = why[:REFUSAL_CHARS_MAX]
        kind = why if why in self.refusals or len(self.refusals) < REFUSALS_MAX else "other"
        self.refusals[kind] = count = self.refusals.get(kind, 0) + 1
        if count & (count - 1) == 0:  # The first, second, fourth, ...: a peer that repeats itself fills no disk.
            log.warning("refused", source=source, why=why, count=count)

    def _break(self, error: BaseException) -> None:
        self.stop()
        self._on_broken(error)

    # ------------------------------------------------------------------------------------------- effects

    def durable(self, ticket: int) -> None:
        """The writer's word: this ticket and all before it are on disk."""
        if self._is_broken:
            return
        try:
            self._performer.release(self.slots.values(), ticket)
            while self._logged and self._logged[0][0] <= ticket:
                self.on_logged(self._logged.popleft()[1])
            self._has_moved()
        except Exception as error:
            self._break(error)

    # ---------------------------------------------------------------- how: what the performer asks its world for

    def read_clock(self) -> tuple[float, float]:
        return self.clock.read()

    def commit(self, slot: HostSlot, persist: Persist, log: LogChanges) -> int:
        ticket = self.writer.add(slot.domain, slot.role, persist.records, log)
        for group in dict.fromkeys(group for group, _, _ in log):
            self._logged.append((ticket, group))
        self._has_written = True
        self._last_ticket = ticket
        if persist.barrier or _is_waited_for(persist.then):
            self._has_barrier = True
        return ticket

    def hand(self, slot: HostSlot, role: str, event: Event) -> None:
        self._enqueue(self.slots[slot.domain, role], event)

    def arm(self, slot: HostSlot, name: str, delay: float) -> asyncio.TimerHandle:
        return self._loop.call_later(delay, self._timer, slot, name)

    def disarm(self, timer: asyncio.TimerHandle) -> None:
        timer.cancel()

    def observe(self, slot: HostSlot, effect: Observe) -> None:
        self.on_observe(slot.domain, effect)

    def logged(self, slot: HostSlot, effect: Deliver) -> None:
        if self.on_delivered is not None:
            self.on_delivered(slot.domain, effect)

    def reset_log(self, slot: HostSlot, effect: ResetLog) -> None:
        self.on_reset(slot.domain, effect.group)

    def deliver(self, slot: HostSlot, effect: Deliver) -> None:
        if not effect.final:  # What is goes to the disk, and subscribers are fed from there.
            self.on_live(effect.group, effect.entry)

    def interrupt(self, slot: HostSlot, effect: Interrupted) -> None:
        self.on_interrupted(effect.group)

    def revoke(self, slot: HostSlot, effect: Revoked) -> None:
        """Nobody is shown what can be revoked: live deliveries cannot."""

    def other(self, slot: HostSlot, effect: Effect) -> None:
        if type(effect) is Watermark:
            self.on_watermark(effect)
        elif slot.on_effect is not None and type(effect) is not ResetLog:
            slot.on_effect(effect)

    def send(self, slot: HostSlot, effect: Send) -> None:
        domain, message = slot.domain, effect.message
        data = None
        for to in effect.to:
            if to == self.process:
                taker = self._routes.get((domain, type(message)))
                if taker is not None:
                    self._enqueue(taker, Receive(*self.clock.read(), to, taker.incarnation, message))
                continue
            endpoint = self.endpoints.get(to)
            if endpoint is not None:
                endpoint(message)
                continue
            if data is None:
                data = packets.encode(message)
            self._send_to_peer(to, domain, data, effect.urgent)

    # ---------------------------------------------------------------------------------------------- reads

    def read_log(self, slot: HostSlot, effect: ReadLog) -> None:
        """What the machine has written, durable or not."""
        try:
            stored = self.writer.read_own(effect.group, effect.position, effect.count_max, READ_BYTES_MAX)
        except CorruptRecord as damaged:
            self._mend_and_read(slot, effect, damaged)
            return
        entries = [LogEntry.FromString(entry.data) for entry in stored]
        begins = self.writer.own_bounds(effect.group).begins
        for group, position, entry in slot.log:  # Delivered, and its Persist is still to come.
            if group != effect.group:
                continue
            if entry is None:
                begins, entries = position, []
            elif position == effect.position + len(entries) and len(entries) < effect.count_max:
                entries.append(entry)
        event = LogRead(*self.clock.read(), effect.group, effect.position, entries, begins, effect.tag)
        self._enqueue(slot, event)

    def _mend_and_read(self, slot: HostSlot, effect: ReadLog, damaged: CorruptRecord) -> None:
        """The machine waits for its answer, as for a slow disk; its peers do not wait for it."""
        log.error("damaged log entry", record=str(damaged))
        if self.mend is None:
            raise damaged

        def mended(done: "asyncio.Future[None]") -> None:
            if done.cancelled():
                return
            error = done.exception()
            if error is None:
                self._read_again(slot, effect)
            else:
                log.critical("cannot mend it yet", record=str(damaged), why=str(error))
                self._loop.call_later(MEND_AGAIN_S, self._read_again, slot, effect)

        self.mend(damaged).add_done_callback(mended)

    def _read_again(self, slot: HostSlot, effect: ReadLog) -> None:
        if self._is_broken:
            return
        try:
            self.read_log(slot, effect)
        except Exception as error:
            self._break(error)


def _is_waited_for(effects: Sequence[Effect]) -> bool:
    """Somebody gets on only with these: the commit is not put off to share it with another."""
    for effect in effects:
        if type(effect) is Send:
            if effect.urgent:
                return True
        elif type(effect) is not Observe:
            return True
    return False
