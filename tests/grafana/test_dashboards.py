"""Dashboards are what the code makes of them, whole, and ask only for what is emitted."""

import re
from typing import Any

import pytest
import yaml

from deploy.grafana.generate import dashboards as generated
from deploy.installations import LABELS
from tests.grafana.committed import FOLDER, Panel, dashboards, panels, panels_of
from tests.prometheus.expressions import errors, labels_of_metrics, names_in, recorded
from tests.tidy.rules import ROOT

PROVISIONING = ROOT / "deploy" / "grafana" / "provisioning"
VARIABLES = {"datasource", *LABELS, "domain", "group", "node"}


def test_the_committed_dashboards_are_those_that_the_code_makes():
    committed = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    assert committed == generated(), "run `make dashboards`"


def lacking(panel: Panel) -> list[str]:
    """What a panel has to have and does not."""
    body = panel.body
    defaults = body.get("fieldConfig", {}).get("defaults", {})
    found = {
        "a title": panel.title,
        "a description": body.get("description"),
        "a unit": defaults.get("unit"),
        "a query": panel.expressions and all(panel.expressions),
        "the data source that is chosen": body.get("datasource", {}).get("uid") == "${datasource}",
    }
    return [f"{panel} has not {what}" for what, value in found.items() if not value]


def test_no_panel_lacks_a_title_a_description_a_unit_or_a_query():
    assert len(panels()) > 50
    assert [error for panel in panels() for error in lacking(panel)] == []


@pytest.mark.parametrize("part", ["title", "description", "fieldConfig", "targets", "datasource"])
def test_a_panel_that_lacks_something_is_caught(part: str):
    whole = panels()[0]
    assert lacking(whole) == []
    broken = Panel("broken", {name: value for name, value in whole.body.items() if name != part})
    assert len(lacking(broken)) == 1


@pytest.mark.parametrize("uid", dashboards())
def test_what_is_shown_can_be_chosen(uid: str):
    dashboard = dashboards()[uid]
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    assert variables >= VARIABLES
    used = {
        name
        for panel in panels_of(dashboard)
        for expression in panel.expressions
        for name in re.findall(r"\$(\w+)", expression)
    }
    assert used - variables <= {"__rate_interval"}


def test_every_query_is_of_the_installations_that_are_chosen():
    """All series of all panels, and what can be chosen in all other variables."""
    asked = [expression for panel in panels() for expression in panel.expressions]
    for dashboard in dashboards().values():
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query" and variable["name"] not in LABELS:
                asked.append(variable["query"]["query"])
    assert [text for text in asked if not chooses_everywhere(text)] == []
    assert not chooses_everywhere("sum(ordercast_nodes)")


def chooses_everywhere(expression: str) -> bool:
    chooser = ", ".join(f'{label}=~"${label}"' for label in LABELS)
    series = len(re.findall(r"ordercast_\w+|\bprocess_\w+|\bup\b|ALERTS", re.sub(r'"[^"]*"', "", expression)))
    return 0 < series == expression.count(chooser)


def test_panels_ask_only_for_what_is_emitted():
    found = [f"{panel}: {e}" for panel in panels() for expression in panel.expressions for e in errors(expression)]
    assert found == []


def test_what_can_be_chosen_comes_from_what_is_emitted():
    for dashboard in dashboards().values():
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                text = variable["query"]["query"]
                metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)", text).groups()
                assert list(errors(f"sum by ({label}) ({metric})")) == []


def asked_for() -> set[str]:
    """Metrics that some panel shows, also by what is recorded."""
    names = {name for panel in panels() for expression in panel.expressions for name in names_in(expression)}
    return names | {inner for name in names if name in recorded() for inner in names_in(recorded()[name])}


def test_every_metric_is_shown_somewhere():
    shown = {without_part(name) for name in asked_for()}
    assert {name for name in labels_of_metrics() if without_part(name) not in shown} == set()


def without_part(name: str) -> str:
    """Of a histogram it is enough to show something."""
    return re.sub(r"_(bucket|sum|count)$", "", name)


def test_links_lead_to_dashboards_that_are_there():
    urls = [link["url"] for panel in panels() for link in panel.body.get("links") or []]
    assert urls
    assert {url.split("/d/")[1].split("?")[0] for url in urls} <= dashboards().keys()


def provisioned(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((PROVISIONING / name).read_text())
    return found


def test_grafana_finds_its_data_source_and_the_dashboards():
    (source,) = provisioned("datasources/prometheus.yaml")["datasources"]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    (provider,) = provisioned("dashboards/ordercast.yaml")["providers"]
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    mounted = dict(reversed(mount.split(":")[:2]) for mount in compose["services"]["grafana"]["volumes"])
    folder = mounted[provider["options"]["path"]]
    assert (ROOT / "deploy" / folder).resolve() == FOLDER
    assert source["url"] == "http://prometheus:9090"
