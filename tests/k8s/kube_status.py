"""`ordercast kube status`, as people run it outside."""

import subprocess
import sys

from ordercast.local.cluster import ClusterError
from tests.k8s.installation import Installation
from tests.k8s.kube import PATIENCE_S, wait_until


def kube_status(where: Installation, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ordercast.cli.main", "kube", "status", "--namespace", where.namespace]
    return subprocess.run([*command, *options], capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def wait_for_status(where: Installation, *options: str) -> subprocess.CompletedProcess[str]:
    """Of an installation that is well: on a busy machine a process may be suspected for a moment."""
    seen: list[subprocess.CompletedProcess[str]] = []

    def is_well() -> bool:
        seen.append(kube_status(where, *options))
        return seen[-1].returncode == 0

    try:
        wait_until("all is well", is_well)
    except ClusterError as error:
        raise ClusterError(f"{error}: {seen[-1].stdout}{seen[-1].stderr}") from error
    assert seen[-1].stdout.rstrip().endswith("healthy")
    return seen[-1]
