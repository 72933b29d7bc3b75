"""Applying what sources have decided, in the order of their instances: Algorithm 3 l.26-39, at every learner.

A group here follows itself and all groups whose barriers it waits for. Where it begins with another one is the
state behind the instance in which that one opened it, `FollowFrom`: what is at or below the key of the opening is
none of its business.

[E6] Only what is applied moves a barrier, and only what is applied is stamped.
"""

from typing import TYPE_CHECKING

from ordercast.core.ids import incarnation_of
from ordercast.protocols.optimistic import records
from ordercast.protocols.optimistic.payloads import as_destination, as_source
from ordercast.protocols.optimistic.replica import Following, Replica, Stamped
from ordercast.protocols.optimistic.state import Applied, Outcome, State, Verdict, check_entries
from ordercast.protocols.paxos.parallel.learner import LogLearner
from ordercast.v1.optimistic_pb2 import FollowedRecord, StampedKey

if TYPE_CHECKING:
    from ordercast.protocols.optimistic.machine import Optimistic


class FollowingLogs:
    def __init__(self, machine: "Optimistic") -> None:
        self.machine = machine

    def advance(self, replica: Replica) -> bool:
        """Apply all that is decided and comes next. Whether there was something."""
        moved = False
        for source, following in list(replica.following.items()):
            while (value := following.decision()) is not None:
                check_entries(value)
                self._apply(replica, source, following, value)
                moved = True
        return moved

    def _apply(self, replica: Replica, source: str, following: Following, value: bytes) -> None:
        state = following.state
        assert state is not None
        instance = state.next
        outcome = state.apply(value)
        following.learner.applied()
        replica.dirty[source] = None
        for applied in outcome.applied:
            if applied.verdict is Verdict.STAMPED and replica.name in applied.entry.destinations:
                self._stamp(replica, source, instance, applied)
        if source == replica.name:
            self._applied_here(replica, instance, value, outcome)
        if outcome.over:
            self.machine.early.settle(replica, source)

    def _stamp(self, replica: Replica, source: str, instance: int, applied: Applied) -> None:
        id_, machine = applied.entry.id, self.machine
        replica.stamp(applied.key, Stamped(id_, source, instance))
        stamped = StampedKey(source=source, instance=instance)
        machine.changes.append((records.stamped(replica.name, applied.key), stamped.SerializeToString()))
        machine.payloads.need(id_, as_destination(replica.name), source)
        machine.payloads.keep(id_)
        if applied.is_raised:
            machine.asking.raised(replica, source, applied.key)

    # ------------------------------------------------------------------------------------------------ the own log

    def _applied_here(self, replica: Replica, instance: int, value: bytes, outcome: Outcome) -> None:
        machine = self.machine
        replica.values[instance] = value
        vote = replica.acceptor.votes.get(instance)
        if vote is None or vote.value != value:
            machine.changes.append((records.decided(replica.name, instance), value))
        replica.waiting_accepts.pop(instance, None)
        replica.leader.applied(replica.log_state.next)
        taken = []
        for applied in outcome.applied:
            id_ = applied.entry.id
            if applied.verdict is Verdict.STAMPED and machine.payloads.keep(id_):
                machine.payloads.need(id_, as_source(replica.name), replica.name)
                taken.append(id_)
            elif applied.verdict is Verdict.STAMPED or (
                applied.verdict is not Verdict.EARLY and id_ in replica.pending
            ):
                # A majority has it: who lacks it here needs it as a destination, or not at all.
                machine.payloads.done(id_, as_source(replica.name))
            if applied.verdict is not Verdict.EARLY:
                replica.pending.pop(id_, None)
        if taken:
            replica.held[instance] = tuple(taken)
            machine.changes.append((records.held(replica.name, instance), b"".join(taken)))
        for gateway, incarnation in outcome.over:
            self._drop_pending(replica, gateway, incarnation)
        for receiver in outcome.opened:
            # [15] After the whole instance.
            base = replica.openings[receiver] = State.of_message(replica.name, replica.log_state.to_message())
            machine.changes.append((records.base(replica.name, receiver), base.to_message().SerializeToString()))
            machine.asking.give_base(replica, receiver)
        for group in outcome.added:
            replica.following[group] = Following(replica.log_state.added[group])
            replica.dirty[group] = None

    def _drop_pending(self, replica: Replica, gateway: str, incarnation: int) -> None:
        """Of a gateway whose life is over nothing more is placed."""
        for id_, pending in list(replica.pending.items()):
            if pending.gateway == gateway and replica.log_state.has_applied(gateway, id_, pending.counter):
                del replica.pending[id_]
                self.machine.payloads.done(id_, as_source(replica.name))
        # Nor is what some leader proposed of it, whose proposal came to nothing.
        for id_, source in list(self.machine.payloads.missing.items()):
            if source == replica.name and incarnation_of(id_) == incarnation:
                self.machine.payloads.done(id_, as_source(replica.name))

    # --------------------------------------------------------------------------------------------- where to begin

    def begin(self, replica: Replica, source: str, state: State) -> None:
        following = replica.following.get(source)
        if following is None or following.state is not None:
            return
        following.state, following.learner = state, LogLearner(state.next)
        replica.dirty[source] = None
        self.machine.touched[replica.name] = None
        self.machine.early.settle(replica, source)

    def record_dirty(self, replica: Replica) -> None:
        """The states that have changed, once for each step."""
        for source in replica.dirty:
            following = replica.following[source]
            record = FollowedRecord(begins=following.begins)
            if following.state is not None:
                record.state.CopyFrom(following.state.to_message())
            self.machine.changes.append((records.followed(replica.name, source), record.SerializeToString()))
        replica.dirty = {}
