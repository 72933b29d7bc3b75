"""Kubernetes' own client follows EndpointSlices, and whatever its API server does, processes are dialled."""

import asyncio
import importlib.util
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ordercast.local.cluster import free_ports
from ordercast.runtime.kubernetes import endpoint_slices
from ordercast.runtime.kubernetes.endpoint_slices import DiscoveryError, EndpointSlices, in_cluster
from ordercast.runtime.kubernetes.pod_addresses import PodAddresses
from ordercast.runtime.process.settings import KubernetesSettings
from ordercast.runtime.transport.tls import Credentials
from tests.unit.certificates import Authority
from tests.unit.kubernetes_api import HOST, ApiServer, endpoint, slice_of
from tests.unit.mesh_process import NO_TLS, Process, dial_quickly_and_do_not_ping

SELECTOR = "app.kubernetes.io/name=ordercast,app.kubernetes.io/instance=oc"
SETTINGS = KubernetesSettings(selector=SELECTOR, namespace="orders")
GIVEN = "n1.peers.invalid:7410"
FOUND = "10.1.0.1:7410"
PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_slices, "PAUSE_S", 0.02)
    monkeypatch.setattr(endpoint_slices, "PAUSE_S_MAX", 0.1)


@pytest.fixture
def api() -> Iterator[ApiServer]:
    # Not one that the system chooses: somebody else could be given that while it is away.
    server = ApiServer(*free_ports(1))
    server.put(slice_of("peers-1", endpoint("n1", "10.1.0.1")))
    yield server
    server.die()


def at(port: int) -> Callable[[], object]:
    def configure() -> object:
        from kubernetes.client import Configuration

        return Configuration(host=f"http://{HOST}:{port}")

    return configure


@contextmanager
def following(port: int, settings: KubernetesSettings = SETTINGS) -> Iterator[PodAddresses]:
    pods = PodAddresses("IPv4")
    thread = EndpointSlices(settings, pods, at(port))
    thread.start()
    try:
        yield pods
    finally:
        ended(thread)


def ended(thread: EndpointSlices) -> None:
    """It may be about to begin a watch, which is not interrupted then."""
    until(lambda: (thread.stop(), thread._thread.join(0.05), not thread._thread.is_alive())[2])


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def located(pods: PodAddresses, address: str, process: str = "n1") -> None:
    until(lambda: pods.locate(f"{process}.peers.invalid:7410", process) == address)


def watching(api: ApiServer, count: int = 1) -> None:
    until(lambda: len(api.watches) >= count)


# --- Following


def test_what_is_listed_is_found_and_what_changes_is_followed(api: ApiServer):
    with following(api.port) as pods:
        located(pods, FOUND)
        watching(api)
        api.put(slice_of("peers-2", endpoint("n2", "10.1.0.2")))  # ADDED
        located(pods, "10.1.0.2:7410", "n2")
        api.put(slice_of("peers-1", endpoint("n1", "10.1.0.77")))  # MODIFIED: the pod has moved
        located(pods, "10.1.0.77:7410")
        api.delete("peers-1")  # DELETED
        located(pods, GIVEN)
        located(pods, "10.1.0.2:7410", "n2")
    # All of that in one watch.
    assert (len(api.lists), len(api.watches)) == (1, 1)


def test_it_asks_for_its_own_slices_and_goes_on_from_the_list(api: ApiServer):
    with following(api.port):
        watching(api)
    ((path, listed, _),) = api.lists
    ((_, watched, _),) = api.watches
    assert path == "/apis/discovery.k8s.io/v1/namespaces/orders/endpointslices"
    assert listed["labelSelector"] == watched["labelSelector"] == [SELECTOR]
    assert watched["resourceVersion"] == ["2"]
    assert 0 < int(watched["timeoutSeconds"][0]) < 60


