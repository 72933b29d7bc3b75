"""The rules of the protocol, each broken in the smallest way."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from ordercast.core.machine import Ended, Revoked
from ordercast.protocols.optimistic import keys
from ordercast.protocols.optimistic.asking import Asking
from ordercast.protocols.optimistic.consensus import Consensus
from ordercast.protocols.optimistic.delivery import Delivery
from ordercast.protocols.optimistic.early import Early
from ordercast.protocols.optimistic.forgetting import Forgetting
from ordercast.protocols.optimistic.keys import LOWEST
from ordercast.protocols.optimistic.machine import Optimistic
from ordercast.protocols.optimistic.replica import Candidate, Following, Replica
from ordercast.protocols.optimistic.state import State, Verdict
from ordercast.protocols.optimistic.submission import OptimisticSubmission
from ordercast.protocols.paxos.parallel.learner import LogLearner
from ordercast.sim.mutant import Mutant, Target, register
from ordercast.v1.optimistic_pb2 import Multicast, OpenEntry, PlacedEntry

CATALOGUE: list[Mutant] = []

_came = Early.came
_settle = Early.settle
_verdict_on = State.verdict_on
_open = State._open
_on_ended = Optimistic._on_ended
_is_passed = Delivery._is_passed
_decision = LogLearner.decision


def mutant(name: str, breaks: str, *targets: Target) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return register(CATALOGUE, name, breaks, *targets)


@mutant("E1", "a message waits for its own source to go beyond it", (Delivery, "_is_passed"))
def strict(self: Delivery, key: bytes, barrier: bytes) -> bool:
    return key < barrier


@mutant("E2", "a null has the key of the message that it is for, and no higher id", (keys, "null_for"))
def null_at_the_message(key: bytes) -> bytes:
    return key[:12] + bytes(16)


@mutant("E4", "timestamps that are equal to the last one are not raised", (State, "_key_of"))
def equal_not_raised(self: State, entry: PlacedEntry) -> bytes:
    key = keys.key_of(entry.timestamp, entry.id)
    return key if key[:12] >= self.last[:12] else keys.raised_above(self.last, entry.id)


@mutant("not_raised", "a timestamp stays as its sender gave it", (State, "_key_of"))
def not_raised(self: State, entry: PlacedEntry) -> bytes:
    return keys.key_of(entry.timestamp, entry.id)


@mutant("E6", "a copy that is not decided moves the barrier of its source", (Early, "came"))
@wraps(_came)
def undecided_barrier(self: Early, replica: Replica, cast: Multicast, due: float) -> None:
    following = replica.following.get(cast.source)
    if following is not None and following.state is not None:
        following.begins = max(following.begins, keys.key_of(cast.timestamp, cast.envelope.header.id))
    _came(self, replica, cast, due)


@mutant("E7", "a source places a message though an earlier one of its sender is missing", (State, "verdict_on"))
@wraps(_verdict_on)
def with_holes(self: State, gateway: str, incarnation: int, counter: int) -> Verdict:
    verdict = _verdict_on(self, gateway, incarnation, counter)
    sender = self.senders.get(gateway)
    if verdict is Verdict.EARLY and sender is not None and incarnation == sender.incarnation:
        sender.next = counter
        return Verdict.STAMPED
    return verdict


@mutant("gap", "instances are applied though one before them is missing", (LogLearner, "decision"))
@wraps(_decision)
def over_a_gap(self: LogLearner, configuration: int, members: tuple[str, ...]) -> bytes | None:
    found = _decision(self, configuration, members)
    if found is None and self.next + 1 in self.tallies:
        return b""
    return found


@mutant("any_ballot", "votes are counted whatever ballot they are in", (LogLearner, "decision"))
def any_ballot(self: LogLearner, configuration: int, members: tuple[str, ...]) -> bytes | None:
    if self.next in self.told:
        return self.told[self.next]
    tallies = list(self.tallies.get(self.next, {}).values())
    voters = dict.fromkeys(name for tally in tallies for name in tally.voters)
    return tallies[0].value if len(voters) * 2 > len(members) else None


@mutant("minority", "one vote decides", (LogLearner, "decision"))
def one_vote(self: LogLearner, configuration: int, members: tuple[str, ...]) -> bytes | None:
    if self.next in self.told:
        return self.told[self.next]
    return next((tally.value for tally in self.tallies.get(self.next, {}).values()), None)


@mutant("skipped", "a decided head without its payload is skipped", (Delivery, "deliver"))
def skipped(self: Delivery, replica: Replica) -> None:
    for key in [key for key in replica.heap if replica.stamped[key].id not in self.machine.payloads.held]:
        if key <= replica.barrier:
            replica.heap.remove(key)
            del replica.stamped_ids[replica.stamped.pop(key).id]
    _deliver(self, replica)


_deliver = Delivery.deliver


@mutant("without_payload", "an acceptor votes for what it does not hold", (Consensus, "_lacks_some"))
def votes_blindly(self: Consensus, replica: Replica, placed: list[PlacedEntry]) -> bool:
    return False


@mutant("window", "who has waited for the window delivers, though others have not passed", (Replica, "_lowest"))
def own_word(self: Replica) -> bytes:
    return self.own.barrier


@mutant("self", "a group does not wait for its own log", (Replica, "_lowest"))
def without_own(self: Replica) -> bytes:
    others = [one.barrier for name, one in self.following.items() if name != self.name]
    return min(others, default=self.own.barrier)


@mutant("open_key", "who is opened gets messages from below the key at which he began to wait", (State, "_open"))
@wraps(_open)
def opened_below(self: State, open_: OpenEntry, outcome: Any) -> None:
    _open(self, OpenEntry(group=open_.group, key=LOWEST), outcome)


@mutant("believed", "what is shown is revoked when its sender is believed to be over", (Optimistic, "_on_ended"))
@wraps(_on_ended)
def believed(self: Optimistic, event: Ended) -> None:
    for replica in self.replicas.values():
        for id_, one in list(replica.shown.items()):
            if one.gateway == event.process and id_ not in replica.stamped_ids:
                del replica.shown[id_]
                self.out.append(Revoked(replica.name, id_))
    _on_ended(self, event)


@mutant("silent", "nobody says what became of messages whose sender is over", (Early, "settle"))
def silent(self: Early, replica: Replica, source: str) -> None:
    for id_, one in list(replica.shown.items()):
        following = replica.following[source]
        assert following.state is not None
        if one.source == source and following.state.has_applied(one.gateway, id_, one.counter):
            replica.shown.pop(id_)
            self.machine.payloads.done(id_, "d" + replica.name)
    _settle(self, replica, source)


@mutant("twice", "a message is shown again when it comes again", (Early, "came"))
@wraps(_came)
def twice(self: Early, replica: Replica, cast: Multicast, due: float) -> None:
    shown: Candidate | None = replica.shown.pop(cast.envelope.header.id, None)
    _came(self, replica, cast, due)
    if shown is not None:
        replica.candidates.setdefault(cast.envelope.header.id, shown)


@mutant("forgotten", "a source forgets what it has applied itself", (Forgetting, "_floor"))
def forgotten(self: Forgetting, replica: Replica) -> int:
    return replica.log_state.next


@mutant("nobody_asks", "nulls are only for what a sender asked with its first guess", (Asking, "ask_barrier"))
def nobody_asks(self: Asking, replica: Replica, source: str, key: bytes, *, again: bool = False) -> None: ...


@mutant("session", "timestamps are not above what the producers have seen", (OptimisticSubmission, "_above"))
def as_the_clock_says(self: OptimisticSubmission, seen: int) -> int:
    return max(self.clock.read(self.gateway.wall), self.timestamp + 1)


@mutant("falls", "a null lowers the barrier that it finds", (State, "_pass"))
def falls(self: State, null: Any) -> None:
    self.last = null.key


@mutant("begins_early", "a receiver begins with an empty state", (Following, "_passed"))
def no_state_needed(self: Following) -> bytes:
    return self.state.last if self.state is not None else keys.key_of(2**62, b"\xff" * 16)
