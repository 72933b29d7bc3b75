"""What streams over time windows have in common."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Sliding windows: each value is in six of them.
WINDOW, SLIDE = "1 minute", "10 seconds"
#: How far senders' clocks and telemetry may be behind each other; what comes later is not counted.
DELAY = "30 seconds"
#: Percentiles are exact up to so many values in a window, and then off by one in so many ranks.
ACCURACY = 10_000
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def timed(rows: "DataFrame", time_ns: str, delay: str = DELAY) -> "DataFrame":
    """With `event_time`, by which windows go.

    Nothing happened after it was received: one sender whose clock is an hour ahead would make all others late.
    """
    happened = F.least(time_of(time_ns), time_of("received_ns"))
    return rows.withColumn("event_time", happened).withWatermark("event_time", delay)


def time_of(column: str) -> "Column":
    """Nanoseconds since 1970 as Spark's time, in whole microseconds."""
    return F.expr(f"timestamp_micros({column} div 1000)")


def seconds(later_ns: str, earlier_ns: str) -> "Column":
    """Never below 0: clocks of two machines differ."""
    return F.greatest((F.col(later_ns) - F.col(earlier_ns)) / 1e9, F.lit(0.0))


def sliding(time: "Column | str" = "event_time") -> "Column":
    return F.window(time, WINDOW, SLIDE).alias("window")


def distribution(value: str) -> list["Column"]:
    """For `agg`; `spread_out` makes columns of it."""
    return [
        F.count(value).alias("count"),
        F.percentile_approx(value, list(QUANTILES.values()), ACCURACY).alias("quantiles"),
        F.max(value).alias("max"),
    ]


def spread_out(rows: "DataFrame") -> "DataFrame":
    """Each quantile, the beginning and end of the window, and the date get columns of their own."""
    quantiles = {name: F.col("quantiles")[at] for at, name in enumerate(QUANTILES)}
    return dated(rows.withColumns(quantiles).drop("quantiles"))


def dated(rows: "DataFrame") -> "DataFrame":
    bounds = {"window_start": F.col("window.start"), "window_end": F.col("window.end")}
    return rows.withColumns(bounds).drop("window").withColumn("date", F.to_date("window_end"))
