"""Between two moments: what was acknowledged, how long it took, and what the processes used for it."""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ordercast.local.usage import cpu_s, rss_anon_mb


class Meter:
    """Producers tell it of every answer; it counts those that come while it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self.count = 0
        self.latencies: list[float] = []
        self.failed = 0
        self.last_error: BaseException | None = None
        #: Ever, whether it was on or not.
        self.acknowledged = 0

    def answered(self, begun: float) -> None:
        self.acknowledged += 1
        if self.is_on:
            self.count += 1
            self.latencies.append(time.perf_counter() - begun)

    def refused(self, error: BaseException) -> None:
        self.last_error = error
        if self.is_on:
            self.failed += 1

    def settle(self, begun: float, room: asyncio.Semaphore, soon: "asyncio.Future[Any]") -> None:
        """For clients that hand out futures: there is room for another message, whatever came of this one."""
        room.release()
        error = soon.exception()
        if error is None:
            self.answered(begun)
        else:
            self.refused(error)

    def percentile_ms(self, part: float) -> float:
        return percentile_ms(self.latencies, part)


def percentile_ms(seconds: Sequence[float], part: float) -> float:
    """0 of none."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000 if ordered else 0.0


@dataclass(frozen=True, slots=True)
class Used:
    elapsed_s: float
    #: Processor time of all servers, and of this process.
    server_s: float
    client_s: float
    #: Of the server that has most.
    rss_anon_mb_max: float


class Stopwatch:
    """What servers and this process use from when it is made until it is stopped."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._server_s = sum(map(cpu_s, pids))
        self._client_s = cpu_s(os.getpid())
        self._begun = time.perf_counter()

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._begun

    def stop(self) -> Used:
        return Used(
            self.elapsed_s,
            sum(map(cpu_s, self._pids)) - self._server_s,
            cpu_s(os.getpid()) - self._client_s,
            max(map(rss_anon_mb, self._pids)),
        )
