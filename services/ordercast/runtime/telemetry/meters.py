"""Counters, gauges and histograms, as the schema has them.

Those of prometheus-client take a lock and look a child up by its labels with each observation, which is as much
work as ordering takes per message. These are for one thread, the event loop's, and cost a dictionary entry or a
bisection. Others read them: Prometheus, from threads of its own (exposition.py), and who sends OTLP (otlp.py).

How many sets of labels there are is bounded: what comes beyond is counted together, as `other`.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ordercast.telemetry.schema.model import Metric, load

Labels = tuple[str, ...]

#: Of one metric.
LABELS_MAX = 200
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Exemplar:
    trace: bytes
    value: float
    wall_s: float


@dataclass(slots=True)
class Series:
    """A histogram with one set of labels: how many values are in each bucket, the last one without a bound."""

    counts: list[int]
    total: float = 0.0
    largest: float = 0.0
    #: By bucket, the latest one whose trace was kept.
    exemplars: dict[int, Exemplar] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(self.counts)


def bounded(known: Mapping[Labels, object], labels: Labels) -> Labels:
    """The labels, or those of all others, if there are too many."""
    if labels in known or len(known) < LABELS_MAX:
        return labels
    return (OTHER,) * len(labels)


class Counter:
    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.values: dict[Labels, float] = {}

    def add(self, amount: float = 1, *labels: str) -> None:
        found = self.values.get(labels)
        if found is None:
            labels = bounded(self.values, labels)
            found = self.values.get(labels, 0)
        self.values[labels] = found + amount

    def rise_to(self, total: float, *labels: str) -> None:
        """To what somebody else has counted since the process began."""
        labels = bounded(self.values, labels)
        self.values[labels] = max(total, self.values.get(labels, 0))


class Gauge:
    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.values: dict[Labels, float] = {}

    def set(self, value: float, *labels: str) -> None:
        self.values[bounded(self.values, labels)] = value

    def replace(self, values: Mapping[Labels, float]) -> None:
        """All of them: what is not there any more is not told any more."""
        kept: dict[Labels, float] = {}
        for labels, value in values.items():
            kept[bounded(kept, labels)] = value
        self.values = kept


class Histogram:
    def __init__(self, metric: Metric, bounds: tuple[float, ...]) -> None:
        self.metric = metric
        self.bounds = bounds
        self.series: dict[Labels, Series] = {}

    def observe(self, value: float, *labels: str) -> None:
        series = self.of(labels)
        series.counts[bisect_left(self.bounds, value)] += 1
        series.total += value
        if value > series.largest:
            series.largest = value

    def of(self, labels: Labels) -> Series:
        series = self.series.get(labels)
        if series is None:
            labels = bounded(self.series, labels)
            series = self.series.setdefault(labels, Series([0] * (len(self.bounds) + 1)))
        return series

    def note(self, exemplar: Exemplar, *labels: str) -> None:
        """An example of what is in its bucket."""
        self.of(labels).exemplars[bisect_left(self.bounds, exemplar.value)] = exemplar


Meter = Counter | Gauge | Histogram


class Meters:
    """All that one process has; whoever asks for one by its name gets the same."""

    def __init__(self) -> None:
        self.by_name: dict[str, Meter] = {}
        #: Called before somebody reads: gauges are set then.
        self.before_reading: list[Callable[[], None]] = []

    def counter(self, name: str) -> Counter:
        found = self._made(name)
        assert isinstance(found, Counter)
        return found

    def gauge(self, name: str) -> Gauge:
        found = self._made(name)
        assert isinstance(found, Gauge)
        return found

    def histogram(self, name: str) -> Histogram:
        found = self._made(name)
        assert isinstance(found, Histogram)
        return found

    def _made(self, name: str) -> Meter:
        found = self.by_name.get(name)
        if found is None:
            schema = load()
            metric = schema.metrics[name]
            match metric.instrument:
                case "counter":
                    found = Counter(metric)
                case "gauge":
                    found = Gauge(metric)
                case _:
                    found = Histogram(metric, schema.buckets[metric.unit])
            self.by_name[name] = found
        return found

    def refresh(self) -> None:
        for look in self.before_reading:
            look()
