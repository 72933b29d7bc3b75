"""What `make` says while it sets up an environment: pip is quiet for minutes, and `make` is not. pip is played."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tidy.rules import ROOT

#: Fetches as many as a lock has, and fails if the lock is told to be a bad one.
PIP = """#!/bin/sh
for last; do :; done
case "$*" in
*-e\\ .*) exit 0 ;;
esac
sed -n 's/^\\([A-Za-z0-9][^=]*\\)==.*/Collecting \\1/p' "$last"
echo "Installing collected packages: all"
[ ! -e bad ]
"""
ENVIRONMENTS = {"ready": "dev", "bench": "bench", "analytics": "analytics", "chart": "chart", "k8s": "k8s"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what `make` looks at, with a pip that installs nothing."""
    shutil.copyfile(ROOT / "Makefile", tmp_path / "Makefile")
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    (tmp_path / "pyproject.toml").touch()
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PIP)
    python.chmod(0o755)
    return tmp_path


def make(project: Path, target: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", target], cwd=project, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_each_step_says_what_is_installed_how_long_it_takes_and_how_far_it_is(project: Path, environment: str):
    lock = ENVIRONMENTS[environment]
    count = len(re.findall(r"(?m)^[A-Za-z0-9].*==", (project / "requirements" / f"{lock}.lock").read_text()))
    done = make(project, f".venv/.{environment}")
    assert (done.returncode, done.stderr) == (0, "")
    said = f"setting up .venv: installing {count} packages of requirements/{lock}.lock, "
    _, lines = done.stdout.split(said)
    assert re.match(r".*(minute|seconds)", lines)
    assert f"  10 of {count}\n" in lines
    assert "Collecting" not in done.stdout
    assert (project / ".venv" / f".{environment}").exists()


def test_what_pip_fails_at_is_not_taken_for_done(project: Path):
    (project / "bad").touch()
    assert make(project, ".venv/.ready").returncode != 0
    assert not (project / ".venv" / ".ready").exists()
