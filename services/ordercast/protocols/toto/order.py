"""The order: which candidates are delivered next, and when that is certain [DKM93 4].

[DKM93] Danny Dolev, Shlomo Kramer, Dalia Malki, "Early Delivery Totally Ordered Multicast in Asynchronous
Environments", FTCS-23, 1993. README.md in this folder tells the protocol.

A machine is fed with messages in causal order, and every machine that is fed with the same messages, in whatever
causal order, and with more of them or less, delivers the same sets one after the other. So one view of the DAG may
be ahead of another one, and never differs.
"""

from dataclasses import dataclass

from ordercast.protocols.toto.ballot import Ballot, Candidate, Key, Vector

#: Of a comparison that nobody wins.
CHI = "chi"
#: What a comparison says: 1, the first one wins; 0, the other one; or CHI.
Outcome = int | str


def less(one: Candidate, other: Candidate) -> int:
    """The machines for which VT(one) < VT(other).

    A machine's number is the same in all stamps where it has one, so it is less where the other one is infinite.
    """
    return one.votes & ~other.votes


def at_most(one: Candidate, other: Candidate, heard: int) -> int:
    """The machines for which VT(one) <= VT(other). Two infinities are equal, and * compares with nothing."""
    return heard & ~less(other, one)


def win(one: Candidate, other: Candidate, phi: int) -> Outcome:
    """[Win_p] Which one more than phi machines put first."""
    if less(one, other).bit_count() > phi:
        return 1
    if less(other, one).bit_count() > phi:
        return 0
    return CHI


@dataclass(frozen=True, slots=True)
class Activation:
    """[DKM93 Figure 3] The messages that become deliverable together, in lexicographical order."""

    number: int
    keys: tuple[Key, ...]


class Order(Ballot):
    def __init__(self, size: int, phi: int | None = None) -> None:
        super().__init__(size)
        self.phi = size // 2 if phi is None else phi
        if not size // 2 <= self.phi < size:
            raise ValueError(f"phi has to be from {size // 2} to {size - 1} for {size} machines, not {self.phi}")
        #: [Nact]
        self.activations = 0

    # ------------------------------------------------------------------------------------------ the criterion

    def can_win(self, one: Candidate, other: Candidate) -> bool:
        """[1 in Future_p] So many are not less already that the rest is not enough: then it cannot."""
        return at_most(other, one, self.heard).bit_count() < self.size - self.phi

    def future(self, one: Candidate, other: Candidate) -> tuple[Outcome, ...]:
        """[Future_p] What Win may be once everybody is heard."""
        possible: list[Outcome] = []
        if self.can_win(other, one):
            possible.append(0)
        if self.can_win(one, other):
            possible.append(1)
        if win(one, other, self.phi) == CHI:
            possible.append(CHI)
        return tuple(possible)

    def sources(self) -> list[Candidate]:
        """[S_p] Candidates that no other one can win against any more."""
        there = self.candidates.values()
        return [m for m in there if not any(other is not m and self.can_win(other, m) for other in there)]

    def is_internally_stable(self, sources: list[Candidate]) -> bool:
        """[DEL 1] Every other candidate has certainly lost to some candidate."""
        chosen = dict.fromkeys(source.key for source in sources)
        there = self.candidates.values()
        rest = [candidate for candidate in there if candidate.key not in chosen]
        return all(any(self.future(other, candidate) == (1,) for other in there) for candidate in rest)

    def is_externally_stable(self, sources: list[Candidate]) -> bool:
        """[DEL 2] No candidate that has not come can be among the sources, or win against one of them."""
        return self.is_followed(sources) or self.ntail == self.size

    def is_followed(self, sources: list[Candidate]) -> bool:
        """[DEL 2a]"""
        enough = self.size - self.phi
        return any(source.nvt > self.phi for source in sources) and all(
            source.ntail >= enough for source in sources
        )

    def deliverable(self) -> list[Key]:
        """[DEL] The sources, by sender and number, if they are certain; otherwise nothing."""
        if self.ntail <= self.phi:
            return []  # neither part of 2 can hold
        sources = self.sources()
        if not sources or not self.is_externally_stable(sources) or not self.is_internally_stable(sources):
            return []
        return sorted(source.key for source in sources)

    # ------------------------------------------------------------------------------------------------- moving

    def add(self, key: Key, vector: Vector, *, is_agreed: bool) -> list[Activation]:
        """The next message of a sender; what becomes deliverable by it."""
        self.receive(key, vector, is_agreed=is_agreed)
        return self.advance()

    def end(self) -> list[Activation]:
        """[5.2] All messages of the view have come: everything that is left."""
        self.close()
        return self.advance()

    def advance(self) -> list[Activation]:
        found = []
        while self.candidates and (keys := self.deliverable()):
            self.deliver(keys)
            self.activations += 1
            found.append(Activation(self.activations, tuple(keys)))
        return found
