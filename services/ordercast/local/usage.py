"""What processes use: processor time and memory, as the kernel counts them."""

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """User and system time so far; 0 for a process that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def rss_anon_mb(pid: int) -> float:
    """Memory of the process's own: pages of the store that are mapped do not count."""
    return _status(pid, "RssAnon") / 1024


def threads(pid: int) -> int:
    return _status(pid, "Threads")


def _status(pid: int, name: str) -> int:
    """A number that the kernel tells of a process; 0 for a process that is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{name}:")), 0)
