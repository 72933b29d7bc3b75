"""How long envelopes take until they are finished, to tell one that is late from one that has much before it.

A gateway with more to do than it can do soon has envelopes under way for longer than any fixed patience. Sent
again, each of them is more work still, exactly when there is too much. So patience follows what is measured, in
the way in which TCP sets its retransmission timer: a smoothed time, and several times its smoothed deviation.
"""

#: What one envelope says about the time that they take, and about how much that differs.
TIME_WEIGHT = 1 / 8
DEVIATION_WEIGHT = 1 / 4
#: How many deviations longer than usual is still usual.
DEVIATIONS = 4


class FinishTimes:
    def __init__(self) -> None:
        self._smoothed_s = 0.0
        self._deviation_s = 0.0

    def took(self, time_s: float) -> None:
        """One that waited long for a group without a quorum counts too, and those after it soon outweigh it."""
        if not self._smoothed_s:
            self._smoothed_s, self._deviation_s = time_s, time_s / 2
            return
        self._deviation_s += DEVIATION_WEIGHT * (abs(time_s - self._smoothed_s) - self._deviation_s)
        self._smoothed_s += TIME_WEIGHT * (time_s - self._smoothed_s)

    @property
    def usual_s_max(self) -> float:
        """0 before anything is known."""
        return self._smoothed_s + DEVIATIONS * self._deviation_s
