"""Mutants of how the order is read off the DAG."""

from collections.abc import Iterable
from functools import partial

from ordercast.protocols.toto import order
from ordercast.protocols.toto.ballot import Ballot, Candidate, Key, Vector
from ordercast.protocols.toto.era import Era
from ordercast.protocols.toto.order import CHI, Order, Outcome, less
from ordercast.sim.mutant import Mutant, register

ORDERS: list[Mutant] = []
mutant = partial(register, ORDERS)


_deliver = Ballot.deliver


@mutant("votes-of-the-old-candidates", "VT is computed anew from the DAG", (Ballot, "deliver"))
def _votes_stay(self: Ballot, keys: Iterable[Key]) -> None:
    """Whoever has voted is infinite for a candidate that is new, and his first vote stays his vote."""
    before, voted = self.candidates, self.tail
    _deliver(self, keys)
    for key, candidate in self.candidates.items():
        old = before[key].votes if key in before else 0
        candidate.votes = old | (candidate.votes & ~voted)


ORDERS.append(
    Mutant(
        "unheard-counted-as-infinite",
        "* compares with nothing",
        ((Ballot, "heard", property(lambda self: (1 << self.size) - 1)),),
    )
)


@mutant("two-infinities-differ", "they are equal", (order, "at_most"))
def _less_or_both_have_a_number(one: Candidate, other: Candidate, heard: int) -> int:
    return heard & ~less(other, one) & (one.votes | other.votes)


@mutant("several-candidates-of-one-machine", "at most one", (Ballot, "_is_candidate"))
def _behind_its_senders_own(self: Ballot, key: Key, vector: Vector) -> bool:
    return not any(
        pending and machine != key[0] and pending[0] <= vector[machine]
        for machine, pending in enumerate(self.pending)
    )


@mutant("sources-in-order-of-receipt", "by sender and number", (Order, "deliverable"))
def _as_they_came(self: Order) -> list[Key]:
    if self.ntail <= self.phi:
        return []
    sources = self.sources()
    if not sources or not self.is_externally_stable(sources) or not self.is_internally_stable(sources):
        return []
    return [source.key for source in sources]


@mutant("win-with-half", "more than phi", (order, "win"))
def _as_many_as_phi(one: Candidate, other: Candidate, phi: int) -> Outcome:
    if less(one, other).bit_count() >= phi:
        return 1
    return 0 if less(other, one).bit_count() >= phi else CHI


@mutant("followed-without-votes", "2a: NVT of a source is more than phi", (Order, "is_followed"))
def _by_the_tails_alone(self: Order, sources: list[Candidate]) -> bool:
    return all(source.ntail >= self.size - self.phi for source in sources)


@mutant("sources-without-the-losers", "internal stability", (Order, "is_internally_stable"))
def _whoever_lost(self: Order, sources: list[Candidate]) -> bool:
    return True


_advance = Era.advance


@mutant("order-fed-with-what-nobody-follows", "final: what a majority follows", (Era, "advance"))
def _all_that_came(self: Era) -> None:
    self.followed = list(self.delivered)
    _advance(self)
