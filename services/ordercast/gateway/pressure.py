"""How much a gateway has taken and not answered, how fast it gets answered, and so whether more may come in.

What is here takes as long as it is much, at the present rate: so a limit on time is a limit on messages that goes
with the rate. A message has to take some time even when it is alone, and on a slow network many are under way in
that time. So the limit is what is answered in that time, and in `backlog_s_max` on top.

Up to the limit anybody gets in. Beyond, up to twice the limit, only who has no more here than a fair share of it:
a producer that floods takes what others leave, and does not keep them out. Credits are told accordingly, and
together never promise more than that. So who keeps to its credits is hardly ever refused.

What is stuck, as for a group that lost its majority, stops to count after a while: it says nothing about how long
messages to other groups will take.
"""

from collections import deque
from dataclasses import dataclass

from ordercast.gateway.settings import GatewaySettings

#: What is told to those who have to come back.
RETRY_S_MIN = 0.02
RETRY_S_MAX = 2.0
#: As long as no rate is known.
RETRY_S_UNKNOWN = 0.2

#: How long answers are counted before that says something about the rate, and how much it weighs.
SAMPLE_S = 0.2
RATE_WEIGHT = 0.25
#: How much one envelope says about the time that envelopes have to take.
LATENCY_WEIGHT = 0.1
#: What is here for so long does not count any more.
STUCK_S = 2.0
#: So long after a refusal there is still too much to do.
HIGH_S = 1.0


@dataclass(slots=True)
class Taken:
    """Messages of one request, until they are answered or stop to count."""

    at: float = 0.0
    count: int = 0


class Pressure:
    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        #: Messages without an answer, and how many producers they are of.
        self.messages = 0
        self.producers = 0
        #: Messages that can be answered per second; 0 until that is known.
        self.rate = 0.0
        #: The same of messages that were refused: those who sent them come back.
        self.refusal_rate = 0.0
        #: What an envelope takes when it does not wait for others.
        self.latency_s = 0.0
        #: Since the latest sample: how long there was something to answer (and from when there is now), how much
        #: there was at most, and what became of it.
        self._busy_s = 0.0
        self._since = 0.0
        self._most = 0
        self._answered = 0
        self._refused = 0
        self._refused_at = -HIGH_S
        self._taken: deque[Taken] = deque()

    # ------------------------------------------------------------------------------------------ what happens

    def took(self, count: int, now: float) -> Taken:
        if not self.messages:
            self._since = now
        self.messages += count
        self._most = max(self._most, self.messages)
        taken = Taken(now, count)
        self._taken.append(taken)
        return taken

    def gave(self, taken: Taken, now: float) -> None:
        """They were answered, or given up."""
        self._answered += taken.count
        self._forget(taken, now)

    def _forget(self, taken: Taken, now: float) -> None:
        if taken.count and taken.count == self.messages:
            self._busy_s += now - self._since
        self.messages -= taken.count
        taken.count = 0

    def refused(self, count: int, now: float) -> None:
        self._refused += count
        self._refused_at = now

    def delivered(self, latency_s: float) -> None:
        """An envelope took so long. While much is here that is mostly waiting for others."""
        if not self.latency_s or latency_s < self.latency_s:
            self.latency_s = min(latency_s, STUCK_S)
        elif latency_s < STUCK_S and self.messages <= self.limit / 2:
            self.latency_s += (latency_s - self.latency_s) * LATENCY_WEIGHT

    def measure(self, now: float) -> None:
        """To be called often."""
        while self._taken and (not self._taken[0].count or self._taken[0].at <= now - STUCK_S):
            self._forget(self._taken.popleft(), now)
        busy_s = self._busy_s + (now - self._since if self.messages else 0.0)
        if busy_s >= SAMPLE_S:
            self._sample(self._answered / busy_s, self._refused / busy_s)
            self._busy_s, self._since = 0.0, now
            self._most, self._answered, self._refused = self.messages, 0, 0

    def _sample(self, rate: float, refusal_rate: float) -> None:
        """A rate with little to do says nothing about what could be done, unless it is higher than was known."""
        is_telling = self._most > self.limit / 2 or rate > self.rate > 0
        weight = RATE_WEIGHT if self.rate else 1.0
        if is_telling:
            self.rate += (rate - self.rate) * weight
        self.refusal_rate += (refusal_rate - self.refusal_rate) * weight

    # ------------------------------------------------------------------------------------------- what follows

    @property
    def limit(self) -> float:
        if not self.rate:
            return self.settings.backlog_messages_first
        soon = self.rate * (self.latency_s + self.settings.backlog_s_max)
        return max(soon, self.settings.backlog_messages_min)

    def admits(self, outstanding: int, count: int) -> bool:
        """So many more messages of a producer that has so many here."""
        total = self.messages + count
        if total <= self.limit or not self.messages:
            return True
        return outstanding + count <= self._share(outstanding) and total <= 2 * self.limit

    def credits(self, outstanding: int) -> int:
        """How many messages a producer that has so many here may have here: its share, or its part of the rest."""
        rest = max(self.limit - self.messages, 0.0)
        granted = max(self._share(outstanding), outstanding + rest / self._sharing(outstanding))
        return min(int(granted), self.settings.producer_messages_max)

    def is_high(self, now: float) -> bool:
        """There is more to do than can be done, and doing it at less cost counts more than doing it soon."""
        return now < self._refused_at + HIGH_S

    def retry_after_s(self) -> float:
        """When what is here now will be answered. The more have to come back, the later should each of them."""
        if not self.rate:
            return RETRY_S_UNKNOWN
        crowd = 1 + self.refusal_rate / self.rate
        return min(max(self.messages / self.rate * crowd, RETRY_S_MIN), RETRY_S_MAX)

    def _share(self, outstanding: int) -> float:
        return max(self.limit / self._sharing(outstanding), 1.0)

    def _sharing(self, outstanding: int) -> int:
        """Producers that have something here, and this one."""
        return self.producers + (0 if outstanding else 1)
