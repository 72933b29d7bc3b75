"""Telemetry of a load goes to the Spark job in the cluster, and metrics to Prometheus."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.trial import Progress, TrialReport
from tests.k8s.analytics.scraping import metrics, targets
from tests.k8s.installation import ANALYTICS_IMAGE, Installation, image_settings, installed
from tests.k8s.kube import KubectlFailed, wait_until
from tests.k8s.under_load import run_under_load
from tests.prometheus.server import copied, running, without_kubernetes

NAME = "observed"
GROUPS = {f"{NAME}-{letter}" for letter in "abc"}
RECEIPTS = 2_000
#: Between two messages of one producer, on average. Each makes dozens of records, and Spark takes long for many.
PAUSE_S = 0.05
#: To look into tables takes seconds of processor time, too.
LOOK_S = 10.0
#: A window of a minute is closed half a minute after its end, and Spark shares two processors with all the rest.
CLOSED_S_MAX = 600.0
TABLES = "/var/lib/ordercast/tables"
SETTINGS = (
    "profile=compact",
    "analytics.enabled=true",
    *image_settings(ANALYTICS_IMAGE, "analytics.image"),
    # Every trace: what was driven has to be seen.
    "settings.telemetry.sampling=1",
)


@pytest.fixture(scope="module")
def observed() -> Iterator[Installation]:
    with installed("ordercast-observed", *SETTINGS) as made:
        yield made


def report(where: Installation) -> dict[str, Any]:
    """Empty, as long as there are no tables."""
    (pod,) = where.pods("analytics")
    try:
        said = where.exec(pod.name, "ordercast", "analytics", "report", "--output", TABLES, "--json")
    except KubectlFailed:
        return {}
    return dict(json.loads(said))


def shows_all(where: Installation) -> bool:
    """By its metrics, which are cheap to read."""
    lags = [
        line for line in metrics(where, "analytics").splitlines() if line.startswith("ordercast_analytics_lag")
    ]
    return all(any(f'"{group}"' in line for line in lags) for group in GROUPS)


def has_seen_all(where: Installation) -> bool:
    return {lag["group"] for lag in report(where).get("lags", [])} >= GROUPS


@pytest.fixture(scope="module")
def load(observed: Installation) -> TrialReport:
    """It goes on until the job has told of it: windows are closed by what comes after them."""

    def during(progress: Progress) -> None:
        for _ in range(10):
            progress.wait_for_receipts(RECEIPTS // 10)
        wait_until("the job shows all groups", lambda: shows_all(observed), CLOSED_S_MAX)
        wait_until("its tables have all groups", lambda: has_seen_all(observed), CLOSED_S_MAX, LOOK_S)

    return run_under_load(observed, NAME, during, PAUSE_S)


def test_the_job_shows_the_lag_of_the_load(observed: Installation, load: TrialReport):
    found = report(observed)
    lags = [lag for lag in found["lags"] if lag["group"] in GROUPS]
    assert {lag["group"] for lag in lags} == GROUPS
    for lag in lags:
        assert lag["deliveries"] > 0
        assert 0 < lag["p50"] <= lag["p99"] <= lag["max"]
    assert not found["audit"]["violations"]


def test_prometheus_finds_all_pods_by_their_annotations(observed: Installation, load: TrialReport, tmp_path: Path):
    wanted = {pod.name for pod in observed.pods()}
    with running(tmp_path, without_kubernetes(copied(tmp_path), targets(observed))) as prometheus:

        def scraped() -> set[str]:
            return {each["metric"]["instance"] for each in prometheus.query("up == 1")}

        wait_until(f"Prometheus scrapes {sorted(wanted)}", lambda: scraped() == wanted)
        jobs = {each["metric"]["job"] for each in prometheus.query("up")}
        assert jobs == {"ordercast", "ordercast-telemetry", "ordercast-analytics"}
        (published,) = prometheus.query("sum(ordercast_publish_messages_total)")
        assert float(published["value"][1]) >= RECEIPTS
