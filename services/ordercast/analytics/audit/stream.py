"""The audit as a stream: packs of deliveries go to the state of their range, and findings come out.

Time, here, is that of the batch: no delivery is too late to be looked at, whatever any clock says, as long as the
state of its range is kept. That is `KEEP_S` after the last word about it; a replica that is further behind than
that is compared with nobody, which the number of replicas of a range tells.
"""

import pickle
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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

#: How long the state of a range is kept after the last word about it.
KEEP_S = 600
#: How long a hole may be there before it is a gap.
GAP_S = 60
#: A group of which nothing is heard for so long is forgotten.
FORGET_S = 86_400
STATE_SCHEMA = "state binary"

Part = PositionRange | EnvelopeRange | GroupRuns
Key = tuple[str, str, int]


@dataclass(slots=True)
class Kept:
    """The state of a range."""

    part: Part
    #: The last receipt about it, and the last batch that had something about it.
    received_ms: int = 0
    landed_ms: int = 0


def audited(events: "DataFrame") -> "DataFrame":
    begins = F.coalesce(F.col("attributes")[ATTRIBUTE_BEGINS] == "true", F.lit(False)).alias("begins")
    deliveries = events.where(F.col("kind") == DELIVERY).select("offset", "received_ns", *DELIVERY_COLUMNS, begins)
    packs = deliveries.mapInArrow(packed, PACK_SCHEMA).withColumn("landed_time", F.current_timestamp())
    packs = packs.withWatermark("landed_time", "0 seconds")
    findings = packs.groupBy("scope", "scope_key", "range").applyInPandasWithState(
        updated, SCHEMA, STATE_SCHEMA, "append", GroupStateTimeout.EventTimeTimeout
    )
    return findings.withColumn("date", F.to_date("time"))


def updated(key: Key, packs: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """For `applyInPandasWithState`: one range, and what is new about it."""
    kept = loaded(key, state.get[0]) if state.exists else Kept(empty(key))
    watermark_ms = state.getCurrentWatermarkMs()
    found: list[dict[str, Any]] = []
    if state.hasTimedOut:
        found += timed_out(kept, watermark_ms)
        if kept.landed_ms + kept_s(kept.part) * 1000 <= watermark_ms:
            state.remove()
            yield from tables(found)
            return
    else:
        news = pd.concat(list(packs)).sort_values("offset", kind="stable")
        kept.received_ms = max(kept.received_ms, _ms(news["received_time"].max()))
        kept.landed_ms = _ms(news["landed_time"].max())
        found += [finding.row(kept.received_ms) for finding in added(kept.part, news, kept.landed_ms)]
    state.update((stored(kept),))
    state.setTimeoutTimestamp(max(next_ms(kept), watermark_ms + 1))
    yield from tables(found)


def added(part: Part, news: pd.DataFrame, now_ms: int) -> list[Finding]:
    """Of packs in the order of their offsets."""
    if isinstance(part, GroupRuns):
        for pack in news.itertuples(index=False):
            part.domain, part.group = pack.domain, pack.group
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


def timed_out(kept: "Kept", watermark_ms: int) -> list[dict[str, Any]]:
    """What can be said when nothing has come for a while."""
    if isinstance(kept.part, GroupRuns):
        return [finding.row(kept.received_ms) for finding in kept.part.told(watermark_ms - GAP_S * 1000)]
    return closed(kept)


def closed(kept: "Kept") -> list[dict[str, Any]]:
    """What can be said when nothing will come any more."""
    if isinstance(kept.part, GroupRuns):
        return [finding.row(kept.received_ms) for finding in kept.part.told(None)]
    return [kept.part.close().row(kept.received_ms)] if isinstance(kept.part, PositionRange) else []


def next_ms(kept: "Kept") -> int:
    """When to look at it again if nothing comes."""
    since = kept.part.next_ms() if isinstance(kept.part, GroupRuns) else None
    return kept.landed_ms + kept_s(kept.part) * 1000 if since is None else since + GAP_S * 1000


def kept_s(part: Part) -> int:
    return FORGET_S if isinstance(part, GroupRuns) else KEEP_S


def empty(key: Key) -> Part:
    scope, name, number = key
    if scope == POSITIONS:
        return PositionRange(name, int(number))
    return EnvelopeRange() if scope == ENVELOPES else GroupRuns(name)


def stored(kept: "Kept") -> bytes:
    """Mostly zeros and things alike: it gets small."""
    return zlib.compress(pickle.dumps(kept, protocol=5), level=1)


def loaded(key: Key, state: bytes) -> "Kept":
    kept = pickle.loads(zlib.decompress(state))
    assert isinstance(kept, Kept)
    assert isinstance(kept.part, type(empty(key)))
    return kept


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


def _ms(time: pd.Timestamp) -> int:
    return int(time.timestamp() * 1000)
