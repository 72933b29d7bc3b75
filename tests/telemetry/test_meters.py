"""Counters, gauges and histograms: what they hold, how many sets of labels, and how Prometheus sees them."""

import asyncio
import urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from ordercast.local.cluster import free_ports
from ordercast.runtime.process.health import Health
from ordercast.runtime.telemetry.meters import LABELS_MAX, OTHER, Exemplar, Meters
from ordercast.runtime.telemetry.web import Server
from ordercast.telemetry.schema import names

TRACE = bytes(range(16))


def filled() -> Meters:
    meters = Meters()
    meters.counter(names.METRIC_PUBLISH_MESSAGES).add(3, "d")
    meters.counter(names.METRIC_PUBLISH_MESSAGES).add(4, "d")
    meters.gauge(names.METRIC_PUBLISH_WAITING).set(5, "d")
    lag = meters.histogram(names.METRIC_DELIVERY_LAG)
    for seconds in (0.0001, 0.003, 0.003, 100.0):
        lag.observe(seconds, "d", "a")
    lag.note(Exemplar(TRACE, 0.003, 1.5), "d", "a")
    return meters


def test_whoever_asks_for_a_meter_by_its_name_gets_the_same():
    meters = Meters()
    assert meters.gauge(names.METRIC_CLIENTS) is meters.gauge(names.METRIC_CLIENTS)
    with pytest.raises(KeyError):
        meters.counter("ordercast.of.my.own")
    with pytest.raises(AssertionError):
        meters.counter(names.METRIC_CLIENTS)


def test_a_counter_never_falls_though_somebody_else_counts():
    counter = Meters().counter(names.METRIC_PEER_RESETS)
    counter.rise_to(7)
    counter.rise_to(3)
    assert counter.values == {(): 7}


@pytest.mark.parametrize("kind", ["counter", "gauge", "histogram"])
def test_there_are_only_so_many_sets_of_labels(kind: str):
    meters = Meters()
    counter = meters.counter(names.METRIC_DELIVERY_MESSAGES)
    gauge = meters.gauge(names.METRIC_DELIVERY_POSITION)
    histogram = meters.histogram(names.METRIC_DELIVERY_LAG)
    for number in range(2 * LABELS_MAX):
        counter.add(1, "d", str(number))
        histogram.observe(1.0, "d", str(number))
        gauge.set(number, "d", str(number))
    found = {"counter": counter.values, "gauge": gauge.values, "histogram": histogram.series}[kind]
    assert len(found) == LABELS_MAX + 1
    assert (OTHER, OTHER) in found
    assert sum(counter.values.values()) == 2 * LABELS_MAX
    gauge.replace({("d", str(number)): 1.0 for number in range(2 * LABELS_MAX)})
    assert len(gauge.values) == LABELS_MAX + 1


def test_what_is_not_there_any_more_is_not_told_any_more():
    gauge = Meters().gauge(names.METRIC_PEER_QUEUE)
    gauge.replace({("n1",): 1, ("n2",): 2})
    gauge.replace({("n2",): 3})
    assert gauge.values == {("n2",): 3}


def scrape(meters: Meters, accept: str) -> str:
    async def served() -> str:
        (port,) = free_ports(1)
        server = Server(meters, Health(lambda: "serving"), f"127.0.0.1:{port}")
        try:
            return await asyncio.to_thread(asked, port)
        finally:
            server.stop()

    def asked(port: int) -> str:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=10) as answer:
            text: str = answer.read().decode()
            return text

    return asyncio.run(served())


def test_prometheus_reads_them_over_http():
    families = {family.name: family for family in text_string_to_metric_families(scrape(filled(), "text/plain"))}
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert samples["ordercast_publish_messages_total", ("domain", "d")] == 7
    assert samples["ordercast_publish_waiting", ("domain", "d")] == 5
    lag = "ordercast_delivery_lag_seconds"
    labels = (("domain", "d"), ("group", "a"))
    assert samples[f"{lag}_count", *labels] == 4
    assert samples[f"{lag}_sum", *labels] == pytest.approx(100.0061)
    assert samples[f"{lag}_bucket", *labels, ("le", "0.00025")] == 1
    assert samples[f"{lag}_bucket", *labels, ("le", "0.005")] == 3
    assert samples[f"{lag}_bucket", *labels, ("le", "+Inf")] == 4
    assert "process_cpu_seconds_total" in {sample for sample, *_ in samples}


def test_exemplars_carry_trace_ids():
    text = scrape(filled(), "application/openmetrics-text; version=1.0.0")
    (found,) = [
        sample.exemplar
        for family in parse_openmetrics(text)
        for sample in family.samples
        if sample.exemplar is not None
    ]
    assert found.labels == {"trace_id": TRACE.hex()}
    assert (found.value, float(found.timestamp)) == (0.003, 1.5)
