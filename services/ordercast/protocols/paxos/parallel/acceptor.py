"""One member's promises and votes in the log of one cell.

A promise holds for all instances from some one on, so that a leader needs phase 1 once and not for each of them.
Promises and votes are on disk before anybody hears of them: the caller sends what a step returns behind `changes`.

**What is forgotten** is answered with silence. Below `forgotten` all who need the decisions have them on disk, and
an empty promise there would let a leader decide the same instance once more. Whoever asks for less has to catch up
first.
"""

from dataclasses import dataclass

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import pack_u64, unpack_u64
from ordercast.core.view import FIRST
from ordercast.protocols.paxos.parallel.ballots import NONE, Ballot, ballot_of, to_message
from ordercast.v1.parallel_pb2 import CellAcceptorRecord, CellVoted

Record = tuple[bytes, bytes | None]

#: The first byte of the keys: what is promised, and each vote.
ACCEPTOR, VOTE = b"A", b"V"


def acceptor_key(group: str) -> bytes:
    return ACCEPTOR + group.encode()


def vote_key(group: str, instance: int) -> bytes:
    return VOTE + group.encode() + b"\0" + pack_u64(instance)


@dataclass(slots=True)
class Voted:
    ballot: Ballot
    value: bytes


class LogAcceptor:
    def __init__(self, group: str) -> None:
        self.group = group
        self.configuration = FIRST
        self.promised: Ballot = NONE
        self.votes: dict[int, Voted] = {}
        self.forgotten = 0
        #: What has changed on disk since the last look.
        self.changes: list[Record] = []

    # ---------------------------------------------------------------------------------------------------- voting

    def prepare(self, ballot: Ballot, first: int) -> list[tuple[int, Voted]] | None:
        """The votes from `first` on, after promising this ballot. None if something higher is promised."""
        if ballot < self.promised or first < self.forgotten:
            return None
        self._promise(ballot)
        return [(instance, vote) for instance, vote in sorted(self.votes.items()) if instance >= first]

    def accept(self, ballot: Ballot, instance: int, value: bytes) -> bool:
        """Whether it votes for the value, in an instance that it has not forgotten."""
        if ballot < self.promised or instance < self.forgotten:
            return False
        self._promise(ballot)
        before = self.votes.get(instance)
        if before is not None and before.ballot == ballot:
            if before.value != value:
                raise InvariantBroken(f"two values in instance {instance} of {self.group} in one ballot")
            return True
        self.votes[instance] = Voted(ballot, value)
        vote = CellVoted(instance=instance, ballot=to_message(ballot), value=value)
        self.changes.append((vote_key(self.group, instance), vote.SerializeToString()))
        return True

    def _promise(self, ballot: Ballot) -> None:
        if ballot > self.promised:
            self.promised = ballot
            self.changes.append(self._record())

    # ------------------------------------------------------------------------------------------------ forgetting

    def forget(self, below: int) -> None:
        """All who need the decisions of these instances have them on disk."""
        if below <= self.forgotten:
            return
        self.forgotten = below
        self.changes.append(self._record())
        for instance in [instance for instance in self.votes if instance < below]:
            del self.votes[instance]
            self.changes.append((vote_key(self.group, instance), None))

    # --------------------------------------------------------------------------------------------------- on disk

    def _record(self) -> Record:
        record = CellAcceptorRecord(
            configuration=self.configuration, promised=to_message(self.promised), forgotten=self.forgotten
        )
        return (acceptor_key(self.group), record.SerializeToString())

    def load(self, key: bytes, value: bytes) -> None:
        if key[:1] == ACCEPTOR:
            record = CellAcceptorRecord.FromString(value)
            self.configuration = record.configuration
            self.promised, self.forgotten = ballot_of(record.promised), record.forgotten
        else:
            vote = CellVoted.FromString(value)
            self.votes[unpack_u64(key[-8:])] = Voted(ballot_of(vote.ballot), vote.value)

    def take_changes(self) -> list[Record]:
        changes, self.changes = self.changes, []
        return changes
