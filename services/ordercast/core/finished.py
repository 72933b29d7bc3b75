"""Which envelopes of one gateway incarnation are finished.

A counter below which all are finished would do, but one envelope that waits for a group without a
quorum would hold the counter, and with it everyone's memory, though all later envelopes are long finished. So the
statement is a counter and the few below it that are still open: at most as many as a gateway may have open.
"""

from collections.abc import Collection, Iterable


class Finished:
    """Only ever grows: merging two statements keeps what either of them calls finished."""

    __slots__ = ("_open", "done", "open")

    def __init__(self, done: int = 0, open_: Iterable[int] = ()) -> None:
        self.done = done
        self.open: tuple[int, ...] = tuple(open_)
        #: The same, to look one up in: with hundreds of envelopes open, each is looked up at every merge.
        self._open = frozenset(self.open)

    def __contains__(self, counter: int) -> bool:
        return counter < self.done and counter not in self._open

    def merge(self, done: int, open_: Collection[int]) -> bool:
        """Whether that was news."""
        if done > self.done and not self.open and not open_:
            self.done = done
            return True
        other = Finished(done, open_)
        if (done, other.open) == (self.done, self.open):
            return False
        before = (self.done, self.open)
        both = sorted(self._open | other._open)
        self.open = tuple(counter for counter in both if counter not in self and counter not in other)
        self._open = frozenset(self.open)
        self.done = max(self.done, done)
        return (self.done, self.open) != before
