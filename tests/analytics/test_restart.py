"""A job that is killed and started again ends with the tables of one that was not."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pandas as pd
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ordercast.analytics.job import Job
from ordercast.analytics.sources import spool
from ordercast.analytics.spool_server import MemorySpool, served
from ordercast.analytics.streams import STREAMS
from ordercast.analytics.tables import EVENTS, Tables, batches
from ordercast.telemetry.schema.model import load
from tests.analytics.planted import Planted, spoiled

PATIENCE_S = 400.0
SEGMENT = 2500
PER_TRIGGER = 8000


@contextmanager
def job_process(address: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The real command, in a process group of its own."""
    command = [sys.executable, "-m", "ordercast.cli.main", "analytics", "run", "--address", address]
    command += ["--output", str(folder), "--trigger", "0.1", "--per-trigger", str(PER_TRIGGER)]
    command += ["--metrics-listen", "127.0.0.1:0", "--keep-days", "0"]
    with (folder.parent / f"{folder.name}.log").open("w") as log:
        process = subprocess.Popen(command, stderr=log, stdout=log, text=True, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], log: Path) -> None:
    begun = time.monotonic()
    while not condition():
        assert process.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() - begun < PATIENCE_S, log.read_text()[-3000:]
        time.sleep(0.1)


def comparable(tables: Tables, name: str) -> pd.DataFrame:
    """Rows in an order that does not depend on who wrote them when."""
    found = tables.read(name)
    if found is None:
        return pd.DataFrame()
    frame = found.to_pandas().map(str)
    columns = sorted(frame.columns)
    return frame[columns].sort_values(columns).reset_index(drop=True)


def shown(url: str) -> dict[str, float]:
    """Samples with labels that have a value, by name: the sum over labels."""
    with urlopen(url) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    sums: dict[str, float] = {}
    for family in families:
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
    return sums


def metrics_url(log: Path) -> str:
    (line,) = [line for line in log.read_text().splitlines() if "metrics on " in line]
    return line.partition("metrics on ")[2]


def test_a_killed_job_that_is_started_again_ends_with_the_same_tables(spark: Any, run: Planted, tmp_path: Path):
    killed, log = tmp_path / "killed", tmp_path / "killed.log"
    with served(MemorySpool(spoiled(run.clean), SEGMENT)) as address:
        with job_process(address, killed) as process:
            # In the middle of it: some batches are there, and there is more to come.
            wait_for(lambda: len(batches(killed / EVENTS)) >= 2, process, log)
            wait_for(lambda: bool(batches(killed / "audit")), process, log)
            seen = shown(metrics_url(log))
            os.killpg(process.pid, signal.SIGKILL)
        assert seen["ordercast_analytics_rows_total"] > 0
        known = {metric.prometheus for metric in load().metrics.values()}
        ours = {name for name in seen if name.startswith("ordercast_") and not name.endswith("_created")}
        assert ours <= known, "only names of the schema"
        Job.at(spark, killed).run_once(spool(spark, address, PER_TRIGGER, 2))
    for name in (EVENTS, *(stream.name for stream in STREAMS)):
        one, other = comparable(Tables(killed), name), comparable(run.tables, name)
        assert len(other), name
        pd.testing.assert_frame_equal(one, other, obj=name)


def test_a_job_without_a_telemetry_service_says_so(monkeypatch: pytest.MonkeyPatch):
    from ordercast.analytics import run
    from ordercast.analytics.errors import AnalyticsError

    monkeypatch.setattr(run, "PATIENCE_S", 0.2)
    with pytest.raises(AnalyticsError, match=r"the telemetry service at 127\.0\.0\.1:1: "):
        run.check_spool("127.0.0.1:1")
