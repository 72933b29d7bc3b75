"""Sends what a process has to say to the telemetry service, and never waits for it where it matters.

Everything waits in a queue of a fixed length and leaves from the event loop, a small request at a time, so that
machines have their turns in between. When the service does not answer, or says that it is too much, the same
records are tried again later; what the queue cannot hold meanwhile is dropped, the oldest first, and counted.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any

import grpc
import structlog
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from ordercast.runtime.telemetry.meters import Meters
from ordercast.telemetry.schema import names

log = structlog.get_logger("telemetry")

TRACES, METRICS, LOGS = "traces", "metrics", "logs"

#: Of one request, so that making one takes a few milliseconds at most.
RECORDS_PER_REQUEST = 200
CALL_S_MAX = 5.0
RETRY_S_MIN, RETRY_S_MAX = 0.5, 10.0
#: The same request may be taken later.
COME_AGAIN = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.ABORTED,
)


class SentBatch(Enum):
    TAKEN = auto()
    #: It may be taken if it comes again.
    LATER = auto()
    #: There is something wrong with it.
    NEVER = auto()


class SignalQueue:
    """The records of one signal that wait to be sent. Each record counts for as many as it stands for."""

    def __init__(self, signal: str, records_max: int) -> None:
        self.signal = signal
        self.records_max = records_max
        self.waiting: deque[tuple[Any, int]] = deque()
        self.count = 0
        self.dropped = 0

    def add(self, record: Any, count: int = 1) -> None:
        self.waiting.append((record, count))
        self.count += count
        while self.count > self.records_max and len(self.waiting) > 1:
            _, gone = self.waiting.popleft()
            self.count -= gone
            self.dropped += gone

    def first(self) -> list[tuple[Any, int]]:
        """Those that make up the next request. They stay here until somebody has taken them."""
        return [self.waiting[index] for index in range(min(RECORDS_PER_REQUEST, len(self.waiting)))]

    def forget(self, taken: Sequence[tuple[Any, int]]) -> None:
        """Some may have been dropped meanwhile."""
        for one in taken:
            if self.waiting and self.waiting[0] is one:
                self.waiting.popleft()
                self.count -= one[1]


class Exporter:
    def __init__(self, channel: grpc.aio.Channel, meters: Meters, records_max: int) -> None:
        self._channel = channel
        self._calls = {
            TRACES: TraceServiceStub(channel).Export,  # type: ignore[no-untyped-call]
            METRICS: MetricsServiceStub(channel).Export,  # type: ignore[no-untyped-call]
            LOGS: LogsServiceStub(channel).Export,  # type: ignore[no-untyped-call]
        }
        self.spans = SignalQueue(TRACES, records_max)
        self.events = SignalQueue(LOGS, records_max)
        self._sent = meters.counter(names.METRIC_TELEMETRY_SENT)
        self._dropped = meters.counter(names.METRIC_TELEMETRY_DROPPED)
        self._is_silent = False
        self._retry_s = RETRY_S_MIN
        self._not_before = 0.0

    async def flush(self, queue: SignalQueue, make: Callable[[Sequence[Any]], Any]) -> None:
        """As much as is taken."""
        while queue.waiting and not self.is_pausing():
            first = queue.first()
            count = sum(stands_for for _, stands_for in first)
            sent = await self.send(queue.signal, make([record for record, _ in first]), count)
            if sent == SentBatch.NEVER:
                queue.dropped += count
            if sent != SentBatch.LATER:
                queue.forget(first)
        if queue.dropped:
            self._dropped.add(queue.dropped, queue.signal)
            queue.dropped = 0

    def is_pausing(self) -> bool:
        return asyncio.get_running_loop().time() < self._not_before

    async def send(self, signal: str, request: Any, count: int) -> SentBatch:
        try:
            await self._calls[signal](request, timeout=CALL_S_MAX)
        except grpc.aio.AioRpcError as error:
            return self._failed(error)
        self._sent.add(count, signal)
        if self._is_silent:
            log.info("the telemetry service answers again")
        self._is_silent, self._retry_s = False, RETRY_S_MIN
        return SentBatch.TAKEN

    def _failed(self, error: grpc.aio.AioRpcError) -> SentBatch:
        if not self._is_silent:
            self._is_silent = True
            log.warning("the telemetry service took nothing", code=error.code().name, why=error.details())
        if error.code() not in COME_AGAIN:
            return SentBatch.NEVER
        self._not_before = asyncio.get_running_loop().time() + self._retry_s
        self._retry_s = min(2 * self._retry_s, RETRY_S_MAX)
        return SentBatch.LATER

    async def stop(self) -> None:
        await self._channel.close()
