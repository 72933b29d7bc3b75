"""Every panel of every dashboard shows something, in a real Prometheus that watches a real cluster."""

import math
import time
from pathlib import Path
from typing import Any

import pytest

from deploy.installations import LABELS
from ordercast.local.cluster import wait_until
from ordercast.telemetry.schema.model import load
from tests.grafana.committed import Panel, panels
from tests.grafana.scene import Scene, scene
from tests.prometheus.expressions import labels_of_metrics, names_in, recorded

#: A machine that runs other tests at the same time is slow, and windows of the Spark job take most of a minute.
SHOWN_S_MAX = 400.0
#: What is in order does not happen here: panels about it show none, by their own words (`or vector(0)`, `* 0`).
RARE = {
    "ordercast_certificate_left_seconds",
    "ordercast_certificate_lifetime_seconds",
    "ordercast_cursor_lag",
    "ordercast_cursor_age_seconds",
    "ordercast_inputs_refused_total",
    "ordercast_telemetry_dropped_total",
    "ordercast_spool_refused_total",
    "ordercast_spool_corrupt_total",
    "ordercast_analytics_violations_total",
    "ordercast_analytics_dead_letters_total",
    "ordercast_analytics_unavailable_seconds_total",
}
STAGES = "ordercast_stage_duration_seconds_count"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("with_job", [False, pytest.param(True, marks=pytest.mark.long)])
def test_every_panel_shows_something(tmp_path: Path, with_job: bool):
    """With the Spark job it takes minutes."""
    with scene(tmp_path, with_job=with_job) as made:
        wait_until("all nodes are scraped", lambda: value(made, 'sum(up{job="ordercast"})') == 3, SHOWN_S_MAX)
        wait_until(
            "there is traffic", lambda: value(made, "sum(ordercast_publish_messages_total)") > 0, SHOWN_S_MAX
        )
        made.cluster.kill("node-3")
        lacking = missing(made, SHOWN_S_MAX)
        assert lacking == [], "\n".join([*lacking, made.last_words()])
        assert exemplars(made) >= {
            "ordercast_publish_duration_seconds_bucket",
            "ordercast_stage_duration_seconds_bucket",
            "ordercast_delivery_lag_seconds_bucket",
        }


def value(made: Scene, expression: str) -> float:
    found = made.prometheus.query(expression)
    return float(found[0]["value"][1]) if found else 0.0


def missing(made: Scene, timeout_s: float) -> list[str]:
    """What shows nothing, and metrics that are not there, though everybody has had time to emit them."""
    deadline = time.monotonic() + timeout_s
    wait_until("stages are known", lambda: bool(made.prometheus.query(STAGES)), timeout_s)
    stages = [found["metric"]["stage"] for found in made.prometheus.query(f"group by (stage) ({STAGES})")]
    lacking = wanted(made.emitters, stages)
    while True:
        lacking = {what: expression for what, expression in lacking.items() if not shows(made, expression)}
        if not lacking or not made.all_run() or time.monotonic() > deadline:
            return sorted(lacking)
        time.sleep(1)


def wanted(emitters: set[str], stages: list[str]) -> dict[str, str]:
    """Expressions that have to show something.

    Those of panels, and each metric by itself, since a panel may say that there is none of it.
    """
    asked = {
        f"{panel}: {expression}": expression
        for panel in panels()
        if emitters_of(panel) <= emitters
        for expression in substituted(panel, stages)
    }
    names = {name for panel in panels() for expression in panel.expressions for name in metrics_in(expression)}
    return asked | {f"there is no {name}": name for name in names - RARE if emitter_of(name) in emitters}


def substituted(panel: Panel, stages: list[str]) -> list[str]:
    """Its queries as Grafana asks them with everything chosen; one that is repeated, for each stage."""
    chosen = stages if panel.body.get("repeat") == "stage" else [".*"]
    found = []
    for expression in panel.expressions:
        for name in (*LABELS, "domain", "group", "node"):
            expression = expression.replace(f"${name}", ".*")
        expression = expression.replace("$__rate_interval", "20s")
        found += [expression.replace("$stage", stage) for stage in chosen]
    return found


def shows(made: Scene, expression: str) -> bool:
    return has_numbers(made.prometheus.query(expression))


def has_numbers(series: list[dict[str, Any]]) -> bool:
    return any(not math.isnan(float(one["value"][1])) for one in series)


def test_a_panel_without_data_is_noticed():
    assert has_numbers([{"value": [0, "NaN"]}, {"value": [0, "1"]}])
    assert not has_numbers([])
    assert not has_numbers([{"value": [0, "NaN"]}])


# ------------------------------------------------------------------------------------------------ who emits what


def metrics_in(expression: str) -> set[str]:
    """Also behind what is recorded."""
    names = names_in(expression)
    return {inner for name in names for inner in (metrics_in(recorded()[name]) if name in recorded() else {name})}


def emitter_of(name: str) -> str:
    schema = load()
    (found,) = {
        metric.emitter
        for metric in schema.metrics.values()
        if name == metric.prometheus or (metric.instrument == "histogram" and is_part(name, metric.prometheus))
    }
    return found


def is_part(name: str, histogram: str) -> bool:
    return name in (f"{histogram}_bucket", f"{histogram}_sum", f"{histogram}_count")


def emitters_of(panel: Panel) -> set[str]:
    return {emitter_of(name) for expression in panel.expressions for name in metrics_in(expression)}


def exemplars(made: Scene) -> set[str]:
    """Metrics of which Prometheus has exemplars with trace ids."""
    now = time.time()
    wanted = [name for name in labels_of_metrics() if name.endswith("_bucket")]
    found = made.prometheus.ask(
        "query_exemplars", query=" or ".join(wanted), start=str(now - 600), end=str(now + 60)
    )
    return {
        series["seriesLabels"]["__name__"]
        for series in found
        if all(len(one["labels"]["trace_id"]) == 32 for one in series["exemplars"])
    }
