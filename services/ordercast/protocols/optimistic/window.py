"""[4.2] How long a message waits for those that were stamped before it: w(p), measured.

Whoever waits so long has everything that was stamped earlier, if the assumption A2 holds: that a message takes no
longer than w(p), by the clock here, from its sender's stamp on. What has waited is shown in order of the initial
timestamps, and the leader of its source group proposes it in that order. If the assumption fails, messages are
shown in the wrong order, and some timestamps are raised. Nothing else: **no argument about order rests on the
window.**

[E8] Only copies that came straight from the sender, and in no more than the cap, are measured.
"""

from collections import deque
from collections.abc import Iterable

#: Samples of one sender that are remembered, and senders.
SAMPLES = 128
SENDERS_MAX = 256
#: What is due within this time is due now: clocks are no more exact.
EXACT_S = 1e-6


class Window:
    def __init__(self, fixed_us: int | None, quantile: float, cap_us: int) -> None:
        """`fixed_us`: not measured."""
        self.fixed_us = fixed_us
        self.quantile = quantile
        self.cap_us = cap_us
        self.samples: dict[str, deque[int]] = {}
        self._width: int | None = None

    def sample(self, sender: str, took_us: int) -> None:
        """A message of this sender came so long after its stamp, by the clock here."""
        if took_us > self.cap_us:
            return
        samples = self.samples.pop(sender, None)
        if samples is None:
            samples = deque(maxlen=SAMPLES)
        self.samples[sender] = samples  # the latest last
        while len(self.samples) > SENDERS_MAX:
            del self.samples[next(iter(self.samples))]
        samples.append(max(0, took_us))
        self._width = None

    def forget(self, sender: str) -> None:
        if self.samples.pop(sender, None) is not None:
            self._width = None

    @property
    def width_us(self) -> int:
        if self.fixed_us is not None:
            return self.fixed_us
        if self._width is None:
            self._width = max((_quantile(one, self.quantile) for one in self.samples.values()), default=0)
        return self._width

    def wait_s(self, timestamp: int, clock: int) -> float:
        """From now on. [E8] A sender whose clock is ahead does not hold up its message for so long."""
        return min(max(0, timestamp + self.width_us - clock), self.cap_us) / 1_000_000


def _quantile(samples: Iterable[int], share: float) -> int:
    """The sample that so many of the others are not above."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
