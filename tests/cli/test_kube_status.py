"""`ordercast kube status` before a local API server: the chart, installed, and what may be wrong with it."""

import importlib.util
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ordercast.cli import output
from ordercast.cli.kube import api as kube_api
from ordercast.cli.main import app
from ordercast.local.cluster import free_ports
from ordercast.runtime.kubernetes import endpoint_slices
from tests.cli.kubernetes_namespace import Namespace, api_server, namespace_of, pages
from tests.cli.tls_front import tls_front
from tests.helm.api_server import HOST, kubeconfig
from tests.helm.chart import NAMESPACE, PREFIX, RELEASE
from tests.left_out import leave_out
from tests.unit.admin_gateway import AdminGateway, running
from tests.unit.certificates import Authority

if importlib.util.find_spec("kubernetes") is None:
    leave_out("tests of `ordercast kube`: the package kubernetes is not installed")

GATEWAY = f"{PREFIX}-gateway-0"
LEADER = f"{PREFIX}-membership-1"
NODES = [f"{PREFIX}-sequencer-{number}" for number in range(3)]

Ask = Callable[..., Result]


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.out, "width", 240)


@pytest.fixture(scope="module")
def gateway() -> Iterator[AdminGateway]:
    """Of a cluster whose nodes are the sequencers' pods."""
    with running() as started:
        for name in NODES:
            started.register(name)
        started.logs.positions = dict(zip(NODES, (30, 30, 28), strict=True))
        from ordercast.v1.membership_pb2 import CreateDomain, CreateGroup

        started.do(create_domain=CreateDomain(name="default", protocol="scalatom"))
        started.do(create_group=CreateGroup(name="g", domain="default", replicas=3))
        yield started


@pytest.fixture
def namespace(gateway: AdminGateway) -> Iterator[Namespace]:
    """All is well."""
    found = namespace_of("default", "domains[0].name=default")
    host, _, port = gateway.address.rpartition(":")
    found.ports[GATEWAY, 7400] = (host, int(port))
    texts = {
        f"{PREFIX}-membership-{number}": f"ordercast_membership_leading {float(number == 1)}\n"
        for number in range(3)
    }
    waiting = (
        'ordercast_order_waiting{domain="default"} 7',
        'ordercast_order_waiting_age_seconds{domain="default"} 1.25',
    )
    texts[NODES[2]] = "\n".join((*waiting, ""))
    for name in (pod["metadata"]["name"] for pod in found.there["Pod"]):
        texts.setdefault(name, "# nothing\n")
    with pages(texts) as served:
        found.ports |= {(pod, 9464): address for pod, address in served.items()}
        yield found


@pytest.fixture
def ask(namespace: Namespace, tmp_path: Path) -> Iterator[Ask]:
    with api_server(namespace, tmp_path) as path:
        yield lambda *args: run("--kubeconfig", str(path), *args)


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["kube", "status", *args])


def document(result: Result) -> Any:
    assert result.stdout, result.output
    return json.loads(result.stdout)


def waits(pod: dict[str, Any], reason: str, message: str = "", **more: Any) -> None:
    """A container of it does, so the pod is not ready."""
    container = {"restartCount": 0, "state": {"waiting": {"reason": reason, "message": message}}}
    pod["status"] = {
        "phase": "Pending" if "lastState" not in more else "Running",
        "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}],
        "containerStatuses": [container | more],
    }


# ----------------------------------------------------------------------------------------------------- all is well


def test_an_installation_that_is_well_is_shown_with_what_is_inside(ask: Ask) -> None:
    result = ask()
    assert (result.exit_code, result.stderr) == (0, "")
    shown = result.stdout
    assert f"release {RELEASE} in namespace {NAMESPACE}, ordercast-" in shown
    for text in (
        f"│ {GATEWAY} ",
        "│ membership │ StatefulSet │   3/3 │",
        "machine-2",
        f"{NODES[2]}: 280 (20 behind)",
    ):
        assert text in shown
    assert f"membership is led by {LEADER}" in shown
    assert shown.rstrip().endswith("healthy")


