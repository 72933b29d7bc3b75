"""Prometheus and Grafana get what the project has for them, through the chart."""

import json

import pytest
import yaml

from deploy.kubernetes import copies
from deploy.kubernetes.rendering import ROOT
from tests.helm.chart import PREFIX, PROFILES, component_of, container_of, objects, of_kind, pod_templates

PROMETHEUS = ROOT / "deploy" / "prometheus"
COMPONENT = "app.kubernetes.io/component"


def test_the_chart_s_copies_are_current():
    assert copies.there() == copies.copies(), "run `make helm`"


def test_dashboards_are_for_grafana_s_sidecar_as_they_are():
    shown = {}
    for each in of_kind(objects("production"), "ConfigMap"):
        if each["metadata"]["labels"].get("grafana_dashboard") == "1":
            assert each["metadata"]["annotations"] == {"grafana_folder": "Ordercast"}
            shown |= each["data"]
    folder = ROOT / "deploy" / "grafana" / "dashboards"
    assert shown == {path.name: path.read_text() for path in folder.glob("*.json")}
    assert all(json.loads(text)["panels"] for text in shown.values())


def test_rules_and_alerts_are_as_they_are_but_for_where_documents_are():
    (rule,) = of_kind(objects("production"), "PrometheusRule")
    texts = [(PROMETHEUS / name).read_text() for name in ("rules.yml", "alerts.yml")]
    prefix = "https://documents.example/ordercast/"
    texts = [text.replace("runbook_url: ", f"runbook_url: {prefix}") for text in texts]
    assert rule["spec"]["groups"] == [group for text in texts for group in yaml.safe_load(text)["groups"]]


def jobs_of_prometheus() -> set[str]:
    config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    return {job["job_name"] for job in config["scrape_configs"]}


@pytest.mark.parametrize(
    ("profile", "kind", "endpoints"),
    [("production", "PodMonitor", "podMetricsEndpoints"), ("analytics", "ServiceMonitor", "endpoints")],
)
def test_monitors_find_every_process_under_the_job_that_dashboards_know(profile: str, kind: str, endpoints: str):
    found = objects(profile)
    scraped: dict[str, str] = {}
    for monitor in of_kind(found, kind):
        (endpoint,) = monitor["spec"][endpoints]
        assert endpoint["port"] == "metrics"
        by_label = {each["targetLabel"]: each for each in endpoint["relabelings"]}
        # The name of the process is that of its pod.
        assert by_label["instance"]["sourceLabels"] == ["__meta_kubernetes_pod_name"]
        (expression,) = monitor["spec"]["selector"]["matchExpressions"]
        scraped |= dict.fromkeys(expression["values"], by_label["job"]["replacement"])
    serving = {
        template["metadata"]["labels"][COMPONENT]
        for _, template in pod_templates(found)
        if "metrics" in {port["name"] for port in container_of(template).get("ports", [])}
    }
    assert scraped.keys() == serving
    assert set(scraped.values()) <= jobs_of_prometheus()
    if kind == "ServiceMonitor":
        with_port = {
            component_of(service)
            for service in of_kind(found, "Service")
            if "metrics" in {port["name"] for port in service["spec"]["ports"]}
        }
        assert with_port == serving


@pytest.mark.parametrize("profile", PROFILES)
def test_pods_that_serve_metrics_say_so_unless_they_are_not_to(profile: str):
    for name, template in pod_templates(objects(profile)):
        ports = {port["name"]: port["containerPort"] for port in container_of(template).get("ports", [])}
        annotations = template["metadata"].get("annotations", {})
        if profile == "production" or "metrics" not in ports:
            assert "prometheus.io/scrape" not in annotations, name
        else:
            assert annotations["prometheus.io/scrape"] == "true", name
            assert annotations["prometheus.io/port"] == str(ports["metrics"]), name


def test_nothing_of_operators_is_asked_for_by_itself():
    kinds = {each["kind"] for each in objects()}
    assert kinds.isdisjoint({"PodMonitor", "ServiceMonitor", "PrometheusRule", "Certificate", "SparkApplication"})
    assert not [
        each for each in of_kind(objects(), "ConfigMap") if each["metadata"]["name"] != f"{PREFIX}-scripts"
    ]
