"""The cluster that the tests of this folder share, how commands find it, and a group for each test."""

import re
from collections.abc import Iterator

import pytest

from ordercast.cli.connection import GATEWAY_VARIABLE
from ordercast.local.cluster import LocalCluster
from tests.cli.cluster_commands.commands import document, wait_until_known


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as started:
        started.start()
        started.wait_healthy()
        yield started
        started.stop()


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What commands say is not broken into lines."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def gateway(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands find the cluster by the environment, as they would in a shell."""
    monkeypatch.setenv(GATEWAY_VARIABLE, ",".join(cluster.gateways))


@pytest.fixture
def group(gateway: None, request: pytest.FixtureRequest) -> str:
    """A group of the test's own."""
    name = re.sub("[^a-z0-9_]+", "_", request.node.name.removeprefix("test_"))[:60].strip("_")
    document("group", "create", name)
    wait_until_known(name)
    return name
