"""The chart, and Helm, which renders it: that of .venv where there is one, else the machine's own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "ordercast"
#: What is rendered is the same in every place: no cluster is asked.
KUBERNETES = "1.34.0"


class NoHelm(Exception):  # noqa: N818 (it names what is missing)
    """There is no Helm here, and none to be had for this machine as a package."""


class Refused(Exception):  # noqa: N818 (it names what happened)
    """The chart does not take these values. The text is what whoever installs it reads."""


def helm() -> str:
    beside = Path(sys.executable).parent
    found = shutil.which("helm", path=os.pathsep.join([str(beside), os.environ.get("PATH", "")]))
    if found is None:
        raise NoHelm("there is no helm: install version 3, or `make .venv/.chart` on Linux with x86_64")
    return found


def run(*arguments: str) -> str:
    done = subprocess.run([helm(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(done.stderr)
    return done.stdout


def rendered(
    values: Path | None = None,
    settings: Sequence[str] = (),
    *,
    release: str = "oc",
    namespace: str = "orders",
    chart: Path = CHART,
) -> list[dict[str, Any]]:
    """The objects, in the order of Helm, with values from a file and from `--set`."""
    given = [*(["--values", str(values)] if values else []), *(f"--set={setting}" for setting in settings)]
    place = ["--namespace", namespace, "--kube-version", KUBERNETES]
    text = run("template", release, str(chart), *place, *given)
    return [each for each in yaml.safe_load_all(text) if each]
