"""Silence on a stream, as the one who listens counts it. Without a clock.

Whoever speaks gives a sign of life when it has had nothing to say for a while. Whoever listens looks at intervals
whether something came, and counts the looks, not the seconds: a listener that was stopped itself, or busy, for a
long time has looked once in all that time, and what came meanwhile is read before it looks again.
"""

from math import ceil

#: How often there is a sign of life where it was asked for, if there is nothing else to say.
ALIVE_MS = 1000
ALIVE_S = ALIVE_MS / 1000
#: How often a listener looks, and what it takes for silence: several signs of life are missing.
LOOK_S = 0.5
PATIENCE_S = 3.0
SIGNS_MISSING = 3
#: The first word of one who was silent before may take longer: it may be slow, and all others too.
PATIENCE_S_MAX = 12.0


class Silence:
    """Of one stream. `silences` is how often in a row others, or the same, said nothing at all."""

    def __init__(self, silences: int = 0) -> None:
        first_s = min(PATIENCE_S * 2.0 ** min(silences, 10), PATIENCE_S_MAX)
        #: Looks that are left; None if the other side promised no signs of life: then its silence means nothing.
        self._left: int | None = ceil(first_s / LOOK_S)
        self._promised: int | None = None
        #: Somebody waits for the next word. Silence that nobody listens to does not count.
        self.is_listening = True
        #: It was silent for too long, and is to be left.
        self.is_too_long = False

    def heard(self, alive_ms: int = 0) -> None:
        """Something came. A sign of life promises that there is another one after so long."""
        if alive_ms:
            self._promised = ceil(max(PATIENCE_S, SIGNS_MISSING * alive_ms / 1000) / LOOK_S)
        self._left = self._promised

    def look(self) -> bool:
        """To be called every LOOK_S. Whether it has been silent for too long."""
        if self.is_listening and self._left is not None:
            self._left -= 1
            self.is_too_long = self._left <= 0
        return self.is_too_long
