"""All streams of the job: what each makes of the events, and how its output is told from what is still open."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ordercast.analytics.audit.stream import audited
from ordercast.analytics.blockers import blockers
from ordercast.analytics.dead_letters import dead_letters
from ordercast.analytics.lag import lags
from ordercast.analytics.spread import spreads
from ordercast.analytics.stragglers import stragglers
from ordercast.analytics.unavailability import sessions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Stream:
    #: Also of its table.
    name: str
    transform: Callable[["DataFrame"], "DataFrame"]
    #: It has windows, which are open until the watermark has passed their `window_end`.
    has_windows: bool = True
    #: How long before the watermark a record of an open window may be.
    lookback_s: int = 300


LAG = Stream("lag", lags)
SPREAD = Stream("spread", spreads)
BLOCKERS = Stream("blockers", blockers)
AUDIT = Stream("audit", audited, has_windows=False)
STRAGGLERS = Stream("stragglers", stragglers)
UNAVAILABILITY = Stream("unavailability", sessions, lookback_s=DAY_S)
DEAD_LETTERS = Stream("dead_letters", dead_letters, has_windows=False)
#: What reads events.
STREAMS = (LAG, SPREAD, BLOCKERS, AUDIT, STRAGGLERS, UNAVAILABILITY, DEAD_LETTERS)
