"""Kubernetes' API server says nothing for a minute, and ordering goes on."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import ordercast
from ordercast.client.errors import OrdercastError
from tests.cluster.trial import Progress
from tests.k8s.installation import Installation
from tests.k8s.kube import KubectlFailed, get, kubectl, wait_until
from tests.k8s.under_load import run_under_load
from tests.left_out import leave_out

#: Names a file with the API server's process id, where it runs on this machine, and may be stopped.
VARIABLE = "ORDERCAST_API_SERVER_PID_FILE"
SILENT_S = 60.0
#: How often kubelets say that they live, and by when who judges them has surely looked.
REPORTED = timedelta(seconds=10)
FOUND_BY_DNS = "pods are found by DNS alone"
FOUND_THROUGH_KUBERNETES = "pods are found through Kubernetes"


@contextlib.contextmanager
def silent_api_server() -> Iterator[None]:
    """Its connections stay open, and nothing comes: the worst way to be away."""
    if VARIABLE not in os.environ:
        leave_out(f"an API server that is away: {VARIABLE} does not say which process that is")
    process = int(Path(os.environ[VARIABLE]).read_text())
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def is_answering() -> bool:
    try:
        kubectl("get", "--raw", "/readyz", timeout_s=10)
    except (KubectlFailed, subprocess.TimeoutExpired):
        return False
    return True


def has_calmed_down(since: datetime) -> bool:
    """Kubernetes took the machines for dead, as they could not report: until they have done so for a while, it may
    take their pods out of Services, and put them back.
    """
    leases = get("leases", "--namespace", "kube-node-lease")["items"]
    renewed = [datetime.fromisoformat(lease["spec"]["renewTime"]) for lease in leases]
    conditions = [one for node in get("nodes")["items"] for one in node["status"]["conditions"]]
    is_ready = all(one["status"] == "True" for one in conditions if one["type"] == "Ready")
    return is_ready and min(renewed) > since + REPORTED


def lets_clients_in(where: Installation) -> bool:
    try:
        with ordercast.connect_sync(*where.gateways) as connection:
            return bool(connection.nodes())
    except OrdercastError:
        return False


def is_asking(where: Installation, pod: str) -> bool:
    said = where.logs(pod)
    return said.rfind(FOUND_THROUGH_KUBERNETES) > said.rfind(FOUND_BY_DNS)


def test_ordering_goes_on_while_the_api_server_is_silent(separate: Installation):
    def during(progress: Progress) -> None:
        with silent_api_server():
            end = time.monotonic() + SILENT_S
            while time.monotonic() < end:
                progress.wait_for_receipts()
        resumed = datetime.now(UTC)
        wait_until("the API server answers again", is_answering)
        wait_until("its machines have reported", lambda: has_calmed_down(resumed))
        wait_until("all pods are ready, and are known to be", separate.is_settled)
        wait_until("new clients get in", lambda: lets_clients_in(separate))

    before = {(pod.uid, pod.restarts) for pod in separate.pods()}
    run_under_load(separate, "api-server", during)
    assert {(pod.uid, pod.restarts) for pod in separate.pods()} == before
    for pod in separate.pods("gateway"):
        assert FOUND_BY_DNS in separate.logs(pod.name)
        wait_until(f"{pod.name} asks Kubernetes again", lambda pod=pod: is_asking(separate, pod.name))
