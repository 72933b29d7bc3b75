"""[E8] A process' clock: the wall clock plus an offset, raised so that it is never behind a timestamp seen.

Nothing that is safe depends on it. It decides in which order messages are shown early, and how long one waits.
"""

MICROSECONDS = 1_000_000


class Clock:
    """Microseconds since 1970, as far as anybody's clock here is right."""

    def __init__(self) -> None:
        self.offset = 0

    def read(self, wall: float) -> int:
        return max(0, int(wall * MICROSECONDS) + self.offset)

    def saw(self, timestamp: int, wall: float) -> None:
        """A timestamp that this clock must not be behind."""
        self.offset += max(0, timestamp - self.read(wall))
