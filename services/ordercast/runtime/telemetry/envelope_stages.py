"""The stages of the latest envelopes in this process, logged for who puts together what all processes saw.

They are those that telemetry remembers of every envelope, kept as a trace or not (ring.py). Spans of all envelopes
would say the same; but to make and send them costs the servers about a fifth more of their processors
(docs/operations.md), which would be a part of what is measured.

Times are those of the monotonic clock, which is the same for all processes of one machine, and for no others.
"""

import structlog

from ordercast.runtime.telemetry.ring import Ring, Way

log = structlog.get_logger("stages")

#: The event of the lines that are logged, one for each envelope.
EVENT = "stages of an envelope"

#: By the stage: when it began, and when it was reached. A delivery is one in each group: "delivered orders#17".
Marks = dict[str, tuple[float, float]]


def log_stages(ring: Ring) -> None:
    """A line for each envelope: a longer one would be cut."""
    for (domain, id_), way in ring.ways.items():
        log.info(EVENT, domain=domain, envelope=id_.hex(), marks=marks_of(way))


def marks_of(way: Way) -> Marks:
    found: Marks = {}
    for mark in way.marks:
        name = f"{mark.stage} {mark.group}" if mark.stage == "delivered" else mark.stage
        found.setdefault(name, (mark.at if mark.since is None else mark.since, mark.at))
    return found
