"""The table of dead letters: what could not be used, with the reason, and all that is known of it."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from ordercast.analytics.records import POISON
from ordercast.analytics.windows import time_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def dead_letters(events: "DataFrame") -> "DataFrame":
    poison = events.where(F.col("kind") == POISON)
    whole = F.to_json(
        F.struct(*(name for name in events.columns if name not in ("date", "kind", "offset", "reason")))
    )
    return poison.select(
        "offset", "reason", time_of("received_ns").alias("received_time"), whole.alias("record"), "date"
    )