def test_a_watch_that_is_over_in_time_is_followed_by_a_list(api: ApiServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(endpoint_slices, "WATCH_S", 1)
    monkeypatch.setattr(endpoint_slices, "LATE_S_MAX", 10)
    with following(api.port) as pods, capture_logs() as logs:
        watching(api)
        del api.slices["peers-1"]  # Nobody was told.
        located(pods, GIVEN)
        watching(api, 3)
    assert not [line for line in logs if line["log_level"] == "warning"]


# --- Trouble


def test_when_the_api_server_dies_names_are_left_to_dns_until_it_is_back(api: ApiServer):
    with following(api.port) as pods, capture_logs() as logs:
        located(pods, FOUND)
        watching(api)
        api.die()
        located(pods, GIVEN)
        again = ApiServer(api.port)
        try:
            again.put(slice_of("peers-1", endpoint("n1", "10.1.0.5")))
            located(pods, "10.1.0.5:7410")
        finally:
            again.die()
    # Told when it changes, and not with each attempt.
    warnings = [line for line in logs if line["log_level"] == "warning"]
    assert 1 <= len(warnings) <= 2
    assert all("DNS alone" in line["event"] for line in warnings)


def test_an_api_server_that_was_never_there_is_only_tried_again():
    (port,) = free_ports(1)
    with following(port) as pods:
        time.sleep(0.3)
        assert pods.locate(GIVEN, "n1") == GIVEN
        late = ApiServer(port)
        try:
            late.put(slice_of("peers-1", endpoint("n1", "10.1.0.1")))
            located(pods, FOUND)
        finally:
            late.die()


def test_after_410_it_lists_anew(api: ApiServer):
    with following(api.port) as pods:
        watching(api)
        api.slices["peers-1"] = slice_of("peers-1", endpoint("n1", "10.1.0.8"))
        api.forget_history()
        located(pods, "10.1.0.8:7410")
        watching(api, 2)
    assert len(api.lists) >= 2


@pytest.mark.parametrize(
    "said",
    [
        b"no JSON\n",
        b'{"type": "ADDED"}\n',
        b'{"type": "SURPRISE", "object": {}}\n',
        b'{"type": "MODIFIED", "object": {"metadata": {"name": "peers-1"}}}\n',
        b"[]\n",
        b"\xff\xfe\n",
    ],
)
def test_what_a_watch_must_not_say_ends_it_and_the_table_with_it(api: ApiServer, said: bytes):
    with following(api.port) as pods:
        located(pods, FOUND)
        watching(api)
        api.instead = (500, b"")
        api.say(said)
        located(pods, GIVEN)
        api.instead = None
        located(pods, FOUND)


def test_a_watch_that_ends_early_empties_the_table(api: ApiServer):
    with following(api.port) as pods:
        located(pods, FOUND)
        watching(api)
        api.instead = (503, b"overloaded")
        api.end_watches()
        located(pods, GIVEN)
        api.instead = None
        located(pods, FOUND)


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"no JSON"),
        (200, b"[]"),
        (200, b'{"items": [], "metadata": {}}'),
        (200, b'{"items": [{"kind": "Pod"}], "metadata": {"resourceVersion": "1"}}'),
        (403, b'{"kind": "Status", "reason": "Forbidden"}'),
        (500, b""),
    ],
)
def test_a_malformed_list_is_no_list(api: ApiServer, answer: tuple[int, bytes]):
    api.instead = answer
    with following(api.port) as pods:
        until(lambda: len(api.lists) >= 3)
        assert pods.locate(GIVEN, "n1") == GIVEN
        api.instead = None
        located(pods, FOUND)


def test_an_api_server_that_is_silent_is_given_up(api: ApiServer, monkeypatch: pytest.MonkeyPatch):
    """It takes the connection, and says nothing: as one that is paused, or behind a network that drops."""
    monkeypatch.setattr(endpoint_slices, "WATCH_S", 1)
    monkeypatch.setattr(endpoint_slices, "LATE_S_MAX", 0.2)
    monkeypatch.setattr(endpoint_slices, "LIST_S_MAX", 0.2)
    go_on = threading.Event()
    with following(api.port) as pods:
        located(pods, FOUND)
        watching(api)
        listed = api._listed
        monkeypatch.setattr(api, "_listed", lambda: (go_on.wait(PATIENCE_S), listed())[1])
        located(pods, GIVEN)
        go_on.set()
        located(pods, FOUND)


