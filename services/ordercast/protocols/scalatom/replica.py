"""One replica of one group: potential predecessors, the delivery queue, and what the group's log implies.

Envelopes and stamps belong to the process, which may hold replicas of several groups; what is here is per group:
the clock, and what follows from [SCALATOM 4.2 step 4]: predecessor sets come from gossip inside the group alone.
"""

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from ordercast.core.errors import InvariantBroken
from ordercast.core.finished import Finished
from ordercast.core.ids import KEY_MIN, counter_of, incarnation_of, last_key_of, order_key, short, sn_of
from ordercast.core.quorums import majority
from ordercast.core.view import FIRST, Group
from ordercast.protocols.celllog.group_log import GroupLog
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.history import OwnHistory, Peer
from ordercast.protocols.scalatom.settings import Settings
from ordercast.v1.common_pb2 import Destination, Envelope, Header
from ordercast.v1.sequencer_pb2 import DeliveredRecord, DoneRecord, LogEntry, PositionRecord


@dataclass(slots=True)
class Delivered:
    """In our delivered prefix, and not yet below its incarnation's done counter."""

    key: bytes
    position: int
    rec_ts: int | None
    destinations: list[Destination]
    gateway: str
    #: In which it was stamped.
    configuration: int
    buried: bool = False
    #: Who is known to have it durably, by group: counted only when its incarnation is over.
    durable: dict[str, dict[str, None]] = field(default_factory=dict)
    ask_at: float = 0.0
    ask_delay: float = 0.1


@dataclass(slots=True)
class Retirement:
    """One number for all replicas of a process, those that a later view brings included."""

    #: Gateway incarnations below this are over and done with.
    below: int = 0