def test_the_document_has_all_of_it_under_names_that_stay(ask: Ask) -> None:
    found = document(ask("--json"))
    assert list(found) == [
        "healthy",
        "troubles",
        "notes",
        "namespace",
        "release",
        "chart",
        "components",
        "pods",
        "volume_claims",
        "jobs",
        "disruption_budgets",
        "membership_leader",
        "waiting",
        "cluster",
    ]
    assert (found["healthy"], found["troubles"], found["notes"]) == (True, [], [])
    assert (found["release"], found["namespace"], found["membership_leader"]) == (RELEASE, NAMESPACE, LEADER)
    assert {one["name"]: (one["ready"], one["wanted"]) for one in found["components"]}["consensus"] == (3, 3)
    assert [log["behind"] for log in found["cluster"]["groups"][0]["logs"]] == [0, 0, 20]
    assert found["waiting"] == [{"node": NODES[2], "domain": "default", "envelopes": 7, "oldest_s": 1.25}]
    assert {job["state"] for job in found["jobs"]} == {"done"}
    pod = next(one for one in found["pods"] if one["name"] == GATEWAY)
    assert (pod["ready"], pod["state"], pod["restarts"], pod["node"]) == (True, "Running", 0, "machine-0")


def test_a_gateway_that_is_named_is_asked_and_none_through_the_api_server(
    ask: Ask, namespace: Namespace, gateway: AdminGateway
) -> None:
    found = document(ask("--json", "--gateway", gateway.address))
    assert found["cluster"]["groups"][0]["name"] == "g"
    assert found["healthy"] is True
    assert {port for _, port in namespace.forwarded} == {9464}


def test_the_namespace_is_the_context_s_or_the_one_that_is_named(ask: Ask, namespace: Namespace) -> None:
    ask()
    assert all(f"/namespaces/{NAMESPACE}/" in path for path in namespace.asked)
    namespace.asked.clear()
    ask("--namespace", "elsewhere")
    assert namespace.asked
    assert all("/namespaces/elsewhere/" in path for path in namespace.asked)


def test_in_a_pod_its_account_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubernetes.config import kube_config

    for name, text in (("token", "secret"), ("ca.crt", "-"), ("namespace", "mine")):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(endpoint_slices, "ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    place = kube_api.find_place(None, None, None)
    assert (place.namespace, place.configuration.host) == ("mine", "https://10.0.0.1:443")
    # A configuration that is there comes first, as with kubectl.
    path = kubeconfig("http://10.0.0.2", tmp_path)
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    place = kube_api.find_place(None, None, None)
    assert (place.namespace, place.configuration.host) == ("default", "http://10.0.0.2")


# ------------------------------------------------------------------------------------------------------- releases


def test_two_releases_are_told_apart_or_named(ask: Ask, namespace: Namespace) -> None:
    other = namespace_of("compact", release="other")
    for kind, each in other.there.items():
        namespace.there[kind] += each
    result = ask()
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        f"there are 2 releases in the namespace {NAMESPACE}, --release names one: {RELEASE}, other"
        in result.stderr
    )
    found = document(ask("--release", RELEASE, "--json"))
    assert (found["healthy"], "node" in [one["name"] for one in found["components"]]) == (True, False)
    missing = ask("--release", "third")
    assert missing.exit_code == 3
    assert f"there is no release third in the namespace {NAMESPACE}; there are {RELEASE}, other" in missing.stderr


def test_without_a_release_it_says_how_to_install(ask: Ask, namespace: Namespace) -> None:
    # Claims outlive an installation, and are none.
    namespace.there = {kind: [] if kind != "PersistentVolumeClaim" else v for kind, v in namespace.there.items()}
    result = ask()
    assert (result.exit_code, result.stdout) == (3, "")
    assert f"helm install ordercast helm/ordercast --namespace {NAMESPACE}" in result.stderr


# ----------------------------------------------------------------------------------------------------------- pods


def test_a_pod_that_has_no_machine_says_what_the_scheduler_says(ask: Ask, namespace: Namespace) -> None:
    pod = namespace.pod(NODES[1])
    why = "0/3 nodes are available: 3 Insufficient memory."
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    pod["status"] = {"phase": "Pending", "conditions": [scheduled]}
    del pod["spec"]["nodeName"]
    result = ask("--json")
    found = document(result)
    assert (result.exit_code, found["healthy"]) == (1, False)
    assert found["troubles"] == ["sequencer: 2 of 3 pods are ready", f"pod {NODES[1]}: Pending, {why}"]
    assert found["cluster"] is not None


def test_a_crash_loop_says_how_the_process_ended(ask: Ask, namespace: Namespace) -> None:
    last = {"terminated": {"exitCode": 78, "reason": "Error", "finishedAt": "2026-01-01T00:10:00Z"}}
    waits(namespace.pod(NODES[0]), "CrashLoopBackOff", "back-off 40s", restartCount=6, lastState=last)
    result = ask()
    assert result.exit_code == 1
    expected = f"pod {NODES[0]}: CrashLoopBackOff, back-off 40s (ended with Error, exit code 78)"
    assert expected in result.stdout
    assert "│ 6 (Error, exit code 78) │" in result.stdout


