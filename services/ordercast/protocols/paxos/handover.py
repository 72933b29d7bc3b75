"""How the acceptors of a group's new configuration get what bound those of the one before.

A sealed acceptor neither promises nor votes in the group. A new one asks the sealed for their votes, and starts
with those of a majority: for every instance the highest promise and the vote of the highest round, and all that is
closed. Whatever was chosen in the old configuration is among them. Something that was not may be among them too,
and two new acceptors may have started from different majorities: that is as if one had voted in a round that the
other had missed.

One that has started tells what it has by now. That is more than what it started from, and no less true: who takes
a vote over that it did not cast only reports a value that was proposed in that round, and no acknowledgement of it
was sent.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, ID_BYTES
from ordercast.core.machine import Effect, Persist, Receive, Send, SetTimer
from ordercast.core.view import Former, Group
from ordercast.protocols.celllog import collect
from ordercast.protocols.celllog.collect import Collect
from ordercast.v1.consensus_pb2 import ClosedRecord, InstanceVote, Votes, VotesAsk

if TYPE_CHECKING:
    from ordercast.protocols.paxos.acceptor import Acceptor

TIMER = "votes"
#: Far beyond any number of attempts.
ROUND_MAX = 2**48


@dataclass(frozen=True, slots=True)
class HandOverSettings:
    #: How long to wait for an answer before asking again.
    retry_s: float = 0.2
    #: Votes in one message.
    votes: int = 256


@dataclass(slots=True)
class Part(collect.Part):
    messages: list[Votes] = field(default_factory=list)


class VotesHanding:
    def __init__(self, acceptor: "Acceptor", settings: HandOverSettings) -> None:
        self.acceptor = acceptor
        self.settings = settings
        #: Groups in whose configuration we have not started.
        self.starting: dict[str, Collect[Part]] = {}

    def on_view(self, now: float) -> list[Effect]:
        acceptor = self.acceptor
        assert acceptor.view is not None
        effects: list[Effect] = []
        before, self.starting = self.starting, {}
        for name, group in acceptor.view.groups.items():
            is_member = acceptor.process in group.acceptors and acceptor.process not in group.lost
            if not is_member or acceptor.started.get(name) == group.configuration:
                continue
            known = before.get(name)
            if known is not None and known.configuration == group.configuration:
                known.follow(group)
                self.starting[name] = known
                continue
            self.starting[name] = Collect(acceptor.process, group, Part, is_acceptor=True)
            effects += self._ask(self.starting[name])
        if effects:
            effects.append(SetTimer(TIMER, self.settings.retry_s))
        return effects

    # ------------------------------------------------------------------------------------------- asking

    def on_timer(self, now: float) -> list[Effect]:
        effects = [effect for starting in self.starting.values() for effect in self._ask(starting)]
        if self.starting:
            effects.append(SetTimer(TIMER, self.settings.retry_s))
        return effects

    def _ask(self, starting: Collect[Part]) -> list[Effect]:
        return [self._ask_one(starting.group, source, after) for source, after in starting.missing()]

    def _ask_one(self, group: Group, source: str, after: bytes) -> Effect:
        return Send((source,), VotesAsk(group=group.name, configuration=group.configuration, after=after))

    # ------------------------------------------------------------------------------------------- answering

    def _group(self, message: Any) -> Group:
        assert self.acceptor.view is not None
        return self.acceptor.view.present(message.group, message.configuration)

    def on_ask(self, event: Receive) -> list[Effect]:
        ask: VotesAsk = event.message
        group, acceptor = self._group(ask), self.acceptor
        if event.source not in group.acceptors:
            raise RemoteProtocolError(f"{event.source} is no acceptor of {group.name!r}")
        started, former = acceptor.started.get(group.name, 0), group.former
        is_whole = started == group.configuration
        if not is_whole and not self.is_sealed(former):
            return []
        answer = self.answer(group, ask.after)
        answer.whole = is_whole
        answer.idle = not is_whole and former is not None and started != former.number
        # Behind everything that this rests on: that we know of the new configuration, and all that we promised.
        return [Persist((), barrier=False, then=(Send((event.source,), answer),))]

    def is_sealed(self, former: Former | None) -> bool:
        process = self.acceptor.process
        return former is not None and process in former.acceptors and process not in former.lost

    def answer(self, group: Group, after: bytes) -> Votes:
        """What is closed comes with every part: an instance may be closed while the parts are under way."""
        acceptor = self.acceptor
        answer = Votes(
            group=group.name,
            configuration=group.configuration,
            after=after,
            closed=[
                ClosedRecord(incarnation=incarnation, done=finished.done, open=finished.open)
                for incarnation, finished in acceptor.done.items()
            ],
            buried=acceptor.buried,
            retired=acceptor.retired,
        )
        votes = [
            (instance, vote)
            for votes in acceptor.votes.values()
            for instance, vote in votes.items()
            if instance > after and vote.is_for(group.name)
        ]
        votes.sort(key=lambda pair: pair[0])
        for instance, vote in votes[: self.settings.votes]:
            answer.votes.append(InstanceVote(instance=instance, vote=vote.message()))
        answer.more = len(votes) > self.settings.votes
        return answer

    # ------------------------------------------------------------------------------------------- hearing

    def on_votes(self, event: Receive) -> list[Effect]:
        votes: Votes = event.message
        group = self._group(votes)
        starting = self.starting.get(group.name)
        if starting is None:
            return []
        ids = [*(vote.instance for vote in votes.votes), *votes.buried]
        if any(len(instance) != ID_BYTES for instance in ids):
            raise RemoteProtocolError("an instance id has 16 bytes")
        rounds = [r for one in votes.votes for r in (one.vote.promised, one.vote.voted_round)]
        if any(round_.number > ROUND_MAX for round_ in rounds) or votes.retired > CLOCK_MAX:
            raise RemoteProtocolError("a round that nobody could outbid")
        part = starting.part(event.source, is_whole=votes.whole, is_idle=votes.idle)
        if part.is_complete:
            return []
        if part.after == votes.after:
            part.messages.append(votes)
            if votes.votes:
                part.after = votes.votes[-1].instance
            part.is_complete = not votes.more
        if not part.is_complete:
            return [self._ask_one(group, event.source, part.after)]
        return self._start_if_enough(group, starting)

    # ------------------------------------------------------------------------------------------- starting

    def _start_if_enough(self, group: Group, starting: Collect[Part]) -> list[Effect]:
        parts = starting.enough(starting.complete())
        if not parts:
            return []
        del self.starting[group.name]
        return self.start(group, list(parts.values()))

    def start(self, group: Group, parts: list[Part]) -> list[Effect]:
        acceptor = self.acceptor
        messages = [message for part in parts for message in part.messages]
        records = [record for message in messages for record in self.merge(message)]
        # What one of them has closed, another may still have a vote for.
        for message in messages:
            records += acceptor.close(message.buried, message.closed)
            records += acceptor.retire(message.retired)
        acceptor.started[group.name] = group.configuration
        records.append(acceptor.started_record(group.name))
        return [Persist(records)]

    def merge(self, message: Votes) -> list[tuple[bytes, bytes | None]]:
        return [record for one in message.votes for record in self.acceptor.adopt(one.instance, one.vote)]
