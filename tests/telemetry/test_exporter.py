"""What a process sends to an OTLP receiver, and what becomes of it when that is away or has no room."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from ordercast.runtime.telemetry import otlp
from ordercast.runtime.telemetry.exporter import LOGS, RECORDS_PER_REQUEST, Exporter, SignalQueue
from ordercast.runtime.telemetry.meters import Meters
from ordercast.telemetry.schema import names

RESOURCE = Resource()


class Receiver(logs_service_pb2_grpc.LogsServiceServicer):
    """A real server that says what it is told to say."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.refuses: grpc.StatusCode | None = None

    async def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 (gRPC's name)
        if self.refuses is not None:
            await context.abort(self.refuses, "as it was told")
        records = request.resource_logs[0].scope_logs[0].log_records
        self.requests.append([record.event_name for record in records])
        return logs_service_pb2.ExportLogsServiceResponse()


@asynccontextmanager
async def receiving() -> AsyncIterator[tuple[Receiver, str]]:
    receiver, server = Receiver(), grpc.aio.server()
    logs_service_pb2_grpc.add_LogsServiceServicer_to_server(receiver, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield receiver, f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


def run(story: Callable[[Receiver, Exporter, Meters], Awaitable[None]], records_max: int = 10_000) -> None:
    async def main() -> None:
        async with receiving() as (receiver, address):
            meters = Meters()
            exporter = Exporter(grpc.aio.insecure_channel(address), meters, records_max)
            await story(receiver, exporter, meters)
            await exporter.stop()

    asyncio.run(main())


async def flush(exporter: Exporter) -> None:
    await exporter.flush(exporter.events, lambda records: otlp.logs(RESOURCE, records))


def add(exporter: Exporter, count: int, name: str = names.EVENT_STARTED) -> None:
    for _ in range(count):
        exporter.events.add(otlp.event(name, 1, {}))


def dropped(meters: Meters) -> float:
    return meters.counter(names.METRIC_TELEMETRY_DROPPED).values.get((LOGS,), 0)


def sent(meters: Meters) -> float:
    return meters.counter(names.METRIC_TELEMETRY_SENT).values.get((LOGS,), 0)


def test_records_leave_in_small_requests():
    async def story(receiver: Receiver, exporter: Exporter, meters: Meters) -> None:
        add(exporter, 2 * RECORDS_PER_REQUEST + 1)
        await flush(exporter)
        assert [len(request) for request in receiver.requests] == [RECORDS_PER_REQUEST] * 2 + [1]
        assert (sent(meters), dropped(meters)) == (2 * RECORDS_PER_REQUEST + 1, 0)

    run(story)


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_what_may_be_taken_later_waits_and_nobody_is_pressed(code: grpc.StatusCode):
    async def story(receiver: Receiver, exporter: Exporter, meters: Meters) -> None:
        add(exporter, 3)
        receiver.refuses = code
        await flush(exporter)
        assert exporter.is_pausing()
        assert (exporter.events.count, dropped(meters)) == (3, 0)
        receiver.refuses = None
        exporter._not_before = 0.0
        await flush(exporter)
        assert [len(request) for request in receiver.requests] == [3]
        assert not exporter.is_pausing()

    run(story)


def test_what_nobody_will_ever_take_is_dropped_and_counted():
    async def story(receiver: Receiver, exporter: Exporter, meters: Meters) -> None:
        add(exporter, 3)
        receiver.refuses = grpc.StatusCode.INVALID_ARGUMENT
        await flush(exporter)
        assert not exporter.events.waiting
        assert (sent(meters), dropped(meters)) == (0, 3)

    run(story)


def test_a_full_queue_loses_its_oldest_and_counts_them():
    async def story(receiver: Receiver, exporter: Exporter, meters: Meters) -> None:
        add(exporter, 4, names.EVENT_STARTED)
        add(exporter, 4, names.EVENT_STOPPING)
        await flush(exporter)
        assert receiver.requests == [[names.EVENT_STARTED] + [names.EVENT_STOPPING] * 4]
        assert dropped(meters) == 3

    run(story, records_max=5)


def test_what_was_dropped_while_it_was_on_its_way_is_not_taken_off_twice():
    queue = SignalQueue(LOGS, 3)
    for number in range(3):
        queue.add(number)
    first = queue.first()
    for number in range(3, 5):
        queue.add(number)
    queue.forget(first)
    assert ([record for record, _ in queue.waiting], queue.count, queue.dropped) == ([3, 4], 2, 2)


def test_a_record_counts_for_as_many_as_it_stands_for():
    queue = SignalQueue(LOGS, 100)
    queue.add("few", 30)
    queue.add("many", 90)
    assert ([record for record, _ in queue.waiting], queue.count, queue.dropped) == (["many"], 90, 30)


# -------------------------------------------------------------------------------------------------------- metrics


def test_counters_and_histograms_leave_as_what_they_rose_by():
    meters = Meters()
    counter, lag = meters.counter(names.METRIC_PUBLISH_MESSAGES), meters.histogram(names.METRIC_DELIVERY_LAG)
    deltas = otlp.Deltas(100)
    counter.add(3, "d")
    lag.observe(0.003, "d", "a")
    first = points(deltas, meters, 200)
    assert first[names.METRIC_PUBLISH_MESSAGES].as_double == 3
    assert first[names.METRIC_DELIVERY_LAG].max == pytest.approx(0.003)
    assert points(deltas, meters, 300) == {}
    counter.add(4, "d")
    lag.observe(0.001, "d", "a")
    second = points(deltas, meters, 400)
    assert second[names.METRIC_PUBLISH_MESSAGES].as_double == 4
    found = second[names.METRIC_DELIVERY_LAG]
    assert (found.count, found.sum, found.max) == (1, pytest.approx(0.001), pytest.approx(0.001))
    assert (found.start_time_unix_nano, found.time_unix_nano) == (300, 400)
    assert sum(found.bucket_counts) == 1
    assert len(found.bucket_counts) == len(found.explicit_bounds) + 1


def points(deltas: otlp.Deltas, meters: Meters, wall_ns: int) -> dict[str, Any]:
    request = deltas.request(RESOURCE, meters.by_name, wall_ns)
    found = {}
    for metric in request.resource_metrics[0].scope_metrics[0].metrics:
        data = metric.sum if metric.HasField("sum") else metric.histogram
        assert data.aggregation_temporality == otlp.DELTA
        (found[metric.name],) = data.data_points
    return found
