"""Leading the log of one cell: phase 1 once, then one proposal for each instance, several at a time.

**Phase 1** asks for the votes from the end of the own applied prefix on. With promises of a majority, every
instance below the highest that anybody voted in gets the value of the highest ballot, or the empty value: an
instance that nobody voted in must not stay open, for those behind it are applied in order.

**Parallel instances** are proposed without waiting for those before them. What a value in I+1 builds on may be
missing from I after a change of leaders; it is for whoever applies the values to ignore what comes out of turn.
"""

from dataclasses import dataclass
from enum import Enum, auto

from ordercast.core.quorums import has_majority
from ordercast.protocols.paxos.parallel.ballots import NONE, Ballot

#: Applied by everybody without any effect.
NOTHING = b""


class Phase(Enum):
    FOLLOWING = auto()
    PREPARING = auto()
    LEADING = auto()


@dataclass(slots=True)
class Proposal:
    value: bytes
    #: When it is sent again, if it is not decided.
    due: float


class LogLeader:
    def __init__(self) -> None:
        self.phase = Phase.FOLLOWING
        self.ballot: Ballot = NONE
        #: Phase 1 asks from here on; and who has promised, with the vote of the highest ballot by instance.
        self.first = 0
        self.promises: dict[str, None] = {}
        self.found: dict[int, tuple[Ballot, bytes]] = {}
        #: When phase 1 is asked again.
        self.due = 0.0
        #: The next instance to propose in, and what is proposed and not applied.
        self.next = 0
        self.proposals: dict[int, Proposal] = {}

    @property
    def is_leading(self) -> bool:
        return self.phase is Phase.LEADING

    def prepare(self, ballot: Ballot, first: int, due: float) -> None:
        self.phase, self.ballot, self.first, self.due = Phase.PREPARING, ballot, first, due
        self.promises, self.found, self.proposals = {}, {}, {}

    def promised(self, source: str, votes: list[tuple[int, Ballot, bytes]], members: tuple[str, ...]) -> bool:
        """Whether this was the promise that makes it the leader: `propose_found` follows."""
        if self.phase is not Phase.PREPARING:
            return False
        self.promises[source] = None
        for instance, ballot, value in votes:
            if instance not in self.found or ballot > self.found[instance][0]:
                self.found[instance] = (ballot, value)
        return has_majority(members, self.promises)

    def begin(self, due: float) -> None:
        """Lead, with what must be proposed again."""
        self.phase = Phase.LEADING
        self.next = max(self.found, default=self.first - 1) + 1
        for instance in range(self.first, self.next):
            value = self.found[instance][1] if instance in self.found else NOTHING
            self.proposals[instance] = Proposal(value, due)
        self.found = {}

    def propose(self, value: bytes, due: float) -> int:
        instance, self.next = self.next, self.next + 1
        self.proposals[instance] = Proposal(value, due)
        return instance

    def applied(self, next_: int) -> None:
        """All instances below are applied here, whoever had proposed them."""
        for instance in [instance for instance in self.proposals if instance < next_]:
            del self.proposals[instance]
        self.next = max(self.next, next_)

    def give_up(self) -> None:
        """Somebody has promised a higher ballot."""
        self.phase = Phase.FOLLOWING
        self.promises, self.found, self.proposals = {}, {}, {}