def test_an_image_that_cannot_be_pulled_is_named(ask: Ask, namespace: Namespace) -> None:
    waits(namespace.pod(NODES[0]), "ImagePullBackOff", 'Back-off pulling image "ordercast:nope"')
    troubles = document(ask("--json"))["troubles"]
    assert f'pod {NODES[0]}: ImagePullBackOff, Back-off pulling image "ordercast:nope"' in troubles


def test_restarts_of_a_pod_that_is_well_are_shown_and_no_trouble(ask: Ask, namespace: Namespace) -> None:
    (container,) = namespace.pod(NODES[0])["status"]["containerStatuses"]
    container["restartCount"] = 2
    container["lastState"] = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    result = ask()
    assert result.exit_code == 0
    assert "│ 2 (OOMKilled, exit code 137) │" in result.stdout


def test_a_claim_that_is_not_bound_says_why(ask: Ask, namespace: Namespace) -> None:
    claim = namespace.there["PersistentVolumeClaim"][0]
    claim["status"] = {"phase": "Pending"}
    name = claim["metadata"]["name"]
    namespace.warn("PersistentVolumeClaim", name, 'storageclass "fast" not found')
    result = ask("--json")
    assert result.exit_code == 1
    assert document(result)["troubles"] == [f'volume claim {name} is Pending: storageclass "fast" not found']


def test_a_job_that_failed_is_a_trouble(ask: Ask, namespace: Namespace) -> None:
    (job,) = namespace.there["Job"]
    failed = {"type": "Failed", "status": "True", "message": "Job was active longer than specified deadline"}
    job["status"] = {"conditions": [failed]}
    (trouble,) = document(ask("--json"))["troubles"]
    assert trouble.startswith(f"Job {PREFIX}-domains failed: Job was active longer than specified deadline")


# --------------------------------------------------------------------------------------------- what is inside


def test_without_a_gateway_that_is_ready_pods_are_shown(ask: Ask, namespace: Namespace) -> None:
    for pod in namespace.there["Pod"]:
        if pod["metadata"]["name"].startswith(f"{PREFIX}-gateway"):
            waits(pod, "ContainerCreating")
    result = ask()
    assert result.exit_code == 1
    assert "no gateway is ready: the cluster cannot be asked" in result.stdout
    assert f"│ {NODES[0]} " in result.stdout
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_gateway_at_which_nobody_listens_is_a_trouble_with_its_cause(ask: Ask, namespace: Namespace) -> None:
    namespace.ports.pop((GATEWAY, 7400))
    result = ask("--json", "--timeout", "2")
    found = document(result)
    assert (result.exit_code, found["cluster"]) == (1, None)
    (trouble,) = found["troubles"]
    assert trouble.startswith("the cluster does not answer")
    assert "connection refused" in trouble


def test_ports_that_are_never_opened_are_given_up(ask: Ask, namespace: Namespace) -> None:
    namespace.is_silent.set()
    result = ask("--json", "--timeout", "1")
    found = document(result)
    assert (result.exit_code, found["cluster"], found["membership_leader"]) == (1, None, None)
    assert any("metrics of" in note for note in found["notes"])


def test_no_page_loses_its_end(ask: Ask, namespace: Namespace) -> None:
    """Whoever serves it closes at once; so does the API server."""
    long = "# a page as long as that of a process\n" * 2000
    with pages({LEADER: f"{long}ordercast_membership_leading 1\n"}) as served:
        namespace.ports[LEADER, 9464] = served[LEADER]
        for _ in range(10):
            assert document(ask("--json"))["membership_leader"] == LEADER


def test_membership_without_a_leader_is_a_trouble_and_one_that_does_not_tell_is_not(
    ask: Ask, namespace: Namespace
) -> None:
    nobody = namespace.ports[f"{PREFIX}-membership-0", 9464]
    namespace.ports[LEADER, 9464] = nobody
    found = document(ask("--json"))
    assert (found["membership_leader"], found["troubles"]) == (None, ["nobody leads membership"])
    # As one of an earlier version.
    namespace.ports[LEADER, 9464] = namespace.ports[GATEWAY, 9464]
    found = document(ask("--json"))
    assert (found["healthy"], found["membership_leader"]) == (True, None)
    assert any("who leads membership is not known" in note for note in found["notes"])


