"""A steady load in a process of its own, that is told when another stretch of time begins.

One producer keeps so many messages in flight through all of it, and nothing is left out between two stretches: so
what happens in one cannot hide in a pause before the next.
"""

import asyncio
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection

from ordercast.bench import own
from ordercast.bench.client import DRAIN_S_MAX, drain
from ordercast.bench.meter import Meter, percentile_ms
from ordercast.bench.plan import BenchPlan, Pattern
from ordercast.bench.servers import BenchError, Servers
from ordercast.bench.systems import OWN

#: A process has to be started, and what is in flight at the end answered.
ANSWER_S_MAX = DRAIN_S_MAX + 30.0
END_S_MAX = 5.0
#: What it says when the first receipt has come.
HAS_BEGUN = "begun"


@dataclass(slots=True)
class Stretch:
    """Seconds are those of the client's clock."""

    seconds: float = 0.0
    #: The longest time between two receipts. One that began before counts in full where it ends.
    gap_s_max: float = 0.0
    failed: int = 0
    #: Of each message with a receipt: eight bytes, for there are millions.
    latencies: "array[float]" = field(default_factory=lambda: array("d"))

    @property
    def messages_per_second(self) -> float:
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    def percentile_ms(self, part: float) -> float:
        return percentile_ms(self.latencies, part)


def joined(stretches: Sequence[Stretch]) -> Stretch:
    """Several that follow one another, as one."""
    found = Stretch()
    for stretch in stretches:
        found.seconds += stretch.seconds
        found.gap_s_max = max(found.gap_s_max, stretch.gap_s_max)
        found.failed += stretch.failed
        found.latencies.extend(stretch.latencies)
    return found


class Timeline(Meter):
    """Tells stretches apart. What comes before the first is the warm-up."""

    def __init__(self, now: float) -> None:
        super().__init__()
        self.stretches: list[Stretch] = []
        self._begun = self._last_receipt = now
        self.on_first: Callable[[], None] = lambda: None

    def answered(self, begun: float) -> None:
        self.answered_at(begun, time.perf_counter())

    def answered_at(self, begun: float, now: float) -> None:
        self.acknowledged += 1
        if self.acknowledged == 1:
            self.on_first()
        if self.stretches:
            stretch = self.stretches[-1]
            stretch.gap_s_max = max(stretch.gap_s_max, now - self._last_receipt)
            stretch.latencies.append(now - begun)
        self._last_receipt = now

    def refused(self, error: BaseException) -> None:
        self.last_error = error
        if self.stretches:
            self.stretches[-1].failed += 1

    def begin(self, now: float) -> None:
        self.end(now)
        self.stretches.append(Stretch())
        self._begun = now

    def end(self, now: float) -> None:
        """The silence until now counts too: nobody knows how long it would have gone on."""
        if self.stretches:
            stretch = self.stretches[-1]
            stretch.seconds = now - self._begun
            stretch.gap_s_max = max(stretch.gap_s_max, now - self._last_receipt)


@dataclass(frozen=True, slots=True)
class SteadyOutcome:
    stretches: list[Stretch]
    #: Ever, the warm-up and the drain included.
    acknowledged: int


# ------------------------------------------------------------------------------------- the client's process


def produce(orders: Connection, servers: Servers, plan: BenchPlan, pattern: Pattern, in_flight: int) -> None:
    """Until it is ordered to stop. Each order before that is the beginning of a stretch."""
    try:
        orders.send(asyncio.run(_produce(orders, servers, plan, pattern, in_flight)))
    except Exception as error:
        orders.send(BenchError(str(error)))


async def _produce(
    orders: Connection, servers: Servers, plan: BenchPlan, pattern: Pattern, in_flight: int
) -> SteadyOutcome:
    timeline, stop = Timeline(time.perf_counter()), asyncio.Event()

    def on_order() -> None:
        """True: a new stretch begins. False, or nobody is there any more: it is over."""
        try:
            goes_on = orders.recv()
        except EOFError:
            goes_on = False
        if goes_on:
            timeline.begin(time.perf_counter())
        else:
            timeline.end(time.perf_counter())
            asyncio.get_running_loop().remove_reader(orders.fileno())
            stop.set()

    timeline.on_first = lambda: orders.send(HAS_BEGUN)
    producing = asyncio.create_task(own.produce(servers, plan, pattern, in_flight, timeline, stop))
    asyncio.get_running_loop().add_reader(orders.fileno(), on_order)
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([producing, stopping], return_when=asyncio.FIRST_COMPLETED)
    stretches = list(timeline.stretches)
    await drain(producing, OWN, in_flight)
    if not stop.is_set():
        raise BenchError(f"the load ended by itself: {timeline.last_error!r}")
    return SteadyOutcome(stretches, timeline.acknowledged)


# --------------------------------------------------------------------------------------------- who orders it


class SteadyLoad:
    """The process, as the one who runs the bench sees it."""

    def __init__(self, orders: Connection) -> None:
        self._orders = orders

    def wait_for_receipts(self) -> None:
        """Until the first one. To be called once, before anything else."""
        assert self._heard() == HAS_BEGUN

    def begin_stretch(self) -> None:
        self._order(True)

    def check(self) -> None:
        """It says nothing before it is told to stop, unless it failed."""
        if self._orders.poll():
            self._answer()

    def stop(self) -> SteadyOutcome:
        self._order(False)
        return self._answer()

    def _order(self, goes_on: bool) -> None:
        self.check()
        self._orders.send(goes_on)

    def _answer(self) -> SteadyOutcome:
        answer = self._heard()
        assert isinstance(answer, SteadyOutcome)
        return answer

    def _heard(self) -> object:
        if not self._orders.poll(ANSWER_S_MAX):
            raise BenchError(f"no word of the load for {ANSWER_S_MAX:.0f} s")
        try:
            found = self._orders.recv()
        except EOFError:
            raise BenchError("the load's process died") from None
        if isinstance(found, BenchError):
            raise found
        return found


@contextmanager
def running(servers: Servers, plan: BenchPlan, pattern: Pattern, in_flight: int) -> Iterator[SteadyLoad]:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=produce, args=(there, servers, plan, pattern, in_flight), daemon=True)
    process.start()
    # Only the process has it now: when that dies, reading here ends.
    there.close()
    try:
        yield SteadyLoad(here)
    finally:
        here.close()
        process.join(END_S_MAX)
        if process.is_alive():
            process.kill()
            process.join()
