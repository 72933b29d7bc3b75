"""What tells a replica that falls behind: its own lag, its clock, and how long its disk takes.

The clock: a record is sent by the sender's clock and received by the telemetry service's. The least time between
them in a window is the way itself, and what the clocks differ by; the way is much alike for all, so whoever is off
by more than the others has another clock. Reading it from one sender alone is not possible.

The disk: processes send histograms of their commits; their buckets are put together, and a value counts as the
upper bound of its bucket.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from ordercast.analytics.records import DELIVERY, POINT
from ordercast.analytics.windows import ACCURACY, dated, seconds, sliding, timed
from ordercast.telemetry.schema.names import METRIC_STORAGE_COMMIT_DURATION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stragglers(events: "DataFrame") -> "DataFrame":
    is_commit = (F.col("kind") == POINT) & (F.col("name") == METRIC_STORAGE_COMMIT_DURATION)
    chosen = events.where((F.col("kind") == DELIVERY) | is_commit)
    lag = F.when((F.col("kind") == DELIVERY) & (F.col("published_ns") > 0), seconds("time_ns", "published_ns"))
    buckets = F.expr(
        "if(kind = 'point', "
        "transform(buckets, (many, at) -> struct(coalesce(get(bounds, at), value_max) as upper, many)), "
        "array(struct(cast(null as double) as upper, cast(null as bigint) as many)))"
    )
    rows = timed(chosen, "time_ns").select(
        "event_time",
        "node",
        lag.alias("lag"),
        F.when(F.col("kind") == DELIVERY, (F.col("received_ns") - F.col("time_ns")) / 1e9).alias("transit"),
        F.col("value_max").alias("commit_max"),
        F.explode(buckets).alias("bucket"),
    )
    windows = rows.groupBy(sliding(), "node").agg(
        F.count("lag").alias("deliveries"),
        F.percentile_approx("lag", [0.5, 0.95], ACCURACY).alias("lags"),
        F.min("transit").alias("transit_min"),
        F.sum("bucket.many").alias("commits"),
        F.expr("percentile(bucket.upper, array(0.5D, 0.95D), bucket.many)").alias("commit"),
        F.max("commit_max").alias("commit_max"),
    )
    flat = {
        "lag_p50": F.col("lags")[0],
        "lag_p95": F.col("lags")[1],
        "commit_p50": F.col("commit")[0],
        "commit_p95": F.col("commit")[1],
    }
    return dated(windows.withColumns(flat).drop("lags", "commit"))
