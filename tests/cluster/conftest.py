"""Clusters of real processes for tests: made on demand, or one that the tests of a module share.

Whatever a test does, its processes are killed at the end. When it fails, the report has the tail of their logs,
and what they say of their groups: something that hangs may hang in a view or a configuration.
"""

import itertools
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import text_format

from ordercast.local.cluster import LocalCluster, tail
from ordercast.local.setup import create_groups
from ordercast.v1.gateway_pb2 import DescribeGroupRequest, ListGroupsRequest
from tests.cluster.asking import assert_replicas_agree, raw
from tests.cluster.trial import gateway_of

LOG_LINES = 40
ANSWER_S_MAX = 5.0

#: For reports of failures: those that run now, and those that ended with the test that is reported.
_running: list[LocalCluster] = []
_ended: list[LocalCluster] = []

MakeCluster = Callable[..., LocalCluster]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for cluster in (*_running, *_ended):
            for member in cluster.members.values():
                report.sections.append((f"log of {member.name}", tail(member.log, LOG_LINES)))
        for cluster in _running:
            report.sections.append(("groups", "\n".join(described_groups(cluster))))
    _ended.clear()
    return report


def described_groups(cluster: LocalCluster) -> Iterator[str]:
    """As the first gateway that answers describes them."""
    for member in cluster.running("gateway"):
        if member.is_paused:
            continue
        with raw(gateway_of(cluster, member.name)) as stub, suppress(grpc.RpcError):
            for group in stub.ListGroups(ListGroupsRequest(), timeout=ANSWER_S_MAX).groups:
                found = stub.DescribeGroup(DescribeGroupRequest(name=group.name), timeout=ANSWER_S_MAX)
                yield text_format.MessageToString(found, as_one_line=True)
            return


@contextmanager
def kept(cluster: LocalCluster) -> Iterator[LocalCluster]:
    _running.append(cluster)
    try:
        with cluster:
            yield cluster
    finally:
        _running.remove(cluster)
        _ended.append(cluster)


@contextmanager
def keeper(directory: Path) -> Iterator[MakeCluster]:
    """A function that makes clusters, each of which is killed at the end."""
    numbers = itertools.count(1)
    with ExitStack() as stack:

        def make(*, is_started: bool = True, **options: Any) -> LocalCluster:
            """Options are those of `LocalCluster`. One that is not started can still be changed."""
            cluster = stack.enter_context(kept(LocalCluster(directory / f"cluster-{next(numbers)}", **options)))
            if is_started:
                cluster.start()
                cluster.wait_healthy()
            return cluster

        yield make


@pytest.fixture
def make_cluster(tmp_path: Path) -> Iterator[MakeCluster]:
    """`make_cluster(nodes=3, separate=False, options=[...], ...)`: started and healthy; killed after the test."""
    with keeper(tmp_path) as make:
        yield make


@pytest.fixture(scope="module")
def make_module_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeCluster]:
    """As `make_cluster`, for clusters that the tests of a module share."""
    with keeper(tmp_path_factory.mktemp("module")) as make:
        yield make


@pytest.fixture(scope="module")
def cluster(make_module_cluster: MakeCluster) -> Iterator[LocalCluster]:
    """Three nodes with all services, and groups a, b and c. After the last test, all replicas have to agree."""
    made = make_module_cluster()
    create_groups(made.gateways, ["a", "b", "c"])
    yield made
    assert_replicas_agree(made.gateways[0])


@pytest.fixture(scope="module")
def new_groups(cluster: LocalCluster) -> Callable[[int], list[str]]:
    """`new_groups(2)`: the names of so many groups that nobody has used before."""
    numbers = itertools.count(1)

    def make(count: int) -> list[str]:
        names = [f"group-{next(numbers)}" for _ in range(count)]
        create_groups(cluster.gateways, names)
        return names

    return make
