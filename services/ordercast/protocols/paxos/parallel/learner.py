"""Learning the log of one cell, in the cell itself or in another one: votes are counted, decisions applied in
order.

A value is decided when a majority of the members voted for it *in one ballot*. Votes of two ballots for one value
say nothing: the higher one may have been about to decide another. Who the members are at an instance, and in which
configuration, is a function of the log below it. So votes are kept with the configuration that they name, and
counted when it is their instance's turn.
"""

from dataclasses import dataclass, field

from ordercast.core.errors import InvariantBroken
from ordercast.core.quorums import has_majority
from ordercast.protocols.paxos.parallel.ballots import Ballot

#: Votes and decisions this far ahead of the applied prefix are dropped: they come again.
AHEAD_MAX = 4096


@dataclass(slots=True)
class Tally:
    value: bytes
    voters: dict[str, None] = field(default_factory=dict)


class LogLearner:
    def __init__(self, next_: int = 0) -> None:
        #: The first instance that is not applied.
        self.next = next_
        #: By instance, and by configuration and ballot.
        self.tallies: dict[int, dict[tuple[int, Ballot], Tally]] = {}
        #: What others have applied.
        self.told: dict[int, bytes] = {}

    def vote(self, source: str, configuration: int, ballot: Ballot, instance: int, value: bytes) -> None:
        if not self.next <= instance < self.next + AHEAD_MAX:
            return
        tallies = self.tallies.setdefault(instance, {})
        tally = tallies.setdefault((configuration, ballot), Tally(value))
        if tally.value != value:
            raise InvariantBroken(f"two values in instance {instance} in one ballot")
        tally.voters[source] = None

    def tell(self, instance: int, value: bytes) -> None:
        """Somebody's applied prefix has this value there."""
        if self.next <= instance < self.next + AHEAD_MAX:
            self.told[instance] = value

    def decision(self, configuration: int, members: tuple[str, ...]) -> bytes | None:
        """The value of the next instance, if it is known: these are the members there."""
        told = self.told.get(self.next)
        if told is not None:
            return told
        for (named, _), tally in self.tallies.get(self.next, {}).items():
            if named == configuration and has_majority(members, tally.voters):
                return tally.value
        return None

    def applied(self) -> None:
        """The next instance is done with."""
        self.tallies.pop(self.next, None)
        self.told.pop(self.next, None)
        self.next += 1

    def void(self) -> None:
        """The members are others from the next instance on: what came for it and beyond counts for nothing."""
        self.tallies, self.told = {}, {}

    @property
    def is_behind(self) -> bool:
        """Something came for later instances than the next."""
        return bool(self.tallies or self.told)
