"""The telemetry service, as a process beside a local cluster."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from ordercast.local.cluster import HOST, ClusterError, free_ports, is_serving, tail
from ordercast.runtime.storage.private_files import make_private

#: A machine that does other things at the same time is slow.
START_S_MAX = 60.0
STOP_S_MAX = 20.0
LOOK_S = 0.1


class LocalTelemetry:
    """Always at the same port, and with the same directory."""

    def __init__(self, directory: Path, *, options: tuple[str, ...] = ()) -> None:
        self.directory = directory
        self.options = options
        port, metrics_port = free_ports(2)
        self.address = f"{HOST}:{port}"
        self.metrics_address = f"{HOST}:{metrics_port}"
        self.spool = directory / "spool"
        self.log = directory / "telemetry.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """Start it with these options beside its own, this time."""
        make_private(self.directory)
        command = [
            sys.executable,
            "-m",
            "ordercast.telemetry",
            f"--listen={self.address}",
            f"--metrics-listen={self.metrics_address}",
            f"--data={self.spool}",
            *self.options,
            *options,
        ]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ORDERCAST_")}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
            )
        self._wait_healthy()

    def _wait_healthy(self) -> None:
        deadline = time.monotonic() + START_S_MAX
        while not is_serving(self.address):
            if self.process is None or self.process.poll() is not None or time.monotonic() > deadline:
                raise ClusterError(f"the telemetry service does not start: {tail(self.log)}")
            time.sleep(LOOK_S)

    def stop(self) -> int:
        """The exit code."""
        if self.process is None:
            return 0
        self.process.terminate()
        try:
            return self.process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self) -> "LocalTelemetry":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
