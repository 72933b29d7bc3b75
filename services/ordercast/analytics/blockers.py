"""Blockers: what envelopes waited for, how long, and how many of them.

Who waits for a message waits for what that message waits for. So what waits for one message, and what that message
itself waited for longest, wherever that was, are brought together, and the wait is put down to the latter: its
*root*. One step is taken; a message whose own blockers are messages stays one of its kind. What is not sampled is
not seen, so a message without spans is its own root too.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from ordercast.analytics.records import SPAN
from ordercast.analytics.windows import dated, sliding, timed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MESSAGE = "message:"


def blockers(events: "DataFrame") -> "DataFrame":
    blocked = F.col("blocked_on")
    is_message = blocked.startswith(MESSAGE)
    spans = events.where((F.col("kind") == SPAN) & blocked.isNotNull()).select(
        *("time_ns", "received_ns", "domain", "protocol", "group", "stage", "trace_id", "blocked_on"),
        # Whole numbers, whose sum is the same in whatever order they come.
        (F.col("time_ns") - F.col("start_ns")).alias("wait_ns"),
        # Spans that wait for a message, and the spans of that message.
        F.when(is_message, F.substring("blocked_on", len(MESSAGE) + 1, 32))
        .otherwise(F.lower(F.hex("envelope")))
        .alias("about"),
    )
    waiter = F.struct("protocol", "group", "stage", "trace_id", "blocked_on", "wait_ns")
    about = (
        timed(spans, "time_ns")
        .groupBy(sliding(), "domain", "about")
        .agg(
            F.max_by("blocked_on", F.when(~is_message, F.col("wait_ns"))).alias("longest"),
            F.max(F.when(~is_message, F.col("wait_ns"))).alias("longest_wait"),
            F.collect_list(waiter).alias("waiters"),
        )
        .select("window", "domain", "longest", "longest_wait", F.explode("waiters").alias("one"))
    )
    is_resolved = F.col("one.blocked_on").startswith(MESSAGE) & F.col("longest_wait").isNotNull()
    rooted = about.select(
        *("window", "domain", "one.protocol", "one.group", "one.stage", "one.trace_id", "one.wait_ns"),
        F.when(is_resolved, F.col("longest")).otherwise(F.col("one.blocked_on")).alias("blocker"),
        F.when(F.col("one.blocked_on").startswith(MESSAGE), F.col("one.blocked_on")).alias("message"),
    )
    return dated(
        rooted.groupBy("window", "domain", "protocol", "group", "stage", "blocker").agg(
            F.count("wait_ns").alias("waits"),
            F.approx_count_distinct("trace_id").alias("envelopes"),
            (F.sum("wait_ns") / 1e9).alias("wait_sum"),
            (F.max("wait_ns") / 1e9).alias("wait_max"),
            F.count("message").alias("through_messages"),
            F.max_by("message", F.when(F.col("message").isNotNull(), F.col("wait_ns"))).alias("message_longest"),
        )
    )
