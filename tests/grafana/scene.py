"""Everything at once, for real: a cluster under load, the telemetry service, the Spark job, and Prometheus."""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import ordercast
from ordercast.errors import OrdercastError
from ordercast.local.cluster import HOST, LocalCluster, free_ports, tail
from ordercast.local.setup import create_domain, create_groups
from ordercast.local.telemetry import LocalTelemetry
from tests.left_out import note
from tests.prometheus.server import Prometheus, prometheus

START_S_MAX = 90.0
STOP_S_MAX = 30.0
#: Of whom metrics are there in any case.
OF_NODES = {"gateway", "sequencer", "membership", "all"}
TELEMETRY, ANALYTICS = "telemetry", "analytics"
SETS = (["a"], ["a", "b"], ["causal-1"], ["total-1"])


@dataclass(slots=True)
class Scene:
    cluster: LocalCluster
    prometheus: Prometheus
    #: Who emits metrics here, in the words of the schema.
    emitters: set[str]
    #: Beside the nodes, by their logs.
    processes: dict[Path, subprocess.Popen[bytes]]

    def last_words(self) -> str:
        return "\n".join(f"--- {path.name}\n{tail(path, 15)}" for path in (*self.processes, self.prometheus.log))

    def all_run(self) -> bool:
        return all(process.poll() is None for process in self.processes.values())


def has_java() -> bool:
    from ordercast.analytics import errors, needs

    try:
        needs.check()
    except errors.AnalyticsError as error:
        note(f"panels of the Spark job: {error}")
        return False
    return True


@contextmanager
def process(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """`ordercast ARGUMENTS`, until the end."""
    command = [sys.executable, "-m", "ordercast.cli.main", *arguments]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as running:
        try:
            yield running
        finally:
            running.send_signal(signal.SIGTERM)
            try:
                running.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                running.kill()


@contextmanager
def scene(folder: Path, *, with_job: bool) -> Iterator[Scene]:
    with ExitStack() as stack:
        telemetry = stack.enter_context(LocalTelemetry(folder / TELEMETRY))
        assert telemetry.process is not None
        *ports, job_port = free_ports(4)
        nodes = {f"node-{number}": f"{HOST}:{port}" for number, port in enumerate(ports, start=1)}
        targets = {"nodes": nodes, TELEMETRY: {TELEMETRY: telemetry.metrics_address}}
        emitters = {*OF_NODES, TELEMETRY}
        processes = {telemetry.log: telemetry.process}
        cluster = stack.enter_context(LocalCluster(folder / "cluster", options=options(telemetry.address)))
        for name, address in nodes.items():
            cluster.members[name].extra.append(f"--telemetry.metrics-listen={address}")
        cluster.start()
        cluster.wait_healthy(timeout_s=START_S_MAX)
        if with_job and has_java():
            targets[ANALYTICS] = {ANALYTICS: f"{HOST}:{job_port}"}
            where = ("--address", telemetry.address, "--output", str(folder / "tables"), "--trigger", "2")
            listen = ("--metrics-listen", f"{HOST}:{job_port}")
            log = folder / "analytics.log"
            processes[log] = stack.enter_context(process(log, ANALYTICS, "run", *where, *listen))
            emitters.add(ANALYTICS)
        stack.enter_context(load(cluster))
        server = stack.enter_context(prometheus(folder, targets))
        yield Scene(cluster, server, emitters, processes)


def options(endpoint: str) -> list[str]:
    """So many traces are kept that histograms have exemplars."""
    return [f"--telemetry.endpoint={endpoint}", "--telemetry.sampling=0.5", "--telemetry.metrics-s=2"]


@contextmanager
def load(cluster: LocalCluster) -> Iterator[None]:
    """Messages to groups of both protocols, a subscriber, and requests that are refused, through two gateways."""
    create_groups(cluster.gateways, ["a", "b"])
    for ordering in ("causal", "total"):
        create_domain(cluster.gateways, ordering, "isis", {"ordering": ordering})
        create_groups(cluster.gateways, [f"{ordering}-1"], domain=ordering)
    is_over, is_read = threading.Event(), threading.Event()
    gateways = cluster.gateways[:2]

    def publish(groups: list[str]) -> None:
        with ordercast.connect_sync(*gateways) as connection:
            while not is_over.is_set():
                with contextlib.suppress(OrdercastError):
                    connection.publish_many([b"x" * 100] * 5, to=groups, timeout=10)
                time.sleep(0.2)

    def ask_for_nothing() -> None:
        with ordercast.connect_sync(*gateways) as connection:
            while not is_over.wait(0.5):
                with contextlib.suppress(OrdercastError):
                    connection.publish(b"x", to=["nobody"], timeout=2)

    def read() -> None:
        with ordercast.connect_sync(*gateways) as connection, connection.subscribe("a", "earliest") as deliveries:
            for _ in deliveries:
                if is_read.is_set():
                    break

    reader = threading.Thread(target=read, daemon=True)
    threads = [threading.Thread(target=publish, args=(groups,), daemon=True) for groups in SETS]
    threads.append(threading.Thread(target=ask_for_nothing, daemon=True))
    for thread in (reader, *threads):
        thread.start()
    try:
        yield
    finally:
        # While there is something to read.
        is_read.set()
        reader.join(STOP_S_MAX)
        is_over.set()
        for thread in threads:
            thread.join(STOP_S_MAX)
