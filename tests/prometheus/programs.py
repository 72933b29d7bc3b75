"""Prometheus and promtool: those of the machine, or what `make test` took out of Debian's package."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.left_out import leave_out
from tests.tidy.rules import ROOT

CONFIG = ROOT / "deploy" / "prometheus"
TAKEN_OUT = ROOT / ".venv" / "prometheus" / "usr" / "bin"


def program(name: str) -> str:
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), str(TAKEN_OUT)]))
    if path is None:
        leave_out(f"tests with Prometheus: there is no {name} (`make .venv/.prometheus`)")
    return path


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, check=False)
