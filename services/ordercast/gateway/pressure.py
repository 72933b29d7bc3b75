"""How much a gateway has taken and not answered, how fast it gets answered, and so whether more may come in.

What is here takes as long as it is much, at the present rate: so a limit on time is a limit on messages that goes
with the rate. A message has to take some time even when it is alone, and on a slow network many are under way in
that time. So the limit is what is answered in that time, and in `backlog_s_max` on top.

Capacity is shared by client, and not by producer: a client can make up as many producers as it likes. Up to the
limit anybody gets in. Beyond, up to twice the limit, only a client that has no more here than a fair share of it:
one that floods takes what others leave, and does not keep them out. Credits are told accordingly, and together
never promise more than that. So who keeps to its credits is hardly ever refused.

What is under way to replicas can no longer be overtaken, so most of what is here waits at the gateway, and there
clients take turns (turns.py). Under way is what is answered while a message travels, and in `WINDOW_S` on top.
Where one client sends much more than another, that other one would notice: then so little is under way that
envelopes take no more than `SLOW` times as long as alone, and the larger client pays for it with some throughput.
Clients that send alike get all the throughput that there is.

What is stuck, as for a group that lost its majority, stops to count after a while: it says nothing about how long
messages to other groups will take. A destination set is stuck if nothing that was sent to it gets answered;
messages that merely wait for their turn count, however long they wait.
"""

from collections import deque
from dataclasses import dataclass, field

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
#: With so many here, messages hardly wait for each other.
FEW = 64
#: What is here for so long does not count any more, if nothing else to the same set was answered meanwhile.
STUCK_S = 2.0
#: What is answered in so much time is under way, beyond what has to be while a message travels both ways.
WINDOW_S = 0.05
#: So many messages may be under way in any case: an envelope costs as much as hundreds of them.
WINDOW_MESSAGES_MIN = 256
#: Where clients send unequally, envelopes that take so many times longer than alone, and longer than so long, are
#: slow, and less is sent; but so much in any case.
SLOW = 2.0
SLOW_S_MIN = 0.02
WINDOW_LESS, WINDOW_MORE = 0.8, 1.1
WINDOW_MESSAGES_LEAST = 16
#: For so long it is counted what each client sends. If one sends less than this part of an equal share, and did so
#: shortly before (once says nothing: who comes or goes sends for a part of the time only), they are unequal, and
#: so much longer count as such: what is held back of the larger one must not make it look modest.
COUNTED_S = 0.5
MODEST = 0.5
SHORTLY_S = 3.0
UNEQUAL_S = 5.0
#: What is under way for so long does not keep others from leaving: one group that stands still must not stop all.
LATE_S = 0.5
#: So long after a refusal there is still too much to do.
HIGH_S = 1.0


@dataclass(slots=True)
class Account:
    """What a client has at the gateway."""

    #: Messages without an answer, and how many of them are each producer's.
    messages: int = 0
    producers: dict[bytes, int] = field(default_factory=dict)
    #: Those that left for replicas.
    under_way: int = 0


@dataclass(slots=True)
class Lane:
    """What is here for a destination set: how many requests, and when one was answered last or the first came."""

    requests: int = 0
    moved: float = 0.0


@dataclass(slots=True)
class Taken:
    """Messages of one request, until they are answered or stop to count."""

    at: float = 0.0
    count: int = 0
    client: str = ""
    producer: bytes = b""
    groups: tuple[str, ...] = ()
    #: What it is in the client's account, whether or not it still counts for others.
    cost: int = 0
    #: When it left, and how much of it counts as under way.
    left: float = 0.0
    under_way: int = 0


