"""The telemetry service as a process of its own, for tests: started, asked, stopped and killed."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc

from ordercast.analytics.spool_client import SpoolClient
from ordercast.local.cluster import free_ports
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


class TelemetryProcess:
    """Always at the same port, and with the same directory."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        port, metrics_port = free_ports(2)
        self.address = f"127.0.0.1:{port}"
        self.metrics_address = f"127.0.0.1:{metrics_port}"
        self._options = options
        self._log = directory.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        command = [sys.executable, "-m", "ordercast.telemetry", "--data", str(self.directory)]
        command += ["--listen", self.address, "--metrics-listen", self.metrics_address]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*command, *self._options, *options], stderr=log)
        with grpc.insecure_channel(self.address) as channel:
            grpc.channel_ready_future(channel).result(WAIT_S_MAX)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(WAIT_S_MAX)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def client(self) -> SpoolClient:
        return SpoolClient(self.address, patience_s=WAIT_S_MAX)

    def wait_until_readable(self, end: int) -> None:
        with self.client() as client:
            wait_for(lambda: client.describe().end >= end)


@contextlib.contextmanager
def running(directory: Path, *options: str) -> Iterator[TelemetryProcess]:
    process = TelemetryProcess(directory, *options)
    process.start()
    try:
        yield process
    finally:
        process.kill()


def export(channel: grpc.Channel, signal_name: str, payload: bytes, **options: object) -> bytes:
    return channel.unary_unary(METHODS[signal_name])(payload, timeout=WAIT_S_MAX, **options)
