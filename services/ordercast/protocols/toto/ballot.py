"""Candidates, and how the machines vote for them [DKM93 4.1].

Messages come in causal order, each with its vector time: how many messages of every machine it follows, itself
included. So whether one message follows another is one comparison, and no graph is ever walked. Sets of machines
are the bits of a number, by the machine's place.

What a machine says first behind some candidate is its vote. Candidates change, and that first message only rises:
what comes before it is forgotten.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: (the sender's place, its how many-th message): also the lexicographic order of [DKM93 Figure 3].
Key = tuple[int, int]
#: By place: how many messages of that machine are followed.
Vector = Sequence[int]

#: Of an extended vector time stamp, where there is no number.
UNHEARD = "*"
INFINITE = math.inf


def follows(vector: Vector, key: Key) -> bool:
    """[DKM93 2.1] A message follows itself."""
    return vector[key[0]] >= key[1]


@dataclass(slots=True)
class Candidate:
    """[DKM93 4.1] An agreed message that follows no other agreed one that is not delivered."""

    key: Key
    #: Machines whose first message behind any candidate follows this one: where VT has a number.
    votes: int = 0
    #: [Tail_p(m)] Machines that sent any message that follows it.
    tail: int = 0

    @property
    def nvt(self) -> int:
        """[NVT_p(m)]"""
        return self.votes.bit_count()

    @property
    def ntail(self) -> int:
        """[NTail_p(m)]"""
        return self.tail.bit_count()


class Ballot:
    def __init__(self, size: int) -> None:
        self.size = size
        self.received = [0] * size
        #: By machine: agreed messages that are not delivered, and the last one that is.
        self.pending: list[deque[int]] = [deque() for _ in range(size)]
        self.delivered = [0] * size
        #: [M_p] The candidate set.
        self.candidates: dict[Key, Candidate] = {}
        #: [Tail_p] Machines that sent a message that follows some candidate, and the first such message; 0: none.
        self.tail = 0
        self.first = [0] * size
        #: By machine: the vectors of its messages from the first vote on.
        self.vectors: list[deque[Vector]] = [deque() for _ in range(size)]
        #: No message comes any more.
        self.is_closed = False

    @property
    def ntail(self) -> int:
        """[NTail_p; 5.2: with those that will not be heard any more]"""
        return self.size if self.is_closed else self.tail.bit_count()

    @property
    def heard(self) -> int:
        """Where extended vector time stamps have no *: as a set of machines."""
        return (1 << self.size) - 1 if self.is_closed else self.tail

    def vt(self, candidate: Candidate) -> list[float | str]:
        """[VT_p(m)] The extended vector time stamp."""
        return [self._entry(candidate, machine) for machine in range(self.size)]

    def _entry(self, candidate: Candidate, machine: int) -> float | str:
        bit = 1 << machine
        if not self.heard & bit:
            return UNHEARD
        return self.first[machine] if candidate.votes & bit else INFINITE

    # ------------------------------------------------------------------------------------------- what comes

    def receive(self, key: Key, vector: Vector, *, is_agreed: bool) -> None:
        """[DKM93 Figure 3] The sender's next message; all that it follows has come."""
        sender, number = key
        assert number == self.received[sender] + 1 == vector[sender]
        self.received[sender] = number
        if is_agreed and number > self.delivered[sender]:
            self._enter(key, vector)
        followed = [candidate for candidate in self.candidates.values() if follows(vector, candidate.key)]
        if not followed:
            return
        bit = 1 << sender
        self.vectors[sender].append(vector)
        for candidate in followed:
            candidate.tail |= bit
        if not self.tail & bit:
            self.tail |= bit
            self.first[sender] = number
            for candidate in followed:
                candidate.votes |= bit

    def _enter(self, key: Key, vector: Vector) -> None:
        """[Figure 3, 1] Whoever has voted before it was there did not vote for it: that is infinite."""
        self.pending[key[0]].append(key[1])
        if self._is_candidate(key, vector):
            self.candidates[key] = Candidate(key)

    def _is_candidate(self, key: Key, vector: Vector) -> bool:
        """All other agreed messages that it follows are delivered."""
        sender, number = key
        if self.pending[sender][0] != number:
            return False
        return not any(
            pending and machine != sender and pending[0] <= vector[machine]
            for machine, pending in enumerate(self.pending)
        )

    def close(self) -> None:
        """[5.2, Figure 4] Nobody who has not voted will: each of them is infinite for every candidate."""
        self.is_closed = True

    # ----------------------------------------------------------------------------------------- what goes

    def deliver(self, keys: Iterable[Key]) -> None:
        """These are delivered. All else is computed anew from the DAG: for each machine, its first message that
        follows any of the candidates that there are now.
        """
        for sender, number in keys:
            assert self.pending[sender].popleft() == number
            self.delivered[sender] = number
        self.candidates = {key: Candidate(key) for key in self._heads()}
        self.tail = 0
        for machine in range(self.size):
            self._vote_again(machine)

    def _heads(self) -> list[Key]:
        heads = [(machine, pending[0]) for machine, pending in enumerate(self.pending) if pending]
        return [key for key in heads if self._is_candidate(key, self._vector_of(key))]

    def _vector_of(self, key: Key) -> Vector:
        """Of a message that is not delivered: it follows a candidate, so it is not before its sender's vote."""
        machine, number = key
        return self.vectors[machine][number - self.first[machine]]

    def _vote_again(self, machine: int) -> None:
        vectors, candidates, bit = self.vectors[machine], self.candidates.values(), 1 << machine
        while vectors and not any(follows(vectors[0], candidate.key) for candidate in candidates):
            vectors.popleft()
            self.first[machine] += 1
        if not vectors:
            self.first[machine] = 0
            return
        self.tail |= bit
        for candidate in candidates:
            if follows(vectors[0], candidate.key):
                candidate.votes |= bit
            if follows(vectors[-1], candidate.key):
                candidate.tail |= bit
