"""Mutants of what processes say, keep and show."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from ordercast.core.machine import Effect, Persist, Receive
from ordercast.core.quorums import majority
from ordercast.protocols.celllog.numbered import NumberedMachine
from ordercast.protocols.toto import records
from ordercast.protocols.toto.ballot import Key
from ordercast.protocols.toto.entering import Entering
from ordercast.protocols.toto.era import Era, Replicas, key_of
from ordercast.protocols.toto.receiving import Receiving
from ordercast.protocols.toto.speaking import Speaking, header_of
from ordercast.sim.mutant import Mutant, register
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.toto_pb2 import DagMessage, DagRecord

PROCESSES: list[Mutant] = []
mutant = partial(register, PROCESSES)


@mutant(
    "follows-before-the-sync", "whoever follows a message has it on disk", (NumberedMachine, "end_step"), seed=119
)
def _say_then_keep(self: NumberedMachine) -> list[Effect]:
    if not self.changes:
        return self.out
    return [*self.out, *self.delivered, Persist(self.changes)]


_cast = Speaking.cast


@mutant("votes-lost-over-a-restart", "the synced DAG, votes included", (Speaking, "cast"))
def _votes_only_in_memory(self: Speaking, era: Era, envelope: Envelope | None) -> None:
    _cast(self, era, envelope)
    if envelope is None:
        record = records.message(era.view, (era.me, era.sent))
        self.machine.changes = [change for change in self.machine.changes if change[0] != record]


_take_again = Era.take_again


@mutant("counter-starts-again", "a restarted process goes on counting", (Era, "take_again"))
def _without_its_own(self: Era, messages: Any) -> None:
    _take_again(self, [message for message in messages if message.key.member != self.me])


@mutant("never-an-empty-message", "an idle process votes", (Speaking, "is_idle_due"))
def _silent(self: Speaking) -> bool:
    return False


@mutant("empty-messages-without-end", "at most one for each first vote", (Era, "owes_vote"))
def _always(self: Era) -> bool:
    return True


@mutant("no-vote-for-a-receipt", "a replica owes one to each message to its groups", (Speaking, "owe"))
def _owe_nothing(self: Speaking, era: Era, message: DagMessage) -> None:
    pass


@mutant("body-left-out", "bodies to all replicas of the groups", (Speaking, "holders"))
def _of_the_first_group(self: Speaking, message: DagMessage) -> dict[str, None]:
    groups = self.machine.view.groups
    return {name: None for group in message.groups[:1] if group in groups for name in groups[group].replicas}


@mutant("body-not-kept", "a body that came is on the disk", (Receiving, "keep"))
def _headers_alone(self: Receiving, era: Era, message: DagMessage) -> None:
    era.take(message)
    self.machine.speaking.owe(era, message)
    record = records.message(era.view, key_of(message.key))
    self.machine.changes.append((record, header_of(message).SerializeToString()))


@mutant("shown-without-a-majority-of-the-group", "T6: of each group", (Era, "is_replicated"))
def _of_the_view(self: Era, key: Key, replicas: Replicas) -> bool:
    return all(replicas(group) for group in self.casts[key].groups)


@mutant("fed-by-less-than-a-majority", "final: a majority of the view", (Era, "say"))
def _one_less(self: Era, member: int, vector: Sequence[int]) -> None:
    said = self.said[member]
    for place, count in enumerate(vector):
        if count > said[place]:
            said[place] = count
            counts = sorted((row[place] for row in self.said), reverse=True)
            self.followed[place] = counts[max(majority(self.size) - 2, 0)]


@mutant("nothing-said-again", "what a new connection lost comes again", (Receiving, "on_resume"))
def _it_has_come(self: Receiving, event: Receive, message: Any) -> None:
    pass


@mutant("enters-without-its-logs", "a newcomer copies its logs first", (Entering, "_lacking"))
def _lacks_nothing(self: Entering, how: Any) -> list[Any]:
    return []


@mutant("dropped-before-everybody-has-it", "a message is kept until nobody can lack it", (Era, "droppable"))
def _as_soon_as_it_is_visible(self: Era) -> list[int]:
    limits = [
        max(min(fed, self.received[place] - 1), self.settled[place])
        for place, fed in enumerate(self.order.received)
    ]
    for place in range(self.size):
        for ballot in (self.order, self.votes):
            if ballot.first[place]:
                limits[place] = max(min(limits[place], ballot.first[place] - 1), self.settled[place])
    for ordered in self.queue:
        sender, number = ordered.key
        limits[sender] = max(min(limits[sender], number - 1), self.settled[sender])
    return limits


_resume = Era.resume


@mutant("delivered-again-after-a-restart", "what was delivered stays so", (Era, "resume"))
def _nothing_delivered(self: Era, record: DagRecord) -> None:
    _resume(self, record)
    for ballot in (self.order, self.votes):
        ballot.delivered = list(self.settled)


@mutant("queue-forgotten-over-a-restart", "what has its place keeps it", (Era, "resume"))
def _no_queue(self: Era, record: DagRecord) -> None:
    _resume(self, record)
    self.queue.clear()