class Replica(GroupLog):
    def __init__(self, group: Group, process: str, settings: Settings, retirement: Retirement) -> None:
        super().__init__(group, process, settings)
        #: The configuration that this replica has started in, 0 if in none.
        self.started = 0
        #: It has started in the present one: it stamps, gossips and delivers. If not, it may be sealed in an
        #: earlier one, about to start, or a learner, and all it does is to copy the log.
        self.is_active = False
        #: `ts` of the paper. Each group has its own, so that groups do not disturb each other's numbers.
        self.clock = 0
        self.peers: dict[str, Peer] = {}
        self.history = OwnHistory()
        #: Undecided envelopes that may still come first: the lowest rec_ts any replica here is known to have
        #: given them, and the same as a heap whose stale entries are skipped.
        self.unresolved: dict[bytes, int] = {}
        self._unresolved_heap: list[tuple[int, bytes]] = []
        #: Decided and not delivered, as order keys.
        self.queue: list[bytes] = []
        #: The undecided envelope that its head has to wait for, when somebody last asked.
        self.head_waits_for: bytes | None = None
        self.queued: dict[bytes, bytes] = {}
        #: The end of the delivered prefix.
        self.last_key = KEY_MIN
        self.done: dict[int, Finished] = {}
        self.delivered: dict[bytes, Delivered] = {}
        self.retirement = retirement
        #: Just forgotten; the process drops what none of its replicas needs.
        self.forgotten: list[bytes] = []
        #: A merged subscription waits for this sn; and the highest one that readers were told has passed.
        self.advance_to = -1
        self.passed = -1
        #: Some peer was not told what is new: it is, with the next tick.
        self.owes_gossip = False
        #: For the tick: has anything moved since?
        self.position_at_tick = 0

    # ------------------------------------------------------------------------------------ configurations

    def begin(self, configuration: int) -> None:
        """It works in this one from now on, with nothing heard yet from its fellows."""
        self.started = configuration
        self.follow(self.group)

    def follow(self, group: Group) -> None:
        """Of a configuration that it has not started in, it is no active member."""
        was_active, self.group = self.is_active, group
        self.is_active = self.started == group.configuration and self.process in group.replicas
        if self.is_active and not was_active:
            self.peers = {name: Peer() for name in group.replicas if name != self.process}

    @property
    def is_sealed(self) -> bool:
        """Of the configuration before, and whoever starts may ask it."""
        ended = self.group.ended_for(self.process)
        return bool(ended) and self.started == ended

    @property
    def is_idle(self) -> bool:
        """Of the configuration before, too, but it never started in it, and now it never will."""
        ended = self.group.ended_for(self.process)
        return bool(ended) and self.started != ended

    @property
    def is_stopped(self) -> bool:
        """It has no part in what comes."""
        return self.process not in self.group.replicas and not self.is_learner

    # --------------------------------------------------------------------------- what may come before

    def has_delivered(self, id_: bytes) -> bool:
        """[E8] Below done means in our own delivered prefix, as done takes effect at its carrier's delivery."""
        return self.is_in_prefix(id_) or incarnation_of(id_) < self.retirement.below

    def is_in_prefix(self, id_: bytes) -> bool:
        if id_ in self.delivered:
            return True
        finished = self.done.get(incarnation_of(id_))
        return finished is not None and counter_of(id_) in finished

    def stamp(self, id_: bytes, rec_ts: int) -> None:
        """[SCALATOM Fig.5 step 2, E1] Our own entry carries rec_ts, the clock before it was raised."""
        self.history.add(id_, rec_ts)
        self.note_entry(id_, rec_ts)

    def note_entry(self, id_: bytes, rec_ts: int) -> None:
        """A replica of this group gave the envelope this stamp, so it may be decided as low as that."""
        if id_ in self.queued or self.has_delivered(id_):
            return
        known = self.unresolved.get(id_)
        if known is None or rec_ts < known:
            self.unresolved[id_] = rec_ts
            heappush(self._unresolved_heap, (rec_ts, id_))

    def decide(self, id_: bytes, sn: int) -> None:
        if id_ in self.queued or self.has_delivered(id_):
            return
        self.unresolved.pop(id_, None)
        key = order_key(sn, id_)
        self.queued[id_] = key
        heappush(self.queue, key)

    def first_unresolved(self) -> tuple[int, bytes] | None:
        heap = self._unresolved_heap
        while heap:
            rec_ts, id_ = heap[0]
            if self.unresolved.get(id_) == rec_ts:
                return heap[0]
            heappop(heap)
        return None

    def counts(self, peer: Peer, sn: int) -> bool:
        """[E3] Its history is complete up to sn; [E8] what it forgot of it, we have delivered."""
        return peer.clock > sn and self.reached(peer.forgotten)

    def reached(self, key: bytes) -> bool:
        return self.last_key >= key

    def majority(self) -> int:
        return majority(len(self.group.replicas))

    def is_complete_up_to(self, sn: int, own_clock: int) -> bool:
        """[SCALATOM Fig.5 step 5] Histories up to sn from a majority of the group, our own included."""
        count = 1 if own_clock > sn else 0
        for peer in self.peers.values():
            if self.counts(peer, sn):
                count += 1
        return count >= self.majority()

    def blocker(self, sn: int) -> bytes | None:
        """[E2] An undecided envelope with an entry at or below sn: it may be decided at sn with a lower id."""
        first = self.first_unresolved()
        return first[1] if first is not None and first[0] <= sn else None

    def next_key(self, own_clock: int) -> bytes | None:
        """[SCALATOM 4.2 step 5] The head of the queue, if nothing can come before it any more.

        Decided predecessors are in the queue, so those that come first are delivered first. We take every
        entry we know of and not only those of one majority: a superset of the predecessors is safe, and each
        of them will be decided.
        """
        if not self.queue:
            return None
        key = self.queue[0]
        sn = sn_of(key)
        self.head_waits_for = self.blocker(sn)
        if self.head_waits_for is not None or not self.is_complete_up_to(sn, own_clock):
            return None
        return key

    def watermark(self, own_clock: int) -> bytes | None:
        """Something that is news to those who wait for `advance_to`: how far nothing can come any more.

        A message numbered at most `sn` would be in the histories of a majority, as an entry that is not
        decided, or decided and in the queue. So what bounds it are clocks, the first entry, and the head of the
        queue.
        """
        if self.passed >= self.advance_to:
            return None
        sn = self.complete_up_to(own_clock)
        first = self.first_unresolved()
        if first is not None:
            sn = min(sn, first[0] - 1)
        if self.queue:
            sn = min(sn, sn_of(self.queue[0]) - 1)
        if sn <= self.passed:
            return None
        self.passed = sn
        return self.watermark_key(sn)

    def complete_up_to(self, own_clock: int) -> int:
        """The highest number up to which histories of a majority are complete, our own included."""
        clocks = [own_clock, *(peer.clock for peer in self.peers.values() if self.reached(peer.forgotten))]
        needed = self.majority()
        return sorted(clocks, reverse=True)[needed - 1] - 1 if len(clocks) >= needed else -1

    def watermark_key(self, sn: int) -> bytes:
        return last_key_of(sn)

    def forget_queue(self) -> None:
        """Before it starts in another configuration, which fills it again."""
        self.unresolved, self._unresolved_heap, self.queue, self.queued = {}, [], [], {}

    # ------------------------------------------------------------------------------------------- delivery

    def check_order(self, key: bytes) -> None:
        """Deliveries rise. If one does not, we have already misled somebody: stop."""
        if key <= self.last_key:
            last = self.last_key
            raise InvariantBroken(
                f"{self.name} delivers {sn_of(key)}/{short(key[8:])} behind {sn_of(last)}/{short(last[8:])}"
            )

    def apply(self, key: bytes, envelope: Envelope, rec_ts: int | None) -> tuple[LogEntry, list[Record]]:
        """Append to the delivered prefix. What follows from it is a function of the log alone."""
        self.check_order(key)
        header = envelope.header
        id_ = header.id
        self._forget_open(id_)
        groups = tuple(destination.group for destination in header.destinations)
        entry = LogEntry(order_key=key, envelope=envelope, first_offset=self.offset, bases=self.bases(header))
        self.complete(entry, groups, sn_of(key))
        changes = self.judged_changes()
        delivered = Delivered(key, self.position, rec_ts, list(header.destinations), header.gateway, self.started)
        self.delivered[id_] = delivered
        changes.append(self.delivered_record(id_))
        self.position += 1
        self.last_key = key
        changes.append(self.position_record())
        changes += self.finish(header)
        return entry, changes

    def _forget_open(self, id_: bytes) -> None:
        self.unresolved.pop(id_, None)
        key = self.queued.pop(id_, None)
        if key is not None:
            if self.queue[0] == key:
                heappop(self.queue)
            else:
                self.queue.remove(key)
                heapify(self.queue)

    # ------------------------------------------------------------------------------------------ forgetting

    def finish(self, carrier: Header) -> list[Record]:
        """[E8] The carrier of `done` is delivered here, and all finished envelopes came before it."""
        if not carrier.done:
            return []
        incarnation = incarnation_of(carrier.id)
        finished = self.done.setdefault(incarnation, Finished())
        if not finished.merge(carrier.done, carrier.open):
            return []
        changes: list[Record] = [self.done_record(incarnation)]
        mine = carrier.id[:8]
        for id_ in [i for i in self.delivered if i[:8] == mine and counter_of(i) in finished]:
            self._forget(id_, self.delivered.pop(id_))
            changes.append((records.delivered(self.name, id_), None))
        return changes

    def bury(self, id_: bytes) -> Record:
        """[E8] Finished, and its incarnation is over: forget all but the id."""
        delivered = self.delivered[id_]
        self._forget(id_, delivered)
        delivered.buried = True
        delivered.rec_ts = None
        delivered.durable = {}
        return self.delivered_record(id_)

    def retire(self) -> list[Record]:
        """Nothing of these incarnations is open anywhere, so what the log brought since is finished too."""
        below = self.retirement.below
        changes: list[Record] = []
        for incarnation in [i for i in self.done if i < below]:
            del self.done[incarnation]
            changes.append((records.done(self.name, incarnation), None))
        for id_ in [i for i in self.delivered if incarnation_of(i) < below]:
            self._forget(id_, self.delivered.pop(id_))
            changes.append((records.delivered(self.name, id_), None))
        return changes

    def _forget(self, id_: bytes, delivered: Delivered) -> None:
        self.forgotten.append(id_)
        self.history.forget(id_, delivered.key)
        self.history.prune(min((peer.told for peer in self.peers.values()), default=0))

    # ------------------------------------------------------------------------------------------- durable

    def slowest(self, wanted: int) -> int:
        """How far the other replica is that has delivered least; if there is none, as far as is wanted."""
        return min((peer.position for peer in self.peers.values()), default=wanted)

    def retained_from(self) -> int:
        """Log entries from here on may be needed to report again how an envelope fared."""
        return min((d.position for d in self.delivered.values() if not d.buried), default=self.position)

    def done_message(self, incarnation: int) -> DoneRecord:
        finished = self.done[incarnation]
        return DoneRecord(incarnation=incarnation, done=finished.done, open=finished.open)

    def done_record(self, incarnation: int) -> Record:
        return (records.done(self.name, incarnation), self.done_message(incarnation).SerializeToString())

    def load_done(self, record: DoneRecord) -> None:
        self.done[record.incarnation] = Finished(record.done, record.open)

    def position_record(self) -> Record:
        record = PositionRecord(position=self.position, offset=self.offset, order_key=self.last_key)
        return (records.position(self.name), record.SerializeToString())

    def delivered_message(self, id_: bytes) -> DeliveredRecord:
        d = self.delivered[id_]
        return DeliveredRecord(
            id=id_,
            order_key=d.key,
            rec_ts=d.rec_ts,
            destinations=d.destinations,
            buried=d.buried,
            gateway=d.gateway,
            position=d.position,
            configuration=d.configuration if d.configuration != FIRST else 0,
        )

    def delivered_record(self, id_: bytes) -> Record:
        return (records.delivered(self.name, id_), self.delivered_message(id_).SerializeToString())

    def load_delivered(self, record: DeliveredRecord, rec_ts: int | None) -> None:
        where, configuration = (record.order_key, record.position), record.configuration or FIRST
        delivered = Delivered(*where, rec_ts, list(record.destinations), record.gateway, configuration)
        delivered.buried = record.buried
        self.delivered[record.id] = delivered

    def clear_envelopes(self) -> list[Record]:
        """What is known of single envelopes in the delivered prefix: a state replaces it, or the group is gone."""
        changes: list[Record] = [(records.delivered(self.name, id_), None) for id_ in self.delivered]
        changes += [(records.done(self.name, incarnation), None) for incarnation in self.done]
        self.delivered, self.done = {}, {}
        return changes

    def drop_open(self) -> None:
        """After the delivered prefix jumped ahead: forget the open envelopes that are now in it."""
        for id_ in [id_ for id_ in [*self.unresolved, *self.queued] if self.has_delivered(id_)]:
            self._forget_open(id_)
