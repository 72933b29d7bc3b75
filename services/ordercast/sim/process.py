"""A simulated process: hosts machines and performs their effects as core/machine.py promises."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from ordercast.core import packets
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import (
    ChannelReset,
    ChecksItself,
    Deliver,
    Effect,
    Ended,
    Event,
    GroupsClosed,
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
    ViewChanged,
    Watermark,
)
from ordercast.core.performer import LogChanges, Performer, Slot
from ordercast.core.view import LateView, UnknownGroup
from ordercast.core.watermarks import Watermarks
from ordercast.sim.disk import Disk, Log, Transaction

if TYPE_CHECKING:
    from ordercast.sim.world import World

Factory = Callable[[], Machine]

#: How long after a restart everyone knows that the life before is over.
ENDED_S = 0.2


class SimSlot(Slot):
    def __init__(self, role: str, machine: Machine) -> None:
        super().__init__(role, machine)
        #: Asked after every step, if the machine has something to say about itself.
        self.check = machine.check_invariants if isinstance(machine, ChecksItself) else None


class Process:
    def __init__(self, world: "World", name: str, factories: dict[str, Factory]) -> None:
        self.world = world
        self.name = name
        self.factories = factories
        self.disk = Disk()
        self.disk_delay_s = 0.001
        self.up = False
        self.incarnation = 0
        #: How many changes of membership it has heard of, and the groups of its latest view.
        self.followed = 0
        self.groups: dict[str, None] = {}
        self.peers: dict[str, int] = {}
        self.slots: dict[str, SimSlot] = {}
        self.routes: dict[type, str] = {}
        self.paused_until = 0.0
        #: The wall clock jumps; the monotonic clock runs at its own rate and may jump ahead (a suspended machine).
        self.wall_offset = 0.0
        self.clock_offset = 0.0
        self.clock_rate = 1.0
        self.commits = 0
        #: Crash at this commit: "before" it is durable, "torn" in the middle, or "after", unheard.
        self.crash_at_commit: tuple[int, str] | None = None
        self.performer: Performer[SimSlot] = Performer(name, self)
        #: The logs as machines have written them, durable or not.
        self.written: dict[str, Log] = {}
        self._outbox: dict[str, list[bytes]] = {}
        self._local: deque[tuple[str, Event]] = deque()
        self._busy = False
        #: What came while it was paused, in order.
        self._deferred: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self.disk.on_apply = lambda log: self.world.committed(self.name, log)
        #: What this life's machines said that readers of its logs may hear.
        self.watermarks = Watermarks()

    # ----------------------------------------------------------------------------------------- life

    def start(self) -> None:
        world = self.world
        self.up = True
        earlier, self.incarnation = self.incarnation, world.new_incarnation(self.name)
        self.slots = {role: SimSlot(role, make()) for role, make in self.factories.items()}
        self.routes = {type_: role for role, slot in self.slots.items() for type_ in slot.machine.handles}
        self.peers, self._outbox, self.watermarks = {}, {}, Watermarks()
        self._local.clear()
        self.performer = Performer(self.name, self, self.disk.open.number - 1)
        self.written = {g: Log(log.begins, list(log.entries)) for g, log in self.disk.logs.items()}
        self.followed, view, closed = world.news_for(self)
        self._note_groups(view)
        for role in self.slots:
            records = list(self.disk.records.get(role, {}).items())
            self._enqueue(role, Start(*self.clock(), self.incarnation, records))
            if view is not None:
                self._enqueue(role, ViewChanged(*self.clock(), view))
            if closed:
                self._enqueue(role, GroupsClosed(*self.clock(), closed))
            for name, incarnation in world.ended.items():
                self._enqueue(role, Ended(*self.clock(), name, incarnation))
        self._work()
        if earlier:
            # Whoever registers anew has ended its earlier lives. Others hear of that when membership tells them.
            world.after(ENDED_S, world.end, self.name, earlier)
        for other in world.processes.values():
            if other is not self and other.up:
                world.network.connect(self.name, other.name)

    def follow(self, number: int, view: Any, closed: tuple[str, ...]) -> None:
        """Membership's news, if it is news here. While it is down it hears nothing."""
        if not self.up or self.deferred(self.follow, number, view, closed) or number <= self.followed:
            return
        self.followed = number
        self._note_groups(view)
        self.tell_all(ViewChanged(*self.clock(), view))
        self.tell_all(GroupsClosed(*self.clock(), closed))

    def _note_groups(self, view: Any) -> None:
        """The log of a group that is gone, or elsewhere, goes with the view: behind what is still on its way to
        it.
        """
        if view is None:
            return
        self.groups = {group.group: None for group in view.groups}
        mine = [
            group.group
            for group in view.groups
            if self.name in (*group.replicas, *group.learners, *group.previous.replicas)
        ]
        for name in [name for name in self.written if name not in mine]:
            del self.written[name]
            self.disk.add("", (), [(name, 0, None)])

    @property
    def is_answering(self) -> bool:
        return self.up and not self._deferred and self.paused_until <= self.world.now

    def mark(self) -> tuple[int, int]:
        """What is on its way to the disk now: the life, and the transaction that it waits for."""
        open_ = self.disk.open
        return (self.incarnation, open_.number - open_.is_empty)

    def has_synced(self, mark: tuple[int, int]) -> bool:
        return self.incarnation == mark[0] and self.performer.durable >= mark[1]

    def crash(self, torn: float | None = None) -> None:
        if not self.up:
            return
        self.up = False
        self.disk.crash(torn)
        self.slots = {}
        self.paused_until = 0.0
        self._deferred.clear()
        self.world.network.crashed(self.name)
        self.world.note(self.name, "crashes")

    def wipe(self, followed: int) -> None:
        """Its disk is gone, and it is let in again only with what membership knows by now."""
        self.crash()
        self.disk = Disk()
        self.disk.on_apply = lambda log: self.world.committed(self.name, log)
        self.written = {}
        self.followed = followed
        self.world.note(self.name, "lost its disk")

    def clock(self) -> tuple[float, float]:
        now = self.world.now
        return now * self.clock_rate + self.clock_offset, now + self.wall_offset

    # ------------------------------------------------------------------------------------- events in

    def arrived(self, source: str, data: bytes) -> None:
        world = self.world
        if (self._deferred or self.paused_until > world.now) and self.deferred(self.arrived, source, data):
            return
        incarnation = self.peers.get(source)
        if not self.up or incarnation is None:
            return
        world.digest_frame(source, self.name, data)
        for packet in packets.packets_of(data):
            self.deliver_packet(source, incarnation, packet)
        self._work()

    def deliver_packet(self, source: str, incarnation: int, packet: bytes) -> None:
        try:
            message = packets.decode(packet)
        except DecodeError as error:
            self.world.refuse(self.name, source, None, f"malformed: {error}")
            return
        role = self.routes.get(type(message))
        if role is None:
            self.world.refuse(self.name, source, message, "nobody here handles it")
            return
        if self.world.tracing:
            self.world.trace_receive(source, self.name, message)
        now = self.world.now
        event = Receive(
            now * self.clock_rate + self.clock_offset, now + self.wall_offset, source, incarnation, message
        )
        self._local.append((role, event))

    def channel_reset(self, peer: str, incarnation: int) -> None:
        if self.deferred(self.channel_reset, peer, incarnation):
            return
        self.peers[peer] = incarnation
        self.tell_all(ChannelReset(*self.clock(), peer, incarnation))

    def tell_all(self, event: Event) -> None:
        """An event for every machine here."""
        for role in self.slots:
            self._enqueue(role, event)
        self._work()

    def tell(self, role: str, event: Event) -> None:
        self._enqueue(role, event)
        self._work()

    def deferred(self, call: Callable[..., None], *args: Any) -> bool:
        """A paused process does nothing until it goes on; then everything happens in its order."""
        if not self._deferred:
            if self.paused_until <= self.world.now:
                return False
            self.world.at(self.paused_until, self._go_on, self.incarnation)
        self._deferred.append((call, args))
        return True

    def _go_on(self, incarnation: int) -> None:
        if incarnation != self.incarnation or not self.up:
            return
        if self.paused_until > self.world.now:
            self.world.at(self.paused_until, self._go_on, incarnation)
            return
        waiting, self._deferred = self._deferred, deque()
        for call, args in waiting:
            call(*args)

    def _timer(self, role: str, name: str, ticket: int, incarnation: int) -> None:
        if incarnation != self.incarnation or not self.up:
            return
        if self.deferred(self._timer, role, name, ticket, incarnation):
            return
        slot = self.slots[role]
        if slot.timers.get(name) == ticket:
            self.performer.fired(slot, name, self.world.random.getrandbits(64))
            self._work()

    # ------------------------------------------------------------------------------------ stepping

    def _enqueue(self, role: str, event: Event) -> None:
        self._local.append((role, event))

    def _work(self) -> None:
        """Step machines until nothing is left to do now, then write what they have for others."""
        if self._busy:
            return
        self._busy = True
        local, slots = self._local, self.slots
        while local and self.up:
            role, event = local.popleft()
            slot = slots[role]
            try:
                effects = slot.machine.step(event)
            except RemoteProtocolError as error:
                if not isinstance(event, Receive):
                    raise  # As in runtime/driver/host.py: only what somebody sent can be somebody's mistake.
                self._refused(event, error)
                effects = []
            if slot.check is not None:
                slot.check()
            if effects:
                self.performer.perform(slot, effects)
        self._busy = False
        if self._outbox:
            self._flush()
        if self.disk.is_dirty:
            self._write()

    def _refused(self, event: Receive, error: RemoteProtocolError) -> None:
        source, message = event.source, event.message
        if isinstance(error, UnknownGroup):
            self.world.lacks(self, source, message, error.group)
        elif isinstance(error, LateView):
            self.world.differs(self, source, message, error)
        else:
            self.world.refuse(self.name, source, message, str(error))

    def truncate(self, group: str, position: int) -> None:
        """Retention, of what is durable."""
        self.disk.truncate(group, position)
        self.written[group].truncate(position)

    def drop(self, cell: str, position: int, group: str) -> None:
        """Retention of one group of the cell, up to this position."""
        for log in (self.disk.logs[cell], self.written[cell]):
            log.drop(cell, position, group)

    # -------------------------------------------- how effects are done: what the performer asks its world for

    def read_clock(self) -> tuple[float, float]:
        return self.clock()

    def commit(self, slot: SimSlot, persist: Persist, log: LogChanges) -> int:
        if self.world.disk_random.random() < 0.1:
            # No driver has to commit two Persists together: what belongs together must be in one.
            self.disk.seal()
        transaction = self.disk.add(slot.role, persist.records, log)
        if persist.barrier or persist.then:
            transaction.is_awaited = True
        return transaction.number

    def hand(self, slot: SimSlot, role: str, event: Event) -> None:
        self._enqueue(role, event)

    def arm(self, slot: SimSlot, name: str, delay: float) -> int:
        ticket = self.world.ticket()
        self.world.after(delay / self.clock_rate, self._timer, slot.role, name, ticket, self.incarnation)
        return ticket

    def disarm(self, timer: int) -> None:
        """When its time comes it is not the one that is armed, if one is."""

    def observe(self, slot: SimSlot, effect: Observe) -> None:
        self.world.observed(self.name, effect)

    def logged(self, slot: SimSlot, effect: Deliver) -> None:
        self.written.setdefault(effect.group, Log()).write(effect.position, effect.entry)

    def reset_log(self, slot: SimSlot, effect: ResetLog) -> None:
        self.written.setdefault(effect.group, Log()).write(effect.position, None)

    def deliver(self, slot: SimSlot, effect: Deliver) -> None:
        self.world.delivered(self.name, effect)

    def interrupt(self, slot: SimSlot, effect: Interrupted) -> None:
        self.world.custom(self.name, effect)

    def revoke(self, slot: SimSlot, effect: Revoked) -> None:
        self.world.custom(self.name, effect)

    def other(self, slot: SimSlot, effect: Effect) -> None:
        match effect:
            case Watermark():
                self.watermarks.note(effect)
                self.world.watermarked(self.name, effect)
            case ResetLog():
                self.world.log_reset(self.name, effect)
            case _:
                self.world.custom(self.name, effect)

    def send(self, slot: SimSlot, effect: Send) -> None:
        message = effect.message
        data = None
        if len(effect.to) == 1 and effect.to[0] == self.name:
            self.world.on_send(self.name, effect.to, message, 0)
        for to in effect.to:
            if to == self.name:
                role = self.routes.get(type(message))
                if role is not None:
                    self._enqueue(role, Receive(*self.clock(), to, self.incarnation, message))
                continue
            if data is None:
                data = packets.encode(message)
                self.world.on_send(self.name, effect.to, message, len(data))
            box = self._outbox.get(to)
            if box is None:
                box = self._outbox[to] = []
            box.append(data)

    def _flush(self) -> None:
        outbox, self._outbox = self._outbox, {}
        for to, waiting in outbox.items():
            self.world.messages += len(waiting)
            self.world.network.send(self.name, to, packets.frame(self.world.domain, waiting))

    def read_log(self, slot: SimSlot, effect: ReadLog) -> None:
        log = self.written.get(effect.group) or Log()
        first = max(effect.position - log.begins, 0)
        entries = log.entries[first : first + effect.count_max] if effect.position >= log.begins else []
        event = LogRead(*self.clock(), effect.group, effect.position, entries, log.begins, effect.tag)
        self._enqueue(slot.role, event)

    # ------------------------------------------------------------------------------------------ disk

    def _write(self) -> None:
        """Unless the disk is busy: then it goes on by itself with what piled up."""
        if self.up and self.disk.begin():
            self.commits += 1
            delay = self.world.disk_random.expovariate(1 / self.disk_delay_s) if self.disk_delay_s else 0.0
            self.world.after(delay, self._synced, self.disk.writing)

    def _synced(self, transaction: Transaction) -> None:
        if self.disk.writing is not transaction:
            return
        if self.deferred(self._synced, transaction):
            return
        plan = self.crash_at_commit
        if plan is not None and self.commits >= plan[0]:
            self.crash_at_commit = None
            if plan[1] == "after":
                self.disk.synced()
            self.crash(torn=self.world.disk_random.random() if plan[1] == "torn" else None)
            self.world.crashed_at_commit(self.name)
            return
        self.disk.synced()
        self.performer.release(self.slots.values(), transaction.number)
        self._work()
