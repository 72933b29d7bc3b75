"""What the audit says: one row for each finding, and one for each range when it is done with it."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

ORDER, KEY, OFFSET, GAP, DUPLICATE = VIOLATIONS = ("order", "key", "offset", "gap", "duplicate")
#: Order was broken, or telemetry lies.
VIOLATION = "violation"
#: Positions of which nobody said anything, because the process that delivered them ended before it could.
UNSEEN = "unseen"
#: A range is done with; nothing was found.
AUDITED = "audited"

#: So many findings of a kind are told for one pack; the last of them says how many more there are.
TOLD_MAX = 20

SCHEMA = (
    "severity string, violation string, detail string, domain string, `group` string, group_id string, "
    "position long, position_last long, count long, node string, incarnation long, envelope string, trace string, "
    "other_node string, other_incarnation long, other_group string, other_position long, other_envelope string, "
    "other_trace string, replicas long, time timestamp"
)
COLUMNS = tuple(part.split()[0].strip("`") for part in SCHEMA.split(", "))


@dataclass(frozen=True, slots=True)
class Who:
    """One side of a finding."""

    node: str
    incarnation: int
    group: str
    position: int
    envelope: bytes
    trace: bytes
    time_ns: int


def who(replica: tuple[str, int], group: str, entry: np.void) -> Who:
    position, envelope, trace = int(entry["position"]), bytes(entry["envelope"]), bytes(entry["trace"])
    return Who(*replica, group, position, envelope, trace, int(entry["time_ns"]))


@dataclass(frozen=True, slots=True)
class Finding:
    severity: str
    domain: str
    group: str
    group_id: str
    position: int
    position_last: int
    violation: str | None = None
    detail: str = ""
    #: How many positions, or alike findings, it stands for.
    count: int = 1
    node: str | None = None
    incarnation: int | None = None
    envelope: str | None = None
    trace: str | None = None
    other_node: str | None = None
    other_incarnation: int | None = None
    other_group: str | None = None
    other_position: int | None = None
    other_envelope: str | None = None
    other_trace: str | None = None
    #: How many replicas spoke of the range.
    replicas: int | None = None
    #: When the delivery was that is told, by its replica's clock.
    time_ns: int | None = None

    def row(self, last_ms: int) -> dict[str, Any]:
        """A range as a whole is told with the time of the last receipt about it."""
        made = asdict(self)
        time_ns = made.pop("time_ns")
        return made | {"time": last_ms if time_ns is None else time_ns // 1_000_000}


def against(
    violation: str, detail: str, domain: str, group_id: str, one: Who, other: Who, count: int = 1
) -> Finding:
    return Finding(
        VIOLATION,
        domain,
        one.group,
        group_id,
        one.position,
        one.position,
        violation,
        detail,
        count,
        one.node,
        one.incarnation,
        one.envelope.hex(),
        one.trace.hex(),
        other.node,
        other.incarnation,
        other.group,
        other.position,
        other.envelope.hex(),
        other.trace.hex(),
        time_ns=one.time_ns,
    )


def told(rows: np.ndarray) -> Iterator[tuple[int, int]]:
    """Rows to tell, and for how many each stands: a replica that is all wrong does not fill the table."""
    for at, row in enumerate(rows[:TOLD_MAX].tolist()):
        is_last = at == TOLD_MAX - 1
        yield row, len(rows) - at if is_last else 1
