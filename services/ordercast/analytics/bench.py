"""`ordercast analytics bench`: how many records a second each stream takes on this machine.

The spool is in memory and served over gRPC by this process, as the telemetry service serves it; its work is in the
figures. Everything runs once over a small spool before it is measured: a JVM that has just begun is slow, and a
job runs for weeks. What is measured is one pass over all records with the trigger available-now, from the start of
the stream to its end; state, checkpoints and Parquet files are written as always.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table

from ordercast.analytics import needs, session
from ordercast.analytics.memory import peak_bytes

Say = Callable[[str], None]

#: Records per second, on two cores.
GOALS = {"events": 100_000, "lag": 40_000, "audit": 40_000}
DRIVER_BYTES_MAX = 2 << 30
WARM_UP_RECORDS = 300_000
#: A record more than six times an envelope: deliveries at its replicas, and spans of one in ten.
RECORDS_OF_ENVELOPE = 6.1
CORES = 2


@dataclass(slots=True)
class Row:
    stream: str
    partitions: int
    #: Of the kinds that the stream reads.
    records: int
    seconds: float
    batches: int
    state_rows: int

    @property
    def per_second(self) -> float:
        return self.records / self.seconds


@dataclass(slots=True)
class Result:
    records: int
    cores: int
    load: float
    spark: str
    rows: list[Row] = field(default_factory=list)
    #: The most memory of the JVM with the driver and all tasks in it, and of its Python processes together.
    jvm_bytes: int = 0
    python_bytes: int = 0

    def document(self) -> dict[str, Any]:
        rows = [asdict(row) | {"records_per_s": round(row.per_second)} for row in self.rows]
        return asdict(self) | {"rows": rows, "goals": self.goals()}

    def goals(self) -> list[dict[str, Any]]:
        best = max(row.partitions for row in self.rows)
        found = []
        for stream, goal in GOALS.items():
            reached = next(row.per_second for row in self.rows if row.stream == stream and row.partitions == best)
            found.append(
                {"goal": f"{stream}, records/s", "wanted": goal, "reached": round(reached), "met": reached >= goal}
            )
        met = self.jvm_bytes <= DRIVER_BYTES_MAX
        return [
            *found,
            {"goal": "driver, bytes at most", "wanted": DRIVER_BYTES_MAX, "reached": self.jvm_bytes, "met": met},
        ]

    def tables(self) -> list[Table]:
        rows = Table(
            title=f"{self.records:,} records, {self.cores} cores, Spark {self.spark}", title_justify="left"
        )
        for heading in ("stream", "partitions", "records", "seconds", "records/s", "batches", "state rows"):
            rows.add_column(heading, justify="left" if heading == "stream" else "right")
        for row in self.rows:
            numbers = (row.records, f"{row.seconds:.1f}", f"{row.per_second:,.0f}", row.batches, row.state_rows)
            rows.add_row(
                row.stream, str(row.partitions), *(n if isinstance(n, str) else f"{n:,}" for n in numbers)
            )
        goals = Table(title="Goals", title_justify="left")
        for heading in ("", "goal", "wanted", "reached"):
            goals.add_column(heading, justify="right" if heading in ("wanted", "reached") else "left")
        for goal in self.goals():
            goals.add_row("✓" if goal["met"] else "✗", goal["goal"], f"{goal['wanted']:,}", f"{goal['reached']:,}")
        return [rows, goals]


def run(records: int, partitions: list[int], say: Say) -> Result:
    needs.check()
    import pyspark

    cores = min(CORES, os.cpu_count() or 1)
    result = Result(records, cores, os.getloadavg()[0], pyspark.__version__)
    for count in partitions:
        # State has as many partitions as it began with, so each number has a session of its own; and a JVM of its
        # own, for memory that one session took is not given back to the system.
        with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
            say(f"{count} partitions: making {records:,} records")
            rows, jvm_bytes, python_bytes = process.submit(_measure, records, count, cores).result()
        result.rows += rows
        result.jvm_bytes = max(result.jvm_bytes, jvm_bytes)
        result.python_bytes = max(result.python_bytes, python_bytes)
        for row in rows:
            say(f"{count} partitions: {row.stream}, {row.per_second:,.0f} records/s")
    return result


def _measure(records: int, partitions: int, cores: int) -> tuple[list[Row], int, int]:
    """In a process of its own: what each stream took, and the most memory of the JVM and of Python."""
    from ordercast.analytics.spool_server import MemorySpool
    from ordercast.analytics.synthetic import Cluster, Plan

    table = Cluster(Plan(round(records / RECORDS_OF_ENVELOPE) + 1, slow="n3", rate=5000)).table().slice(0, records)
    more = {
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.default.parallelism": str(partitions),
    }
    spark = session.start(session.SessionSettings(f"local[{cores}]", more=more))
    try:
        with TemporaryDirectory(prefix="ordercast-bench-") as folder:
            warm_up = MemorySpool(table.slice(0, min(WARM_UP_RECORDS, records)))
            _pass(spark, warm_up, Path(folder) / "warm-up", partitions)
            shutil.rmtree(Path(folder) / "warm-up")
            rows = _pass(spark, MemorySpool(table), Path(folder) / "measured", partitions)
            return rows, *peak_bytes()
    finally:
        spark.stop()


def _pass(spark: Any, spool: Any, folder: Path, partitions: int) -> list[Row]:
    from ordercast.analytics.job import Job
    from ordercast.analytics.sources import spool as spool_source
    from ordercast.analytics.spool_server import served
    from ordercast.analytics.streams import STREAMS
    from ordercast.analytics.tables import EVENTS

    job, rows = Job.at(spark, folder), []
    job.prepare()
    for name in (EVENTS, *(stream.name for stream in STREAMS)):
        # This process has no other way to show how far it is.
        print(f"{partitions} partitions: {folder.name}: {name}", file=sys.stderr, flush=True)
        begun = time.monotonic()
        if name == EVENTS:
            with served(spool) as address:
                query = job.land(spool_source(spark, address, spool.end, partitions), is_once=True)
                query.awaitTermination()
        else:
            query = job.start(next(stream for stream in STREAMS if stream.name == name), is_once=True)
            query.awaitTermination()
        seconds = time.monotonic() - begun
        progress = list(query.recentProgress)
        read = sum(one.numInputRows for one in progress)
        kept = max((sum(operator.numRowsTotal for operator in one.stateOperators) for one in progress), default=0)
        if read:
            rows.append(Row(name, partitions, read, seconds, len(progress), kept))
    return rows
