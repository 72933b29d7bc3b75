"""The acceptors of one process, for all groups placed on it.

[Paxos] An acceptor promises rounds and votes in them, and never forgets either before the instance is closed.
It does not know quorums: whose votes count in which group is the proposer's business. Nor does it remember which
groups an instance is for: what is left of a group that is gone is closed with what else its gateway finished.
[SCALATOM E8] A closed instance is never reopened. "Closed" is kept per gateway incarnation as a counter (all
below it are closed), and as single buried ids where the incarnation ended before it could raise the counter.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.finished import Finished
from ordercast.core.ids import ID_BYTES, counter_of, incarnation_of, pack_u64, unpack_u64
from ordercast.core.machine import Effect, Event, Persist, Receive, Retired, Send, Start, ViewChanged
from ordercast.core.view import UnknownGroup, View
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
)

RoundKey = tuple[int, int]

#: Far beyond any number of attempts.
ROUND_MAX = 2**48

Records = list[tuple[bytes, bytes | None]]

_INSTANCE, _DONE, _BURIED, _RETIRED = b"i", b"d", b"b", b"r"


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

    def record(self) -> bytes:
        record = AcceptorRecord(promised=round_message(self.promised), voted_value=self.value)
        if self.voted is not None:
            record.voted_round.CopyFrom(round_message(self.voted))
        return record.SerializeToString()

    @classmethod
    def from_record(cls, data: bytes) -> "Vote":
        record = AcceptorRecord.FromString(data)
        voted = round_key(record.voted_round) if record.HasField("voted_round") else None
        return cls(round_key(record.promised), voted, record.voted_value)


class Acceptor:
    handles = (Prepare, Accept, Close)

    def __init__(self, process: str) -> None:
        self.process = process
        self.view: View | None = None
        #: Open instances, by gateway incarnation, so that closing many is one look-up.
        self.votes: dict[int, dict[bytes, Vote]] = {}
        self.done: dict[int, Finished] = {}
        self.buried: dict[bytes, None] = {}
        self.retired = 0
        self._on_message: dict[type, Callable[[Receive], list[Effect]]] = {
            Prepare: self._on_prepare,
            Accept: self._on_accept,
            Close: self._on_close,
        }

    def step(self, event: Event) -> list[Effect]:
        if isinstance(event, Receive):
            return self._on_message[type(event.message)](event)
        if isinstance(event, Start):
            self._recover(event.records)
        elif isinstance(event, ViewChanged):
            self.view = View(event.view)
        elif isinstance(event, Retired):
            return self._retire(event.below)
        return []

    def buffers(self) -> dict[str, int]:
        return {
            "instances": sum(len(votes) for votes in self.votes.values()),
            "done": len(self.done),
            "buried": len(self.buried),
        }

    # ------------------------------------------------------------------------------------------- phases

    def _on_prepare(self, event: Receive) -> list[Effect]:
        """[Paxos phase 1b] Promise to ignore lower rounds, and tell the vote of the highest one so far."""
        prepare: Prepare = event.message
        round_, records, refusal = self._enter(event)
        if refusal is not None:
            return refusal
        instance = prepare.instance
        vote = self._vote(instance) or self._open(instance, round_)
        vote.promised = round_
        promise = Promise(instance=instance, round=prepare.round, voted_value=vote.value)
        if vote.voted is not None:
            promise.voted_round.CopyFrom(round_message(vote.voted))
        records.append((_INSTANCE + instance, vote.record()))
        return [Persist(records), Send((event.source,), promise)]

    def _on_accept(self, event: Receive) -> list[Effect]:
        """[Paxos phase 2b] Vote, unless a higher round was promised."""
        accept: Accept = event.message
        round_, records, refusal = self._enter(event)
        if refusal is not None:
            return refusal
        instance = accept.instance
        vote = self._vote(instance) or self._open(instance, round_)
        if vote.voted == round_ and vote.value != accept.value:
            raise RemoteProtocolError("a round with two values")
        vote.promised = vote.voted = round_
        vote.value = accept.value
        records.append((_INSTANCE + instance, vote.record()))
        return [Persist(records), Send((event.source,), Accepted(instance=instance, round=accept.round))]

    def _enter(self, event: Receive) -> tuple[RoundKey, Records, list[Effect] | None]:
        """What both phases begin with: forget what is finished; and the answer, if the round may not go on here.

        Each brings word of what is finished, for each makes us remember an instance, and there may be no other.
        (Where stamps imply numbers nobody asks for votes. A replica that misses decisions asks for promises, hears
        the number from a peer, and does so with every envelope.)
        """
        message = event.message
        round_ = self._checked(event, message.round, message.groups)
        instance = message.instance
        records = self._close_finished(incarnation_of(instance), message.done, message.open)
        vote = self._vote(instance)
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
            elif self.process in group.acceptors:
                group.check(destination.configuration)
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

    def _close_finished(self, incarnation: int, done: int, open_: Collection[int]) -> Records:
        """[SCALATOM E8] At an acceptor, `done` takes effect at once."""
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
        records: Records = []
        for statement in close.finished:
            records += self._close_finished(statement.incarnation, statement.done, statement.open)
        for instance in close.instances:
            if self.is_closed(instance):
                continue
            self.buried[instance] = None
            votes = self.votes.get(incarnation_of(instance), {})
            if votes.pop(instance, None) is not None:
                records.append((_INSTANCE + instance, None))
                if not votes:
                    del self.votes[incarnation_of(instance)]
            records.append((_BURIED + instance, b""))
        return [Persist(records)] if records else []

    def _retire(self, below: int) -> list[Effect]:
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
        return [Persist(records)]

    # ------------------------------------------------------------------------------------------- instances

    def _vote(self, instance: bytes) -> Vote | None:
        return self.votes.get(incarnation_of(instance), {}).get(instance)

    def _open(self, instance: bytes, round_: RoundKey) -> Vote:
        vote = Vote(promised=round_)
        self.votes.setdefault(incarnation_of(instance), {})[instance] = vote
        return vote

    def _recover(self, records: Any) -> None:
        for key, value in records:
            kind, rest = key[:1], key[1:]
            if kind == _INSTANCE:
                self.votes.setdefault(incarnation_of(rest), {})[rest] = Vote.from_record(value)
            elif kind == _DONE:
                record = ClosedRecord.FromString(value)
                self.done[unpack_u64(rest)] = Finished(record.done, record.open)
            elif kind == _BURIED:
                self.buried[rest] = None
            else:
                self.retired = unpack_u64(value)
