"""What the telemetry service tells Prometheus about itself, under the names of the schema."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ordercast.telemetry.flatten.requests import REQUESTS
from ordercast.telemetry.schema import names
from ordercast.telemetry.schema.model import load

#: Why requests are refused.
MALFORMED = "malformed"
OVERSIZE = "oversize"
BUSY = "busy"
FULL = "full"
AWAY = "away"
#: What is known to be damaged is counted once, as long as it is not too much to remember.
KNOWN_MAX = 65_536


class Meters:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._received = _counter(registry, names.METRIC_SPOOL_RECEIVED)
        self._refused = _counter(registry, names.METRIC_SPOOL_REFUSED)
        self._offset = _gauge(registry, names.METRIC_SPOOL_OFFSET)
        self._size = _gauge(registry, names.METRIC_SPOOL_SIZE)
        self._segments = _gauge(registry, names.METRIC_SPOOL_SEGMENTS)
        self._corrupt = _counter(registry, names.METRIC_SPOOL_CORRUPT)
        self._free = _gauge(registry, names.METRIC_STORAGE_FREE)
        self._read_only = _gauge(registry, names.METRIC_STORAGE_READ_ONLY)
        sync = load().metrics[names.METRIC_SPOOL_SYNC_DURATION]
        self._sync = Histogram(sync.prometheus, sync.meaning, registry=registry, buckets=load().buckets[sync.unit])
        self._known: set[tuple[int, int]] = set()
        # They are there from the beginning, so that a rate can be taken of the first one too.
        for signal in REQUESTS:
            self._received.labels(signal)
        for reason in (MALFORMED, OVERSIZE, BUSY, FULL, AWAY):
            self._refused.labels(reason)

    def received(self, signal: str, count: int) -> None:
        self._received.labels(signal).inc(count)

    def refused(self, reason: str) -> None:
        self._refused.labels(reason).inc()

    def corrupt(self, count: int) -> None:
        self._corrupt.inc(count)

    def corrupt_once(self, what: tuple[int, int]) -> bool:
        """Whether it was not known."""
        if what in self._known or len(self._known) >= KNOWN_MAX:
            return False
        self._known.add(what)
        self._corrupt.inc()
        return True

    def synced(self, duration_s: float) -> None:
        self._sync.observe(duration_s)

    def room(self, free_bytes: int, is_full: bool) -> None:
        self._free.set(free_bytes)
        self._read_only.set(is_full)

    def holds(self, begin: int, sealed: int, end: int, size: int, segments: int) -> None:
        for name, offset in (("begin", begin), ("sealed", sealed), ("end", end)):
            self._offset.labels(name).set(offset)
        self._size.set(size)
        self._segments.set(segments)


def _labels(name: str) -> list[str]:
    schema = load()
    return [schema.attributes[attribute].prometheus for attribute in schema.metrics[name].attributes]


def _counter(registry: CollectorRegistry, name: str) -> Counter:
    metric = load().metrics[name]
    return Counter(metric.prometheus, metric.meaning, _labels(name), registry=registry)


def _gauge(registry: CollectorRegistry, name: str) -> Gauge:
    metric = load().metrics[name]
    return Gauge(metric.prometheus, metric.meaning, _labels(name), registry=registry)
