"""The Spark session: what all streams share. What `spark-submit` was told stays as it is."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

from ordercast.analytics import needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP = "ordercast-analytics"
MASTER = "local[2]"
DRIVER_MEMORY = "1g"
SHUFFLE_PARTITIONS = 2
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

#: For every session; what `spark-submit --conf` says goes first.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Of all streams together; without it, each of them takes what it likes.
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "384",
    # The number of batches to look back at after a failure; each keeps its files.
    "spark.sql.streaming.minBatchesToRetain": "10",
    # Rows of several kinds are written at once, instead of being sorted first.
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    # A worker that has just been started on a busy machine is not given up.
    "spark.python.authenticate.socketTimeout": "120s",
    "spark.sql.parquet.compression.codec": "snappy",
    # Each stream tells its progress once for a batch; nobody looks at more than the last few.
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.sql.streaming.forceDeleteTempCheckpointLocation": "true",
    "spark.log.level": "ERROR",
}
#: For a session on this machine alone.
LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": DRIVER_MEMORY,
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Djava.net.preferIPv4Stack=true",
    "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
    "spark.default.parallelism": str(SHUFFLE_PARTITIONS),
}


@dataclass(frozen=True, slots=True)
class SessionSettings:
    #: Empty: as `spark-submit` says, else two threads of this process.
    master: str = ""
    more: dict[str, str] = field(default_factory=dict)


def is_submitted() -> bool:
    """Whether `spark-submit` has started this process: then there is a JVM already, with its own settings."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _given() -> dict[str, str]:
    """What `spark-submit` was told; nothing without it."""
    if not is_submitted():
        return {}
    from pyspark import SparkConf

    return dict(SparkConf().getAll())


def start(settings: SessionSettings | None = None) -> "SparkSession":
    needs.check()
    from pyspark.sql import SparkSession

    settings = settings or SessionSettings()
    builder = SparkSession.builder.appName(APP)
    told = dict(SETTINGS)
    if not is_submitted():
        # Workers are started with the interpreter that runs this, not with the first on the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # RocksDB is used by many threads, for each of which glibc would keep memory apart.
        os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    given = _given()
    master = settings.master or given.get("spark.master", MASTER)
    if settings.master or not is_submitted():
        builder = builder.master(master)
    if master.startswith("local"):
        # Without it, Spark divides state into 200 parts, each of which is work in every batch.
        told |= LOCAL_SETTINGS | {"spark.local.dir": str(Path(gettempdir()))}
    told |= settings.more
    told = {name: value for name, value in told.items() if name not in given}
    for name, value in told.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
