"""Mutants of SCALATOM, its consensus and the gateway, while groups keep their replicas (configurations.py has
others), and nothing that was stored is lost (restarts.py).
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ordercast.core.cells import Tally
from ordercast.core.ids import last_key_of
from ordercast.core.machine import Persist, Send
from ordercast.core.quorums import majority
from ordercast.core.submission import Submitted
from ordercast.core.view import Group
from ordercast.gateway.producer import Producer
from ordercast.protocols.celllog.forgetting import DestinationSet
from ordercast.protocols.celllog.idempotence import ProducerState, ProducerTable, SetKey
from ordercast.protocols.paxos.acceptor import Acceptor, RoundKey
from ordercast.protocols.paxos.proposer import Attempt, Proposer
from ordercast.protocols.scalatom.catchup import CatchUp
from ordercast.protocols.scalatom.gossip import Gossiper
from ordercast.protocols.scalatom.groups import Groups
from ordercast.protocols.scalatom.held import Held
from ordercast.protocols.scalatom.history import OwnHistory, Statement
from ordercast.protocols.scalatom.implied import Implied
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.protocols.scalatom.recovery import Recovery
from ordercast.protocols.scalatom.repair import Repair
from ordercast.protocols.scalatom.replica import Delivered, Replica, Retirement
from ordercast.protocols.scalatom.snapshot import Snapshots
from ordercast.protocols.scalatom.stamping import Stamping
from ordercast.protocols.scalatom.submission import ScalatomSubmission
from ordercast.sim.mutant import Mutant, register
from ordercast.v1.common_pb2 import Envelope, RangeOutcome, Span
from ordercast.v1.sequencer_pb2 import Disseminate, ProducerRecord, Snapshot

CATALOGUE: list[Mutant] = []
mutant = partial(register, CATALOGUE)


# ---------------------------------------------------------------------------------- stamps and predecessors


def _entry_after_the_tick(self: Replica, id_: bytes, rec_ts: int) -> None:
    self.history.add(id_, rec_ts + 1)
    self.note_entry(id_, rec_ts + 1)


def _strictly_below(self: Replica, sn: int) -> bytes | None:
    first = self.first_unresolved()
    return first[1] if first is not None and first[0] < sn else None


CATALOGUE.append(
    Mutant(
        "off-by-one",
        "E1: the paper's literal Figure 5, history(p, n) as its text has it",
        ((Replica, "stamp", _entry_after_the_tick), (Replica, "blocker", _strictly_below)),
    )
)


mutant("ties-not-in-pps", "E2", (Replica, "blocker"))(_strictly_below)


@mutant("pps-from-a-minority", "Fig.5 step 5", (Replica, "majority"))
def _minority(self: Replica) -> int:
    return len(self.group.replicas) // 2


@mutant("delivery-before-a-predecessor-is-decided", "4.2 step 5", (Replica, "blocker"))
def _no_blocker(self: Replica, sn: int) -> bytes | None:
    return None


_persist_and_tell = Stamping.persist_and_tell


@mutant("rec-ts-before-it-is-durable", "E5", (Stamping, "persist_and_tell"))
def _tell_first(self: Stamping, held: Held) -> None:
    out = self.machine.out
    start = len(out)
    _persist_and_tell(self, held)
    out[start:] = sorted(out[start:], key=lambda effect: isinstance(effect, Persist))


@mutant("session-clock-ignored", "E6", (Stamping, "follow_session"))
def _no_session(self: Stamping, header: Any) -> None:
    pass


@mutant("clock-reservation-ignored", "E7", (Recovery, "restore_clock"))
def _no_reservation(self: Recovery) -> None:
    held = [rec_ts for h in self.machine.held.values() if h.undelivered for rec_ts in h.own.values()]
    self.machine.clock = max(held, default=-1) + 1
    for replica in self.machine.replicas.values():
        replica.clock = self.machine.clock


# --------------------------------------------------------------------------------------------------- gossip


@mutant("non-uniform-gossip", "E4: entries of envelopes the peer may never get", (Gossiper, "is_free"))
def _always_free(self: Gossiper, id_: bytes, name: str) -> bool:
    return True


@mutant("entry-told-to-another-life-of-its-gateway", "E4", (Gossiper, "_is_from"))
def _from_any_life(self: Gossiper, held: Held, name: str) -> bool:
    return held.envelope is not None and held.envelope.header.gateway == name


@mutant("entry-withheld-but-clock-sent", "E4", (OwnHistory, "statement"))
def _clock_sent(self: OwnHistory, base: int, clock: int, is_free: Callable[[bytes], bool]) -> Statement:
    pairs = zip(self._stamps, self._ids, strict=True)
    entries = [(ts, id_) for ts, id_ in pairs if base <= ts < clock and is_free(id_)]
    return Statement(base, clock, entries, self.forgotten_since(base))


@mutant("gossip-applied-without-its-base", "a statement says nothing below its base", (Gossiper, "continues"))
def _any_base(self: Gossiper, peer: Any, gossip: Any) -> bool:
    return True


@mutant("forgotten-key-ignored", "E8: F", (Replica, "reached"))
def _no_f(self: Replica, key: bytes) -> bool:
    return True


# ------------------------------------------------------------------------------------------------ consensus


def _union_votes(self: Proposer, attempt: Attempt, voters: Any) -> bool:
    members = self._acceptors(attempt)
    return sum(1 for member in members if member in voters) >= majority(len(members))


def _union_stamps(self: Stamping, held: Held) -> bool:
    members = [self.machine.process, *self.machine.others(held.names)]
    stamped = {process for stamps in held.stamps.values() for process in stamps}
    return sum(1 for member in members if member in stamped) >= majority(len(members))


_is_open = Implied.is_open


def _open_by_union(self: Implied, held: Held, sn: int) -> bool:
    """A group of which nobody stamped has no lower stamp either; the real code never asks about one."""
    return all(name in held.stamps for name in held.names) and _is_open(self, held, sn)


# For votes alone this would change nothing while configurations are fixed: any two majorities of the union meet,
# and minorities of every group leave one. It is the stamps that must come from each group.
CATALOGUE.append(
    Mutant(
        "quorum-of-the-union",
        "3.5: a majority of all instead of each group",
        (
            (Proposer, "_quorum", _union_votes),
            (Stamping, "has_quorum", _union_stamps),
            (Implied, "is_open", _open_by_union),
        ),
    )
)


@mutant("acceptor-forgets-at-a-crash", "Paxos", (Acceptor, "_recover"))
def _no_recovery(self: Acceptor, records: Any) -> None:
    pass


@mutant("lowest-vote-taken-over", "Paxos: the vote of the highest round", (Proposer, "to_take_over"))
def _lowest_vote(self: Proposer, votes: list[tuple[RoundKey, bytes]]) -> bytes:
    return min(votes)[1]


_propose = Scalatom.propose


def _same_process(self: Scalatom, header: Any) -> bool:
    return bool(header.coordinator.process == self.process)


def _propose_as_coordinator(self: Scalatom, held: Held, sn: int | None) -> None:
    assert held.envelope is not None
    if self.is_coordinator(held.envelope.header):
        held.envelope.header.coordinator.number = self.incarnation
    _propose(self, held, sn)


CATALOGUE.append(
    Mutant(
        "round-0-again-after-a-restart",
        "round 0 is one incarnation's",
        ((Scalatom, "is_coordinator", _same_process), (Scalatom, "propose", _propose_as_coordinator)),
    )
)


@mutant("closed-instance-reopened", "E8", (Acceptor, "is_closed"))
def _never_closed(self: Acceptor, instance: bytes) -> bool:
    return False


@mutant("another-coordinator-on-resend", "a resend is the same envelope", (ScalatomSubmission, "repetition"))
def _other_coordinator(self: ScalatomSubmission, submitted: Submitted) -> Disseminate:
    envelope = Envelope()
    envelope.CopyFrom(submitted.envelope)
    view, connected = self.gateway.view, self.gateway.connected
    others = [p for p in view.replicas_of(submitted.groups) if p != envelope.header.coordinator.process]
    for process in others:
        if process in connected:
            envelope.header.coordinator.process = process
            envelope.header.coordinator.number = connected[process]
    return Disseminate(envelope=envelope, again=True)


# ------------------------------------------------------------------------------- numbers that stamps imply


@mutant("number-implied-by-a-quorum-of-stamps", "implied.py: all stamps", (Implied, "_missing"))
def _none_missing(self: Implied, held: Held) -> list[str]:
    return []


@mutant("lower-quorum-of-stamps-ignored", "implied.py: no quorum below the highest", (Implied, "is_open"))
def _never_open(self: Implied, held: Held, sn: int) -> bool:
    return False


@mutant("number-implied-by-a-stamp-that-is-not-durable", "E5, implied.py", (Stamping, "persist_and_tell"))
def _tell_of_the_stamp_alone(self: Stamping, held: Held) -> None:
    """The others hear of it when it is durable; what follows from it waits no more."""
    out = self.machine.out
    start = len(out)
    _persist_and_tell(self, held)
    persist, *behind = out[start:]
    assert isinstance(persist, Persist)
    sends = [effect for effect in behind if isinstance(effect, Send)]
    out[start:] = [Persist(persist.records, barrier=False, then=sends)]


# --------------------------------------------------------------------------------------------- idempotence


@mutant("idempotence-by-envelope-id", "idempotence is by sequence", (ProducerTable, "judge"))
def _by_envelope(
    self: ProducerTable,
    range_: Any,
    groups: tuple[str, ...],
    sn: int,
    order_key: bytes,
    offset: int,
    tally: Tally | None = None,
) -> RangeOutcome:
    if tally is not None:
        tally.take(range_, range_.first_sequence, range_.first_sequence + range_.count)
    outcome = RangeOutcome(epoch=range_.epoch, last_sequence=max(0, range_.first_sequence + range_.count - 1))
    if range_.count:
        outcome.spans.append(
            Span(
                first_sequence=range_.first_sequence, count=range_.count, first_offset=offset, order_key=order_key
            )
        )
    return outcome


@mutant("one-high-water-mark-over-all-sets", "sequences are per producer and set", (ProducerTable, "key_of"))
def _one_mark(self: ProducerTable, producer: bytes, groups: tuple[str, ...]) -> Any:
    return (producer, ())


_queue, _load = ProducerTable._queue, ProducerTable.load


@mutant("producers-counted-over-all-sets", "each set has its own bound", (ProducerTable, "_queue"), seed=5)
def _one_bound(
    self: ProducerTable, key: SetKey, state: ProducerState, there: DestinationSet, client: bytes
) -> None:
    _queue(self, key, state, there, client)
    queued = [other for other, its in self.states.items() if its.queue is not None]
    for other in queued[: max(len(queued) - self.producers_max, 0)]:
        self._changes += self._forget(other, self.states.pop(other))


@mutant("queues-of-producers-lost-in-a-restart", "whom to forget follows from the log", (ProducerTable, "load"))
def _loads_no_queues(self: ProducerTable, messages: Iterable[ProducerRecord]) -> None:
    kept = list(messages)
    for message in kept:
        message.turn = 0
    _load(self, kept)


# ---------------------------------------------------------------------------------------------- forgetting


_take = Stamping.take


@mutant("done-acted-on-at-receipt", "E8", (Stamping, "take"))
def _early_done(self: Stamping, envelope: Envelope, names: tuple[str, ...], undelivered: list[str]) -> None:
    _take(self, envelope, names, undelivered)
    machine = self.machine
    for name in undelivered:
        machine.changes += machine.replicas[name].finish(envelope.header)
        machine.release_forgotten(machine.replicas[name])


@mutant("receipt-taken-as-finished", "E8", (ScalatomSubmission, "is_finished"))
def _early_finished(self: ScalatomSubmission, submitted: Submitted) -> bool:
    return submitted.answered


_is_finished_in = Repair.is_finished_in


@mutant("buried-when-one-of-its-groups-has-it", "E8: a majority of every group", (Repair, "is_finished_in"))
def _finished_anywhere(self: Repair, name: str, delivered: Delivered) -> bool:
    return any(_is_finished_in(self, destination.group, delivered) for destination in delivered.destinations)


_snapshot = Snapshots.snapshot


@mutant("snapshot-without-the-done-table", "E8", (Snapshots, "snapshot"), seed=5)
def _no_done(self: Snapshots, replica: Replica) -> Snapshot:
    snapshot = _snapshot(self, replica)
    del snapshot.done[:]
    return snapshot


# -------------------------------------------------------------------------------------------------- gateway


@mutant("next-envelope-before-the-last-is-decided", "E6", (Producer, "busy_sets"), (Producer, "busy_cells"))
def _not_busy(self: Producer) -> list[Any]:
    return []


@mutant("message-overtakes-into-an-envelope", "E6: m1{A}, m2{A,B}, m3{A}", (Producer, "hold_back"), seed=9)
def _no_hold_back(self: Producer, item: Any, claims: dict[str, Any]) -> None:
    pass


# ---------------------------------------------------------------------------------- groups that come and go


@mutant("group-removed-while-an-envelope-names-it", "a group goes when nobody needs it", (Scalatom, "mentions"))
def _mentions_nothing(self: Scalatom, group: str) -> bool:
    return False


@mutant("log-entries-judged-by-all-their-groups", "by their own group only", (CatchUp, "_check_header"))
def _check_all_groups(self: CatchUp, replica: Replica, header: Any) -> None:
    self.machine.stamping.checked_header(header)


@mutant("retired-unknown-to-a-new-replica", "one number for all replicas", (Groups, "add"))
def _own_retirement(self: Groups, group: Group) -> None:
    machine = self.machine
    replica = machine.replicas[group.name] = Replica(group, machine.process, machine.settings, Retirement())
    replica.begin(group.configuration)


@mutant("records-of-a-gone-group-kept", "recovery deletes them", (Groups, "delete_left_over"))
def _keep_left_over(self: Groups, key: bytes) -> None:
    pass


# -------------------------------------------------------------------------------------------------- others


@mutant("watermark-one-too-high", "Watermark", (Replica, "watermark_key"))
def _high_watermark(self: Replica, sn: int) -> bytes:
    return last_key_of(sn + 1)


@mutant("watermark-before-what-is-queued", "Watermark: nothing below it is still to come", (Replica, "watermark"))
def _early_watermark(self: Replica, own_clock: int) -> bytes | None:
    sn = self.complete_up_to(own_clock)
    if self.passed >= self.advance_to or sn <= self.passed:
        return None
    self.passed = sn
    return self.watermark_key(sn)


@mutant("idle-group-never-advances", "Advance", (Scalatom, "_on_advance"))
def _stays(self: Scalatom, event: Any) -> None:
    pass


_on_gossip = Gossiper.on_gossip


@mutant("nobody-follows-who-advances", "Advance: a majority passes the key", (Gossiper, "on_gossip"))
def _no_advance(self: Gossiper, event: Any) -> None:
    event.message.advance = 0
    _on_gossip(self, event)


@mutant("relayed-outside-the-destinations", "1.2: participant minimality", (Repair, "relay_targets"))
def _relay_to_all(self: Repair, held: Held) -> list[str]:
    assert self.machine.view is not None
    return self.machine.others(tuple(sorted(self.machine.view.groups)))
