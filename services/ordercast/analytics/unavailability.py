"""Sessions of unavailability: times in which a group refused publishes because it was not available, or failed
them.

A session goes on as long as the next refusal comes within `GAP`. Gateways tell refusals once a second, so the last
one stands for a second more.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from ordercast.analytics.records import EVENT, SPAN
from ordercast.analytics.windows import timed
from ordercast.telemetry.schema.names import (
    ATTRIBUTE_MESSAGING_DESTINATION_NAME,
    EVENT_REFUSED,
    SPAN_PUBLISH,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

GAP = "10 seconds"
UNAVAILABLE = "unavailable"


def sessions(events: "DataFrame") -> "DataFrame":
    is_refused = (F.col("kind") == EVENT) & (F.col("name") == EVENT_REFUSED) & (F.col("reason") == UNAVAILABLE)
    is_failed = (F.col("kind") == SPAN) & (F.col("name") == SPAN_PUBLISH) & (F.col("status") == "error")
    groups = F.split(F.coalesce(F.col("attributes")[ATTRIBUTE_MESSAGING_DESTINATION_NAME], F.lit("")), ",")
    rows = timed(events.where(is_refused | is_failed), "time_ns").select(
        "event_time",
        "domain",
        F.explode(F.when(is_failed, groups).otherwise(F.array("group"))).alias("group"),
        F.when(is_refused, F.coalesce("count", F.lit(1))).alias("refused"),
        F.when(is_failed, 1).alias("failed"),
    )
    found = rows.groupBy(F.session_window("event_time", GAP).alias("window"), "domain", "group").agg(
        F.coalesce(F.sum("refused"), F.lit(0)).alias("refused"),
        F.coalesce(F.sum("failed"), F.lit(0)).alias("failed"),
        F.max("event_time").alias("last_time"),
    )
    end = F.col("last_time") + F.expr("interval 1 second")
    return found.select(
        "domain",
        "group",
        F.col("window.start").alias("start_time"),
        end.alias("end_time"),
        (F.unix_micros(end) - F.unix_micros(F.col("window.start"))).alias("duration_us"),
        "refused",
        "failed",
        F.col("window.end").alias("window_end"),
        F.to_date("window.start").alias("date"),
    )
