"""The job's results as metrics, from the driver: Grafana then has one data source.

Spark tells after each batch of each stream what it has done. What the batch has put into a table is then read from
its files, by the sink's own log: nothing is worked out twice, and what is shown is what is in the tables.

Gauges are of the latest window that is finished. Counters begin with what the tables hold, so that a violation
that was found before a restart of the job is not forgotten.
"""

import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from ordercast.analytics.audit.findings import VIOLATION
from ordercast.analytics.blockers import MESSAGE
from ordercast.analytics.errors import AnalyticsError
from ordercast.analytics.events import NEWEST
from ordercast.analytics.lag import TO_DELIVERY
from ordercast.analytics.streams import AUDIT, BLOCKERS, DEAD_LETTERS, LAG, SPREAD, UNAVAILABILITY
from ordercast.analytics.tables import Tables, batch_files, read_file
from ordercast.telemetry.schema import names
from ordercast.telemetry.schema.model import load

QUANTILES = {"0.5": "p50", "0.95": "p95", "0.99": "p99", "1": "max"}
#: Values of one label; what is beyond is told together.
LABELS_MAX = 200
OTHER = "other"

Row = Mapping[str, Any]


class Results:
    """The metrics, and what rows of each table do to them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._metrics: dict[str, Gauge | Counter] = {}
        for metric in load().metrics.values():
            if metric.emitter == "analytics":
                labels = [load().attributes[name].prometheus for name in metric.attributes]
                kind = Counter if metric.instrument == "counter" else Gauge
                made = kind(metric.prometheus, metric.meaning, labels, registry=self.registry)
                self._metrics[metric.name] = made
        self._latest: dict[str, Any] = {}
        #: Domains and groups that have been unavailable.
        self._refusing: set[tuple[str, ...]] = set()
        self._of_table: dict[str, Callable[[list[Row]], None]] = {
            LAG.name: self._lag,
            SPREAD.name: self._spread,
            BLOCKERS.name: self._blockers,
            AUDIT.name: self._audit,
            UNAVAILABILITY.name: self._unavailability,
            DEAD_LETTERS.name: self._dead_letters,
        }

    def begin(self, tables: Tables) -> None:
        """Counts what was there before."""
        for name in (AUDIT.name, UNAVAILABILITY.name, DEAD_LETTERS.name):
            for path in tables.files(name):
                self.add(name, read_file(path).to_pylist())

    def is_shown(self, table: str) -> bool:
        return table in self._of_table

    def add(self, table: str, rows: list[Row]) -> None:
        if rows:
            self._of_table[table](rows)

    def progress(self, stream: str, progress: Any) -> None:
        self._counter(names.METRIC_ANALYTICS_ROWS, stream).inc(progress.numInputRows)
        duration_ms = progress.durationMs.get("triggerExecution", 0)
        self._gauge(names.METRIC_ANALYTICS_BATCH_DURATION, stream).set(duration_ms / 1000)
        newest = _newest(stream, progress)
        if newest is not None:
            age_s = (datetime.now(UTC) - newest).total_seconds()
            self._gauge(names.METRIC_ANALYTICS_BEHIND, stream).set(max(age_s, 0.0))
        kept = sum(operator.numRowsTotal for operator in progress.stateOperators)
        if kept or stream in (LAG.name, AUDIT.name):
            self._gauge(names.METRIC_ANALYTICS_STATE_ROWS, stream).set(kept)
        if stream == AUDIT.name:
            self._counter(names.METRIC_ANALYTICS_AUDITED).inc(progress.numInputRows)

    def _lag(self, rows: list[Row]) -> None:
        self._quantiles(names.METRIC_ANALYTICS_LAG, [row for row in rows if row["measure"] == TO_DELIVERY])

    def _spread(self, rows: list[Row]) -> None:
        apart = [row for row in rows if row["node"] is None]
        self._quantiles(names.METRIC_ANALYTICS_REPLICA_SPREAD, apart)
        behind: dict[tuple[str, ...], float] = {}
        for row in self._newest(names.METRIC_ANALYTICS_STRAGGLING, [row for row in rows if row["node"]]):
            key = (_bounded(row["node"], behind),)
            behind[key] = max(behind.get(key, 0.0), row["p95"])
        self._show(names.METRIC_ANALYTICS_STRAGGLING, behind)

    def _quantiles(self, metric: str, rows: list[Row]) -> None:
        values: dict[tuple[str, ...], float] = {}
        for row in self._newest(metric, rows):
            group = _bounded(row["group"] or "", values, at=1)
            for quantile, column in QUANTILES.items():
                key = (row["domain"] or "", group, quantile)
                values[key] = max(values.get(key, 0.0), row[column])
        self._show(metric, values)

    def _blockers(self, rows: list[Row]) -> None:
        waits: dict[tuple[str, ...], float] = {}
        many: dict[tuple[str, ...], float] = {}
        for row in self._newest(names.METRIC_ANALYTICS_BLOCKED, rows):
            blocker = "message" if row["blocker"].startswith(MESSAGE) else _bounded(row["blocker"], waits, at=2)
            key = (row["domain"] or "", row["stage"] or "", blocker)
            waits[key] = waits.get(key, 0.0) + row["wait_sum"]
            many[key] = many.get(key, 0.0) + row["envelopes"]
        self._show(names.METRIC_ANALYTICS_BLOCKED, waits)
        self._show(names.METRIC_ANALYTICS_BLOCKED_ENVELOPES, many)

    def _audit(self, rows: list[Row]) -> None:
        for row in rows:
            if row["severity"] == VIOLATION:
                self._counter(names.METRIC_ANALYTICS_VIOLATIONS, row["violation"]).inc(row["count"])

    def _unavailability(self, rows: list[Row]) -> None:
        for row in rows:
            labels = row["domain"] or "", _bounded(row["group"] or "", self._refusing, at=1)
            self._refusing.add(labels)
            self._counter(names.METRIC_ANALYTICS_UNAVAILABLE, *labels).inc(row["duration_us"] / 1e6)

    def _dead_letters(self, rows: list[Row]) -> None:
        for row in rows:
            # A reason may go into detail behind a colon; the label does not.
            reason = str(row["reason"]).partition(":")[0][:64]
            self._counter(names.METRIC_ANALYTICS_DEAD_LETTERS, reason).inc()

    def _newest(self, metric: str, rows: list[Row]) -> list[Row]:
        """Rows of the latest window, if it is later than what is shown."""
        newest = max((row["window_end"] for row in rows), default=None)
        if newest is None or (metric in self._latest and newest < self._latest[metric]):
            return []
        self._latest[metric] = newest
        return [row for row in rows if row["window_end"] == newest]

    def _show(self, metric: str, values: Mapping[tuple[str, ...], float]) -> None:
        if values:
            gauge = self._gauge(metric)
            gauge.clear()
            for labels, value in values.items():
                gauge.labels(*labels).set(value)

    def _gauge(self, metric: str, *labels: str) -> Gauge:
        made = self._metrics[metric]
        assert isinstance(made, Gauge)
        return made.labels(*labels) if labels else made

    def _counter(self, metric: str, *labels: str) -> Counter:
        made = self._metrics[metric]
        assert isinstance(made, Counter)
        return made.labels(*labels) if labels else made


def _newest(stream: str, progress: Any) -> datetime | None:
    """The time of the newest record in a batch, where the stream knows it; the audit goes by the time of
    batches.
    """
    if NEWEST in progress.observedMetrics:
        received_ns = progress.observedMetrics[NEWEST]["received_ns"]
        return None if received_ns is None else datetime.fromtimestamp(received_ns / 1e9, UTC)
    if stream == AUDIT.name or "max" not in progress.eventTime:
        return None
    return datetime.fromisoformat(progress.eventTime["max"].replace("Z", "+00:00"))


def _bounded(value: str, known: Iterable[tuple[str, ...]], at: int = 0) -> str:
    values = {labels[at] for labels in known}
    return value if value in values or len(values) < LABELS_MAX else OTHER


class Exporter(StreamingQueryListener):
    """Hears of every batch."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.results = Results()
        self.results.begin(tables)

    def serve(self, host: str, port: int) -> int:
        """On this address; the port, which is another one if it was 0."""
        try:
            server, _ = start_http_server(port, host, registry=self.results.registry)
        except OSError as error:
            raise AnalyticsError(f"cannot serve metrics on {host}:{port}: {error.strerror}") from error
        return int(server.server_port)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        try:
            self.results.progress(progress.name, progress)
            if self.results.is_shown(progress.name):
                for path in batch_files(self._tables.path(progress.name), progress.batchId):
                    self.results.add(progress.name, read_file(path).to_pylist())
        except Exception:
            # Spark would swallow it; and metrics are no reason to end the job.
            traceback.print_exc(file=sys.stderr)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        pass
