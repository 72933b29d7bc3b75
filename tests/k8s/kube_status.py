"""`ordercast kube status`, as people run it outside."""

import subprocess
import sys

from tests.k8s.installation import Installation
from tests.k8s.kube import PATIENCE_S


def kube_status(where: Installation, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ordercast.cli.main", "kube", "status", "--namespace", where.namespace]
    return subprocess.run([*command, *options], capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def assert_healthy(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("healthy")
