"""SCALATOM: genuine total order over any set of groups.

[SCALATOM] Rodrigues, Guerraoui, Schiper, "Scalable Atomic Multicast", TR DI-FCUL 98-2. Step numbers are those of
its Figure 5. E1 to E8 are the places where the paper is wrong or silent; README.md in this folder tells them.

One machine serves all replicas that a process holds. Clock, stamps and envelopes are the process's; histories,
predecessors and the delivered prefix are per group (replica.py). Gossip, repair and catch-up have files of
their own; all of them append to the effects of the current step.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.held_up import HeldUp
from ordercast.core.ids import (
    CLOCK_MAX,
    ID_BYTES,
    KEY_BYTES,
    KEY_MIN,
    U64_MAX,
    incarnation_of,
    last_key_of,
    order_key,
    pack_u64,
    short,
    sn_of,
    unpack_u64,
)
from ordercast.core.machine import (
    Advance,
    ChannelReset,
    Decided,
    Deliver,
    Effect,
    Ended,
    Event,
    GroupsClosed,
    GroupsRemoved,
    Hand,
    InstanceClosed,
    LogRead,
    Observe,
    Persist,
    Progress,
    Propose,
    ReadLog,
    Receive,
    Retired,
    Send,
    SetTimer,
    Start,
    TimerFired,
    ViewChanged,
    Watermark,
)
from ordercast.core.view import Group, UnknownGroup
from ordercast.protocols.celllog.copying import MESSAGES
from ordercast.protocols.celllog.fetching import COPY_TIMER
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.celllog.stepping import LogMachine
from ordercast.protocols.scalatom import invariants, records
from ordercast.protocols.scalatom.catchup import CatchUp
from ordercast.protocols.scalatom.gossip import Gossiper
from ordercast.protocols.scalatom.groups import Groups
from ordercast.protocols.scalatom.handover import Handing
from ordercast.protocols.scalatom.held import Held
from ordercast.protocols.scalatom.held_up import held_up
from ordercast.protocols.scalatom.implied import STAMPS_TIMER, Implied
from ordercast.protocols.scalatom.recovery import Recovery
from ordercast.protocols.scalatom.repair import Repair
from ordercast.protocols.scalatom.replica import Replica, Retirement
from ordercast.protocols.scalatom.settings import Settings
from ordercast.protocols.scalatom.stamping import Stamping
from ordercast.protocols.scalatom.waits import Waits
from ordercast.v1.common_pb2 import Envelope, Header
from ordercast.v1.consensus_pb2 import Decide
from ordercast.v1.scalatom_pb2 import (
    EnvelopeDecided,
    EnvelopeDurable,
    Gossip,
    GossipAsk,
    HandOver,
    HandOverAsk,
    Have,
    HaveAsk,
    Pull,
    RecTs,
)
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, Disseminate, EnvelopeDelivered, LogEntry

TICK = "tick"
PROPOSER = "proposer"


class Scalatom(LogMachine[Replica]):
    settings: Settings
    handles = (
        Disseminate,
        RecTs,
        Gossip,
        GossipAsk,
        Pull,
        Have,
        HaveAsk,
        *MESSAGES,
        HandOverAsk,
        HandOver,
        Decide,
    )

    def __init__(self, process: str, settings: Settings | None = None, *, observe: bool = False) -> None:
        super().__init__(process, settings or Settings(), observe=observe)
        self.saved: list[tuple[bytes, bytes]] = []
        #: The highest clock of a replica here, the durable bound they may all rise to (E7), and the one that this
        #: life began with: a replica that a later view brings must not begin below what it said in an earlier one.
        self.clock = 0
        self.reserved = 0
        self.restored = 0
        self.held: dict[bytes, Held] = {}
        #: Incarnations that membership declared over.
        self.ended: dict[str, int] = {}
        self.retirement = Retirement()
        #: The latest view that this process, in this or an earlier life, acted on.
        self.view_number = 0
        self.is_asleep = False
        #: How long a decision takes here, smoothed.
        self.decision_s = 0.0
        self.stamping = Stamping(self)
        self.gossiper = Gossiper(self)
        self.implied = Implied(self)
        self.repair = Repair(self)
        self.recovery = Recovery(self)
        self.catch_up = CatchUp(self)
        self.hand_over = Handing(self)
        self.groups = Groups(self)
        self.waits = Waits(self)
        self._on_event: dict[type, Callable[[Any], None]] = {
            Receive: self._on_receive,
            Decided: self._on_decided,
            InstanceClosed: self._on_instance_closed,
            TimerFired: self._on_timer,
            ChannelReset: self._on_channel_reset,
            Ended: self._on_ended,
            Retired: self._on_retired,
            LogRead: self.catch_up.on_log_read,
            Advance: self._on_advance,
            ViewChanged: self.groups.on_view,
            GroupsClosed: lambda event: None,  # gateways take nothing new; what is here is ordered as ever
            GroupsRemoved: self.forget_groups,
            Start: self._on_start,
        }
        self._on_message: dict[type, Callable[[Receive], None]] = {
            Disseminate: self.stamping.on_disseminate,
            RecTs: self.stamping.on_rec_ts,
            Decide: self._on_decide,
            Gossip: self.gossiper.on_gossip,
            GossipAsk: self.gossiper.on_ask,
            Pull: self.repair.on_pull,
            Have: self.repair.on_have,
            HaveAsk: self.repair.on_have_ask,
            **self.catch_up.handlers(),
            HandOverAsk: self.hand_over.on_ask,
            HandOver: self.hand_over.on_hand_over,
        }

    def step(self, event: Event) -> list[Effect]:
        self.begin_step(event)
        self.waits.begin(event)
        self._on_event[type(event)](event)
        for name in self.touched:
            self._drain(self.replicas[name])
        return self.end_step()

    def check_invariants(self) -> None:
        """See core.machine.ChecksItself."""
        invariants.check(self)

    def buffers(self) -> dict[str, int]:
        replicas = self.replicas.values()
        return {
            "held": len(self.held),
            "undelivered": sum(1 for held in self.held.values() if held.undelivered or not held.own),
            "queued": sum(len(r.queued) for r in replicas),
            "unresolved": sum(len(r.unresolved) for r in replicas),
            "history": sum(len(r.history) for r in replicas),
            "delivered": sum(1 for r in replicas for d in r.delivered.values() if not d.buried),
            "buried": sum(1 for r in replicas for d in r.delivered.values() if d.buried),
        }

    def undelivered(self) -> tuple[int, float]:
        """See core.machine.HoldsUp."""
        waiting = [held.since for held in self.held.values() if held.undelivered]
        return len(waiting), min(waiting, default=0.0)

    def held_up(self, count_max: int) -> list[HeldUp]:
        """See core.held_up.TellsHeldUp."""
        return held_up(self, count_max)

    # ---------------------------------------------------------------------------------- from the driver

    def _on_receive(self, event: Receive) -> None:
        self._on_message[type(event.message)](event)

    def _on_start(self, event: Start) -> None:
        # A gateway in our own process needs no channel: its earlier lives ended with ours.
        self.incarnation = self.current[self.process] = event.incarnation
        self.saved = list(event.records)
        self.view_number = next((unpack_u64(value) for key, value in self.saved if key == records.VIEW), 0)
        self.repair.gossip_due = event.now + self.settings.gossip_s
        self.out.append(SetTimer(TICK, self.settings.tick_s))

    def _on_timer(self, event: TimerFired) -> None:
        if event.name == STAMPS_TIMER:
            self.implied.on_timer()
            return
        if event.name == COPY_TIMER:
            self.catch_up.fetching.on_timer()
            return
        self.repair.on_tick()
        self.is_asleep = not self.repair.is_busy()
        tick_s = self.settings.tick_s
        wait_s = max(self.repair.gossip_due - self.now, tick_s) if self.is_asleep else tick_s
        self.out.append(SetTimer(TICK, wait_s))

    def wake(self) -> None:
        """There may be something to look after: do not sleep until the next gossip is due."""
        if self.is_asleep:
            self.is_asleep = False
            self.out.append(SetTimer(TICK, self.settings.tick_s))

    def _on_channel_reset(self, event: ChannelReset) -> None:
        """[E5] What was in flight may be lost: say it again."""
        peer = event.peer
        self.wake()
        self.current[peer] = event.incarnation
        if self.view is None:
            return
        for held in self.held.values():
            if held.own and held.undelivered and peer in self.view.replicas_of(held.names):
                self.out += [Send((peer,), m) for m in self.stamping.messages(held, ask=held.sn is None)]
        self.gossiper.tell_again(peer)
        self.repair.close_again(peer)

    def _on_ended(self, event: Ended) -> None:
        self.wake()
        self.ended[event.process] = event.incarnation

    def _on_retired(self, event: Retired) -> None:
        """One number instead of a row per incarnation that ever was (E8's last sentence)."""
        self.retire(event.below)

    @property
    def retired(self) -> int:
        return self.retirement.below

    def retire(self, below: int) -> None:
        if below > self.retired:
            self.retirement.below = below
            self.changes.append((records.RETIRED, pack_u64(below)))
        for replica in self.replicas.values():
            self.changes += replica.retire()
            self.release_forgotten(replica)
        self.ended = {process: number for process, number in self.ended.items() if number >= self.retired}

    def progress(self) -> dict[str, Progress]:
        """See core.machine.ChangesConfigurations."""
        found: dict[str, Progress] = {}
        for name, replica in self.replicas.items():
            group = replica.group
            if self.process in (*group.starting, *group.learners):
                found[name] = Progress(
                    group.configuration,
                    started=replica.is_active,
                    caught_up=self.process in group.learners and self.catch_up.has_caught_up(replica),
                    position=replica.lacks_from,
                    head=replica.head or 0,
                )
        return found

    def mentions(self, group: str) -> bool:
        """Whether something here still needs the group: see core.machine.NamesGroups."""
        return self.groups.mentions(group)

    def describe(self, group: str, found: DescribeReplicaResponse) -> None:
        """See core.machine.TellsReaders. What was delivered anywhere is below the clocks of a majority, and
        whoever starts in a later configuration starts above them.
        """
        replica = self.replicas.get(group)
        if replica is not None and replica.is_active:
            found.reached_key = last_key_of(replica.clock - 1) if replica.clock else KEY_MIN

    def read_besides(self, group: str) -> bytes:
        """An entry's order key says all that whoever reads it has seen."""
        return b""

    def oldest_open(self) -> int:
        ids = [*self.held, *(i for r in self.replicas.values() for i, d in r.delivered.items() if not d.buried)]
        return min(map(incarnation_of, ids), default=U64_MAX)

    def is_over(self, id_: bytes, gateway: str) -> bool:
        """The envelope's gateway incarnation will not raise `done` any more."""
        incarnation = incarnation_of(id_)
        if incarnation < self.retired:
            return True
        return incarnation <= self.ended.get(gateway, 0) or incarnation < self.current.get(gateway, 0)

    # ------------------------------------------------------------------------------------------- clocks

    def reservation(self) -> list[Record]:
        """[E7] No clock passes the durable bound, so a restart at the bound is never behind one."""
        if self.clock <= self.reserved:
            return []
        self.reserved = self.clock + self.settings.clock_reserved
        return [(records.CLOCK, pack_u64(self.reserved))]

    def raise_clock(self, replica: Replica, clock: int) -> None:
        """Raising it is always safe, but for one that is sealed: what it had then is what it hands over.

        Nothing that shows it leaves before the bound is durable.
        """
        if clock > replica.clock and replica.is_active:
            replica.clock = clock
            self.clock = max(self.clock, clock)
            reservation = self.reservation()
            if reservation:
                # Before everything else in this step: between a delivery and its own Persist it would tear them.
                self.out.insert(0, Persist(reservation))

    def others(self, names: tuple[str, ...]) -> list[str]:
        assert self.view is not None
        return [process for process in self.view.replicas_of(names) if process != self.process]

    def hear_of(self, id_: bytes) -> Held:
        """Known by id at least; if the envelope does not follow by itself, repair pulls it."""
        held = self.held.get(id_)
        if held is None:
            self.wake()
            held = Held(id_, since=self.now, deadline=self.now + self.patience_s(), delay=self.patience_s())
            self.held[id_] = held
        return held

    def patience_s(self) -> float:
        """How long silence is normal: on a slow network, stepping in too early only makes proposers duel."""
        return max(self.settings.silence_s, min(4 * self.decision_s, self.settings.patience_s_max))

    def group_of(self, message: Any) -> Group:
        """Whoever is in another configuration asks again when it is in ours: that is soon, and it has to start."""
        if self.view is None:
            raise UnknownGroup(message.group)
        return self.view.present(message.group, message.configuration)

    # ------------------------------------------------------------------------- step 3: sequence number

    def is_settled(self, id_: bytes) -> bool:
        """Delivered in every group here that it is for."""
        for replica in self.replicas.values():
            delivered = replica.delivered.get(id_)
            if delivered is not None:
                groups = [self.replicas.get(d.group) for d in delivered.destinations]
                return all(o is None or not o.is_member or o.has_delivered(id_) for o in groups)
            if replica.has_delivered(id_):
                return True
        return False

    def propose_if_coordinator(self, held: Held) -> None:
        """[Fig.5 step 3] Everyone may propose; round 0 is its coordinator's, and others wait for silence."""
        if held.envelope is None or (held.proposed and not held.again) or not held.is_whole():
            return
        if self.is_coordinator(held.envelope.header) and self.stamping.has_quorum(held):
            self.implied.on_quorum(held)

    def is_coordinator(self, header: Header) -> bool:
        """Round 0 is this life's, not this process's: who restarted does not know what it proposed."""
        return header.coordinator.number == self.incarnation

    def propose(self, held: Held, sn: int | None) -> None:
        assert self.view is not None and held.envelope is not None
        held.proposed, held.again = True, False
        header = held.envelope.header
        value = None if sn is None else pack_u64(sn)
        # Round 0 skips phase 1, and there may be votes from a configuration that the envelope was not sent to.
        owner = header.coordinator.number if self.may_skip_votes(header) else 0
        configurations = self.view.configurations(held.names)
        closing = self.repair.to_close(header)
        proposal = Propose(self.now, self.wall, held.id, held.names, configurations, value, owner, *closing)
        self.out.append(Hand(PROPOSER, proposal))
        if self.observe:
            self.out.append(Observe("proposed", held.id, f"sn {sn}"))

    def may_skip_votes(self, header: Header) -> bool:
        """Nobody can have voted on it in an earlier configuration of one of its groups."""
        assert self.view is not None
        return self.view.is_as_addressed(header.destinations)

    def _release_proposer(self, id_: bytes) -> None:
        """We know, and will not propose any more: the proposer may forget the instance."""
        value = pack_u64(self.known_sn(id_) or 0)
        self.out.append(Hand(PROPOSER, Decided(self.now, self.wall, id_, value)))

    # --------------------------------------------------------------------------------- step 4: decision

    def _on_decided(self, event: Decided) -> None:
        self.waits.voted(self.held.get(event.instance), event.last_voter)
        held = self.decide(event.instance, event.value)
        self._release_proposer(event.instance)
        if held is not None and held.envelope is not None:
            self.report_decided(held.envelope.header, unpack_u64(event.value))

    def report_decided(self, header: Header, sn: int) -> None:
        """At once: the producer's next envelope waits for this and not for the delivery (E6)."""
        if not self.is_over(header.id, header.gateway):
            decided = EnvelopeDecided(id=header.id, order_key=order_key(sn, header.id))
            self.out.append(Send((header.gateway,), decided))

    def _on_decide(self, event: Receive) -> None:
        instance, value = event.message.instance, event.message.value
        if len(instance) != ID_BYTES or len(value) != 8 or unpack_u64(value) > CLOCK_MAX:
            raise RemoteProtocolError("not a decision")
        held = self.decide(instance, value)
        if held is None:
            return
        if held.proposed:
            self._release_proposer(instance)
        if self.settings.relay_eagerly and held.envelope is not None:
            coordinator = held.envelope.header.coordinator.process
            others = [process for process in self.others(held.names) if process != coordinator]
            if others:
                self.out.append(Send(others, event.message))

    def decide(self, id_: bytes, value: bytes) -> Held | None:
        """[Fig.5 step 4] Returns the envelope if that was news."""
        sn = unpack_u64(value)
        held = self.held.get(id_)
        known = self.known_sn(id_)
        if known is not None and known != sn:
            raise InvariantBroken(f"decided at {known} and at {sn}: the number of {short(id_)}")
        if held is None:
            if self.is_settled(id_):
                return None
            held = self.hear_of(id_)
        return held if self.learn(held, sn) else None

    def known_sn(self, id_: bytes) -> int | None:
        held = self.held.get(id_)
        if held is not None and held.sn is not None:
            return held.sn
        delivered = (replica.delivered.get(id_) for replica in self.replicas_for(held))
        return next((sn_of(d.key) for d in delivered if d is not None), None)

    def replicas_for(self, held: Held | None) -> Iterable[Replica]:
        """Those that the envelope is for; all, if we do not know: there may be hundreds."""
        if held is None or not held.names:
            return self.replicas.values()
        return [self.replicas[name] for name in held.names if name in self.replicas]

    def learn(self, held: Held, sn: int) -> bool:
        """The decision may come from consensus, from a peer, or from the log of one of our groups."""
        if held.sn is not None:
            return False
        held.sn = sn
        # One that waited for a quorum says little about the network: slow ones count less than quick ones.
        took_s = min(self.now - held.since, self.settings.patience_s_max / 4)
        self.decision_s += (0.1 if took_s > self.decision_s else 0.5) * (took_s - self.decision_s)
        self.waits.decided(held, sn)
        if held.own:
            self.resolve(held)
        return True

    def resolve(self, held: Held) -> None:
        """Into the delivery queues, and tell the groups how far our histories are complete.

        The paper raises a clock by one even if it is above the number: that only makes replicas differ.
        """
        assert held.sn is not None
        for replica in self.replicas_for(held):
            self.raise_clock(replica, held.sn + 1)
        for name in held.undelivered:
            replica = self.replicas[name]
            if replica.is_active:
                replica.decide(held.id, held.sn)
                self.gossiper.tell_up_to(replica, held.sn, held.coordinator)
                self.touched[name] = None

    def _on_instance_closed(self, event: InstanceClosed) -> None:
        """[E8] Decided and forgotten. That does not make it delivered here: fetch our groups' logs."""
        held = self.held.get(event.instance)
        if held is None:
            self._release_proposer(event.instance)
        else:
            for name in held.undelivered:
                if self.replicas[name].is_active:
                    self.catch_up.fetch_from_anyone(self.replicas[name])

    # --------------------------------------------------------------------------------- step 5: delivery

    def _drain(self, replica: Replica) -> None:
        """[Fig.5 step 5] One delivery may free the next."""
        if not replica.is_active or replica.copied is not None:
            return
        while (key := replica.next_key(replica.clock)) is not None:
            held = self.held[key[8:]]
            assert held.envelope is not None
            self.deliver(replica, key, held.envelope)
        self.waits.stays(replica)
        watermark = replica.watermark(replica.clock)
        if watermark is not None:
            self.out.append(Watermark(replica.name, watermark, replica.position))

    def deliver(self, replica: Replica, key: bytes, envelope: Envelope, dropped: Sequence[int] = ()) -> None:
        """Append to the group's log: from the queue, or as the log of another replica has it."""
        header, position = envelope.header, replica.position
        held = self.held.get(header.id)
        if held is not None and held.sn is not None and held.sn != sn_of(key):
            raise InvariantBroken(
                f"in the log at {sn_of(key)}, decided at {held.sn}: the number of {short(held.id)}"
            )
        blocked_on = self.waits.released(replica, key)
        entry, changes = replica.apply(key, envelope, held.own.get(replica.name) if held is not None else None)
        entry.dropped.extend(dropped)
        self.out.append(Deliver(replica.name, position, entry))
        self.waits.delivered(replica, header.id, position, blocked_on)
        self.changes += changes
        if replica.is_active:
            # Who has not started does not count: in the end it may never have been there.
            self._report_delivery(replica.name, entry)
        if held is not None:
            held.undelivered.pop(replica.name, None)
            self.learn(held, sn_of(key))
            self.settle(held)
        self.release_forgotten(replica)

    def _report_delivery(self, group: str, entry: LogEntry) -> None:
        """The receipt waits for no third fsync; that an envelope is finished does (E8)."""
        header = entry.envelope.header
        id_, gateway = header.id, header.gateway
        if not self.is_over(id_, gateway):
            delivered = EnvelopeDelivered(id=id_, group=group, order_key=entry.order_key)
            delivered.outcomes.extend(entry.outcomes)
            delivered.bases.extend(entry.bases)
            self.out.append(Send((gateway,), delivered, urgent=self._is_first_to_deliver(header, group)))
            self.then.append(Send((gateway,), self._durable(id_, group), urgent=False))

    def _durable(self, id_: bytes, group: str) -> EnvelopeDurable:
        configuration = self.replicas[group].group.configuration
        return EnvelopeDurable(id=id_, group=group, configuration=configuration)

    def _is_first_to_deliver(self, header: Header, group: str) -> bool:
        """The coordinator knows of the decision first: if it has a replica, the receipt will be by its report."""
        assert self.view is not None
        coordinator = header.coordinator.process
        known = self.view.groups.get(group)
        return coordinator == self.process or known is None or coordinator not in known.replicas

    def report_again(self, header: Header, local: list[str]) -> None:
        """A gateway that resends may have missed what we said."""
        held = self.held.get(header.id)
        if held is not None and held.sn is not None:
            self.report_decided(header, held.sn)
        for name in local:
            replica = self.replicas[name]
            if not replica.is_active:
                continue
            delivered = replica.delivered.get(header.id)
            if delivered is not None:
                self.out.append(ReadLog(name, delivered.position, 1, tag=records.REPORT + header.id.hex()))
            elif replica.has_delivered(header.id):
                self.then.append(Send((header.gateway,), self._durable(header.id, name)))

    def on_report_read(self, group: str, id_: bytes, entries: Sequence[LogEntry]) -> None:
        delivered = self.replicas[group].delivered.get(id_)
        if entries:
            self._report_delivery(group, entries[0])
        elif delivered is not None:
            # A snapshot replaced our log: the outcome is for others to tell, but durable it is.
            self.then.append(Send((delivered.gateway,), self._durable(id_, group)))

    def settle(self, held: Held) -> None:
        """Delivered in one more group here; with the last one, the log is where the body lives."""
        if held.undelivered:
            return
        if held.envelope is not None:
            self.changes.append((records.stamped(held.id), None))
            held.envelope = None
        if held.proposed:
            held.proposed = False
            self._release_proposer(held.id)
        if not held.own and self.is_settled(held.id):
            self.held.pop(held.id, None)

    def release_forgotten(self, replica: Replica) -> None:
        """Envelopes that no replica here needs for its history any more."""
        for id_ in replica.forgotten:
            self.release(id_)
        replica.forgotten.clear()

    def release(self, id_: bytes) -> None:
        held = self.held.get(id_)
        if held is None or held.undelivered:
            return
        if not any(id_ in r.delivered and not r.delivered[id_].buried for r in self.replicas_for(held)):
            del self.held[id_]

    def _on_advance(self, event: Advance) -> None:
        """Let the group pass the key though it has nothing to order: clocks rise, and say so.

        A replica that is not here, or has not started, has no say in it.
        """
        sn = sn_of(event.key)
        if len(event.key) != KEY_BYTES or sn > CLOCK_MAX:
            raise InvariantBroken("an advance to something that is no order key")
        replica = self.replicas.get(event.group)
        if replica is None or not replica.is_active:
            return
        self.wake()
        replica.advance_to = max(replica.advance_to, sn)
        self.raise_clock(replica, sn + 1)
        self.gossiper.tell_all(replica)
        self.touched[replica.name] = None
