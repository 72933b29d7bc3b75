"""[DKM93] Table 1, and Tables 2 to 5: how many machines a message waits for, and how long, beside the published.

The paper's setting: 8 machines, every message agreed, Phi = 4, and the baseline that waits for all of them. Its
network is a broadcast Ethernet with machines of 1993; here every message takes equally long, which is the only
thing assumed. So figures that come from how the paper's machines were delayed under load cannot be had.

A machine's interval is 8/load. The index of latency and omega are counted at every machine, latency at the sender.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from ordercast.protocols.toto.ballot import INFINITE, Key, Vector
from ordercast.protocols.toto.order import Order
from ordercast.sim.paper import Paper, PaperRow, Table

MACHINES, PHI, MESSAGES = 8, 4, 4000
LOADS = (50, 100, 150, 200)
DELAY_S = 0.0015

PERIODIC, POISSON = "periodic", "poisson"
#: Periodic sources differ in phase alone: so often new phases are drawn.
ROUNDS = {PERIODIC: 20, POISSON: 1}
TOTO, ALL_ACK = "ToTo", "all-ack"
PHI_OF = {TOTO: PHI, ALL_ACK: MACHINES - 1}

#: [Tables 2 to 5] By source, load and protocol: mean index, mean omega, latency in ms, and as the model has it.
PUBLISHED: dict[tuple[str, int, str], tuple[float, float, float, float]] = {
    (PERIODIC, 50, TOTO): (5.10, 1.12, 76.68, 75.67),
    (PERIODIC, 50, ALL_ACK): (8.00, 1.69, 135.02, 137.51),
    (PERIODIC, 100, TOTO): (5.42, 1.39, 42.31, 44.87),
    (PERIODIC, 100, ALL_ACK): (8.00, 1.31, 68.78, 69.35),
    (PERIODIC, 150, TOTO): (5.36, 1.44, 29.17, 29.29),
    (PERIODIC, 150, ALL_ACK): (8.00, 1.81, 45.59, 47.34),
    (PERIODIC, 200, TOTO): (5.90, 1.72, 23.80, 24.78),
    (PERIODIC, 200, ALL_ACK): (8.00, 1.48, 43.71, 35.96),
    (POISSON, 50, TOTO): (5.11, 1.15, 114.10, 122.34),
    (POISSON, 50, ALL_ACK): (8.00, 1.13, 385.25, 396.17),
    (POISSON, 100, TOTO): (5.31, 1.29, 60.98, 66.64),
    (POISSON, 100, ALL_ACK): (8.00, 1.27, 188.06, 194.58),
    (POISSON, 150, TOTO): (5.54, 1.42, 44.10, 52.34),
    (POISSON, 150, ALL_ACK): (8.00, 1.42, 133.09, 137.79),
    (POISSON, 200, TOTO): (5.89, 1.63, 39.37, 46.12),
    (POISSON, 200, ALL_ACK): (8.00, 1.58, 102.33, 111.45),
}
#: [Tables 2 and 3] By source and load: the latency of all-ack for one of ToTo.
SPEED_UP = {
    PERIODIC: dict(zip(LOADS, (1.76, 1.63, 1.56, 1.84), strict=True)),
    POISSON: dict(zip(LOADS, (3.38, 3.08, 3.01, 2.60), strict=True)),
}


@dataclass(slots=True)
class Observed:
    """What one run showed: (tau, omega) of each message at each machine, and latencies at senders, in seconds."""

    indices: list[tuple[int, int]] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    @property
    def tau(self) -> float:
        return _mean([float(tau) for tau, _ in self.indices])

    @property
    def omega(self) -> float:
        return _mean([float(omega) for _, omega in self.indices])

    @property
    def latency_ms(self) -> float:
        return 1000 * _mean(self.latencies)


class Machine:
    """One machine of the setting: it acknowledges, with each message, everything that it has received."""

    def __init__(self, place: int, phi: int, observed: Observed) -> None:
        self.place = place
        self.order = Order(MACHINES, phi)
        self.observed = observed
        self.waiting: dict[Key, tuple[Vector, int, float]] = {}

    def send(self, now: float) -> tuple[Key, Vector]:
        vector = list(self.order.received)
        vector[self.place] += 1
        key = (self.place, vector[self.place])
        self.receive(key, vector, now)
        return key, vector

    def receive(self, key: Key, vector: Vector, now: float) -> None:
        activations = self.order.add(key, vector, is_agreed=True)
        self.waiting[key] = (vector, self._heard_beside(key, vector), now)
        for activation in activations:
            for delivered in activation.keys:
                self._delivered(delivered, now)

    def _heard_beside(self, key: Key, vector: Vector) -> int:
        """Machines with a message here that is concurrent to this one or follows it. Its sender is one of them."""
        received = self.order.received
        return 1 + sum(1 for q in range(MACHINES) if q != key[0] and received[q] > vector[q])

    def _delivered(self, key: Key, now: float) -> None:
        vector, omega, since = self.waiting.pop(key)
        self.observed.indices.append((self._heard_beside(key, vector), omega))
        if key[0] == self.place:
            self.observed.latencies.append(now - since)


#: From a machine's turn to its next one, in seconds.
Interval = Callable[[Random, float], float]
INTERVALS: dict[str, Interval] = {
    PERIODIC: lambda random, mean: mean,
    POISSON: lambda random, mean: random.expovariate(1 / mean),
}


def run(source: str, load: float, protocol: str, *, messages: int = MESSAGES, seed: int = 1) -> Observed:
    observed, random = Observed(), Random(f"{seed}/{source}/{load}")
    rounds = ROUNDS[source]
    for _ in range(rounds):
        _run_once(observed, random, INTERVALS[source], MACHINES / load, PHI_OF[protocol], messages // rounds)
    return observed


def _run_once(
    observed: Observed, random: Random, interval: Interval, mean: float, phi: int, messages: int
) -> None:
    machines = [Machine(place, phi, observed) for place in range(MACHINES)]
    #: (when, which it was put in, at which machine, and what is received; None: it is its turn to send)
    events: list[tuple[float, int, int, tuple[Key, Vector] | None]] = []
    for place in range(MACHINES):
        heappush(events, (random.random() * mean, place, place, None))
    count, sent = MACHINES, 0
    while events:
        now, _, place, message = heappop(events)
        if message is not None:
            machines[place].receive(*message, now)
            continue
        if sent == messages:
            continue
        sent += 1
        message = machines[place].send(now)
        for other in range(MACHINES):
            count += 1
            if other != place:
                heappush(events, (now + DELAY_S, count, other, message))
        heappush(events, (now + interval(random, mean), count, place, None))


# ------------------------------------------------------------------------------------------------- the model


def predicted_ms(source: str, load: float, observed: Observed) -> float:
    """[DKM93 (1), (2)] From the joint distribution of (tau, omega), and the interval between two messages."""
    mean = MACHINES / load
    waits = _poisson_wait if source == POISSON else _periodic_wait
    return 1000 * mean * _mean([waits(tau, omega) for tau, omega in observed.indices])


def _poisson_wait(tau: int, omega: int) -> float:
    return sum(1 / (MACHINES - k) for k in range(omega, tau))


def _periodic_wait(tau: int, omega: int) -> float:
    return (tau - omega) / (MACHINES - omega + 1)


def _mean(figures: Sequence[float]) -> float:
    return sum(figures) / len(figures) if figures else 0.0


# ------------------------------------------------------------------------------------------------ the tables

A, B, C, D, E = range(5)
#: The figure is not in the text. Ten messages that are as the text says: the sender and number, what each follows
#: directly besides its sender's one before, and whether it is agreed.
FIGURE_1: tuple[tuple[Key, tuple[Key, ...], bool], ...] = (
    ((A, 1), (), True),
    ((D, 1), (), True),
    ((E, 1), (), True),
    ((B, 1), ((A, 1),), True),
    ((C, 1), ((A, 1), (D, 1)), True),
    ((E, 2), ((D, 1),), True),
    ((A, 2), ((B, 1), (C, 1), (E, 2)), False),
    ((C, 2), ((C, 1),), True),
    ((D, 2), ((C, 1), (E, 2)), False),
    ((D, 3), ((B, 1),), False),
)
#: [Table 1] By candidate: Tail, NTail, VT, NVT.
TABLE_1: dict[Key, tuple[str, int, str, int]] = {
    (B, 1): ("a b d", 3, "2 1 inf inf inf", 2),
    (C, 1): ("a c d", 3, "2 inf 1 2 inf", 3),
    (E, 2): ("a d e", 3, "2 inf inf 2 2", 3),
}


def figure_1() -> Order:
    """A machine that has received them, and has delivered the first messages of a, d and e."""
    order, vectors = Order(5, 4), dict[Key, list[int]]()
    for key, behind, is_agreed in FIGURE_1:
        sender, number = key
        vector = [0] * 5
        for other in (*behind, *([(sender, number - 1)] if number > 1 else [])):
            vector = [max(pair) for pair in zip(vector, vectors[other], strict=True)]
        vector[sender] = number
        vectors[key] = vector
        order.receive(key, vector, is_agreed=is_agreed)
        if key == (E, 1):
            order.deliver([(A, 1), (D, 1), (E, 1)])
    return order


def _table_1() -> Table:
    order, rows = figure_1(), []
    for key, (tail, ntail, vt, nvt) in TABLE_1.items():
        candidate = order.candidates[key]
        name = f"m_{'abcde'[key[0]]},{key[1]}"
        ours = " ".join(letter for place, letter in enumerate("abcde") if candidate.tail >> place & 1)
        stamp = " ".join("inf" if entry == INFINITE else str(entry) for entry in order.vt(candidate))
        rows += [
            PaperRow(f"{name}: Tail", tail, ours),
            PaperRow(f"{name}: NTail", ntail, candidate.ntail),
            PaperRow(f"{name}: VT", vt, stamp),
            PaperRow(f"{name}: NVT", nvt, candidate.nvt),
        ]
    return Table("[DKM93] Table 1: candidates' quantifying functions for the DAG of Figure 1", rows)


#: What a constant delay cannot give, and why.
NOT_TO_BE_HAD = {
    (PERIODIC, 200): "all-ack was slower there than the paper's own model says: its machines delayed it",
    (POISSON, 50): "ToTo was faster there than the paper's own model says: its source was not quite Poisson",
}


def _performance(source: str, number: int, observed: dict[tuple[int, str], Observed]) -> Table:
    rows = []
    for load in LOADS:
        for protocol in (TOTO, ALL_ACK):
            tau, omega, latency, _ = PUBLISHED[(source, load, protocol)]
            ours = observed[(load, protocol)]
            what = f"{load} messages/s, {protocol}"
            rows += [
                PaperRow(f"{what}: index of latency", tau, round(ours.tau, 2)),
                PaperRow(f"{what}: omega", omega, round(ours.omega, 2)),
                PaperRow(f"{what}: latency in ms", latency, round(ours.latency_ms, 2)),
            ]
        toto, all_ack = observed[(load, TOTO)], observed[(load, ALL_ACK)]
        why = NOT_TO_BE_HAD.get((source, load))
        note = f" ({why})" if why else ""
        speed_up = round(all_ack.latency_ms / toto.latency_ms, 2)
        rows.append(PaperRow(f"{load} messages/s: speed-up{note}", SPEED_UP[source][load], speed_up))
    return Table(f"[DKM93] Table {number}: performance for a {source} source", rows)


def _model(source: str, number: int, observed: dict[tuple[int, str], Observed]) -> Table:
    rows = []
    for load in LOADS:
        for protocol in (TOTO, ALL_ACK):
            *_, latency, model = PUBLISHED[(source, load, protocol)]
            ours = observed[(load, protocol)]
            predicted = predicted_ms(source, load, ours)
            what = f"{load} messages/s, {protocol}"
            rows += [
                PaperRow(f"{what}: latency predicted, in ms", model, round(predicted, 2)),
                PaperRow(f"{what}: latency observed, in ms", latency, round(ours.latency_ms, 2)),
                PaperRow(
                    f"{what}: rho",
                    round(abs(model - latency) / latency, 3),
                    round(abs(predicted - ours.latency_ms) / ours.latency_ms, 3),
                ),
            ]
    return Table(f"[DKM93] Table {number}: predicted and observed latency for a {source} source", rows)


def _distribution(source: str, number: int, observed: dict[tuple[int, str], Observed]) -> Table:
    """The published ones are curves without values."""
    rows = []
    for load in LOADS:
        taus = [tau for tau, _ in observed[(load, TOTO)].indices]
        for tau in range(PHI + 1, MACHINES + 1):
            share = round(taus.count(tau) / len(taus), 3)
            rows.append(PaperRow(f"{load} messages/s: share of messages with index {tau}", None, share))
    return Table(f"[DKM93] Figure {number}: index of latency for a {source} source", rows)


def tables() -> list[Table]:
    found = [_table_1()]
    observed = {
        source: {(load, protocol): run(source, load, protocol) for load in LOADS for protocol in PHI_OF}
        for source in INTERVALS
    }
    found += [_performance(PERIODIC, 2, observed[PERIODIC]), _performance(POISSON, 3, observed[POISSON])]
    found += [_model(PERIODIC, 4, observed[PERIODIC]), _model(POISSON, 5, observed[POISSON])]
    found += [_distribution(PERIODIC, 5, observed[PERIODIC]), _distribution(POISSON, 6, observed[POISSON])]
    return found


PAPER = Paper(tables)
