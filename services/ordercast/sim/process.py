"""A simulated process: hosts machines and performs their effects as core/machine.py promises."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from ordercast.core import packets
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import (
    ChannelReset,
    Deliver,
    Effect,
    Ended,
    Event,
    GroupsClosed,
    Hand,
    LogRead,
    Machine,
    Observe,
    Persist,
    ReadLog,
    Receive,
    ResetLog,
    Send,
    SetTimer,
    Start,
    TimerFired,
    ViewChanged,
    Watermark,
    told_at,
)
from ordercast.core.view import LateView, UnknownGroup
from ordercast.sim.disk import Disk, Log, Transaction
from ordercast.v1.sequencer_pb2 import LogEntry

if TYPE_CHECKING:
    from ordercast.sim.world import World

Factory = Callable[[], Machine]

#: How long after a restart everyone knows that the life before is over.
ENDED_S = 0.2


class Slot:
    """One machine and the effects that wait for its barriers."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        #: The transaction that effects performed now have to wait for.
        self.barrier = 0
        #: What waits for a transaction, with its number among the effects: behind barriers, and in `then`.
        self.backlog: deque[tuple[int, int, Effect]] = deque()
        self.then: deque[tuple[int, int, Effect]] = deque()
        self.effects = 0
        self.log: list[tuple[str, int, LogEntry | None]] = []
        self.timers: dict[str, int] = {}

    def hold(self, queue: deque[tuple[int, int, Effect]], transaction: int, effect: Effect) -> None:
        self.effects += 1
        queue.append((transaction, self.effects, effect))

    def release(self, durable: int) -> Iterator[Effect]:
        """What waited for the transaction, in the order of the machine's effects, as runtime/host.py has it."""
        backlog, then = self.backlog, self.then
        while True:
            queue = backlog if backlog and backlog[0][0] <= durable else None
            if then and then[0][0] <= durable and (queue is None or then[0][1] < queue[0][1]):
                queue = then
            if queue is None:
                return
            yield queue.popleft()[2]


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
        self.slots: dict[str, Slot] = {}
        self.routes: dict[type, str] = {}
        self.paused_until = 0.0
        #: The wall clock jumps; the monotonic clock runs at its own rate and may jump ahead (a suspended machine).
        self.wall_offset = 0.0
        self.clock_offset = 0.0
        self.clock_rate = 1.0
        self.commits = 0
        #: Crash at this commit: "before" it is durable, "torn" in the middle, or "after", unheard.
        self.crash_at_commit: tuple[int, str] | None = None
        self.durable = 0
        #: The logs as machines have written them, durable or not.
        self.written: dict[str, Log] = {}
        self._outbox: dict[str, list[bytes]] = {}
        self._local: deque[tuple[str, Event]] = deque()
        self._busy = False
        #: What came while it was paused, in order.
        self._deferred: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self.disk.on_apply = lambda log: self.world.committed(self.name, log)

    # ----------------------------------------------------------------------------------------- life

    def start(self) -> None:
        world = self.world
        self.up = True
        earlier, self.incarnation = self.incarnation, world.new_incarnation(self.name)
        self.slots = {role: Slot(make()) for role, make in self.factories.items()}
        self.routes = {type_: role for role, slot in self.slots.items() for type_ in slot.machine.handles}
        self.peers, self._outbox = {}, {}
        self._local.clear()
        self.durable = self.disk.open.number - 1
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
        return self.incarnation == mark[0] and self.durable >= mark[1]

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
        if self.slots[role].timers.get(name) == ticket:
            chance = self.world.random.getrandbits(64)
            self.tell(role, TimerFired(*self.clock(), name, chance))

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
                    raise  # As in runtime/host.py: only what somebody sent can be somebody's mistake.
                self._refused(event, error)
                continue
            if effects:
                self._perform(role, slot, effects)
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

    def _perform(self, role: str, slot: Slot, effects: list[Effect]) -> None:
        """In order; what is behind a barrier waits, but goes to the disk in its turn."""
        for effect in effects:
            kind = type(effect)
            if kind is Persist:
                self._persist(role, slot, effect)  # type: ignore[arg-type]
                continue
            if kind is Deliver and effect.final:  # type: ignore[attr-defined]
                self._log(slot, effect.group, effect.position, effect.entry)  # type: ignore[attr-defined]
            elif kind is ResetLog:
                self._log(slot, effect.group, effect.position, None)  # type: ignore[attr-defined]
            if slot.barrier > self.durable:
                slot.hold(slot.backlog, slot.barrier, effect)
            elif kind is Send:
                self._send(effect)  # type: ignore[arg-type]
            else:
                self._do(role, slot, effect)

    def _log(self, slot: Slot, group: str, position: int, entry: LogEntry | None) -> None:
        slot.log.append((group, position, entry))
        self.written.setdefault(group, Log()).write(position, entry)

    def truncate(self, group: str, position: int) -> None:
        """Retention, of what is durable."""
        self.disk.truncate(group, position)
        self.written[group].truncate(position)

    def _persist(self, role: str, slot: Slot, effect: Persist) -> None:
        if self.world.disk_random.random() < 0.1:
            # No driver has to commit two Persists together: what belongs together must be in one.
            self.disk.seal()
        transaction = self.disk.add(role, effect.records, slot.log)
        slot.log = []
        if effect.barrier:
            slot.barrier = transaction.number
        if effect.barrier or effect.then:
            transaction.is_awaited = True
        for send in effect.then:
            slot.hold(slot.then, transaction.number, send)

    def _do(self, role: str, slot: Slot, effect: Effect) -> None:
        world = self.world
        match effect:
            case Send():
                self._send(effect)
            case Hand():
                self._enqueue(effect.role, told_at(effect.event, self.clock()))
            case Deliver():
                world.delivered(self.name, effect)
            case SetTimer():
                ticket = slot.timers[effect.name] = world.ticket()
                delay = effect.delay / self.clock_rate
                world.after(delay, self._timer, role, effect.name, ticket, self.incarnation)
            case ReadLog():
                self._read_log(role, effect)
            case Watermark():
                world.watermarked(self.name, effect)
            case Observe():
                world.observed(self.name, effect)
            case ResetLog():
                world.log_reset(self.name, effect)
            case _:
                world.custom(self.name, effect)

    def _send(self, effect: Send) -> None:
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

    def _read_log(self, role: str, effect: ReadLog) -> None:
        log = self.written.get(effect.group) or Log()
        first = max(effect.position - log.begins, 0)
        entries = log.entries[first : first + effect.count_max] if effect.position >= log.begins else []
        event = LogRead(*self.clock(), effect.group, effect.position, entries, log.begins, effect.tag)
        self._enqueue(role, event)

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
        self.durable = transaction.number
        for role, slot in self.slots.items():
            for effect in slot.release(self.durable):
                self._do(role, slot, effect)
        self._work()
