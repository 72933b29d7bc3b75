"""Our own programs take what the chart tells them, and processes find each other under their names."""

from pathlib import Path
from typing import Any

import pytest

from deploy.kubernetes.rendering import rendered
from ordercast.cli.main import load
from ordercast.runtime.process.settings import ProcessSettings, parse, split_address
from ordercast.telemetry.settings import Settable as TelemetrySettings
from ordercast.telemetry.settings import parse as parse_telemetry
from tests.helm.chart import (
    NAMESPACE,
    PREFIX,
    PROFILES,
    Object,
    component_of,
    container_of,
    named,
    objects,
    of_kind,
    pod_names,
    told,
    workloads,
)

TLS_FOLDER = "/etc/ordercast/tls"
SERVICES = ("membership", "consensus", "sequencer", "gateway")
#: A name in the namespace, as pods resolve it.
IN_CLUSTER = f".{NAMESPACE}.svc.cluster.local"


def started(
    workload: Object, monkeypatch: pytest.MonkeyPatch, folder: Path, pod: str = "", address: str = "10.1.2.3"
) -> list[str]:
    """The arguments of a pod's process; its variables are set from now on."""
    container = container_of(workload["spec"]["template"])
    arguments, environment = told(container, pod or f"{workload['metadata']['name']}-0", address)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    # The settings are parsed here, where the pod's files are not.
    for file in ("tls.crt", "tls.key", "ca.crt"):
        (folder / file).touch()
    moved = [text.replace(TLS_FOLDER, str(folder)) for text in arguments]
    return [text.replace("=/var/lib/ordercast/", f"={folder}/") for text in moved]


def node_settings(arguments: list[str]) -> ProcessSettings:
    assert arguments[0] == "serve"
    services = tuple(text for text in arguments[1:] if text in SERVICES)
    return parse(arguments[1 + len(services) :], services)


def telemetry_settings(arguments: list[str]) -> TelemetrySettings:
    assert arguments[:2] == ["serve", "telemetry"]
    return parse_telemetry(arguments[2:])


def nodes(profile: str, *settings: str) -> dict[str, Object]:
    """The workloads of processes of the cluster, by component."""
    found = workloads(objects(profile, *settings))
    return {component: each for component, each in found.items() if component not in ("telemetry", "analytics")}


