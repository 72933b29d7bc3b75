"""The clocks that machines are shown, and chance."""

import asyncio
import random
import time


class Clock:
    """Monotonic time for waiting, and wall time, which may be wrong: tests move it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wall_offset_s: float = 0.0) -> None:
        self._monotonic = loop.time
        self.wall_offset_s = wall_offset_s
        self._random = random.SystemRandom()

    def now(self) -> float:
        return self._monotonic()

    def wall(self) -> float:
        return time.time() + self.wall_offset_s

    def read(self) -> tuple[float, float]:
        """(now, wall), as events begin."""
        return self.now(), self.wall()

    def wall_ms(self) -> int:
        return int(self.wall() * 1000)

    def chance(self) -> int:
        return self._random.getrandbits(64)
