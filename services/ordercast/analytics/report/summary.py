"""The figures of a report, from the tables. Windows slide: sums are taken over those that begin at a
whole minute.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from ordercast.analytics.audit.findings import AUDITED, UNSEEN, VIOLATION
from ordercast.analytics.blockers import MESSAGE
from ordercast.analytics.errors import AnalyticsError
from ordercast.analytics.lag import TO_DELIVERY, TO_RECEIPTS
from ordercast.analytics.streams import (
    AUDIT,
    BLOCKERS,
    DEAD_LETTERS,
    LAG,
    SPREAD,
    STRAGGLERS,
    UNAVAILABILITY,
)
from ordercast.analytics.tables import EVENTS, Tables

BLOCKERS_MAX = 12
FINDINGS_MAX = 50
GROUPS_MAX = 30


@dataclass(frozen=True, slots=True)
class Span:
    """Of time; nothing: as far as there is something."""

    since: datetime | None = None
    until: datetime | None = None


@dataclass(slots=True)
class GroupLag:
    domain: str
    group: str
    deliveries: int
    p50: float
    p95: float
    p99: float
    max: float
    #: Between the first and the last replica, at the 95th percentile.
    spread_p95: float | None


@dataclass(slots=True)
class StageLag:
    protocol: str
    stage: str
    count: int
    p50: float
    p95: float
    max: float


@dataclass(slots=True)
class Blocker:
    name: str
    stages: str
    waits: int
    envelopes: int
    wait_sum: float
    wait_max: float
    through_messages: int


@dataclass(slots=True)
class Audit:
    deliveries: int
    ranges: int
    #: Ranges of which only one replica said anything: nothing to compare.
    alone: int
    violations: int
    unseen: int
    findings: list[dict[str, Any]]


@dataclass(slots=True)
class Replica:
    node: str
    lag_p95: float | None
    behind_p50: float | None
    behind_p95: float | None
    #: Ahead of the median of all.
    clock: float | None
    commit_p95: float | None
    commit_max: float | None


@dataclass(slots=True)
class Series:
    """Of one line in a chart."""

    name: str
    points: list[tuple[float, float]] = field(default_factory=list)


@dataclass(slots=True)
class Summary:
    since: datetime
    until: datetime
    lags: list[GroupLag]
    lag_series: list[Series]
    stages: list[StageLag]
    blockers: list[Blocker]
    audit: Audit
    replicas: list[Replica]
    behind_series: list[Series]
    sessions: list[dict[str, Any]]
    dead_letters: dict[str, int]


def summary(tables: Tables, span: Span) -> Summary:
    if not tables.path(EVENTS).is_dir():
        raise AnalyticsError(f"{tables.folder} holds no tables: `ordercast analytics run --output` makes them")
    lag, spread = _windows(tables, LAG.name, span), _windows(tables, SPREAD.name, span)
    if lag.empty:
        raise AnalyticsError("there are no deliveries in that time range")
    until = lag["window_end"].max()
    apart = spread[spread["node"].isna()] if not spread.empty else spread
    behind = spread[spread["node"].notna()] if not spread.empty else spread
    deliveries = lag[lag["measure"] == TO_DELIVERY]
    return Summary(
        since=lag["window_start"].min().to_pydatetime(),
        until=until.to_pydatetime(),
        lags=_group_lags(deliveries, apart),
        lag_series=_series(deliveries, "group"),
        stages=_stages(lag[~lag["measure"].isin([TO_DELIVERY])]),
        blockers=_blockers(_windows(tables, BLOCKERS.name, span)),
        audit=_audit(_between(tables, AUDIT.name, span, "time")),
        replicas=_replicas(_windows(tables, STRAGGLERS.name, span), behind),
        behind_series=_series(behind, "node"),
        sessions=_between(tables, UNAVAILABILITY.name, span, "start_time").to_dict("records"),
        dead_letters=_dead_letters(_between(tables, DEAD_LETTERS.name, span, "received_time")),
    )


def _between(tables: Tables, name: str, span: Span, column: str) -> pd.DataFrame:
    since = span.since.date() if span.since else None
    until = span.until.date() if span.until else None
    found = tables.read(name, since=since, until=until)
    if found is None or not found.num_rows:
        return pd.DataFrame()
    frame = found.to_pandas()
    frame[column] = pd.to_datetime(frame[column], utc=True)
    if span.since:
        frame = frame[frame[column] >= span.since]
    if span.until:
        frame = frame[frame[column] <= span.until]
    return frame.reset_index(drop=True)


def _windows(tables: Tables, name: str, span: Span) -> pd.DataFrame:
    frame = _between(tables, name, span, "window_end")
    if not frame.empty:
        frame["window_start"] = pd.to_datetime(frame["window_start"], utc=True)
    return frame


def _apart(frame: pd.DataFrame) -> pd.DataFrame:
    """Windows that do not overlap."""
    return frame[frame["window_start"].dt.second == 0] if not frame.empty else frame


def _group_lags(deliveries: pd.DataFrame, apart: pd.DataFrame) -> list[GroupLag]:
    found = []
    for (domain, group), rows in _apart(deliveries).groupby(["domain", "group"]):
        spread = apart[(apart["domain"] == domain) & (apart["group"] == group)] if not apart.empty else apart
        worst = None if spread.empty else float(spread["p95"].max())
        values = (float(rows["p50"].median()), float(rows["p95"].max()), float(rows["p99"].max()))
        found.append(GroupLag(domain, group, int(rows["count"].sum()), *values, float(rows["max"].max()), worst))
    return sorted(found, key=lambda lag: -lag.p99)[:GROUPS_MAX]


def _stages(rows: pd.DataFrame) -> list[StageLag]:
    found = []
    for (protocol, stage), some in _apart(rows).groupby(["protocol", "measure"]):
        shown = "publish to receipts" if stage == TO_RECEIPTS else stage
        count = int(some["count"].sum())
        values = (float(some["p50"].median()), float(some["p95"].max()), float(some["max"].max()))
        found.append(StageLag(protocol, shown, count, *values))
    return sorted(found, key=lambda stage: -stage.p95)


def _series(rows: pd.DataFrame, by: str) -> list[Series]:
    """The 95th percentile over time; the worst first."""
    found: list[Series] = []
    if rows.empty:
        return found
    for name, some in rows.groupby(by):
        worst = some.groupby("window_end")["p95"].max().sort_index()
        points = [(time.timestamp(), float(value)) for time, value in worst.items()]
        found.append(Series(str(name), points))
    return sorted(found, key=lambda series: -max(value for _, value in series.points))


def _blockers(rows: pd.DataFrame) -> list[Blocker]:
    if rows.empty:
        return []
    rows = _apart(rows).copy()
    rows["name"] = rows["blocker"].where(~rows["blocker"].str.startswith(MESSAGE), "unresolved messages")
    found = []
    for name, some in rows.groupby("name"):
        by_stage = some.groupby("stage")["wait_sum"].sum().sort_values(ascending=False)
        found.append(
            Blocker(
                str(name),
                ", ".join(map(str, by_stage.index)),
                int(some["waits"].sum()),
                int(some["envelopes"].sum()),
                float(some["wait_sum"].sum()),
                float(some["wait_max"].max()),
                int(some["through_messages"].sum()),
            )
        )
    return sorted(found, key=lambda blocker: -blocker.wait_sum)[:BLOCKERS_MAX]


def _audit(rows: pd.DataFrame) -> Audit:
    if rows.empty:
        return Audit(0, 0, 0, 0, 0, [])
    audited = rows[rows["severity"] == AUDITED]
    violations = rows[rows["severity"] == VIOLATION]
    unseen = rows[rows["severity"] == UNSEEN]
    told = pd.concat([violations, unseen]).sort_values("time").head(FINDINGS_MAX)
    return Audit(
        int(audited["count"].sum()),
        len(audited),
        int((audited["replicas"] < 2).sum()),
        int(violations["count"].sum()),
        int(unseen["count"].sum()),
        told.to_dict("records"),
    )


def _replicas(rows: pd.DataFrame, behind: pd.DataFrame) -> list[Replica]:
    if rows.empty:
        return []
    medians = rows.groupby("window_end")["transit_min"].transform("median")
    rows = rows.assign(clock=medians - rows["transit_min"])
    found = []
    for node, some in rows.groupby("node"):
        own = behind[behind["node"] == node] if not behind.empty else behind
        found.append(
            Replica(
                str(node),
                _or_none(some["lag_p95"].max()),
                None if own.empty else _or_none(own["p50"].median()),
                None if own.empty else _or_none(own["p95"].max()),
                _or_none(some["clock"].median()),
                _or_none(some["commit_p95"].max()),
                _or_none(some["commit_max"].max()),
            )
        )
    return sorted(found, key=lambda replica: -(replica.behind_p95 or 0.0))


def _dead_letters(rows: pd.DataFrame) -> dict[str, int]:
    return (
        {} if rows.empty else {str(reason): int(count) for reason, count in rows["reason"].value_counts().items()}
    )


def _or_none(value: float) -> float | None:
    return None if pd.isna(value) else float(value)


def time_from(text: str) -> datetime:
    """2026-01-31, or 2026-01-31T12:00[:00]; in UTC unless it says otherwise."""
    try:
        made = datetime.fromisoformat(text)
    except ValueError as error:
        raise AnalyticsError(f"a time is like 2026-01-31 or 2026-01-31T12:00, and this is not: {text}") from error
    return made if made.tzinfo else made.replace(tzinfo=UTC)
