"""Prometheus takes our files, the rules do what they say, and every alert tells what to do."""

import re
from pathlib import Path

import pytest
import yaml

from tests.prometheus.expressions import errors, recorded, rules
from tests.prometheus.programs import CONFIG, promtool
from tests.prometheus.server import copied, without_kubernetes
from tests.tidy.rules import ROOT

TESTS = sorted(Path(__file__).parent.glob("*.test.yml"))
ALERTS = {rule["alert"]: rule for rule in rules(CONFIG / "alerts.yml")}
DOCUMENT = ROOT / "docs" / "monitoring.md"


@pytest.mark.parametrize("name", ["prometheus.yml", "local.yml"])
def test_prometheus_takes_the_configuration(name: str):
    done = promtool("check", "config", CONFIG / name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_configuration_for_kubernetes(tmp_path: Path):
    done = promtool("check", "config", without_kubernetes(copied(tmp_path), []))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name.partition(".")[0])
def test_rules_and_alerts_do_what_they_say(path: Path):
    done = promtool("test", "rules", path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_rule_that_is_broken_is_noticed(tmp_path: Path):
    """The tests of rules can fail: an alert about groups that asks for 1 instead of 0."""
    for name in ("rules.yml", "alerts.yml"):
        (tmp_path / name).write_text((CONFIG / name).read_text().replace("available) == 0", "available) == 1"))
    story = (ROOT / "tests" / "prometheus" / "order.test.yml").read_text()
    path = tmp_path / "order.test.yml"
    path.write_text(story.replace("../../deploy/prometheus/", ""))
    done = promtool("test", "rules", path)
    assert done.returncode != 0
    assert "OrdercastGroupWithoutQuorum" in done.stdout + done.stderr


def fired() -> set[str]:
    """Alerts that some test expects to fire."""
    found = set()
    for path in TESTS:
        for test in yaml.safe_load(path.read_text())["tests"]:
            found |= {case["alertname"] for case in test.get("alert_rule_test", []) if case["exp_alerts"]}
            for case in test.get("promql_expr_test", []):
                for sample in case["exp_samples"]:
                    found |= set(re.findall(r'alertname="(\w+)", alertstate="firing"', sample["labels"]))
    return found


def test_every_alert_is_seen_to_fire_by_a_test():
    assert set(ALERTS) - fired() == set()
    assert fired() - set(ALERTS) == set()


def headings(markdown: str) -> set[str]:
    """As anchors."""
    return {
        re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", markdown, re.MULTILINE)
    }


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_says_what_it_is_how_bad_and_where_it_says_what_to_do(name: str):
    alert = ALERTS[name]
    assert alert["labels"]["severity"] in ("critical", "warning")
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    file, _, anchor = alert["annotations"]["runbook_url"].partition("#")
    assert ROOT / file == DOCUMENT
    assert anchor in headings(DOCUMENT.read_text())


def test_rules_and_alerts_ask_only_for_what_is_emitted():
    expressions = [*recorded().values(), *(alert["expr"] for alert in ALERTS.values())]
    assert [error for expression in expressions for error in errors(expression)] == []


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("rate(ordercast_publish_mesages_total[1m])", "nobody emits ordercast_publish_mesages_total"),
        ("ordercast_delivery_lag_seconds", "nobody emits ordercast_delivery_lag_seconds"),
        ("group:ordercast_delivery_lag_seconds:p42", "nobody emits group:ordercast_delivery_lag_seconds:p42"),
        ('ordercast_nodes{domain="d"}', "ordercast_nodes has no label domain"),
        ('group:ordercast_delivery_lag_seconds:p99{instance="n"}', "p99 has no label instance"),
        ("sum by (groop) (ordercast_group_available)", "nothing here has a label groop"),
    ],
)
def test_a_name_or_label_that_nobody_emits_is_caught(expression: str, wrong: str):
    (error,) = errors(expression)
    assert wrong in error
