"""How much memory the processes below this one have had at most, as the system tells it."""

import os
from pathlib import Path


def peak_bytes() -> tuple[int, int]:
    """Of Java, and of all Python processes of Spark together; 0 where the system does not tell."""
    java = python = 0
    for pid, name in _below(os.getpid()):
        peak = _peak_bytes(pid)
        if name == "java":
            java = max(java, peak)
        else:
            python += peak
    return java, python


def _below(pid: int) -> list[tuple[int, str]]:
    """All descendants, with their names."""
    children: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if entry.name.isdecimal():
            try:
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            children.setdefault(int(rest.split()[1]), []).append((int(entry.name), name))
    found, pending = [], [pid]
    while pending:
        for child in children.get(pending.pop(), ()):
            found.append(child)
            pending.append(child[0])
    return found


def _peak_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
