"""Order lag: how long from publish to delivery, and in each stage, in sliding windows per group."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from ordercast.analytics.records import DELIVERY, SPAN
from ordercast.analytics.windows import distribution, seconds, sliding, spread_out, timed
from ordercast.telemetry.schema.names import SPAN_PUBLISH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: From the publish to a replica's delivery, and from the publish to its receipts; all other measures are stages.
TO_DELIVERY, TO_RECEIPTS = "delivery", "publish"


def lags(events: "DataFrame") -> "DataFrame":
    kind, is_delivery = F.col("kind"), F.col("kind") == DELIVERY
    measure = F.when(is_delivery, TO_DELIVERY).when(F.col("name") == SPAN_PUBLISH, TO_RECEIPTS)
    measured = events.where(kind.isin(DELIVERY, SPAN)).select(
        *("time_ns", "received_ns", "domain", "protocol", "group"),
        measure.otherwise(F.col("stage")).alias("measure"),
        F.when(is_delivery, seconds("time_ns", "published_ns"))
        .otherwise(seconds("time_ns", "start_ns"))
        .alias("lag"),
        # Nobody said when it was published.
        (is_delivery & (F.coalesce("published_ns", F.lit(0)) == 0)).alias("is_unknown"),
    )
    known = timed(measured.where(~F.col("is_unknown") & F.col("measure").isNotNull()), "time_ns")
    keys = ("domain", "protocol", "group", "measure")
    return spread_out(known.groupBy(sliding(), *keys).agg(*distribution("lag")))
