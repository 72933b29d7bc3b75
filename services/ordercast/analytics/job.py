"""The job: one stream that makes events of records, and all others that read those.

Every stream has a checkpoint of its own and writes with Spark's file sink, so that each batch is in its table
once, also if the job is killed in the middle of one. Events are read by the log that the sink keeps of what it has
committed: nothing that a killed batch left behind is ever read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException
from pyspark.sql.types import StructType

from ordercast.analytics import rest, retention
from ordercast.analytics.errors import AnalyticsError
from ordercast.analytics.events import landed
from ordercast.analytics.records import spark_schema
from ordercast.analytics.sources import Records
from ordercast.analytics.streams import STREAMS, Stream
from ordercast.analytics.tables import CHECKPOINTS, EVENTS, METADATA, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

#: How often a stream is started that ends by itself.
ATTEMPTS = 3
PARTITIONED_BY = ("date", "kind")
#: Columns whose values hardly repeat: a dictionary of them costs time, and then is thrown away.
UNLIKE = (
    *("offset", "time_ns", "start_ns", "received_ns", "published_ns", "position", "first_offset"),
    *("trace_id", "span_id", "parent_span_id", "envelope", "order_key"),
)
#: A writer holds so much before it writes; there is one for each kind of record in each task.
ROW_GROUP_BYTES = 32 << 20
#: Told the name of what is done.
OnStep = Callable[[str], None]
COUNT_STATE = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"


@dataclass(frozen=True, slots=True)
class Job:
    spark: "SparkSession"
    tables: Tables
    checkpoints: Path
    #: How often streams look for something new.
    trigger_s: float = 5.0
    #: How many days tables keep; 0: all.
    keep_days: int = 0

    @staticmethod
    def at(
        spark: "SparkSession",
        output: Path,
        checkpoints: Path | None = None,
        trigger_s: float = 5.0,
        keep_days: int = 0,
    ) -> "Job":
        return Job(spark, Tables(output), checkpoints or output / CHECKPOINTS, trigger_s, keep_days)

    def prepare(self) -> None:
        rest.forget(self.tables)
        try:
            # A reader that finds files and no log would take all files, also those of a batch that fails.
            (self.tables.path(EVENTS) / METADATA).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AnalyticsError(f"cannot write to {self.tables.folder}: {error.strerror}") from error
        self.forget_old_days()

    def forget_old_days(self) -> None:
        retention.forget(self.tables, (EVENTS, *(stream.name for stream in STREAMS)), self.keep_days)

    def run_once(
        self, records: Records, streams: tuple[Stream, ...] = STREAMS, on_step: OnStep = lambda _: None
    ) -> None:
        """Everything that is there now, and then what is not final yet. It tells what it has done so far."""
        self.prepare()
        self._finish({EVENTS: lambda: self.land(records, is_once=True)}, on_step)
        self._finish({stream.name: partial(self.start, stream, is_once=True) for stream in streams}, on_step)
        rest.write(self.spark, self.tables, self.checkpoints)
        on_step("what is not final yet")

    def _finish(self, starts: dict[str, Callable[[], "StreamingQuery"]], on_step: OnStep) -> None:
        """All of them at once. One that fails goes on from its checkpoint, a few times.

        On a machine that is busy with something else, Spark gives its own Python processes up after ten seconds.
        """
        queries = {name: start() for name, start in starts.items()}
        for name, query in queries.items():
            for attempt in range(ATTEMPTS):
                try:
                    query.awaitTermination()
                    break
                except StreamingQueryException:
                    if attempt == ATTEMPTS - 1:
                        raise
                    query = starts[name]()
            on_step(name)

    def start_all(self, records: Records, streams: tuple[Stream, ...] = STREAMS) -> list["StreamingQuery"]:
        self.prepare()
        return [self.land(records), *(self.start(stream) for stream in streams)]

    def start_named(self, name: str, records: Records) -> "StreamingQuery":
        """One of them, again."""
        if name == EVENTS:
            return self.land(records)
        return self.start(next(stream for stream in STREAMS if stream.name == name))

    def land(self, records: Records, *, is_once: bool = False) -> "StreamingQuery":
        writer = (
            landed(records).writeStream.partitionBy(*PARTITIONED_BY).option("parquet.block.size", ROW_GROUP_BYTES)
        )
        for column in UNLIKE:
            writer = writer.option(f"parquet.enable.dictionary#{column}", "false")
        # To count rows of state, each would have to be looked up once more: there are too many here.
        self.spark.conf.set(COUNT_STATE, "false")
        try:
            return self._started(writer, EVENTS, is_once)
        finally:
            self.spark.conf.unset(COUNT_STATE)

    def start(self, stream: Stream, *, is_once: bool = False) -> "StreamingQuery":
        rows = stream.transform(self.events())
        # A few rows in each batch: one file will do.
        return self._started(rows.coalesce(1).writeStream.partitionBy("date"), stream.name, is_once)

    def events(self) -> "DataFrame":
        """What is partitioned by stands last, as it does once there are files: before, Spark cannot know."""
        inside = [field for field in spark_schema() if field.name not in PARTITIONED_BY]
        schema = StructType(inside).add("date", "date").add("kind", "string")
        return self.spark.readStream.schema(schema).parquet(str(self.tables.path(EVENTS)))

    def _started(self, writer: "DataStreamWriter", name: str, is_once: bool) -> "StreamingQuery":
        writer = (
            writer.queryName(name)
            .format("parquet")
            .option("path", str(self.tables.path(name)))
            .option("checkpointLocation", str(self.checkpoints / name))
        )
        if self.keep_days:
            writer = writer.option("retention", f"{self.keep_days}d")
        if is_once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self.trigger_s} seconds").start()
