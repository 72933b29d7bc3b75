"""A real Prometheus with our files, in a folder of its own, that scrapes every second."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ordercast.local.cluster import HOST, free_ports, tail, wait_until
from tests.prometheus.programs import CONFIG, program

START_S_MAX = 60.0
ASK_S_MAX = 20.0


class Prometheus:
    def __init__(self, port: int, log: Path) -> None:
        self.address = f"http://{HOST}:{port}"
        self.log = log

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer; ValueError with Prometheus' own words if it refuses."""
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=ASK_S_MAX) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(f"{path} {parameters}: {error.read().decode(errors='replace')}") from error

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that it has now."""
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/-/ready", timeout=ASK_S_MAX) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def prometheus(folder: Path, targets: Mapping[str, Mapping[str, str]]) -> Iterator[Prometheus]:
    """With the targets of each job (nodes, telemetry, analytics), by name."""
    config = copied(folder)
    for job in ("nodes", "telemetry", "analytics"):
        found = [
            {"targets": [where], "labels": {"instance": name}} for name, where in targets.get(job, {}).items()
        ]
        # JSON is YAML.
        (config / "targets" / f"{job}.yml").write_text(json.dumps(found))
    with running(folder, config / "local.yml") as server:
        yield server


def copied(folder: Path) -> Path:
    """Our files, which may be changed there."""
    config = folder / "config"
    shutil.copytree(CONFIG, config)
    return config


def without_kubernetes(config: Path, pods: list[dict[str, Any]]) -> Path:
    """For Prometheus as Debian builds it, which cannot ask Kubernetes: a file has what that would have said."""
    (config / "pods.json").write_text(json.dumps(pods))
    file = config / "kubernetes.yml"
    asked, told = "kubernetes_sd_configs: &pods [{role: pod}]", "file_sd_configs: &pods [{files: [pods.json]}]"
    text = file.read_text().replace(asked, told).replace("kubernetes_sd_configs:", "file_sd_configs:")
    assert told in text
    file.write_text(text)
    return file


@contextmanager
def running(folder: Path, file: Path) -> Iterator[Prometheus]:
    executable = program("prometheus")
    file.write_text(re.sub(r"_interval: 10s", "_interval: 1s", file.read_text()))
    (port,) = free_ports(1)
    command = [
        executable,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={HOST}:{port}",
        "--enable-feature=exemplar-storage",
    ]
    server = Prometheus(port, folder / "prometheus.log")
    with (
        server.log.open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, cwd=file.parent) as process,
    ):
        try:
            wait_until(f"Prometheus is ready: {tail(server.log)}", server.is_ready, START_S_MAX)
            yield server
        finally:
            process.kill()
