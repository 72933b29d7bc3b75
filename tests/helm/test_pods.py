"""Pods are hardened, are looked at in the right way, and are stopped and moved with care."""

import math
from typing import Any

import pytest

from ordercast.runtime.process.health import ANSWER_S_MAX
from ordercast.runtime.process.settings import Settable
from ordercast.telemetry.settings import Settable as TelemetrySettable
from tests.helm.chart import (
    PREFIX,
    PROFILES,
    Object,
    component_of,
    container_of,
    named,
    objects,
    of_kind,
    pod_templates,
    workloads,
)

#: What closing takes after a drain, at most.
CLOSING_S = 10


def is_discovering(container: Object) -> bool:
    return any(argument.startswith("--kubernetes.selector=") for argument in container.get("args", ()))


def weaknesses(template: Object) -> list[str]:
    """What a pod could do and has no need to."""
    pod, container = template["spec"], container_of(template)
    secure, own = pod.get("securityContext", {}), container.get("securityContext", {})
    strong = {
        "runs as root": secure.get("runAsNonRoot") is True and secure.get("runAsUser", 0) > 0,
        "may make any call of the kernel": secure.get("seccompProfile") == {"type": "RuntimeDefault"},
        "may get more rights": own.get("allowPrivilegeEscalation") is False,
        "may write to its image": own.get("readOnlyRootFilesystem") is True,
        "has capabilities": own.get("capabilities") == {"drop": ["ALL"]},
        "has a token for the API server and no use for it": pod.get("automountServiceAccountToken")
        is is_discovering(container),
        "gets variables of other Services": pod.get("enableServiceLinks") is False,
        "is the namespace's default account": bool(pod.get("serviceAccountName")),
        "has no limit of memory": "memory" in container.get("resources", {}).get("limits", {}),
    }
    return [weakness for weakness, is_ruled_out in strong.items() if not is_ruled_out]


@pytest.mark.parametrize("profile", PROFILES)
def test_pods_have_no_more_rights_than_they_need(profile: str):
    found = [(name, weakness) for name, each in pod_templates(objects(profile)) for weakness in weaknesses(each)]
    assert found == []


def test_a_pod_that_could_do_too_much_is_caught():
    bare = {"spec": {"containers": [{"name": "a"}]}}
    assert len(weaknesses(bare)) == 9


@pytest.mark.parametrize("profile", PROFILES)
def test_accounts_are_there_and_may_read_endpointslices_and_nothing_else(profile: str):
    found = objects(profile)
    accounts = {each["metadata"]["name"] for each in of_kind(found, "ServiceAccount")}
    assert {template["spec"]["serviceAccountName"] for _, template in pod_templates(found)} <= accounts
    (role,) = of_kind(found, "Role")
    assert role["rules"] == [
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list", "watch"]}
    ]
    (binding,) = of_kind(found, "RoleBinding")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert {subject["name"] for subject in binding["subjects"]} <= accounts
    assert of_kind(found, "ClusterRole", "ClusterRoleBinding") == []


@pytest.mark.parametrize("profile", PROFILES)
def test_processes_ask_kubernetes_for_the_slices_of_their_own_services(profile: str):
    """EndpointSlices have the labels of the Service that they are of."""
    found = objects(profile)
    nodes = {each: w for each, w in workloads(found).items() if each not in ("telemetry", "analytics")}
    headless = [each for each in of_kind(found, "Service") if each["spec"].get("clusterIP") == "None"]
    assert len(headless) >= len(nodes)
    for workload in nodes.values():
        pod = workload["spec"]["template"]["spec"]
        (text,) = [t for t in container_of({"spec": pod})["args"] if t.startswith("--kubernetes.selector=")]
        wanted = dict(label.split("=") for label in text.partition("=")[2].split(","))
        for service in headless:
            assert wanted.items() <= service["metadata"]["labels"].items()
        (binding,) = of_kind(found, "RoleBinding")
        assert pod["serviceAccountName"] in {subject["name"] for subject in binding["subjects"]}