@pytest.mark.parametrize("profile", PROFILES)
def test_every_process_takes_its_arguments(profile: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    found = nodes(profile)
    ran: list[str] = []
    for workload in found.values():
        with monkeypatch.context() as scope:
            ran += node_settings(started(workload, scope, tmp_path)).services
    assert sorted(ran) == sorted(SERVICES)


@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "compact"])
def test_the_telemetry_service_takes_its_arguments(profile: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    given = telemetry_settings(started(workloads(objects(profile))["telemetry"], monkeypatch, tmp_path))
    assert given.sink == ("kafka" if profile == "kafka" else "spool")
    assert (given.tls.ca is not None) == (profile in ("production", "tls-secret"))
    if profile == "kafka":
        assert given.kafka.options == {"security.protocol": "SSL"}


def test_the_spark_job_takes_its_arguments():
    container = container_of(workloads(objects("analytics"))["analytics"]["spec"]["template"])
    run = load("analytics").commands["run"]
    assert container["args"][:2] == ["analytics", "run"]
    given = run.make_context("run", container["args"][2:]).params
    assert given["master"] == "local[2]"
    assert given["address"] == f"{PREFIX}-telemetry.$(POD_NAMESPACE).svc.cluster.local:4317"
    (spark,) = of_kind(objects("spark-operator"), "SparkApplication")
    given = run.make_context("run", spark["spec"]["arguments"][2:]).params
    assert given["address"] == f"{PREFIX}-telemetry{IN_CLUSTER}:4317"


def test_the_spark_job_takes_its_arguments_with_tls(tmp_path: Path):
    container = container_of(
        workloads(objects("tls-secret", "analytics.enabled=true"))["analytics"]["spec"]["template"]
    )
    for file in ("tls.crt", "tls.key", "ca.crt"):
        (tmp_path / file).touch()
    arguments = [text.replace(TLS_FOLDER, str(tmp_path)) for text in container["args"]]
    run = load("analytics").commands["run"]
    given = run.make_context("run", arguments[2:]).params
    assert (given["ca"], given["cert"], given["cert_key"]) == tuple(
        tmp_path / file for file in ("ca.crt", "tls.crt", "tls.key")
    )
    assert given["server_name"] == f"{PREFIX}-telemetry"


def test_spark_s_operator_is_told_of_the_spark_that_is_locked():
    (spark,) = of_kind(objects("spark-operator"), "SparkApplication")
    locked = (Path(__file__).parents[2] / "requirements" / "analytics.lock").read_text()
    assert f"\npyspark=={spark['spec']['sparkVersion']} " in locked


@pytest.mark.parametrize("profile", PROFILES)
def test_membership_nodes_are_known_by_names_and_hosts_of_pods_that_there_are(
    profile: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    found = nodes(profile)
    members = found["node" if "node" in found else "membership"]
    addresses = {}
    for pod in pod_names(members):
        with monkeypatch.context() as scope:
            given = node_settings(started(members, scope, tmp_path, pod))
        assert given.name == pod
        addresses[pod] = given.peer_advertise
    for workload in found.values():
        with monkeypatch.context() as scope:
            assert node_settings(started(workload, scope, tmp_path)).members == addresses


@pytest.mark.parametrize("profile", PROFILES)
def test_a_host_that_a_process_is_reached_by_is_given_by_its_headless_service(
    profile: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    everything = objects(profile)
    for workload in nodes(profile).values():
        given = node_settings(started(workload, monkeypatch, tmp_path))
        host, port = split_address(given.peer_advertise)
        if workload["kind"] == "Deployment":
            assert host == "10.1.2.3"
            continue
        pod, _, service = host.removesuffix(IN_CLUSTER).partition(".")
        assert pod == given.name
        assert service == workload["spec"]["serviceName"]
        headless = named(everything, "Service", service)
        assert headless["spec"]["clusterIP"] == "None"
        assert headless["spec"]["publishNotReadyAddresses"] is True
        assert headless["spec"]["selector"].items() <= workload["spec"]["template"]["metadata"]["labels"].items()
        assert {each["port"] for each in headless["spec"]["ports"]} >= {port, given.frames_port}


def test_a_gateway_with_an_ipv6_address_tells_it_in_brackets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    gateway = nodes("kafka")["gateway"]
    given = node_settings(started(gateway, monkeypatch, tmp_path, address="fd00::7"))
    assert given.peer_listen == "[::]:7410"
    assert given.peer_advertise == "[fd00::7]:7410"


@pytest.mark.parametrize("profile", PROFILES)
def test_ports_are_those_at_which_processes_listen(profile: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    everything = objects(profile)
    for component, workload in nodes(profile).items():
        with monkeypatch.context() as scope:
            given = node_settings(started(workload, scope, tmp_path))
        ports = {p["name"]: p["containerPort"] for p in container_of(workload["spec"]["template"])["ports"]}
        listening = {
            "peers": split_address(given.peer_listen)[1],
            "frames": given.frames_port,
            "metrics": split_address(str(given.telemetry.metrics_listen))[1],
        }
        if "gateway" in given.services:
            listening["clients"] = split_address(given.client_listen)[1]
        assert ports == listening
        for service in of_kind(everything, "Service"):
            if component_of(service) == component:
                assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports.keys()


def test_processes_send_telemetry_to_the_service_of_the_release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    given = node_settings(started(nodes("production")["sequencer"], monkeypatch, tmp_path))
    assert given.telemetry.endpoint == f"{PREFIX}-telemetry{IN_CLUSTER}:4317"
    service = named(objects("production"), "Service", f"{PREFIX}-telemetry")
    assert 4317 in {port["port"] for port in service["spec"]["ports"]}
    # The name that its certificate has to show.
    certificate = named(objects("production"), "Certificate", f"{PREFIX}-telemetry")
    assert given.telemetry.service_name in certificate["spec"]["dnsNames"]


def test_without_the_telemetry_service_it_goes_elsewhere_or_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    elsewhere = nodes("default", "telemetry.enabled=false", "telemetry.externalEndpoint=collector:4317")
    with monkeypatch.context() as scope:
        given = node_settings(started(elsewhere["gateway"], scope, tmp_path))
    assert given.telemetry.endpoint == "collector:4317"
    secured = nodes(
        "tls-secret",
        "telemetry.enabled=false",
        "telemetry.externalEndpoint=collector:4317",
        "telemetry.externalServerName=collector",
    )
    with monkeypatch.context() as scope:
        given = node_settings(started(secured["node"], scope, tmp_path))
    assert given.telemetry.service_name == "collector"
    nowhere = nodes("default", "telemetry.enabled=false")
    assert node_settings(started(nowhere["gateway"], monkeypatch, tmp_path)).telemetry.endpoint is None


def test_settings_reach_the_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Large numbers, fractions and lists too: Helm writes some of them in its own way."""
    volumes_gib = {"membership": 2, "consensus": 5, "sequencer": 200, "gateway": 1}
    for name, workload in nodes("production").items():
        with monkeypatch.context() as scope:
            given = node_settings(started(workload, scope, tmp_path))
        assert given.drain_s == 20
        # As large as the volume.
        assert given.storage.map_bytes == volumes_gib[name] << 30
        assert given.telemetry.sampling_by_domain == ("payments=0.1",)
    workload = workloads(objects("production"))["telemetry"]
    assert telemetry_settings(started(workload, monkeypatch, tmp_path)).retention_bytes == 50 << 30


@pytest.mark.parametrize(
    ("size", "found"),
    [("20Gi", 20 << 30), ("500M", 500_000_000), ("1.5Ti", 3 << 39), ("2T", 2 * 10**12)],
)
def test_a_store_may_grow_as_large_as_its_volume_unless_it_is_told(
    size: str, found: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    workload = nodes("default", f"sequencer.persistence.size={size}")["sequencer"]
    with monkeypatch.context() as scope:
        assert node_settings(started(workload, scope, tmp_path)).storage.map_bytes == found
    told = nodes("default", "settings.storage.map_bytes=33554432000", f"sequencer.persistence.size={size}")
    assert node_settings(started(told["sequencer"], monkeypatch, tmp_path)).storage.map_bytes == 33554432000


@pytest.mark.parametrize(("given", "found"), [("0.25", 0.25), ("1", 1.0), ("0.000001", 1e-6), ("3600", 3600.0)])
@pytest.mark.parametrize("is_in_file", [True, False])
def test_numbers_keep_their_value(
    given: str, found: float, is_in_file: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    if is_in_file:
        objects()  # Leaves it out where there is no Helm.
        (tmp_path / "values.yaml").write_text(f"settings: {{limits: {{backlog_s_max: {given}}}}}")
        workload = workloads(rendered(tmp_path / "values.yaml"))["gateway"]
    else:
        workload = nodes("default", f"settings.limits.backlog_s_max={given}")["gateway"]
    assert node_settings(started(workload, monkeypatch, tmp_path)).limits.backlog_s_max == found


@pytest.mark.parametrize("profile", PROFILES)
def test_what_runs_in_jobs_is_there(profile: str):
    everything = objects(profile)
    scripts = named(everything, "ConfigMap", f"{PREFIX}-scripts")["data"]
    templates: list[Any] = [each["spec"]["template"] for each in of_kind(everything, "Job")]
    templates += of_kind(everything, "Pod")
    for template in templates:
        python, path = container_of(template)["command"]
        assert python == "python"
        assert path.rpartition("/")[2] in scripts
        assert path.startswith("/etc/ordercast/scripts/")
