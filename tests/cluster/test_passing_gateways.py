"""Processes that run nothing but a gateway come and go, and membership does not keep them for ever."""

import shutil

import pytest

import ordercast
from ordercast.local.cluster import LocalCluster, Member, free_ports, wait_until
from ordercast.local.setup import create_groups
from ordercast.runtime.process.exits import EXIT_FENCED
from tests.cluster.conftest import MakeCluster
from tests.cluster.trial import PATIENCE_S, exit_code, gateway_of, start_again

#: Silence after which a process is over: longer than any test has patience, or not.
LONG = "--detection.end-after-s=3600"
SHORT = "--detection.end-after-s=8"


def with_gateway(make_cluster: MakeCluster, option: str) -> tuple[LocalCluster, Member]:
    """One node with all services, and a gateway that comes later, under a name of its own."""
    cluster = make_cluster(nodes=1, options=[option])
    create_groups(cluster.gateways, ["a"], replicas=1)
    peer_port, client_port = free_ports(2)
    gateway = Member("passing", ("gateway",), cluster.directory / "passing", peer_port, client_port)
    cluster.members[gateway.name] = gateway
    cluster.start([gateway.name])
    cluster.wait_healthy([gateway.name], timeout_s=PATIENCE_S)
    assert publish(gateway_of(cluster, gateway.name)) == {"a": 0}
    return cluster, gateway


def publish(gateway: str) -> dict[str, int]:
    with ordercast.connect_sync(gateway) as connection:
        return dict(connection.publish(b"message", to=["a"]).offsets)


def is_known(cluster: LocalCluster, name: str) -> bool:
    with ordercast.connect_sync(cluster.gateways[0]) as connection:
        return name in {node.name for node in connection.nodes()}


def test_a_gateway_that_stops_is_forgotten_and_comes_back_with_any_disk(make_cluster: MakeCluster) -> None:
    cluster, gateway = with_gateway(make_cluster, LONG)
    assert gateway.process is not None
    gateway.process.terminate()
    assert exit_code(cluster, gateway.name) == 0
    wait_until("it is forgotten", lambda: not is_known(cluster, gateway.name), PATIENCE_S)
    shutil.rmtree(gateway.data)
    start_again(cluster, gateway.name)
    assert publish(gateway_of(cluster, gateway.name)) == {"a": 1}


@pytest.mark.long
def test_a_gateway_that_slept_until_it_was_forgotten_ends_and_begins_anew(make_cluster: MakeCluster) -> None:
    cluster, gateway = with_gateway(make_cluster, SHORT)
    cluster.pause(gateway.name)
    wait_until("it is forgotten", lambda: not is_known(cluster, gateway.name), PATIENCE_S)
    cluster.resume(gateway.name)
    assert exit_code(cluster, gateway.name) == EXIT_FENCED
    start_again(cluster, gateway.name)
    assert publish(gateway_of(cluster, gateway.name)) == {"a": 1}
