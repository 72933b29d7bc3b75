"""Prometheus and Grafana get what the project has for them, through the chart."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.installations import chosen
from deploy.kubernetes import copies
from deploy.kubernetes.rendering import ROOT
from tests.helm.chart import (
    NAMESPACE,
    PREFIX,
    PROFILES,
    RELEASE,
    component_of,
    container_of,
    objects,
    of_kind,
    pod_templates,
)
from tests.prometheus.programs import promtool

PROMETHEUS = ROOT / "deploy" / "prometheus"
COMPONENT = "app.kubernetes.io/component"
AWAY = "OrdercastAnalyticsAway"


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


def rules_of(profile: str) -> list[dict[str, Any]]:
    """Groups of rules and alerts, as they are installed."""
    (rule,) = of_kind(objects(profile, "monitoring.rules.enabled=true"), "PrometheusRule")
    groups: list[dict[str, Any]] = rule["spec"]["groups"]
    return groups


def test_rules_and_alerts_are_ours_for_this_release_with_where_documents_are():
    """But for the alert about a job that these values do not run."""
    texts = [(PROMETHEUS / name).read_text() for name in ("rules.yml", "alerts.yml")]
    prefix = "https://documents.example/ordercast/"
    groups = [
        group
        for text in texts
        for group in yaml.safe_load(text.replace("runbook_url: ", f"runbook_url: {prefix}"))["groups"]
    ]
    ours = f'namespace="{NAMESPACE}", release="{RELEASE}"'
    for group in groups:
        kept = [rule for rule in group["rules"] if rule.get("alert") != AWAY]
        group["rules"] = [{**rule, "expr": chosen(rule["expr"], ours)} for rule in kept]
    assert rules_of("production") == groups


def test_a_job_is_missed_where_one_is_meant_to_run():
    alerts = {rule.get("alert") for group in rules_of("analytics") for rule in group["rules"]}
    assert AWAY in alerts
    assert alerts - {rule.get("alert") for group in rules_of("production") for rule in group["rules"]} == {AWAY}


def series(expression: str) -> list[str]:
    """With what they are chosen by."""
    return re.findall(
        r"(?:ordercast_[\w:]+|process_\w+|\bup)(?:\{[^}]*\})?", re.sub(r'job=~"[^"]*"', "", expression)
    )


def test_no_series_of_another_release_is_asked_for():
    asked = [one for group in rules_of("production") for rule in group["rules"] for one in series(rule["expr"])]
    assert len(asked) > 50
    assert [one for one in asked if f'{{namespace="{NAMESPACE}", release="{RELEASE}"' not in one] == []


#: A release that is well, and one of the same names beside it, in another namespace, that is not.
STORY = """
rule_files: [installed.yml]
evaluation_interval: 30s
tests:
  - interval: 30s
    input_series:
      - {{series: 'ordercast_info{{{ours}, instance="n1"}}', values: 1x60}}
      - {{series: 'ordercast_publish_credits{{{ours}, instance="n1"}}', values: 9x60}}
      - {{series: 'ordercast_membership_leading{{{ours}, instance="n1"}}', values: {leading}x60}}
      - {{series: 'ordercast_group_available{{{ours}, instance="n1", domain="d", group="a"}}', values: 1x60}}
      - {{series: 'ordercast_storage_free_share{{{ours}, instance="n1"}}', values: 0.9x60}}
      - {{series: 'ordercast_storage_free_bytes{{{ours}, instance="n1"}}', values: 900000000x60}}
      - {{series: 'ordercast_spool_received_total{{{ours}, instance="t", signal="logs"}}', values: 0+10x60}}
      - {{series: 'ordercast_group_available{{{theirs}, instance="n1", domain="d", group="a"}}', values: 0x60}}
      - {{series: 'ordercast_publish_messages_total{{{theirs}, instance="n1", domain="d"}}', values: 0+9x60}}
      - {{series: 'ordercast_publish_messages_total{{{ours}, instance="n1", domain="d"}}', values: 0+30x60}}
      - {{series: 'up{{{theirs}, job="ordercast", instance="n1"}}', values: 0x60}}
    promql_expr_test:
      - {{eval_time: 20m, expr: 'ALERTS', exp_samples: []}}
      - eval_time: 20m
        expr: domain:ordercast_publish_messages:rate2m
        exp_samples: [{{labels: 'domain:ordercast_publish_messages:rate2m{{{ours}, domain="d"}}', value: 1}}]
"""


@pytest.mark.parametrize(("leading", "is_well"), [(1, True), (0, False)])
def test_a_healthy_release_is_quiet_beside_one_that_is_not(tmp_path: Path, leading: int, is_well: bool):
    """With the values of production, which run no Spark job, though the telemetry service takes what comes."""
    (tmp_path / "installed.yml").write_text(yaml.safe_dump({"groups": rules_of("production")}))
    ours, theirs = (f'namespace="{name}", release="{RELEASE}"' for name in (NAMESPACE, "elsewhere"))
    (tmp_path / "story.yml").write_text(STORY.format(ours=ours, theirs=theirs, leading=leading))
    done = promtool("test", "rules", tmp_path / "story.yml")
    assert (done.returncode == 0) == is_well, done.stdout + done.stderr
    assert is_well or "OrdercastMembershipWithoutLeader" in done.stdout + done.stderr


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
        # Those of rules and dashboards that tell one release from another.
        assert by_label["namespace"]["sourceLabels"] == ["__meta_kubernetes_namespace"]
        assert by_label["release"]["sourceLabels"] == ["__meta_kubernetes_pod_label_app_kubernetes_io_instance"]
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
