"""What a leader proposes next: messages whose window is over, in the order of their timestamps; and what lets
others go on.

[E7] A sender's messages are proposed without holes, counting what is already proposed. A message with a hole
before it would be ignored when it is applied, and proposed again for ever.

[E11] Of the nulls that are due one is proposed, the highest.
"""

from typing import TYPE_CHECKING

from ordercast.core.ids import incarnation_of
from ordercast.protocols.optimistic import keys
from ordercast.protocols.optimistic.replica import Pending, Replica
from ordercast.protocols.optimistic.settings import PERIODIC
from ordercast.protocols.optimistic.state import Verdict
from ordercast.protocols.optimistic.window import EXACT_S
from ordercast.v1.optimistic_pb2 import (
    AddEntry,
    NullEntry,
    OpenEntry,
    OverEntry,
    PlacedEntry,
    SourceEntries,
    SourceEntry,
)

if TYPE_CHECKING:
    from ordercast.protocols.optimistic.machine import Optimistic


class Proposing:
    def __init__(self, machine: "Optimistic") -> None:
        self.machine = machine

    def propose(self, replica: Replica) -> None:
        """All that is due, if this is the leader and not too much is under way."""
        leader, settings = replica.leader, self.machine.settings
        while leader.is_leading and len(leader.proposals) < settings.parallel:
            assert replica.ahead is not None
            entries = SourceEntries(entries=self._gather(replica))
            if not entries.entries:
                return
            value = entries.SerializeToString()
            replica.ahead.apply(value)
            instance = leader.propose(value, self.machine.now + settings.silence_s)
            self.machine.consensus.send_accept(replica, instance, value)

    def _gather(self, replica: Replica) -> list[SourceEntry]:
        entries = self._about_groups(replica)
        highest = replica.ahead.last if replica.ahead is not None else keys.LOWEST
        for id_, pending in self._ready(replica):
            placed = PlacedEntry(
                id=id_,
                gateway=pending.gateway,
                counter=pending.counter,
                timestamp=pending.timestamp,
                destinations=pending.destinations,
            )
            entries.append(SourceEntry(placed=placed))
            highest = max(highest, keys.key_of(pending.timestamp, id_))
        entries += self._overs(replica)
        null = self._null_due(replica)
        if null > highest:
            entries.append(SourceEntry(null=NullEntry(key=null)))
        return entries

    # -------------------------------------------------------------------------------------------------- messages

    def _ready(self, replica: Replica) -> list[tuple[bytes, Pending]]:
        """In the order of their timestamps; of each sender from its next one on, without holes."""
        machine, ahead = self.machine, replica.ahead
        assert ahead is not None
        now = machine.now + EXACT_S
        due = [(one.timestamp, id_, one) for id_, one in replica.pending.items() if one.due <= now]
        due.sort(key=lambda each: each[:2])
        #: Of each gateway, the incarnation and the counter that comes next.
        next_: dict[str, tuple[int, int]] = {}
        chosen: list[tuple[bytes, Pending]] = []
        for _, id_, pending in due:
            if len(chosen) >= machine.settings.entries_max:
                break
            incarnation = incarnation_of(id_)
            expected = next_.get(pending.gateway)
            if expected is None:
                is_next = ahead.verdict_on(pending.gateway, incarnation, pending.counter) is Verdict.STAMPED
            else:
                is_next = expected == (incarnation, pending.counter) or (
                    incarnation > expected[0] and pending.counter == 1
                )
            if is_next and self._is_open_to(replica, pending.destinations):
                next_[pending.gateway] = (incarnation, pending.counter + 1)
                if machine.payloads.held.get(id_) is not None:
                    chosen.append((id_, pending))
        return chosen

    def _is_open_to(self, replica: Replica, destinations: tuple[str, ...]) -> bool:
        """It waits until the group may send there, rather than be refused."""
        assert replica.ahead is not None
        return all(group == replica.name or group in replica.ahead.receivers for group in destinations)

    # ------------------------------------------------------------------------------------------------ all others

    def _about_groups(self, replica: Replica) -> list[SourceEntry]:
        """Whose barriers this group waits for, and to whom it may send: once."""
        ahead, machine = replica.ahead, self.machine
        assert ahead is not None
        entries = [
            SourceEntry(add=AddEntry(group=group))
            for group in machine.senders_to(replica.name)
            if group != replica.name and group not in ahead.added
        ]
        for group, key in list(replica.asks_open.items()):
            if group in ahead.receivers:
                del replica.asks_open[group]
            else:
                entries.append(SourceEntry(open=OpenEntry(group=group, key=key)))
        return entries

    def _overs(self, replica: Replica) -> list[SourceEntry]:
        """[4] The lives of gateways that send nothing any more: what was shown of them can be taken back."""
        ahead = replica.ahead
        assert ahead is not None
        entries = []
        for gateway, incarnation in self.machine.ended.items():
            if not ahead.is_over(gateway, incarnation) and not self._has_next(replica, gateway, incarnation):
                entries.append(SourceEntry(over=OverEntry(gateway=gateway, incarnation=incarnation)))
        return entries

    def _has_next(self, replica: Replica, gateway: str, incarnation: int) -> bool:
        """A message of that life is here that can still have its place."""
        assert replica.ahead is not None
        return any(
            pending.gateway == gateway
            and incarnation_of(id_) <= incarnation
            and replica.ahead.verdict_on(gateway, incarnation_of(id_), pending.counter) is Verdict.STAMPED
            for id_, pending in replica.pending.items()
        )

    def _null_due(self, replica: Replica) -> bytes:
        """[Algorithm 2 l.7] Periodically up to the present; and whatever somebody waits for, when it is due."""
        machine, ahead = self.machine, replica.ahead
        assert ahead is not None
        due = replica.null_due
        if machine.settings.liveness == PERIODIC:
            now = machine.clock.read(machine.wall)
            if now - keys.timestamp_of(ahead.last) > machine.settings.barrier_s * 1_000_000:
                due = max(due, keys.null_for(keys.key_of(now, b"")))
        return due