class Pressure:
    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        #: Messages without an answer, and whose they are.
        self.messages = 0
        self.accounts: dict[str, Account] = {}
        #: Those of them that left, and are not late.
        self.under_way = 0
        #: Messages that can be answered per second; 0 until that is known.
        self.rate = 0.0
        #: The same of messages that were refused: those who sent them come back.
        self.refusal_rate = 0.0
        #: What an envelope takes with as much to do as there is now, as long as that is not too much; and what one
        #: takes that hardly waits for others. With many sets the first is much more: a set's envelopes take turns.
        self.latency_s = 0.0
        self.alone_s = 0.0
        #: Since the latest sample: how long there was something to answer (and from when there is now), how much
        #: there was at most, and what became of it.
        self._busy_s = 0.0
        self._since = 0.0
        self._most = 0
        self._answered = 0
        self._refused = 0
        self._refused_at = -HIGH_S
        #: What each client sent in this while, until when that is, who sent little and when, until when clients
        #: count as unequal, and what may be under way as long as they are.
        self._came: dict[str, int] = {}
        self._came_until = 0.0
        self._modest: dict[str, float] = {}
        self._unequal_until = 0.0
        self.is_unequal = False
        self._window_unequal = 0.0
        self._lanes: dict[tuple[str, ...], Lane] = {}
        #: By when each is to be looked at, and by when it left.
        self._taken: deque[tuple[float, Taken]] = deque()
        self._left: deque[Taken] = deque()

    # ------------------------------------------------------------------------------------------ what happens

    def took(self, client: str, producer: bytes, groups: tuple[str, ...], count: int, now: float) -> Taken:
        if not self.messages:
            self._since = now
        self.messages += count
        self._most = max(self._most, self.messages)
        self._came[client] = self._came.get(client, 0) + count
        account = self.accounts.setdefault(client, Account())
        account.messages += count
        account.producers[producer] = account.producers.get(producer, 0) + count
        lane = self._lanes.setdefault(groups, Lane(moved=now))
        lane.requests += 1
        taken = Taken(now, count, client, producer, groups, count)
        self._taken.append((now + STUCK_S, taken))
        return taken

    def leaves(self, taken: Taken, now: float) -> None:
        """For replicas. What stopped to count while it waited does not count on its way either."""
        taken.left, taken.under_way = now, taken.count
        self.under_way += taken.count
        self.accounts[taken.client].under_way += taken.count
        self._left.append(taken)

    def gave(self, taken: Taken, now: float) -> None:
        """They were answered, or given up."""
        self._answered += taken.count
        self._forget(taken, now)
        self._arrived(taken)
        account = self.accounts[taken.client]
        account.messages -= taken.cost
        account.producers[taken.producer] -= taken.cost
        if not account.producers[taken.producer]:
            del account.producers[taken.producer]
        if not account.messages:
            del self.accounts[taken.client]
        lane = self._lanes[taken.groups]
        lane.requests, lane.moved = lane.requests - 1, now
        if not lane.requests:
            del self._lanes[taken.groups]

    def _forget(self, taken: Taken, now: float) -> None:
        if taken.count and taken.count == self.messages:
            self._busy_s += now - self._since
        self.messages -= taken.count
        taken.count = 0

    def _arrived(self, taken: Taken) -> None:
        self.under_way -= taken.under_way
        self.accounts[taken.client].under_way -= taken.under_way
        taken.under_way = 0

    def refused(self, client: str, count: int, now: float) -> None:
        self._came[client] = self._came.get(client, 0) + count
        self._refused += count
        self._refused_at = now

    def delivered(self, latency_s: float) -> None:
        """An envelope took so long. While much is here that is mostly waiting for others."""
        if latency_s > max(SLOW * self.alone_s, SLOW_S_MIN):
            self._window_unequal = max(self.window * WINDOW_LESS, WINDOW_MESSAGES_LEAST)
        else:
            self._window_unequal = min(self._window_unequal, self.window) * WINDOW_MORE + 1
        is_calm = self.messages <= self.limit / 2
        self.latency_s = _follow(self.latency_s, latency_s, is_calm)
        self.alone_s = _follow(self.alone_s, latency_s, is_calm and self.messages <= FEW)

    def measure(self, now: float) -> None:
        """To be called often."""
        while self._left and (not self._left[0].under_way or self._left[0].left <= now - LATE_S):
            late = self._left.popleft()
            if late.under_way:
                self._arrived(late)
        while self._taken and (not self._taken[0][1].count or self._taken[0][0] <= now):
            self._look_at(self._taken.popleft()[1], now)
        if now >= self._came_until:
            self._compare(now)
        busy_s = self._busy_s + (now - self._since if self.messages else 0.0)
        if busy_s >= SAMPLE_S:
            self._sample(self._answered / busy_s, self._refused / busy_s)
            self._busy_s, self._since = 0.0, now
            self._most, self._answered, self._refused = self.messages, 0, 0

    def _compare(self, now: float) -> None:
        """Whether a client sends much less than others."""
        fair = sum(self._came.values()) / max(len(self._came), 1)
        modest = dict.fromkeys((client for client, count in self._came.items() if count < MODEST * fair), now)
        before = {client: at for client, at in self._modest.items() if at > now - SHORTLY_S}
        if modest.keys() & before.keys():
            self._unequal_until = now + UNEQUAL_S
        self._modest = before | modest
        if not self.is_unequal:
            self._window_unequal = self.window
        self.is_unequal = now < self._unequal_until
        self._came, self._came_until = {}, now + COUNTED_S

    def _look_at(self, taken: Taken, now: float) -> None:
        """It is answered, or stuck; otherwise it is to be looked at again."""
        if taken.count and self._lanes[taken.groups].moved > now - STUCK_S:
            self._taken.append((now + STUCK_S, taken))
        else:
            self._forget(taken, now)

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
        soon = self.rate * (self._usual_s + self.settings.backlog_s_max)
        return max(soon, self.settings.backlog_messages_min)

    @property
    def _usual_s(self) -> float:
        """What an envelope may take. Where clients are unequal, one that sends much must not make that longer."""
        return self.alone_s if self.is_unequal else self.latency_s

    @property
    def window(self) -> float:
        """How many messages may be under way."""
        soon = self.rate * (2 * self._usual_s + WINDOW_S) if self.rate else self.settings.backlog_messages_first
        window = max(soon, WINDOW_MESSAGES_MIN)
        return min(window, self._window_unequal) if self.is_unequal else window

    def under_way_of(self, client: str) -> int | None:
        """So many of its messages; None if no more of them may leave now."""
        account = self.accounts.get(client, Account())
        if self.under_way < self.window or self.may_leave(client, 0, 1):
            return account.under_way
        return None

    def may_leave(self, client: str, leaving: int, count: int) -> bool:
        """So many more messages of a client of which so many are leaving: its share of the window is its own."""
        account = self.accounts.get(client, Account())
        return account.under_way + leaving + count <= max(self.window / max(len(self.accounts), 1), 1.0)

    def admits(self, client: str, count: int) -> bool:
        """So many more messages of this client."""
        total = self.messages + count
        if total <= self.limit or not self.messages:
            return True
        mine = self._mine(client)
        return mine + count <= self._share(mine) and total <= 2 * self.limit

    def credits(self, client: str, producer: bytes) -> int:
        """How many messages a producer may have here: its part of its client's share, or of the rest."""
        mine = self._mine(client)
        rest = max(self.limit - self.messages, 0.0)
        granted = max(self._share(mine), mine + rest / self._sharing(mine))
        producers = self.accounts[client].producers if mine else {}
        own = producers.get(producer, 0)
        among = len(producers) + (0 if own else 1)
        part = max(granted / among, own + (granted - mine) / among, 1.0)
        return min(int(part), self.settings.producer_messages_max)

    def is_high(self, now: float) -> bool:
        """There is more to do than can be done, and doing it at less cost counts more than doing it soon."""
        return now < self._refused_at + HIGH_S

    def retry_after_s(self) -> float:
        """When what is here now will be answered. The more have to come back, the later should each of them."""
        if not self.rate:
            return RETRY_S_UNKNOWN
        crowd = 1 + self.refusal_rate / self.rate
        return min(max(self.messages / self.rate * crowd, RETRY_S_MIN), RETRY_S_MAX)

    def _mine(self, client: str) -> int:
        account = self.accounts.get(client)
        return 0 if account is None else account.messages

    def _share(self, mine: int) -> float:
        return max(self.limit / self._sharing(mine), 1.0)

    def _sharing(self, mine: int) -> int:
        """Clients that have something here, and this one."""
        return len(self.accounts) + (0 if mine else 1)


def _follow(known_s: float, latency_s: float, may_rise: bool) -> float:
    """What envelopes take, now that one took so long: less counts at once, more only little by little."""
    if not known_s or latency_s < known_s:
        return min(latency_s, STUCK_S)
    if may_rise and latency_s < STUCK_S:
        return known_s + (latency_s - known_s) * LATENCY_WEIGHT
    return known_s
