"""How far replicas are apart: for each envelope, how long after the first to deliver it each other one did.

Deliveries of one position come together by the time of its publish, which the envelope carries and which is the
same at all replicas. One that comes later after its publish than `DELAY` is not counted here; it is in the lag of
its replica (`stragglers.py`), which goes by the time of the delivery.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from ordercast.analytics.records import DELIVERY
from ordercast.analytics.windows import SLIDE, distribution, sliding, spread_out, timed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELAY = "2 minutes"
GROUP = ("domain", "protocol", "group")


def spreads(events: "DataFrame") -> "DataFrame":
    """Rows with a node: how far it is behind the first. Rows without: between the first and the last."""
    deliveries = events.where((F.col("kind") == DELIVERY) & (F.col("published_ns") > 0))
    known = timed(
        deliveries.select("published_ns", "received_ns", *GROUP, "group_id", "position", "node", "time_ns"),
        "published_ns",
        DELAY,
    )
    together = known.groupBy(F.window("event_time", SLIDE).alias("pane"), *GROUP, "group_id", "position").agg(
        F.collect_list(F.struct("node", "time_ns")).alias("said")
    )
    behind = together.select(
        F.window_time("pane").alias("event_time"), *GROUP, F.explode(F.expr(_BEHIND)).alias("one")
    ).select("event_time", *GROUP, F.col("one.node").alias("node"), F.col("one.behind").alias("behind"))
    return spread_out(behind.groupBy(sliding(), *GROUP, "node").agg(*distribution("behind")))


#: A replica that was started again delivers again: its first time counts. One replica alone is behind nobody.
_FIRST_TIMES = (
    "filter(said, one -> not exists(said, other -> other.node = one.node and other.time_ns < one.time_ns))"
)
_APART = "array_max(transform(said, one -> one.time_ns)) - array_min(transform(said, one -> one.time_ns))"
_BEHIND = f"""
    transform(array({_FIRST_TIMES}), said -> if(
        size(array_distinct(transform(said, one -> one.node))) < 2,
        cast(array() as array<struct<node: string, behind: double>>),
        concat(
            transform(said, one -> named_struct(
                'node', one.node,
                'behind', (one.time_ns - array_min(transform(said, other -> other.time_ns))) / 1e9D
            )),
            array(named_struct('node', cast(null as string), 'behind', ({_APART}) / 1e9D))
        )
    ))[0]
"""
