"""Where records come from: the spool of a telemetry service, or Kafka."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from ordercast.analytics.certificates import Certificates
from ordercast.analytics.errors import AnalyticsError
from ordercast.analytics.records import POISON, arrow_schema, as_records, spark_schema
from ordercast.telemetry.schema.names import COLUMN_KIND, COLUMN_OFFSET, COLUMN_REASON, COLUMN_RECEIVED_NS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Rows of one message, messages of one partition, partitions: together the offset of a record from Kafka.
ROW_BITS, MESSAGE_BITS = 16, 36


@dataclass(frozen=True, slots=True)
class Records:
    frame: "DataFrame"
    #: Some may be there more than once. To find out, all keys of two minutes have to be kept: half of the work.
    may_repeat: bool


def spool(
    spark: "SparkSession",
    address: str,
    rows_per_trigger_max: int,
    partitions: int,
    certificates: Certificates | None = None,
) -> Records:
    """From a telemetry service, which stores what is sent twice once."""
    try:
        from ordercast.analytics.source import FORMAT, SpoolSource
    except ImportError as error:
        raise AnalyticsError(
            f"reading the spool needs Spark 4.2 or later, and this is {spark.version}; --source kafka works there"
        ) from error
    spark.dataSource.register(SpoolSource)
    source = spark.readStream.format(FORMAT).option("address", address)
    source = source.option("rows_per_trigger_max", rows_per_trigger_max).option("partitions", partitions)
    return Records(source.options(**tls_options(certificates)).load(), may_repeat=False)


def tls_options(certificates: Certificates | None) -> dict[str, str]:
    """As the source has them."""
    given = asdict(certificates) if certificates is not None else {}
    return {name: str(value) for name, value in given.items() if value is not None}


def kafka(spark: "SparkSession", servers: str, topic: str, messages_per_trigger_max: int) -> Records:
    """From Kafka: the value of a message is an Arrow IPC stream of records, as the telemetry service writes it."""
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        # Retention may delete what was not read: that is said by Spark, and is no reason to stop.
        .option("failOnDataLoss", "false")
        .option("maxOffsetsPerTrigger", messages_per_trigger_max)
        .load()
    )
    chosen = source.selectExpr("value", "partition", "offset", "unix_micros(timestamp) as written_us")
    return Records(chosen.mapInArrow(decoded, spark_schema()), may_repeat=True)


def connector(version: str) -> str:
    """The Maven coordinates of Spark's own connector, for this version of Spark."""
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"


def decoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: messages as records. One that cannot be read is poison, and nothing else is lost."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("value", "partition", "offset", "written_us"))
        for value, partition, offset, written_us in zip(*columns, strict=True):
            first = ((partition << MESSAGE_BITS) + offset) << ROW_BITS
            try:
                with pa.ipc.open_stream(value or b"") as stream:
                    table = pa.Table.from_batches(map(as_records, stream), arrow_schema())
            except (pa.ArrowException, OSError, TypeError) as error:
                yield _poison(f"unreadable message: {str(error)[:200]}", first, written_us)
                continue
            if table.num_rows >= 1 << ROW_BITS:
                yield _poison(f"a message with {table.num_rows} records", first, written_us)
                continue
            offsets = pa.array(range(first, first + table.num_rows), pa.int64())
            yield from table.set_column(0, COLUMN_OFFSET, offsets).combine_chunks().to_batches()


def _poison(reason: str, offset: int, written_us: int) -> pa.RecordBatch:
    row = {
        COLUMN_KIND: POISON,
        COLUMN_REASON: reason,
        COLUMN_OFFSET: offset,
        COLUMN_RECEIVED_NS: written_us * 1000,
    }
    return pa.RecordBatch.from_pylist([row], schema=arrow_schema())
