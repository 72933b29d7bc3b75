"""Dockerfiles, as far as they can be read; tests on Kubernetes build and run them."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.tidy.rules import ROOT

FILES = sorted((ROOT / "deploy" / "images").glob("Dockerfile*"))
BASE = "python:3.11-slim-bookworm"


@pytest.fixture(params=FILES, ids=lambda path: path.name)
def file(request: pytest.FixtureRequest) -> Path:
    return request.param


def last_stage(file: Path) -> str:
    return re.split(r"^FROM ", file.read_text(), flags=re.MULTILINE)[-1]


def test_every_stage_begins_with_the_same_base_or_with_nothing(file: Path):
    bases = re.findall(r"^FROM (\S+)", file.read_text(), flags=re.MULTILINE)
    assert BASE in bases
    assert set(bases) <= {BASE, "scratch"}


def test_what_is_installed_has_its_hash(file: Path):
    installing = re.findall(r"pip install [^&\n]*", file.read_text())
    assert installing
    for command in installing:
        assert "--require-hashes" in command or "--no-index" in command, command
    assert "pip install" not in last_stage(file)


def test_the_process_is_nobody_and_gets_its_signals(file: Path):
    text = last_stage(file)
    assert "\nUSER 10001\n" in text
    assert "\nSTOPSIGNAL SIGTERM\n" in text
    assert text.rstrip().endswith('ENTRYPOINT ["tini", "--", "ordercast"]')
    assert "PYTHONDONTWRITEBYTECODE=1" in text


def test_the_label_has_the_version_of_the_project(file: Path):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nARG VERSION={version}\n" in last_stage(file)
