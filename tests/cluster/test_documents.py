"""What the documents show, run as it stands there, and twice in a row on one cluster: people try things again."""

import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ordercast.cli.connection import GATEWAY_VARIABLE
from ordercast.cli.main import app
from ordercast.core.level import LEVEL
from ordercast.local.cluster import LocalCluster
from tests.tidy.rules import ROOT

DOCUMENTS = ("README.md", "docs/tutorial.md", "docs/sdk.md")
#: Where they find gateways, in the order of the cluster's.
ADDRESSES = ("127.0.0.1:7400", "127.0.0.1:7401", "127.0.0.1:7402")
#: These bring their own cluster, take minutes, or stop with it; they have tests of their own.
ALONE = ("up", "chaos", "bench", "sim", "papers", "demo")
#: How a signature is shown, and calls that need more nodes than there are.
NOT_FOR_RUNNING = ("*addresses", "change_replicas")

#: What pieces of code take for granted. The one that would read for ever stops at the first message.
AROUND = """
import asyncio, contextlib, ordercast
from ordercast import connect

class Enough(Exception):
    pass

def apply(payload):
    raise Enough

async def main():
    async with connect("127.0.0.1:7400") as oc:
        token = oc.session_token
        with contextlib.suppress(Enough):
{piece}

asyncio.run(main())
"""


def blocks(document: str) -> Iterator[tuple[str, str]]:
    """(language, text) of each block of code."""
    yield from re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)


def programs(document: str) -> Iterator[str]:
    for language, text in blocks(document):
        if language == "python" and not any(word in text for word in NOT_FOR_RUNNING):
            is_whole = "asyncio.run(" in text or "connect_sync(" in text
            yield text if is_whole else AROUND.format(piece=textwrap.indent(text, " " * 12))


def commands(document: str) -> Iterator[str]:
    """Lines that are typed in: with a dollar where their output is shown too."""
    for language, text in blocks(document):
        is_typed = r"^\$ (.*)$" if "$ " in text else r"^(ordercast .*)$"
        for line in re.findall(is_typed, text, re.MULTILINE) if not language else ():
            command = re.sub(r"\s+#.*", "", line)
            found = re.search(r"\bordercast (\w+)", command)
            if found is not None and found[1] not in ALONE:
                yield command


@pytest.fixture
def shell(cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ordercast` is found, and finds the cluster."""
    script = tmp_path / "ordercast"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m ordercast.cli.main "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv(GATEWAY_VARIABLE, ",".join(cluster.gateways))
    monkeypatch.chdir(ROOT)


def run_command(command: str) -> None:
    words = shlex.split(command)
    if words[0] == "ordercast" and "|" not in words:
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{command}\n{result.output}"
    else:
        # Nobody looks on: lines need not come slowly.
        script = command.replace("sleep 0.1", "true")
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def run_program(source: str, gateways: list[str]) -> None:
    for address, gateway in zip(ADDRESSES, gateways, strict=True):
        source = source.replace(address, gateway)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, "<document>", "exec"), names)


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_a_document_shows_runs_twice(cluster: LocalCluster, document: str) -> None:
    for _ in range(2):
        for command in commands(document):
            run_command(command)
        for program in programs(document):
            run_program(program, cluster.gateways)


def test_there_is_something_to_run_in_each() -> None:
    assert [len(list(commands(document))) for document in DOCUMENTS[:2]] == [5, 11]
    assert [len(list(programs(document))) for document in DOCUMENTS] == [1, 1, 13]


def test_the_level_in_the_tutorial_is_that_of_this_version() -> None:
    assert f"level {LEVEL}, as" in (ROOT / "docs/tutorial.md").read_text()
