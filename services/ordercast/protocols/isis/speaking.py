"""When a process may cast.

Within one group, at once. Before it speaks in another group, what it sent and delivered in the first must survive
what it is about to say [BSS91 6.5]: on k disks, with the order of its ABCASTs; and its own ABCASTs must be
delivered, or two token holders could order against each other's causality. With the conservative rule [6.7] k is
everyone, and then times of other groups need not travel.

A cast is stamped when it is submitted: what is delivered while it waits does not make it wait longer.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ordercast.core.machine import Observe, Receive, Send
from ordercast.protocols.causal import times
from ordercast.protocols.causal.times import Time, Times
from ordercast.protocols.isis import records
from ordercast.protocols.isis.era import Era, message_of
from ordercast.protocols.isis.past import Stamp
from ordercast.protocols.isis.replica import Replica
from ordercast.protocols.isis.settings import Causality
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.isis_pb2 import Cast

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis


@dataclass(slots=True)
class Need:
    """What must be safe in another group."""

    group: str
    view: int
    counts: dict[int, int]
    #: Order, as far as ABCASTs were delivered by it; and our last own ABCAST.
    positions: int
    total_sent: int


@dataclass(slots=True)
class WaitingCast:
    """A cast that is submitted and not sent."""

    group: str
    envelope: Envelope
    total: bool
    stamp: Stamp
    needs: list[Need]
    #: It happened elsewhere, and was handed on.
    is_part: bool = False
    #: Messages to several groups that were sent or delivered here, and whose parts are not all cast.
    parts: dict[bytes, None] = field(default_factory=dict)
    #: What its client has read of groups in which messages to several groups are open, until a member answers that
    #: they are confirmed: see asking.py.
    asks: Times = field(default_factory=dict)
    #: What it waits for, for whoever looks on.
    blocked_on: str = ""


class Speaking:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine
        #: By group: casts of one group leave in the order in which they were submitted.
        self.queues: dict[str, deque[WaitingCast]] = {}
        self.handed_on: dict[str, deque[WaitingCast]] = {}
        self.ids: dict[tuple[str, bytes], None] = {}
        #: By group and gateway: its life, its stream, and what came last of it.
        self.streams: dict[tuple[str, str], tuple[int, int, int]] = {}

    def __len__(self) -> int:
        return sum(len(queue) for queue in (*self.queues.values(), *self.handed_on.values()))

    # ------------------------------------------------------------------------------------------ submitting

    def follows(self, event: Receive) -> bool:
        """Whether it is the next of its gateway: what was refused or dropped is not overtaken."""
        submit, key = event.message, (event.message.group, event.source)
        life, stream, index = self.streams.get(key, (0, 0, 0))
        if (event.incarnation, submit.stream) > (life, stream):
            index = 0
        elif (event.incarnation, submit.stream) < (life, stream):
            return False
        if submit.index != index + 1:
            return False
        self.streams[key] = (event.incarnation, submit.stream, submit.index)
        return True

    def submit(self, group: str, envelope: Envelope, *, total: bool, seen: Stamp) -> None:
        """Now is when it happens, for causality: after all that was sent or delivered here, or seen by its client.

        What goes to several groups speaks in another group than any of them.
        """
        machine = self.machine
        destinations = [destination.group for destination in envelope.header.destinations]
        for name in destinations:
            machine.epochs.about_to_speak(name)
        stamp = machine.known.copy()
        self.carry(stamp, seen.all())
        besides = group if len(destinations) == 1 else ""
        needs, parts = self.needs(besides), machine.parts.unconfirmed(besides)
        asks = machine.asking.about(seen, besides)
        waiting = WaitingCast(group, envelope, total, stamp, needs, parts=parts, asks=asks)
        self._enqueue(waiting)
        machine.asking.wait(waiting)

    def carry(self, stamp: Stamp, seen: Times) -> None:
        """What we have not delivered ourselves: no rule but times covers it; under the others it travels too."""
        times.merge(stamp.times, seen)
        if self.machine.settings.causality != Causality.TIMESTAMPS:
            for group, time in seen.items():
                replica = self.machine.replicas.get(group)
                era = replica.eras[0] if replica is not None and replica.eras else None
                if era is None or not time.is_covered(era.view, era.delivered):
                    times.merge_one(stamp.carried, group, time.view, time.counts)
                elif time.view < era.view:
                    # Delivered here before that view began: whoever has not installed it may lack it.
                    times.merge_one(stamp.times, group, era.view, {})

    def submit_part(self, group: str, envelope: Envelope, stamp: Stamp, epoch: int) -> None:
        """With its origin's stamp: it happened there, and our own past is none of its own.

        So it waits for nothing, and above all not behind what may be waiting for it.
        """
        self.machine.epochs.rise(epoch)
        queue = self.handed_on.setdefault(group, deque())
        if not any(waiting.envelope.header.id == envelope.header.id for waiting in queue):
            queue.append(WaitingCast(group, envelope, False, stamp, [], is_part=True))

    def _enqueue(self, waiting: WaitingCast) -> None:
        self.queues.setdefault(waiting.group, deque()).append(waiting)
        self.ids[(waiting.group, waiting.envelope.header.id)] = None

    def needs(self, group: str) -> list[Need]:
        """What was sent or delivered in other groups and may not be safe."""
        found = []
        for name, replica in self.machine.replicas.items():
            if name == group or not replica.eras:
                continue
            era = replica.eras[-1]
            known = self.machine.known.times.get(name)
            if era.view == replica.view and era.casts and known is not None and known.view == era.view:
                counts = {m: count for m, count in known.counts.items() if m < len(era.members)}
                found.append(Need(name, era.view, counts, era.total_end, era.total_sent))
        return found

    def ended(self, process: str, incarnation: int) -> None:
        """Nothing follows in the streams of that life."""
        ended = [key for key, (life, _, _) in self.streams.items() if key[1] == process and life <= incarnation]
        for key in ended:
            del self.streams[key]

    def drop(self, group: str) -> None:
        """No member any more: whoever submitted it goes to somebody else."""
        for waiting in self.queues.pop(group, ()):
            self.ids.pop((group, waiting.envelope.header.id), None)
            self.machine.asking.forget(waiting)
        self.handed_on.pop(group, None)
        for key in [key for key in self.streams if key[0] == group]:
            del self.streams[key]

    def left_out_of(self, group: str) -> None:
        """What we sent and delivered there last may be lost: nothing may be said that comes after it.

        As if this life had ended: whoever submitted it goes to somebody else, or comes again.
        """
        self.drop(group)
        for name, queue in list(self.queues.items()):
            if any(need.group == group for waiting in queue for need in waiting.needs):
                self.drop(name)

    def confirmed(self, id_: bytes, stamp: Times) -> None:
        """All parts of a message are cast: what waited for that comes behind all of them."""
        for queue in self.queues.values():
            for waiting in queue:
                if id_ in waiting.parts:
                    del waiting.parts[id_]
                    self.carry(waiting.stamp, stamp)

    # --------------------------------------------------------------------------------------------- sending

    def advance(self) -> bool:
        """Send what may be sent."""
        moved = False
        for name, parts in self.handed_on.items():
            replica = self.machine.replicas.get(name)
            while parts and replica is not None and replica.installed is not None:
                self._send(replica, parts.popleft())
                moved = True
        for name, queue in self.queues.items():
            replica = self.machine.replicas.get(name)
            while queue and replica is not None and self.may_send(replica, queue[0]):
                waiting = queue.popleft()
                moved = True
                if self.machine.parts.is_cast(name, waiting.envelope.header.id):
                    self.ids.pop((name, waiting.envelope.header.id), None)
                    self.machine.asking.forget(waiting)
                else:
                    self._send(replica, waiting)
            if queue and replica is not None and self.machine.observe:
                queue[0].blocked_on = self._why_not(replica, queue[0])
        return moved

    def _why_not(self, replica: Replica, waiting: WaitingCast) -> str:
        """What keeps it from being sent."""
        if replica.installed is None:
            return f"view:{replica.name}/{replica.group.configuration}"
        if waiting.parts:
            return f"message:{next(iter(waiting.parts)).hex()}"
        unsafe = [*waiting.asks, *(need.group for need in waiting.needs if not self.is_safe(need))]
        return f"group:{unsafe[0]}" if unsafe else ""

    def may_send(self, replica: Replica, waiting: WaitingCast) -> bool:
        machine = self.machine
        if replica.installed is None or machine.telling.is_inhibited:
            return False
        if self.machine.parts.is_cast(replica.name, waiting.envelope.header.id):
            return True
        return not waiting.parts and not waiting.asks and all(self.is_safe(need) for need in waiting.needs)

    def is_safe(self, need: Need) -> bool:
        """[6.5] A view that ended took everything along that its members had."""
        replica = self.machine.replicas.get(need.group)
        if replica is None or replica.view > need.view or not replica.eras:
            return True
        era = replica.eras[-1]
        if not self.has_own_abcasts(era, need):
            return False
        k = self.machine.stability.k(era)
        # Our own last ABCAST may have been ordered since; if its place is not kept, everyone has it.
        end = max(need.positions, era.place_of.get((era.me, need.total_sent), -1) + 1)
        if sum(1 for row in era.rows if row.positions >= end) < k:
            return False
        return all(era.synced_by(key) >= k for key in need.counts.items())

    def has_own_abcasts(self, era: Era, need: Need) -> bool:
        return era.delivered[era.me] >= need.total_sent

    def _send(self, replica: Replica, waiting: WaitingCast) -> None:
        machine = self.machine
        era = replica.installed
        assert era is not None and machine.view is not None
        self.ids.pop((replica.name, waiting.envelope.header.id), None)
        # [5.2 step 3] Nobody may hear of what follows an order before the order.
        machine.ordering.tell_all(at_once=True)
        era.sent += 1
        key = (era.me, era.sent)
        stamp = self.trimmed(replica, era, waiting.stamp)
        # Stamps of one caster only rise: what a later one leaves out is what an earlier one said.
        before = era.stamps[era.me]
        stamp.merge(before)
        cast = Cast(
            group=replica.name,
            view=era.view,
            key=message_of(key),
            total=waiting.total,
            times=times.encode(stamp.times),
            carried=times.encode(stamp.carried),
            whole=True,
            epoch=machine.epochs.epoch,
            envelope=waiting.envelope,
            domain_view=machine.view.changed,
        )
        era.take(key, cast, stamp)
        if machine.observe:
            where = f"{replica.name} {era.view} {key[0]} {key[1]}"
            stage = "part cast" if waiting.is_part else "cast"
            observed = Observe(stage, waiting.envelope.header.id, where, group=replica.name)
            observed.blocked_on = waiting.blocked_on
            machine.out.append(observed)
        if waiting.total:
            era.total_sent = era.sent
        machine.parts.took(replica, era, key, waiting.stamp)
        machine.known.merge(stamp)
        machine.knows_cast(replica.name, era.view, key, stamp.carried)
        machine.epochs.sent(replica.name)
        machine.parts.sent(replica, era, key)
        self._place_at_once(replica, era, cast)
        machine.changes.append((records.cast(replica.name, era.view, key), cast.SerializeToString()))
        machine.stability.took(replica, era.me)
        machine.touched[replica.name] = None
        if era.others:
            wire = Cast()
            wire.CopyFrom(cast)
            wire.whole = False
            for name in ("times", "carried"):
                wire.ClearField(name)
            wire.times.extend(times.encode(stamp.times, before.times))
            wire.carried.extend(times.encode(stamp.carried, before.carried))
            wire.row.CopyFrom(machine.stability.row_to_tell(era))
            machine.out.append(Send(era.others, wire))

    def _place_at_once(self, replica: Replica, era: Era, cast: Cast) -> None:
        """[5.2] The holder's own cast needs no sets-order, if the holder can deliver it now."""
        machine, key = self.machine, (era.me, era.sent)
        if era.is_holder and machine.delivering.is_deliverable(replica, era, key):
            machine.delivering.deliver(replica, era, key)
            era.token.untold.pop()
            cast.position = era.place_of[key]

    def trimmed(self, replica: Replica, era: Era, stamp: Stamp) -> Stamp:
        """What of the stamp has to travel, by the rule that keeps causality across groups."""
        causality = self.machine.settings.causality
        result = Stamp(carried=self._without_own(replica, era, stamp.carried))
        for group, time in self._without_own(replica, era, stamp.times).items():
            keeps = group == replica.name or causality == Causality.TIMESTAMPS
            keeps = keeps or (causality == Causality.EPOCHS and group in self.machine.replicas)
            # Where something carried along may hold up a cast, that it was received says nothing about delivery.
            keeps = keeps or group in stamp.carried
            if keeps:
                result.times[group] = time
            else:
                # What made it safe may have been the end of its view: then that has to be installed first.
                result.times[group] = Time(max(time.view, self._completed(group)), {})
        return result

    def _completed(self, name: str) -> int:
        """The latest view of the group that is complete, as far as we know."""
        replica = self.machine.replicas.get(name)
        if replica is not None:
            return replica.view
        group = self.machine.view.groups.get(name) if self.machine.view is not None else None
        if group is None:
            return 0
        return group.former.number if group.former is not None else group.configuration

    def _without_own(self, replica: Replica, era: Era, stamp: Times) -> Times:
        """The caster's own entry in its group's vector is the cast's number; of an earlier view nothing counts."""
        result = {group: time.copy() for group, time in stamp.items() if group != replica.name}
        mine = stamp.get(replica.name)
        if mine is not None and mine.view == era.view:
            counts = {member: count for member, count in mine.counts.items() if member != era.me}
            if counts:
                result[replica.name] = Time(era.view, counts)
        return result