def test_a_gateway_whose_pod_is_gone_is_not_missed_and_a_sequencer_is(ask: Ask, gateway: AdminGateway) -> None:
    over = f"{PREFIX}-gateway-7d9f-abcde"
    gateway.register(over)
    node = gateway.member.state.nodes[over]
    node.ended = node.suspected = True
    sequencer = gateway.member.state.nodes[NODES[2]]
    try:
        gateway.do(drain_node=_drained(over))
        assert document(ask("--json"))["troubles"] == []
        sequencer.suspected = True
        gateway.do(drain_node=_drained(NODES[2]))
        assert document(ask("--json"))["troubles"] == [f"node {NODES[2]} is suspected"]
    finally:
        sequencer.suspected = False
        gateway.do(drain_node=_drained(NODES[2], draining=False))
        del gateway.member.state.nodes[over]


def _drained(node: str, *, draining: bool = True) -> Any:
    """Any command that makes gateways hear of the node as it is now."""
    from ordercast.v1.membership_pb2 import DrainNode

    return DrainNode(node=node, draining=draining)


# ------------------------------------------------------------------------------------------ what is not to be had


def with_tls() -> Namespace:
    """Without metrics, which are no part of it."""
    return namespace_of("default", "gateway.kind=StatefulSet", "tls.enabled=true", "tls.secretName=certificates")


def test_gateways_with_tls_need_to_know_whom_to_trust(tmp_path: Path) -> None:
    with api_server(with_tls(), tmp_path) as path:
        result = run("--kubeconfig", str(path), "--json")
    assert result.exit_code == 1
    assert any("--ca says whom to trust" in trouble for trouble in document(result)["troubles"])


def test_through_the_api_server_a_certificate_is_that_of_the_service(
    gateway: AdminGateway, tmp_path: Path
) -> None:
    """Which is not what is dialled; and another name is refused."""
    authority = Authority("authority")
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    certificate = authority.issue(GATEWAY, dns=[f"{PREFIX}-gateway.{NAMESPACE}.svc"])
    namespace = with_tls()
    with tls_front(gateway.address, certificate, tmp_path) as front, api_server(namespace, tmp_path) as path:
        namespace.ports[GATEWAY, 7400] = front
        given = ("--kubeconfig", str(path), "--json", "--ca", str(tmp_path / "ca.pem"), "--timeout", "5")
        assert document(run(*given))["cluster"]["groups"][0]["name"] == "g"
        assert document(run(*given, "--server-name", "another.example"))["cluster"] is None


def test_what_may_not_be_listed_is_left_out_and_told(ask: Ask, namespace: Namespace) -> None:
    namespace.forbidden = ["jobs", "events"]
    found = document(ask("--json"))
    assert (found["healthy"], found["jobs"]) == (True, [])
    assert found["notes"] == ["not looked at, for you may not list them: jobs, events"]
    namespace.forbidden = ["pods"]
    result = ask()
    assert (result.exit_code, result.stdout) == (5, "")
    assert "pods is forbidden: you cannot list it" in result.stderr


def test_without_an_api_server_it_says_so(tmp_path: Path) -> None:
    (nobody,) = free_ports(1)
    address = f"http://{HOST}:{nobody}"
    result = run("--kubeconfig", str(kubeconfig(address, tmp_path)))
    assert (result.exit_code, result.stdout) == (6, "")
    assert f"the API server at {address} does not answer" in result.stderr


def test_an_api_server_that_is_silent_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube_api, "ANSWER_S_MAX", 0.3)
    with socket.create_server((HOST, 0)) as silent:
        path = kubeconfig(f"http://{HOST}:{silent.getsockname()[1]}", tmp_path)
        result = run("--kubeconfig", str(path))
    assert result.exit_code == 6
    assert "does not answer" in result.stderr


def test_a_configuration_that_is_none_and_a_context_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("no: contexts")
    assert run("--kubeconfig", str(path)).exit_code == 2
    result = run("--kubeconfig", str(kubeconfig("http://127.0.0.1:1", tmp_path)), "--context", "elsewhere")
    assert result.exit_code == 2
    assert "there is no context 'elsewhere'; there are here" in result.stderr


def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "kubernetes" else find(name))
    result = run()
    assert result.exit_code == 2
    assert "pip install 'ordercast[cli,k8s]'" in result.stderr
