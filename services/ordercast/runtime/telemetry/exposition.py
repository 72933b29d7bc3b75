"""What the meters have, for Prometheus, as prometheus-client collects it.

It is collected in a thread of the HTTP server (web.py). The loop goes on counting meanwhile; what a scrape sees of
two numbers may be a moment apart.
"""

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.samples import Exemplar as Sampled
from prometheus_client.utils import floatToGoString

from ordercast.runtime.telemetry.meters import Counter, Gauge, Histogram, Meter, Meters, Series
from ordercast.telemetry.schema.model import load


class Exposition:
    """A collector over meters."""

    def __init__(self, meters: Meters) -> None:
        self.meters = meters

    def collect(self) -> Iterator[Metric]:
        for meter in list(self.meters.by_name.values()):
            yield family(meter)


def family(meter: Meter) -> Metric:
    metric = meter.metric
    labels = [load().attributes[name].prometheus for name in metric.attributes]
    name, text = metric.prometheus, metric.meaning
    if isinstance(meter, Counter):
        counter = CounterMetricFamily(name, text, labels=labels)
        for values, number in list(meter.values.items()):
            counter.add_metric(values, number)
        return counter
    if isinstance(meter, Gauge):
        gauge = GaugeMetricFamily(name, text, labels=labels)
        for values, number in list(meter.values.items()):
            gauge.add_metric(values, number)
        return gauge
    histogram = HistogramMetricFamily(name, text, labels=labels)
    for values, series in list(meter.series.items()):
        histogram.add_metric(values, buckets(meter, series), sum_value=series.total)
    return histogram


def buckets(histogram: Histogram, series: Series) -> list[Any]:
    """As Prometheus counts: each bucket with all that are in smaller ones."""
    found: list[Any] = []
    below = 0
    for index, count in enumerate(list(series.counts)):
        below += count
        bound = floatToGoString(histogram.bounds[index]) if index < len(histogram.bounds) else "+Inf"
        exemplar = series.exemplars.get(index)
        sampled = None
        if exemplar is not None:
            sampled = Sampled({"trace_id": exemplar.trace.hex()}, exemplar.value, exemplar.wall_s)
        found.append((bound, below, sampled))
    return found


def registry(meters: Meters) -> CollectorRegistry:
    """Make a registry of these meters and of the process itself: its memory, processor time and files."""
    made = CollectorRegistry()
    made.register(Exposition(meters))  # type: ignore[arg-type]  # it only needs to have `collect`
    ProcessCollector(registry=made)
    PlatformCollector(registry=made)
    return made