def test_without_discovery_nobody_has_a_token():
    for name, template in pod_templates(objects("default", "discovery.enabled=false")):
        assert template["spec"]["automountServiceAccountToken"] is False, name
        assert not is_discovering(container_of(template)), name


# --- Probes


@pytest.mark.parametrize("profile", PROFILES)
def test_probes_ask_without_tls_at_the_port_of_metrics(profile: str):
    """The kubelet has no certificate. That processes listen there is seen in test_processes.py."""
    ready, alive = {"path": "/readyz", "port": "metrics"}, {"path": "/healthz", "port": "metrics"}
    for component, workload in workloads(objects(profile)).items():
        container = container_of(workload["spec"]["template"])
        assert "metrics" in {port["name"] for port in container["ports"]}
        if component == "analytics":
            continue
        asked = [container[probe]["httpGet"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")]
        assert asked == [ready, ready, alive]


@pytest.mark.parametrize("profile", PROFILES)
def test_probes_are_more_patient_than_the_answer_of_a_stuck_process(profile: str):
    for component, workload in workloads(objects(profile)).items():
        container = container_of(workload["spec"]["template"])
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            if component != "analytics":
                assert container[probe]["timeoutSeconds"] > ANSWER_S_MAX


@pytest.mark.parametrize("profile", PROFILES)
def test_a_start_may_take_long_and_a_stuck_process_is_given_a_minute(profile: str):
    for component, workload in workloads(objects(profile)).items():
        if component == "analytics":
            continue
        container = container_of(workload["spec"]["template"])
        start, life = container["startupProbe"], container["livenessProbe"]
        assert start["periodSeconds"] * start["failureThreshold"] >= 900
        assert life["periodSeconds"] * life["failureThreshold"] >= 60


# --- Stopping


@pytest.mark.parametrize(
    ("settings", "drain_s"),
    [((), Settable.model_fields["drain_s"].default), (("settings.drain_s=45.5",), 45.5)],
)
def test_there_is_time_for_the_drain(settings: tuple[str, ...], drain_s: float):
    for component, workload in workloads(objects("default", *settings)).items():
        if component == "telemetry":
            continue
        pod = workload["spec"]["template"]["spec"]
        waits = container_of({"spec": pod}).get("lifecycle", {}).get("preStop", {}).get("sleep", {})
        needed = math.ceil(drain_s) + waits.get("seconds", 0) + CLOSING_S
        assert pod["terminationGracePeriodSeconds"] >= needed, component


def test_the_telemetry_service_has_time_to_end_its_calls():
    drain_s = TelemetrySettable.model_fields["drain_s"].default
    for settings, given_s in (((), drain_s), (("telemetry.settings.drain_s=30",), 30)):
        pod = workloads(objects("default", *settings))["telemetry"]["spec"]["template"]["spec"]
        assert pod["terminationGracePeriodSeconds"] >= given_s + CLOSING_S


@pytest.mark.parametrize("profile", ["default", "compact", "production"])
def test_only_those_with_clients_wait_before_they_drain(profile: str):
    waiting = {
        component
        for component, workload in workloads(objects(profile)).items()
        if "lifecycle" in container_of(workload["spec"]["template"])
    }
    assert waiting == ({"node"} if profile == "compact" else {"gateway"})
    for _, template in pod_templates(objects(profile, "preStopSeconds=0")):
        assert "lifecycle" not in container_of(template)


# --- Disks, moves and scale


@pytest.mark.parametrize("profile", PROFILES)
def test_statefulsets_start_in_parallel_and_keep_their_volumes(profile: str):
    for workload in of_kind(objects(profile), "StatefulSet"):
        spec = workload["spec"]
        assert spec["podManagementPolicy"] == "Parallel"
        mounted = {mount["name"]: mount["mountPath"] for mount in container_of(spec["template"])["volumeMounts"]}
        claims = spec.get("volumeClaimTemplates", [])
        if not claims:
            assert (profile, component_of(workload)) == ("kafka", "telemetry")
            continue
        assert mounted[claims[0]["metadata"]["name"]] == "/var/lib/ordercast"
        assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


@pytest.mark.parametrize("profile", PROFILES)
def test_at_most_one_of_each_is_evicted(profile: str):
    found = objects(profile)
    budgets = {component_of(each): each["spec"] for each in of_kind(found, "PodDisruptionBudget")}
    nodes = {each: w for each, w in workloads(found).items() if each not in ("telemetry", "analytics")}
    assert budgets.keys() == nodes.keys()
    for component, workload in nodes.items():
        assert budgets[component]["maxUnavailable"] == 1
        selector = budgets[component]["selector"]["matchLabels"]
        assert selector == workload["spec"]["selector"]["matchLabels"]


def test_gateways_scale_by_processor_time_and_not_by_the_chart():
    found = objects("production")
    (scaler,) = of_kind(found, "HorizontalPodAutoscaler")
    target = scaler["spec"]["scaleTargetRef"]
    gateways = named(found, target["kind"], target["name"])
    assert "replicas" not in gateways["spec"]
    assert container_of(gateways["spec"]["template"])["resources"]["requests"]["cpu"]
    (scaler,) = of_kind(objects("default", "gateway.autoscaling.enabled=true"), "HorizontalPodAutoscaler")
    assert scaler["spec"]["scaleTargetRef"]["kind"] == "Deployment"
    assert of_kind(objects(), "HorizontalPodAutoscaler") == []


def spread_of(pod: Object) -> tuple[str | None, list[tuple[str, str]]]:
    anti: dict[str, Any] = pod.get("affinity", {}).get("podAntiAffinity", {})
    constraints = pod.get("topologySpreadConstraints", [])
    return next(iter(anti), None), [(each["topologyKey"], each["whenUnsatisfiable"]) for each in constraints]


@pytest.mark.parametrize(
    ("settings", "affinity", "constraint"),
    [
        ((), "preferredDuringSchedulingIgnoredDuringExecution", "ScheduleAnyway"),
        (
            ("pods.antiAffinity=hard", "pods.spreadWhenUnsatisfiable=DoNotSchedule"),
            "requiredDuringSchedulingIgnoredDuringExecution",
            "DoNotSchedule",
        ),
        (("pods.antiAffinity=none",), None, "ScheduleAnyway"),
    ],
)
def test_pods_of_one_service_are_spread(settings: tuple[str, ...], affinity: str | None, constraint: str):
    for workload in workloads(objects("default", *settings)).values():
        keys = ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
        found = spread_of(workload["spec"]["template"]["spec"])
        assert found == (affinity, [(key, constraint) for key in keys])


def test_what_is_added_for_pods_reaches_them():
    pods = dict(pod_templates(objects("production")))
    sequencer = pods[f"StatefulSet/{PREFIX}-sequencer"]["spec"]
    assert sequencer["nodeSelector"] == {"disks": "nvme"}
    assert sequencer["priorityClassName"] == "highest"
    assert pods[f"StatefulSet/{PREFIX}-consensus"]["spec"]["priorityClassName"] == "high"
    assert [each["key"] for each in sequencer["tolerations"]] == ["dedicated"]
    for name, template in pods.items():
        container = container_of(template)
        assert {"name": "TZ", "value": "UTC"} in container["env"], name
        assert {"name": "scratch", "emptyDir": {}} in template["spec"]["volumes"], name
        assert {"name": "scratch", "mountPath": "/scratch"} in container["volumeMounts"], name
        assert template["metadata"]["labels"]["team"] == "orders", name
        assert template["spec"]["imagePullSecrets"] == [{"name": "registry"}], name


@pytest.mark.parametrize("profile", PROFILES)
def test_a_new_version_of_the_chart_alone_replaces_no_pods(profile: str):
    for name, template in pod_templates(objects(profile)):
        assert "helm.sh/chart" not in template["metadata"]["labels"], name
