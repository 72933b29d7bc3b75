"""The telemetry service as a process of its own, and what tests ask and send."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc

from ordercast.analytics.spool_client import SpoolClient
from ordercast.local.telemetry import LocalTelemetry
from ordercast.telemetry.flatten.requests import LOGS, METRICS, TRACES

#: A machine that runs other tests at the same time is slow.
WAIT_S_MAX = 60.0
METHODS = {
    TRACES: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    METRICS: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    LOGS: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}


def wait_for(condition: Callable[[], object]) -> None:
    until = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < until, "it does not come to pass"
        time.sleep(0.02)


class TelemetryProcess(LocalTelemetry):
    def client(self) -> SpoolClient:
        return SpoolClient(self.address, patience_s=WAIT_S_MAX)

    def wait_until_readable(self, end: int) -> None:
        with self.client() as client:
            wait_for(lambda: client.describe().end >= end)


@contextlib.contextmanager
def running(directory: Path, *options: str) -> Iterator[TelemetryProcess]:
    process = TelemetryProcess(directory, options=options)
    process.start()
    try:
        yield process
    finally:
        process.kill()


def export(channel: grpc.Channel, signal_name: str, payload: bytes, **options: object) -> bytes:
    return channel.unary_unary(METHODS[signal_name])(payload, timeout=WAIT_S_MAX, **options)