def test_pauses_grow_and_have_a_limit(api: ApiServer, monkeypatch: pytest.MonkeyPatch):
    api.instead = (500, b"")
    slept: list[float] = []
    thread = EndpointSlices(SETTINGS, PodAddresses("IPv4"), at(api.port))
    monkeypatch.setattr(endpoint_slices.random, "uniform", lambda low, high: high)
    monkeypatch.setattr(thread._stopping, "wait", slept.append)
    thread.start()
    until(lambda: len(slept) > 6)
    ended(thread)
    assert slept[:6] == pytest.approx([0.02, 0.04, 0.08, 0.1, 0.1, 0.1])


# --- Who it is towards Kubernetes


def test_in_a_pod_it_is_the_service_account_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    authority = Authority("cluster")
    pair = authority.issue("kubernetes", dns=["localhost"])
    for file, content in (("tls.crt", pair.cert_pem), ("tls.key", pair.key_pem), ("ca.crt", authority.pem)):
        (tmp_path / file).write_bytes(content)
    (tmp_path / "token").write_text("a-token")
    (tmp_path / "namespace").write_text("of-the-pod\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    api = ApiServer(context=context)
    api.put(slice_of("peers-1", endpoint("n1", "10.1.0.1")))
    monkeypatch.setattr(endpoint_slices, "ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "localhost")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(api.port))
    pods = PodAddresses("IPv4")
    thread = EndpointSlices(KubernetesSettings(selector=SELECTOR), pods, in_cluster)
    thread.start()
    try:
        located(pods, FOUND)
        watching(api)
    finally:
        ended(thread)
        api.die()
    for path, _, token in (*api.lists, *api.watches):
        assert path == "/apis/discovery.k8s.io/v1/namespaces/of-the-pod/endpointslices"
        assert token == "bearer a-token"


def test_outside_of_a_pod_nothing_is_found_and_nothing_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    pods = PodAddresses("IPv4")
    with capture_logs() as logs:
        thread = EndpointSlices(KubernetesSettings(selector=SELECTOR), pods)
        thread.start()
        until(lambda: len(logs) > 0)
        ended(thread)
    assert "ConfigException" in logs[0]["why"]
    assert pods.locate(GIVEN, "n1") == GIVEN


def test_without_the_package_the_start_says_what_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DiscoveryError, match=r"ordercast\[k8s\]"):
        EndpointSlices(SETTINGS, PodAddresses("IPv4"))


# --- Dialling


def test_a_link_is_dialled_where_kubernetes_says_and_by_name_when_it_does_not(
    api: ApiServer, monkeypatch: pytest.MonkeyPatch
):
    """Both of its connections: the name that is given leads nowhere."""
    dial_quickly_and_do_not_ping(monkeypatch)

    async def story(pods: PodAddresses) -> None:
        a, b = Process("a"), Process("b")
        a.credentials = a.mesh._credentials = Credentials(NO_TLS, pods.locate)
        try:
            await a.start()
            await b.start()
            port = b.address.rpartition(":")[2]
            a.mesh.follow({"b": f"b.peers.invalid:{port}"})
            await asyncio.sleep(0.2)
            assert a.mesh.connected() == []
            api.put(slice_of("peers-1", endpoint("b", HOST)))
            await a.has_resets(1)
            a.mesh.send("b", "d", b"found")
            await b.hears(b"found")
            # Kubernetes is gone, and the connection stays; a new one goes to the address as given.
            api.die()
            await asyncio.to_thread(located, pods, "b.peers.invalid:7410", "b")
            a.mesh.send("b", "d", b"still")
            await b.hears(b"still")
            a.mesh.follow({"b": b.address})
            await a.has_resets(2)
        finally:
            await a.stop()
            await b.stop()

    with following(api.port) as pods:
        asyncio.run(asyncio.wait_for(story(pods), PATIENCE_S))
