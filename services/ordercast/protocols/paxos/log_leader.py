"""What a member of the replicated log is beyond acceptor and learner, for a while: a candidate, or the leader.

[Paxos] A candidacy is phase 1, once, for all slots; a reign is phase 2, slot by slot. Both belong to one round and
end with it: whatever outlasts them is in the member's LogState.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ordercast.core.quorums import has_majority
from ordercast.protocols.paxos.acceptor import RoundKey, round_key, round_message
from ordercast.protocols.paxos.log_state import batch_of
from ordercast.v1.consensus_pb2 import (
    LogAccept,
    LogAccepted,
    LogDecided,
    LogHeartbeat,
    LogItem,
    LogPrepare,
    LogPromise,
)

if TYPE_CHECKING:
    from ordercast.protocols.paxos.log import LogReplica


class Candidacy:
    def __init__(self, member: "LogReplica", round_: RoundKey) -> None:
        self.member = member
        self.round = round_
        #: Our own votes are at hand, so our own promise is only counted.
        self.promises: dict[str, LogPromise] = {member.process: LogPromise()}

    def prepare(self, to: Sequence[str]) -> None:
        """[Paxos phase 1a] for all slots that are undecided here."""
        decided = self.member.state.decided
        self.member.send(to, LogPrepare(round=round_message(self.round), decided=decided))

    def prepare_again(self) -> None:
        self.prepare([name for name in self.member.others if name not in self.promises])

    def on_promise(self, source: str, promise: LogPromise) -> None:
        if round_key(promise.round) == self.round:
            self.promises[source] = promise

    def is_promised(self) -> bool:
        return has_majority(self.member.members, self.promises)

    def has_caught_up(self) -> bool:
        """A promise leaves out the votes for slots that its sender knows to be decided.

        To fill those with nothing would decide them a second time: they are fetched before we lead.
        """
        return all(promise.decided <= self.member.state.decided for promise in self.promises.values())

    def found_items(self) -> list[LogItem]:
        """[Paxos P2c] For each slot the item of the highest vote, the only one that can be decided there.

        A slot that no one of a majority voted for is not decided in a lower round, and never will be: those who
        promised us vote in none any more. If there are votes behind it, we fill it with nothing: the leader had
        sent slots 0 and 1 in two messages, and crashed when only the second had arrived anywhere.
        """
        state, window = self.member.state, self.member.settings.window_count_max
        first = state.decided
        best: dict[int, tuple[RoundKey, LogItem]] = {}
        for slot, entry in state.open_votes(first, window).items():
            assert entry.voted is not None
            best[slot] = (entry.voted, entry.item)
        for promise in self.promises.values():
            for vote in promise.votes:
                round_ = round_key(vote.round)
                if vote.slot >= first and (vote.slot not in best or round_ > best[vote.slot][0]):
                    best[vote.slot] = (round_, vote.item)
        filler = LogItem(origin=round_message(self.round))
        return [best[slot][1] if slot in best else filler for slot in range(first, max(best, default=-1) + 1)]


@dataclass(slots=True)
class Flight:
    """A slot that was proposed and is not known to be decided."""

    sent_at: float
    voters: dict[str, None]


class Reign:
    def __init__(self, member: "LogReplica", round_: RoundKey) -> None:
        self.member = member
        self.round = round_
        self.next_slot = member.state.decided
        #: Every slot from the first undecided one to next_slot - 1, in order.
        self.flights: dict[int, Flight] = {}
        #: The last slot of each batch that is not decided as a whole.
        self.batches: list[int] = []
        #: Values and their tags that wait for a place in the window.
        self.queue: deque[tuple[bytes, bytes]] = deque()
        self.answered_at = dict.fromkeys(member.others, member.now)
        self.resent_at = dict.fromkeys(member.others, member.now)
        #: The number of decided slots that everyone was sent last.
        self.told = member.state.decided

    def begin(self, items: Sequence[LogItem]) -> None:
        """Show that we lead, and propose in our own round what lower rounds left behind."""
        self.show(self.member.others)
        while items:
            batch = batch_of(items, self.member.settings.batch_bytes_max, len(items))
            self._propose(batch)
            items = items[len(batch) :]
        self.pump()

    def fill(self, until: int) -> None:
        """A member that is to be readmitted waits for the slots before this one, and nobody appends."""
        member = self.member
        count = min(until, member.state.decided + member.settings.window_count_max) - self.next_slot
        if count > 0 and not self.queue:
            self._propose([LogItem(origin=round_message(self.round))] * count)

    def discount(self, name: str) -> None:
        """Count no vote of this member: they are of a life that is over."""
        for flight in self.flights.values():
            flight.voters.pop(name, None)

    def has_room(self) -> bool:
        settings = self.member.settings
        length = self.next_slot + len(self.queue) - self.member.state.begins
        return len(self.queue) < settings.queue_count_max and length < settings.log_count_max

    def pump(self) -> None:
        """Decide what has its votes, propose what there is room for, and let nobody wait for the news."""
        while self._decide() or self._propose_queued():
            pass
        decided = self.member.state.decided
        if self.told < decided:
            self.told = decided
            message = LogDecided(round=round_message(self.round), decided=decided)
            self.member.send(self.member.others, message)

    # ------------------------------------------------------------------------------------------- proposing

    def _propose_queued(self) -> bool:
        """All that queued up while earlier batches were under way becomes one."""
        member, settings = self.member, self.member.settings
        self.batches = [last for last in self.batches if last >= member.state.decided]
        room = member.state.decided + settings.window_count_max - self.next_slot
        if not self.queue or room <= 0 or len(self.batches) >= settings.batches_open_max:
            return False
        origin = round_message(self.round)
        queued = [LogItem(origin=origin, value=value) for value, _ in self.queue]
        batch = batch_of(queued, settings.batch_bytes_max, room)
        for slot in range(self.next_slot, self.next_slot + len(batch)):
            _, tag = self.queue.popleft()
            member.mine[slot] = (self.round, tag)
        self._propose(batch)
        return True

    def _propose(self, items: Sequence[LogItem]) -> None:
        """[Paxos phase 2a] The others write while we do: whatever our own vote leads to is behind the barrier."""
        member = self.member
        self._send_accept(member.others, self.next_slot, items)
        self.told = member.state.decided
        for item in items:
            member.state.vote(self.next_slot, self.round, item)
            self.flights[self.next_slot] = Flight(member.now, {member.process: None})
            self.next_slot += 1
        self.batches.append(self.next_slot - 1)
        member.persist()

    def _send_accept(self, to: Sequence[str], first: int, items: Sequence[LogItem]) -> None:
        decided = self.member.state.decided
        accept = LogAccept(round=round_message(self.round), decided=decided, first=first, items=items)
        self.member.send(to, accept)

    # ------------------------------------------------------------------------------------------- answers

    def on_accepted(self, source: str, accepted: LogAccepted) -> None:
        for slot in range(accepted.first, accepted.first + accepted.count):
            flight = self.flights.get(slot)
            if flight is not None:
                flight.voters[source] = None

    def on_learned(self, slot: int) -> None:
        """Decided, as we heard from somebody else, with what we proposed."""
        self.flights.pop(slot, None)

    def _decide(self) -> bool:
        """A majority may have voted for later slots already: they wait, for slots are applied in order."""
        member, before = self.member, self.member.state.decided
        while flight := self.flights.get(member.state.decided):
            if not has_majority(member.members, flight.voters):
                break
            del self.flights[member.state.decided]
            member.apply_next()
        return member.state.decided > before

    # ------------------------------------------------------------------------------------------- patience

    def is_answered(self) -> bool:
        """Whether a majority, with us, answered lately. Else we do not lead, whatever we believe."""
        return has_majority(self.member.members, [self.member.process, *self._answering()])

    def _answering(self) -> list[str]:
        since = self.member.now - 2 * self.member.settings.suspect_s
        return [name for name, at in self.answered_at.items() if at >= since]

    def show(self, to: Sequence[str]) -> None:
        decided = self.member.state.decided
        self.member.send(to, LogHeartbeat(round=round_message(self.round), decided=decided))

    def remind(self) -> None:
        """Show that we live, and ask again where an answer is overdue."""
        member = self.member
        self.show(member.others)
        before = member.now - member.settings.retry_s
        for name in self._answering():
            first = self._first_unvoted(name)
            if first is not None and max(self.flights[first].sent_at, self.resent_at[name]) <= before:
                self.resend(name)

    def resend(self, name: str) -> None:
        """One batch of what this member has not voted for, beginning with the oldest."""
        first = self._first_unvoted(name)
        if first is None:
            return
        self.resent_at[name] = self.member.now
        entries = self.member.state.entries
        items = [entries[slot].item for slot in range(first, self.next_slot)]
        batch = batch_of(items, self.member.settings.batch_bytes_max, len(items))
        self._send_accept((name,), first, batch)

    def _first_unvoted(self, name: str) -> int | None:
        return next((slot for slot, flight in self.flights.items() if name not in flight.voters), None)
