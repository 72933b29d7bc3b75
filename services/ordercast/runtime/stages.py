"""When envelopes reached each stage of their way here, for who puts together what all processes saw.

Times are those of the monotonic clock, which is the same for all processes of one machine, and for no others.
"""

from collections.abc import Callable

import structlog

from ordercast.core.machine import Observe

log = structlog.get_logger("stages")

#: Of how many envelopes; older ones are forgotten.
ENVELOPES_MAX = 4096

#: The event of the lines that are logged, one for each envelope.
EVENT = "stages of an envelope"

#: By the stage: when it began, and when it was reached. A delivery is one in each group: "delivered orders#17".
Marks = dict[str, tuple[float, float]]


class Stages:
    def __init__(self, now: Callable[[], float], envelopes_max: int = ENVELOPES_MAX) -> None:
        self._now = now
        self._envelopes_max = envelopes_max
        #: By domain and id, for gateways number the envelopes of each domain apart. The oldest first.
        self.marks: dict[tuple[str, bytes], Marks] = {}

    def observe(self, domain: str, effect: Observe) -> None:
        """The first time counts: what is said again was known before."""
        now = self._now()
        marks = self.marks.setdefault((domain, effect.id), {})
        stage = effect.stage
        if stage == "delivered":
            stage += " " + effect.detail.rpartition(" ")[0]
        marks.setdefault(stage, (now if effect.since is None else effect.since, now))
        if len(self.marks) > self._envelopes_max:
            del self.marks[next(iter(self.marks))]

    def log_all(self) -> None:
        """A line for each: a longer one would be cut."""
        for (domain, id_), marks in self.marks.items():
            log.info(EVENT, domain=domain, envelope=id_.hex(), marks=marks)
