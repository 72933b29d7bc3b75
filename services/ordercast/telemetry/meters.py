"""What the telemetry service tells Prometheus about itself, under the names of the schema."""

from ordercast.runtime.telemetry import meters
from ordercast.telemetry.flatten.requests import REQUESTS
from ordercast.telemetry.schema import names

#: Why requests are refused.
MALFORMED = "malformed"
OVERSIZE = "oversize"
BUSY = "busy"
FULL = "full"
AWAY = "away"
#: What is known to be damaged is counted once, as long as it is not too much to remember.
KNOWN_MAX = 65_536


class Meters:
    def __init__(self, told: meters.Meters) -> None:
        self._received = told.counter(names.METRIC_SPOOL_RECEIVED)
        self._refused = told.counter(names.METRIC_SPOOL_REFUSED)
        self._offset = told.gauge(names.METRIC_SPOOL_OFFSET)
        self._size = told.gauge(names.METRIC_SPOOL_SIZE)
        self._segments = told.gauge(names.METRIC_SPOOL_SEGMENTS)
        self._corrupt = told.counter(names.METRIC_SPOOL_CORRUPT)
        self._repeated = told.counter(names.METRIC_SPOOL_REPEATED)
        self._free = told.gauge(names.METRIC_STORAGE_FREE)
        self._read_only = told.gauge(names.METRIC_STORAGE_READ_ONLY)
        self._sync = told.histogram(names.METRIC_SPOOL_SYNC_DURATION)
        self._known: set[tuple[int, int]] = set()
        # They are there from the beginning, so that a rate can be taken of the first one too.
        self._corrupt.add(0)
        self._repeated.add(0)
        for signal in REQUESTS:
            self._received.add(0, signal)
        for reason in (MALFORMED, OVERSIZE, BUSY, FULL, AWAY):
            self._refused.add(0, reason)

    def received(self, signal: str, count: int) -> None:
        self._received.add(count, signal)

    def repeated(self) -> None:
        self._repeated.add(1)

    def refused(self, reason: str) -> None:
        self._refused.add(1, reason)

    def corrupt(self, count: int) -> None:
        self._corrupt.add(count)

    def corrupt_once(self, what: tuple[int, int]) -> bool:
        """Whether it was not known."""
        if what in self._known or len(self._known) >= KNOWN_MAX:
            return False
        self._known.add(what)
        self._corrupt.add(1)
        return True

    def synced(self, duration_s: float) -> None:
        self._sync.observe(duration_s)

    def room(self, free_bytes: int, is_full: bool) -> None:
        self._free.set(free_bytes)
        self._read_only.set(is_full)

    def holds(self, begin: int, sealed: int, end: int, size: int, segments: int) -> None:
        for name, offset in (("begin", begin), ("sealed", sealed), ("end", end)):
            self._offset.set(offset, name)
        self._size.set(size)
        self._segments.set(segments)
