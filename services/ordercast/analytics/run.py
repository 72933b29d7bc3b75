"""`ordercast analytics run`: from settings to a job that runs until it is done, or until it is told to stop."""

import os
import re
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.analytics import needs, session
from ordercast.analytics.certificates import Certificates
from ordercast.analytics.errors import AnalyticsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ordercast.analytics.job import Job
    from ordercast.analytics.sources import Records

SPOOL, KAFKA = SOURCES = ("spool", "kafka")
TOPIC = "ordercast-telemetry"
#: A stream that fails is started again, so often in a row; the pause doubles each time.
RESTARTS_MAX = 8
#: How long the telemetry service may be away when the job starts.
PATIENCE_S = 30.0
CAUSE_MAX = 500
FORGET_EVERY_S = 3600.0
RESTART_S, RESTART_S_MAX = 2.0, 60.0


@dataclass(frozen=True, slots=True)
class RunSettings:
    source: str
    #: Of the telemetry service, or of Kafka's brokers.
    address: str
    output: Path
    checkpoint: Path | None = None
    is_once: bool = False
    master: str = ""
    metrics_listen: str = ""
    topic: str = TOPIC
    #: A folder with Spark's connector to Kafka and what it needs; none: they are fetched from Maven Central.
    jars: Path | None = None
    trigger_s: float = 5.0
    #: Records; messages of Kafka, each of which has many.
    per_trigger_max: int = 250_000
    partitions: int = 2
    #: Days that tables keep; 0: all.
    keep_days: int = 30
    #: Of the telemetry service; none: no TLS.
    certificates: Certificates | None = None


def run(settings: RunSettings) -> None:
    needs.check()
    # Spark forks to start its JVM. What gRPC would do in the child then is of no use, and may fail.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    if settings.source == SPOOL:
        # Before Spark is started, which takes longer than to find out that nobody is there.
        check_spool(settings.address, settings.certificates)
    spark = session.start(session_settings(settings))
    try:
        run_in(spark, settings)
    finally:
        spark.stop()


def check_spool(address: str, certificates: Certificates | None = None) -> None:
    from ordercast.analytics.spool_client import SpoolClient, SpoolError

    try:
        with SpoolClient(address, certificates, PATIENCE_S) as client:
            client.describe()
    except SpoolError as error:
        raise AnalyticsError(f"the telemetry service at {address}: {error}") from error


def session_settings(settings: RunSettings) -> session.SessionSettings:
    if settings.source != KAFKA or session.is_submitted():
        return session.SessionSettings(settings.master)
    if settings.jars is None:
        import pyspark

        from ordercast.analytics.sources import connector

        return session.SessionSettings(settings.master, {"spark.jars.packages": connector(pyspark.__version__)})
    jars = sorted(str(path) for path in settings.jars.glob("*.jar"))
    if not jars:
        raise AnalyticsError(f"there is no .jar in {settings.jars}")
    return session.SessionSettings(settings.master, {"spark.jars": ",".join(jars)})


def run_in(spark: "SparkSession", settings: RunSettings) -> None:
    from ordercast.analytics.job import Job
    from ordercast.analytics.prometheus import Exporter

    job = Job.at(spark, settings.output, settings.checkpoint, settings.trigger_s, settings.keep_days)
    job.prepare()
    if settings.metrics_listen:
        host, port = host_and_port(settings.metrics_listen)
        exporter = Exporter(job.tables)
        say(f"metrics on http://{host}:{exporter.serve(host, port)}/metrics")
        spark.streams.addListener(exporter)
    records = records_of(spark, settings)
    say(f"reading {settings.source} at {settings.address}, writing to {settings.output}")
    if settings.is_once:
        once(job, records)
    else:
        Supervisor(job, records).run()


def records_of(spark: "SparkSession", settings: RunSettings) -> "Records":
    from ordercast.analytics.sources import kafka, spool

    if settings.source == KAFKA:
        return kafka(spark, settings.address, settings.topic, settings.per_trigger_max)
    return spool(spark, settings.address, settings.per_trigger_max, settings.partitions, settings.certificates)


def once(job: "Job", records: "Records") -> None:
    from pyspark.errors import StreamingQueryException

    try:
        begun = time.monotonic()
        job.run_once(records, on_step=lambda name: say(f"{time.monotonic() - begun:5.1f} s  {name}"))
    except StreamingQueryException as error:
        raise AnalyticsError(f"a stream failed: {cause_of(error)}") from error


class Supervisor:
    """Runs all streams until it is told to stop, and starts those again that fail."""

    def __init__(self, job: "Job", records: "Records") -> None:
        self._job = job
        self._records = records
        self._is_stopping = threading.Event()

    def run(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self._is_stopping.set())
        queries = {query.name: query for query in self._job.start_all(self._records)}
        failures = dict.fromkeys(queries, 0)
        batches = dict.fromkeys(queries, -1)
        due_s: dict[str, float] = {}
        forget_s = time.monotonic() + FORGET_EVERY_S
        try:
            while not self._is_stopping.wait(0.5):
                if time.monotonic() >= forget_s:
                    self._job.forget_old_days()
                    forget_s += FORGET_EVERY_S
                for name, query in list(queries.items()):
                    if query.isActive:
                        latest = query.lastProgress
                        if latest is not None and latest.batchId > batches[name]:
                            batches[name], failures[name] = latest.batchId, 0
                    elif name not in due_s:
                        due_s[name] = time.monotonic() + self._failed(name, query, failures)
                    elif time.monotonic() >= due_s.pop(name):
                        queries[name] = self._job.start_named(name, self._records)
        finally:
            for query in queries.values():
                query.stop()

    def _failed(self, name: str, query: "StreamingQuery", failures: dict[str, int]) -> float:
        """How long to wait before it is started again."""
        error = query.exception()
        failures[name] += 1
        text = f"the stream {name} failed: {cause_of(error) if error else 'it ended'}"
        if failures[name] > RESTARTS_MAX:
            raise AnalyticsError(text)
        say(f"{text}; it is started again")
        return min(RESTART_S * 2 ** (failures[name] - 1), RESTART_S_MAX)


def cause_of(error: BaseException) -> str:
    """What a worker raised, if it was one: Spark wraps it into many others, and puts its plans behind it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if "AnalyticsError: " in line]
    if ours:
        return ours[-1].partition("AnalyticsError: ")[2]
    raised = [
        line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line) and "PythonException" not in line
    ]
    return (raised or lines or [repr(error)])[0][:CAUSE_MAX]


def host_and_port(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise AnalyticsError(f"an address is HOST:PORT, and this is not: {text}")
    return host, int(port)


def say(text: str) -> None:
    print(f"ordercast analytics: {text}", file=sys.stderr, flush=True)
