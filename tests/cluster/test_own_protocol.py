"""examples/protocol, which is not built in: from `pip install` to a running cluster and a caught mutant."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.cli.connection import GATEWAY_VARIABLE
from ordercast.local.cluster import LocalCluster
from tests.cluster.asking import payloads
from tests.cluster.conftest import MakeCluster

PACKAGE = Path(__file__).resolve().parents[2] / "examples" / "protocol"
GROUPS = ["red", "green", "blue"]
COUNT = 30


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """With pip, into a folder that every process of these tests has on its path."""
    source, site = tmp_path_factory.mktemp("source") / "protocol", tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE, source)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True)
    with pytest.MonkeyPatch.context() as patch:
        paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        patch.setenv("PYTHONPATH", os.pathsep.join([*paths, str(site)]))
        yield


@pytest.fixture(scope="module")
def cluster(installed: None, make_module_cluster: MakeCluster) -> LocalCluster:
    made = make_module_cluster()
    creating = ("domain", "create", "mine", "--protocol", "tandem")
    # Until all nodes have said what they understand, some do not count as having what is installed.
    while re.search("no protocol|not have the protocol|not all nodes run", run(made, *creating).stderr):
        pass
    for group in GROUPS:
        command(made, "group", "create", group, "--domain", "mine")
    return made


def run(cluster: LocalCluster | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    """As users run it: this process has not loaded the package."""
    gateway = {GATEWAY_VARIABLE: cluster.gateways[0]} if cluster is not None else {}
    program = [sys.executable, "-c", "from ordercast.cli.main import app; app()", *arguments, "--json"]
    return subprocess.run(program, capture_output=True, text=True, timeout=120, env=os.environ | gateway)


def command(cluster: LocalCluster | None, *arguments: str) -> Any:
    done = run(cluster, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


async def publish(cluster: LocalCluster, name: str) -> None:
    sets = [["red", "green"], ["green", "blue"], ["blue", "red"], GROUPS, ["red"]]
    async with ordercast.connect(*cluster.gateways) as oc:
        for number in range(COUNT):
            await oc.publish(f"{name} {number}".encode(), to=sets[number % len(sets)])


async def publish_all(cluster: LocalCluster) -> None:
    await asyncio.gather(publish(cluster, "one"), publish(cluster, "two"))


def test_messages_to_several_groups_have_one_order_on_a_cluster(cluster: LocalCluster) -> None:
    asyncio.run(publish_all(cluster))
    logs = {group: payloads(cluster.gateways[-1], group) for group in GROUPS}
    assert {group: len(log) for group, log in logs.items()} == {"red": 48, "green": 36, "blue": 36}
    for one in GROUPS:
        for other in GROUPS:
            common = [payload for payload in logs[one] if payload in logs[other]]
            assert common == [payload for payload in logs[other] if payload in logs[one]]
    assert command(cluster, "verify")["ok"]


def test_a_mutant_of_an_installed_protocol_is_caught() -> None:
    (caught,) = command(None, "sim", "tandem", "--mutant", "skips_a_gap")
    assert caught["caught"]
