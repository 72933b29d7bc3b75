"""The acceptors of one process, for all groups placed on it.

[Paxos] An acceptor promises rounds and votes in them, and never forgets either before the instance is closed. It
does not know quorums: whose votes count in which group is the proposer's business. What is left of a group that is
gone is closed with what else its gateway finished. It serves a group in the configuration that it has started in;
handover.py in this folder is about how it starts, and what it tells those who follow. A closed
instance is never reopened. "Closed" is kept per gateway incarnation as a counter (all below it are closed), and as
single buried ids where the incarnation ended before it could raise the counter.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.finished import Finished
from ordercast.core.ids import ID_BYTES, counter_of, incarnation_of, pack_u64, unpack_u64
from ordercast.core.machine import (
    Effect,
    Event,
    Persist,
    Progress,
    Receive,
    Retired,
    Send,
    Start,
    TimerFired,
    ViewChanged,
)
from ordercast.core.view import Group, OtherConfiguration, UnknownGroup, View
from ordercast.protocols.paxos import invariants
from ordercast.protocols.paxos.handover import ROUND_MAX, HandOverSettings, VotesHanding
from ordercast.v1.common_pb2 import Destination
from ordercast.v1.consensus_pb2 import (
    Accept,
    Accepted,
    AcceptorRecord,
    Close,
    Closed,
    ClosedRecord,
    Prepare,
    Promise,
    Rejected,
    Round,
    Votes,
    VotesAsk,
)

RoundKey = tuple[int, int]

Records = list[tuple[bytes, bytes | None]]

_INSTANCE, _DONE, _BURIED, _RETIRED, _VIEW, _STARTED = b"i", b"d", b"b", b"r", b"v", b"g"


def round_key(round_: Round) -> RoundKey:
    return (round_.number, round_.owner)


def round_message(key: RoundKey) -> Round:
    return Round(number=key[0], owner=key[1])


@dataclass(slots=True)
class Vote:
    """What binds this acceptor in one instance."""

    promised: RoundKey
    voted: RoundKey | None = None
    value: bytes = b""
    #: Of the instance; none in records of an early version.
    groups: tuple[str, ...] = ()

    def message(self) -> AcceptorRecord:
        record = AcceptorRecord(promised=round_message(self.promised), voted_value=self.value, groups=self.groups)
        if self.voted is not None:
            record.voted_round.CopyFrom(round_message(self.voted))
        return record

    def record(self) -> bytes:
        return self.message().SerializeToString()

    @classmethod
    def from_message(cls, record: AcceptorRecord) -> "Vote":
        voted = round_key(record.voted_round) if record.HasField("voted_round") else None
        return cls(round_key(record.promised), voted, record.voted_value, tuple(record.groups))

    def is_for(self, group: str) -> bool:
        return group in self.groups or not self.groups


class Acceptor:
    handles = (Prepare, Accept, Close, VotesAsk, Votes)

    def __init__(self, process: str, settings: HandOverSettings | None = None) -> None:
        self.process = process
        self.view: View | None = None
        #: The latest view that this process, in this or an earlier life, acted on.
        self.view_number = 0
        #: The configuration that it has started in, by group.
        self.started: dict[str, int] = {}
        #: Open instances, by gateway incarnation, so that closing many is one look-up.
        self.votes: dict[int, dict[bytes, Vote]] = {}
        self.done: dict[int, Finished] = {}
        self.buried: dict[bytes, None] = {}
        self.retired = 0
        #: Instances that the latest step was about.
        self.about: Iterable[bytes] = ()
        self.hand_over = VotesHanding(self, settings or HandOverSettings())
        self._on_message: dict[type, Callable[[Receive], list[Effect]]] = {
            Prepare: self._on_prepare,
            Accept: self._on_accept,
            Close: self._on_close,
            VotesAsk: self.hand_over.on_ask,
            Votes: self.hand_over.on_votes,
        }

    def step(self, event: Event) -> list[Effect]:
        self.about = ()
        if isinstance(event, Receive):
            return self._on_message[type(event.message)](event)
        if isinstance(event, Start):
            self._recover(event.records)
        elif isinstance(event, ViewChanged):
            return self._on_view(event.index, event.now)
        elif isinstance(event, TimerFired):
            return self.hand_over.on_timer(event.now)
        elif isinstance(event, Retired):
            records = self.retire(event.below)
            return [Persist(records)] if records else []
        return []

    def check_invariants(self) -> None:
        """See core.machine.ChecksItself."""
        invariants.check_acceptor(self)

    def buffers(self) -> dict[str, int]:
        return {
            "instances": sum(len(votes) for votes in self.votes.values()),
            "done": len(self.done),
            "buried": len(self.buried),
        }

    def progress(self) -> dict[str, Progress]:
        """See core.machine.ChangesConfigurations."""
        assert self.view is not None
        return {
            name: Progress(group.configuration, self.started.get(name) == group.configuration)
            for name, group in self.view.groups.items()
            if self.process in group.starting and self.process in group.acceptors
        }

    def _on_view(self, view: View, now: float) -> list[Effect]:
        """Whoever hears of a configuration has left the one before: here that is all there is to being sealed."""
        if view.number < self.view_number:
            raise InvariantBroken(f"view {view.number} after view {self.view_number}")
        self.view = view
        records: Records = []
        if view.number > self.view_number:
            self.view_number = view.number
            records.append((_VIEW, pack_u64(view.number)))
        for name in [name for name in self.started if not self._is_for_us(view.groups.get(name))]:
            del self.started[name]
            records.append((_STARTED + name.encode(), None))
        records += self._forget_votes()
        for name, group in view.groups.items():
            if self.process in group.lost and self.started.get(name):
                records += self.lose(name)
            elif name not in self.started:
                began = group.began_here(self.process, is_acceptor=True)
                if began:
                    self.started[name] = began
        persist = [Persist(records, barrier=False)] if records else []
        return [*persist, *self.hand_over.on_view(now)]

    def _forget_votes(self) -> Records:
        """Those for groups that are gone, or have their acceptors elsewhere: nobody will ask for them."""
        assert self.view is not None
        groups = self.view.groups
        mine = {name for name in groups if self._is_for_us(groups[name])}
        records: Records = []
        for votes in self.votes.values():
            for instance in [i for i, vote in votes.items() if vote.groups and mine.isdisjoint(vote.groups)]:
                records.append((_INSTANCE + instance, None))
                del votes[instance]
        self.votes = {incarnation: votes for incarnation, votes in self.votes.items() if votes}
        return records

    def _is_for_us(self, group: Group | None) -> bool:
        if group is None:
            return False
        return self.process in (*group.acceptors, *group.former_acceptors)

    def lose(self, name: str) -> Records:
        """What it had promised in the group is gone: it takes no part until the next configuration."""
        self.started[name] = 0
        return [self.started_record(name)]

    def started_record(self, name: str) -> tuple[bytes, bytes | None]:
        return (_STARTED + name.encode(), pack_u64(self.started[name]))

    # ------------------------------------------------------------------------------------------- phases

    def _on_prepare(self, event: Receive) -> list[Effect]:
        """[Paxos phase 1b] Promise to ignore lower rounds, and tell the vote of the highest one so far."""
        prepare: Prepare = event.message
        round_, records, refusal = self._enter(event)
        if refusal is not None:
            return refusal
        instance = prepare.instance
        vote = self.vote_in(instance) or self._open(instance, round_, prepare.groups)
        vote.promised = round_
        promise = Promise(instance=instance, round=prepare.round, voted_value=vote.value)
        if vote.voted is not None:
            promise.voted_round.CopyFrom(round_message(vote.voted))
        records.append((_INSTANCE + instance, vote.record()))
        return [Persist(records), Send((event.source,), promise)]

    def _on_accept(self, event: Receive) -> list[Effect]:
        """[Paxos phase 2b] Vote, unless a higher round was promised."""
        accept: Accept = event.message
        round_, records, refusal = self._enter(event, accept.value)
        if refusal is not None:
            return refusal
        instance = accept.instance
        vote = self.vote_in(instance) or self._open(instance, round_, accept.groups)
        vote.promised = vote.voted = round_
        vote.value = accept.value
        records.append((_INSTANCE + instance, vote.record()))
        return [Persist(records), Send((event.source,), Accepted(instance=instance, round=accept.round))]

    def _enter(self, event: Receive, value: bytes | None = None) -> tuple[RoundKey, Records, list[Effect] | None]:
        """What both phases begin with: forget what is finished; and the answer, if the round may not go on here.

        Each brings word of what is finished, for each makes us remember an instance, and there may be no other.
        (Where stamps imply numbers nobody asks for votes. A replica that misses decisions asks for promises, hears
        the number from a peer, and does so with every envelope.)
        """
        message = event.message
        round_ = self._checked(event, message.round, message.groups)
        instance = message.instance
        self.about = (instance,)
        vote = self.vote_in(instance)
        if value is not None and vote is not None and vote.voted == round_ and vote.value != value:
            # Before anything changes here: what is refused is not written.
            raise RemoteProtocolError("a round with two values")
        records = self.close_finished(incarnation_of(instance), message.done, message.open)
        vote = self.vote_in(instance)
        if self.is_closed(instance):
            answer: Effect = Send((event.source,), Closed(instance=instance))
        elif vote is not None and round_ < vote.promised:
            answer = self._rejected(event.source, instance, vote)
        else:
            return round_, records, None
        return round_, records, [Persist(records), answer] if records else [answer]

    def _rejected(self, source: str, instance: bytes, vote: Vote) -> Effect:
        return Send((source,), Rejected(instance=instance, promised=round_message(vote.promised)))

    def _checked(self, event: Receive, round_: Round, groups: Iterable[Destination]) -> RoundKey:
        """A round is used by its owner alone; each acceptor checks the configuration of its own groups."""
        if len(event.message.instance) != ID_BYTES:
            raise RemoteProtocolError("an instance id has 16 bytes")
        if round_.number > ROUND_MAX:
            raise RemoteProtocolError("a round that nobody could outbid")
        if round_.owner != event.incarnation:
            raise RemoteProtocolError(f"round of incarnation {round_.owner} used by {event.incarnation}")
        assert self.view is not None
        mine, unknown = False, None
        for destination in groups:
            group = self.view.groups.get(destination.group)
            if group is None:
                unknown = destination.group
                continue
            # Also of a group that we are no acceptor of: whoever proposes may not know that we have left it.
            group.check(destination.configuration)
            if self.process in group.acceptors:
                if self.started.get(group.name) != group.configuration:
                    raise OtherConfiguration(group.name, f"the acceptor of {group.name!r} here has not started")
                mine = True
        if not mine and unknown is not None:
            raise UnknownGroup(unknown)  # The proposer asks again until our view has it.
        if not mine:
            raise RemoteProtocolError("this process is no acceptor of the instance's groups")
        return round_key(round_)

    # ------------------------------------------------------------------------------------------ forgetting

    def is_closed(self, instance: bytes) -> bool:
        incarnation = incarnation_of(instance)
        if incarnation < self.retired or instance in self.buried:
            return True
        finished = self.done.get(incarnation)
        return finished is not None and counter_of(instance) in finished

    def close_finished(self, incarnation: int, done: int, open_: Collection[int]) -> Records:
        """At an acceptor, `done` takes effect at once."""
        if incarnation < self.retired or not done:
            return []
        finished = self.done.setdefault(incarnation, Finished())
        if not finished.merge(done, open_):
            return []
        votes = self.votes.get(incarnation, {})
        closed = [instance for instance in votes if counter_of(instance) in finished]
        for instance in closed:
            del votes[instance]
        if not votes:
            self.votes.pop(incarnation, None)
        records: Records = [(_INSTANCE + instance, None) for instance in closed]
        record = ClosedRecord(done=finished.done, open=finished.open).SerializeToString()
        records.append((_DONE + pack_u64(incarnation), record))
        return records

    def _on_close(self, event: Receive) -> list[Effect]:
        close: Close = event.message
        if any(len(instance) != ID_BYTES for instance in close.instances):
            raise RemoteProtocolError("an instance id has 16 bytes")
        self.about = close.instances
        records = self.close(close.instances, close.finished)
        return [Persist(records)] if records else []

    def close(self, buried: Iterable[bytes], finished: Iterable[ClosedRecord]) -> Records:
        records: Records = []
        for statement in finished:
            records += self.close_finished(statement.incarnation, statement.done, statement.open)
        for instance in buried:
            if self.is_closed(instance):
                continue
            self.buried[instance] = None
            votes = self.votes.get(incarnation_of(instance), {})
            if votes.pop(instance, None) is not None:
                records.append((_INSTANCE + instance, None))
                if not votes:
                    del self.votes[incarnation_of(instance)]
            records.append((_BURIED + instance, b""))
        return records

    def retire(self, below: int) -> Records:
        """Nothing of these incarnations is open at any replica: one number is enough to know them by.

        A vote may be left, where nobody told us that its instance is finished, or where the only holder of the
        envelope is gone. No replica holds the envelope, so nobody will ever ask for the vote.
        """
        if below <= self.retired:
            return []
        self.retired = below
        records: Records = [(_RETIRED, pack_u64(below))]
        for incarnation in [i for i in self.votes if i < below]:
            records += [(_INSTANCE + instance, None) for instance in self.votes.pop(incarnation)]
        for incarnation in [i for i in self.done if i < below]:
            del self.done[incarnation]
            records.append((_DONE + pack_u64(incarnation), None))
        for instance in [i for i in self.buried if incarnation_of(i) < below]:
            del self.buried[instance]
            records.append((_BURIED + instance, None))
        return records

    # ------------------------------------------------------------------------------------------- instances

    def adopt(self, instance: bytes, record: AcceptorRecord) -> Records:
        """Another acceptor's vote: what it promised and voted binds us too."""
        if self.is_closed(instance):
            return []
        theirs = Vote.from_message(record)
        vote = self.vote_in(instance)
        if vote is None:
            vote = self.votes.setdefault(incarnation_of(instance), {})[instance] = theirs
        else:
            vote.promised = max(vote.promised, theirs.promised)
            if theirs.voted is not None and (vote.voted is None or theirs.voted > vote.voted):
                vote.voted, vote.value = theirs.voted, theirs.value
        return [(_INSTANCE + instance, vote.record())]

    def vote_in(self, instance: bytes) -> Vote | None:
        return self.votes.get(incarnation_of(instance), {}).get(instance)

    def _open(self, instance: bytes, round_: RoundKey, groups: Iterable[Destination]) -> Vote:
        vote = Vote(promised=round_, groups=tuple(destination.group for destination in groups))
        self.votes.setdefault(incarnation_of(instance), {})[instance] = vote
        return vote

    def _recover(self, records: Any) -> None:
        for key, value in records:
            kind, rest = key[:1], key[1:]
            if kind == _INSTANCE:
                vote = Vote.from_message(AcceptorRecord.FromString(value))
                self.votes.setdefault(incarnation_of(rest), {})[rest] = vote
            elif kind == _DONE:
                record = ClosedRecord.FromString(value)
                self.done[unpack_u64(rest)] = Finished(record.done, record.open)
            elif kind == _BURIED:
                self.buried[rest] = None
            elif kind == _VIEW:
                self.view_number = unpack_u64(value)
            elif kind == _STARTED:
                self.started[rest.decode()] = unpack_u64(value)
            else:
                self.retired = unpack_u64(value)
