"""The first stream: records become *events*, clean and without repetitions, and poison is set aside.

**The same record again.** Senders repeat a request whose answer was lost. The spool stores it once; in Kafka it
may be twice. What it says is then the same to the nanosecond; only its place and the time of its receipt differ. A
replica that delivers a position twice, which the audit has to see, does it at two times. So the time belongs to
the key of a delivery, and a repeated request is left out while a repeated delivery stays.

**Nothing is late.** Keys are kept by the time of the batch that landed them, which rises whatever any clock of a
sender, or of the telemetry service, does: no record is too late to become an event, and one from the future makes
no other late.

**Poison** lands in the same table, as the kind `poison` with a reason, so that one batch is one commit; a stream
of its own makes the table of dead letters from it (`dead_letters.py`). All others read kinds that they know.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from ordercast.analytics.records import DELIVERY, EVENT, KINDS, POINT, POISON, SPAN
from ordercast.analytics.sources import Records
from ordercast.analytics.windows import time_of
from ordercast.telemetry.schema.names import VERSION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: A repetition that comes later than this after the first is taken for another record.
REPEATED_WITHIN = "2 minutes"
NEVER = "1970-01-01"
#: What Spark is asked to tell of each batch: the newest record.
NEWEST = "newest"

#: Columns that a record of a kind cannot do without.
NEEDED = {
    SPAN: ("start_ns", "trace_id", "span_id"),
    DELIVERY: (
        *("domain", "protocol", "group", "group_id", "position", "envelope"),
        *("first_offset", "messages", "order_key", "trace_id"),
    ),
    # A gauge has no start.
    POINT: (),
    EVENT: (),
}
NEEDED_BY_ALL = ("name", "time_ns", "received_ns", "node", "incarnation")

#: What tells records of a kind apart, beside the process that sent them; see above.
IDENTITY = {
    SPAN: ("trace_id", "span_id"),
    DELIVERY: ("group_id", "position", "envelope", "time_ns"),
    POINT: ("name", "start_ns", "time_ns", "domain", "group", "stage", "protocol", "reason", "attributes"),
    EVENT: ("name", "time_ns", "domain", "group", "reason", "view", "attributes"),
}


def landed(records: Records) -> "DataFrame":
    """What the table of events holds, from what a source gives."""
    events = cleaned(records.frame).observe(NEWEST, F.max("received_ns").alias("received_ns"))
    return once(events) if records.may_repeat else events


def once(events: "DataFrame") -> "DataFrame":
    return (
        events.withColumns({"key_a": identity(0), "key_b": identity(1)})
        .withColumn("landed_time", F.current_timestamp())
        .withWatermark("landed_time", REPEATED_WITHIN)
        .dropDuplicatesWithinWatermark(["key_a", "key_b"])
        .drop("key_a", "key_b", "landed_time")
    )


def cleaned(records: "DataFrame") -> "DataFrame":
    judged = records.withColumn("poison", poison())
    return (
        judged.withColumn("kind", F.when(F.col("poison").isNull(), F.col("kind")).otherwise(POISON))
        .withColumn("reason", F.coalesce("poison", "reason"))
        .withColumn("date", date_of())
        .drop("poison")
    )


def poison() -> "Column":
    """Why a record cannot be used; null for all others."""
    kind = F.col("kind")
    reason = F.when(kind == POISON, F.coalesce(F.col("reason"), F.lit("unreadable")))
    reason = reason.when(kind.isNull() | ~kind.isin(*KINDS), F.lit("unknown kind"))
    reason = reason.when(
        F.col("schema_version").isNull() | (F.col("schema_version") != VERSION), F.lit("unknown schema version")
    )
    for column in NEEDED_BY_ALL:
        reason = reason.when(F.col(column).isNull(), F.lit(f"without {column}"))
    for of, columns in NEEDED.items():
        for column in columns:
            reason = reason.when((kind == of) & F.col(column).isNull(), F.lit(f"{of} without {column}"))
    times = (F.col("time_ns") <= 0) | (F.col("received_ns") <= 0)
    reason = reason.when(times, F.lit("time out of range"))
    backwards = (kind == SPAN) & (F.col("start_ns") > F.col("time_ns"))
    reason = reason.when(backwards, F.lit("span ends before it begins"))
    below = (F.col("position") < 0) | (F.col("first_offset") < 0) | (F.col("messages") < 0)
    reason = reason.when((kind == DELIVERY) & below, F.lit("delivery with a negative number"))
    ids = (F.octet_length("envelope") != 16) | (F.octet_length("trace_id") != 16)
    return reason.when((kind == DELIVERY) & ids, F.lit("delivery with a malformed id"))


def date_of() -> "Column":
    """The day of the receipt, in UTC: a sender's clock does not decide where a record lies."""
    return F.to_date(F.coalesce(time_of("received_ns"), F.lit(NEVER).cast("timestamp")))


def identity(seed: int) -> "Column":
    """64 bits of a record's key; two of them are a key, so that none of a lifetime's records meet by chance."""
    kind = F.col("kind")
    sender = [F.lit(seed), kind, F.col("node"), F.col("incarnation")]
    key = F.when(kind == POISON, F.xxhash64(F.lit(seed), F.col("offset"), F.col("received_ns")))
    for of, columns in IDENTITY.items():
        parts = [F.map_entries(column) if column == "attributes" else F.col(column) for column in columns]
        key = key.when(kind == of, F.xxhash64(*sender, *parts))
    return key
