"""The audit as a stream: packs of deliveries go to the state of their range, and findings come out.

Time is that of the receipt, as for events: a delivery is never too late to be looked at, as long as the state of
its range is kept. That is `KEEP_S` after the last word about it; a replica that is further behind than that is
compared with nobody, which the number of replicas of a range tells.
"""

import pickle
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from ordercast.analytics.audit.envelopes import EnvelopeRange
from ordercast.analytics.audit.findings import COLUMNS, SCHEMA, Finding
from ordercast.analytics.audit.packs import COLUMNS as DELIVERY_COLUMNS
from ordercast.analytics.audit.packs import ENTRY, ENVELOPES, PACK_SCHEMA, POSITIONS, RUN, packed
from ordercast.analytics.audit.positions import PositionRange
from ordercast.analytics.audit.runs import GroupRuns
from ordercast.analytics.records import DELIVERY
from ordercast.telemetry.schema.names import ATTRIBUTE_BEGINS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: How long receipts may be out of order.
DELAY = "30 seconds"
#: How long the state of a range is kept after the last word about it.
KEEP_S = 600
#: How long a hole may be there before it is a gap.
GAP_S = 60
#: A group of which nothing is heard for so long is forgotten.
FORGET_S = 86_400
STATE_SCHEMA = "state binary"

Part = PositionRange | EnvelopeRange | GroupRuns
Key = tuple[str, str, int]


def audited(events: "DataFrame") -> "DataFrame":
    begins = F.coalesce(F.col("attributes")[ATTRIBUTE_BEGINS] == "true", F.lit(False)).alias("begins")
    deliveries = events.where(F.col("kind") == DELIVERY).select("offset", "received_ns", *DELIVERY_COLUMNS, begins)
    packs = deliveries.mapInArrow(packed, PACK_SCHEMA).withWatermark("received_time", DELAY)
    findings = packs.groupBy("scope", "scope_key", "range").applyInPandasWithState(
        updated, SCHEMA, STATE_SCHEMA, "append", GroupStateTimeout.EventTimeTimeout
    )
    return findings.withColumn("date", F.to_date("time"))


def updated(key: Key, packs: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """For `applyInPandasWithState`: one range, and what is new about it."""
    part, last_ms = loaded(key, state.get[0]) if state.exists else (empty(key), 0)
    watermark_ms = state.getCurrentWatermarkMs()
    found: list[dict[str, Any]] = []
    if state.hasTimedOut:
        found += timed_out(part, last_ms, watermark_ms)
        if last_ms + kept_s(part) * 1000 <= watermark_ms:
            state.remove()
            yield from tables(found)
            return
    else:
        news = pd.concat(list(packs)).sort_values("offset", kind="stable")
        last_ms = max(last_ms, int(news["received_time"].max().timestamp() * 1000))
        found += [finding.row(last_ms) for finding in added(part, news)]
    state.update((stored(part, last_ms),))
    state.setTimeoutTimestamp(max(next_ms(part, last_ms), watermark_ms + 1))
    yield from tables(found)


def added(part: Part, news: pd.DataFrame) -> list[Finding]:
    """Of packs in the order of their offsets."""
    if isinstance(part, GroupRuns):
        for pack in news.itertuples(index=False):
            part.domain, part.group = pack.domain, pack.group
            now_ms = int(pack.received_time.timestamp() * 1000)
            part.add(str(pack.node), int(pack.incarnation), np.frombuffer(pack.payload, RUN), now_ms)
        return []
    if isinstance(part, PositionRange):
        first = news.iloc[0]
        part.domain, part.group, part.protocol = first["domain"], first["group"], first["protocol"]
        return part.add(*said(news))
    found = []
    for (domain, protocol, *group), packs in news.groupby(["domain", "protocol", "group_id", "group"], sort=True):
        found += part.add(domain, protocol, (group[0], group[1]), *said(packs))
    return found


def said(packs: pd.DataFrame) -> tuple[list[tuple[str, int]], np.ndarray, np.ndarray]:
    """Replicas, which of them said each entry, and the entries: in the order of their offsets."""
    replicas = [(str(pack.node), int(pack.incarnation)) for pack in packs.itertuples(index=False)]
    parts = [np.frombuffer(payload, ENTRY) for payload in packs["payload"]]
    of = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    entries = np.concatenate(parts)
    order = np.argsort(entries["offset"], kind="stable")
    return replicas, of[order], entries[order]


def timed_out(part: Part, last_ms: int, watermark_ms: int) -> list[dict[str, Any]]:
    """What can be said when nothing has come for a while."""
    if isinstance(part, GroupRuns):
        return [finding.row(last_ms) for finding in part.told(watermark_ms - GAP_S * 1000)]
    return closed(part, last_ms)


def closed(part: Part, last_ms: int) -> list[dict[str, Any]]:
    """What can be said when nothing will come any more."""
    if isinstance(part, GroupRuns):
        return [finding.row(last_ms) for finding in part.told(None)]
    return [part.close().row(last_ms)] if isinstance(part, PositionRange) else []


def next_ms(part: Part, last_ms: int) -> int:
    """When to look at it again if nothing comes."""
    since = part.next_ms() if isinstance(part, GroupRuns) else None
    return last_ms + kept_s(part) * 1000 if since is None else since + GAP_S * 1000


def kept_s(part: Part) -> int:
    return FORGET_S if isinstance(part, GroupRuns) else KEEP_S


def empty(key: Key) -> Part:
    scope, name, number = key
    if scope == POSITIONS:
        return PositionRange(name, int(number))
    return EnvelopeRange() if scope == ENVELOPES else GroupRuns(name)


def stored(part: Part, last_ms: int) -> bytes:
    """Mostly zeros and things alike: it gets small."""
    return zlib.compress(pickle.dumps((part, last_ms), protocol=5), level=1)


def loaded(key: Key, state: bytes) -> tuple[Part, int]:
    part, last_ms = pickle.loads(zlib.decompress(state))
    assert isinstance(part, type(empty(key)))
    return part, last_ms


def tables(rows: list[dict[str, Any]]) -> Iterator[pd.DataFrame]:
    """One, or none at all: pandas does not like to put empty ones together."""
    if rows:
        yield table(rows)


def table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    made = pd.DataFrame(rows, columns=list(COLUMNS))
    made["time"] = pd.to_datetime(made["time"], unit="ms")
    for column in (
        "position",
        "position_last",
        "count",
        "incarnation",
        "other_incarnation",
        "other_position",
        "replicas",
    ):
        made[column] = made[column].astype("Int64")
    return made
