"""What a run with `--once` ends with: results that are not final yet.

Spark gives a window away only when the watermark has passed it, and until then keeps it as state; so the last
minutes of what there is would be missing from the tables. Here they are worked out once more from the events, as
an ordinary query with the very same transformation, and those windows taken that the watermark has not passed.
They are written apart from the tables, under `_open`, and thrown away when the next run begins: it has their
state, and will finish them.

The audit's open ranges are not worked out again. Their state is read from the checkpoint, and closed as if nothing
came any more; the state itself stays as it is.
"""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from ordercast.analytics.audit.findings import SCHEMA
from ordercast.analytics.audit.stream import closed, loaded
from ordercast.analytics.audit.stream import tables as made
from ordercast.analytics.streams import AUDIT, STREAMS, Stream
from ordercast.analytics.tables import EVENTS, OPEN, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def forget(tables: Tables) -> None:
    """What was open at the end of an earlier run."""
    shutil.rmtree(tables.folder / OPEN, ignore_errors=True)


def write(spark: "SparkSession", tables: Tables, checkpoints: Path) -> None:
    for stream in STREAMS:
        checkpoint = checkpoints / stream.name
        if stream.has_windows:
            rest = open_windows(spark, tables, stream, watermark(checkpoint))
        elif stream is AUDIT and (checkpoint / "state").is_dir():
            rest = open_ranges(spark, checkpoint)
        else:
            continue
        rest.coalesce(1).write.partitionBy("date").mode("overwrite").parquet(str(tables.open_path(stream.name)))


def open_windows(spark: "SparkSession", tables: Tables, stream: Stream, passed: datetime) -> "DataFrame":
    since = passed - timedelta(seconds=stream.lookback_s)
    events = spark.read.parquet(str(tables.path(EVENTS)))
    # By the day of the receipt, which may be the day before, or after, that of the sender's clock.
    recent = events.where(
        (F.col("date") >= F.lit((since - timedelta(days=1)).date()))
        & (F.col("time_ns") >= F.lit(int(since.timestamp()) * 1_000_000_000))
    )
    return stream.transform(recent).where(F.col("window_end") > F.lit(passed))


def open_ranges(spark: "SparkSession", checkpoint: Path) -> "DataFrame":
    state = spark.read.format("statestore").load(str(checkpoint))

    def close(parts):  # type: ignore[no-untyped-def]
        for part in parts:
            rows = []
            for key, value in zip(part["key"], part["state"], strict=True):
                rows += closed(loaded((key["scope"], key["scope_key"], key["range"]), value))
            yield from made(rows)

    values = state.select("key", F.col("value.groupState.state").alias("state"))
    return values.mapInPandas(close, SCHEMA).withColumn("date", F.to_date("time"))


def watermark(checkpoint: Path) -> datetime:
    """Of the last batch that was committed: what it had passed is in the table."""
    commits = [int(path.name) for path in (checkpoint / "commits").glob("*") if path.name.isdecimal()]
    if not commits:
        return datetime.fromtimestamp(0, UTC)
    _, metadata, *_ = (checkpoint / "offsets" / str(max(commits))).read_text().splitlines()
    return datetime.fromtimestamp(json.loads(metadata)["batchWatermarkMs"] / 1000, UTC)
