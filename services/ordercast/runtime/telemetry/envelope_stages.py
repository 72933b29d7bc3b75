"""When envelopes reached each stage of their way here, for who puts together what all processes saw.

Times are those of the monotonic clock, which is the same for all processes of one machine, and for no others.
"""

from collections.abc import Callable

import structlog

from ordercast.core.machine import Observe
from ordercast.runtime.telemetry.ring import ENVELOPES_MAX, Ring, Way

log = structlog.get_logger("stages")

#: The event of the lines that are logged, one for each envelope.
EVENT = "stages of an envelope"

#: By the stage: when it began, and when it was reached. A delivery is one in each group: "delivered orders#17".
Marks = dict[str, tuple[float, float]]


class Stages:
    def __init__(self, now: Callable[[], float], envelopes_max: int = ENVELOPES_MAX) -> None:
        self._now = now
        self.ring = Ring(envelopes_max)

    def observe(self, domain: str, effect: Observe) -> None:
        self.ring.note(domain, effect, self._now())

    def log_all(self) -> None:
        """A line for each: a longer one would be cut."""
        for (domain, id_), way in self.ring.ways.items():
            log.info(EVENT, domain=domain, envelope=id_.hex(), marks=marks_of(way))


def marks_of(way: Way) -> Marks:
    found: Marks = {}
    for mark in way.marks:
        name = f"{mark.stage} {mark.group}" if mark.stage == "delivered" else mark.stage
        found.setdefault(name, (mark.at if mark.since is None else mark.since, mark.at))
    return found
