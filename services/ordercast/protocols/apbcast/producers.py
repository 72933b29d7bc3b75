"""What the merge remembers of producers, so that a repeated message gets no second number.

A producer's messages come in the order of their sequences, perhaps again through another broadcaster. So the
highest one is enough. Those that were not heard of for longest are forgotten first: a function of the order
alone.
"""

from collections.abc import Iterable, Iterator

from ordercast.v1.apbcast_pb2 import ProducerState


class Producers:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        #: Highest sequence, and the number at which it was heard of; who was heard of last comes last.
        self.known: dict[bytes, tuple[int, int]] = {}

    def is_new(self, producer: bytes, sequence: int, mseq: int) -> bool:
        """Whether this message was not there before; from now on it was."""
        known = self.known.get(producer)
        if known is not None and sequence <= known[0]:
            return False
        self.known.pop(producer, None)
        self.known[producer] = (sequence, mseq)
        if len(self.known) > self.limit:
            del self.known[next(iter(self.known))]
        return True

    def states(self) -> Iterator[ProducerState]:
        for producer, (sequence, heard_at) in self.known.items():
            yield ProducerState(producer=producer, sequence=sequence, heard_at=heard_at)

    def adopt(self, states: Iterable[ProducerState]) -> None:
        self.known = {state.producer: (state.sequence, state.heard_at) for state in states}
