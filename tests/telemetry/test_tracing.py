"""Which envelopes are kept as traces, when, and what their spans say."""

from typing import Any

import pytest

from ordercast.core.machine import Observe
from ordercast.core.tracing import CONTEXT_BYTES, KEPT, root_id, trace_id
from ordercast.runtime.telemetry.meters import Meters
from ordercast.runtime.telemetry.ring import DeliveredHere
from ordercast.runtime.telemetry.tracing import FAILED_PER_S_MAX, WANTED_MAX, SpanRecord, Tracing
from ordercast.telemetry.schema import names
from ordercast.telemetry.schema.model import load

ID, OTHER = b"i" * 16, b"o" * 16
CLUSTER = b"c" * 16
TRACE = trace_id(CLUSTER, "d", ID)
CONTEXT = bytes(range(CONTEXT_BYTES))


class Process:
    def __init__(self, name: str = "n1") -> None:
        self.spans: list[SpanRecord] = []
        self.asked: list[tuple[str, bytes, str]] = []
        self.meters = Meters()
        self.tracing = Tracing(
            name,
            self.meters,
            tell=self.spans.append,
            spread=lambda *asked: self.asked.append(asked),
            protocol_of=lambda domain: "scalatom",
            wall=lambda: 1e9,
        )
        self.tracing.cluster = CLUSTER

    def see(self, at: float, stage: str, id_: bytes = ID, **fields: Any) -> None:
        self.tracing.observe("d", Observe(stage, id_, **fields), at)

    def publish(self, id_: bytes = ID, took_s: float = 1.0, trace: bytes = b"", outcome: str = "") -> None:
        self.see(10.0, "submit", id_, detail="a#1,b#2", since=9.5, trace=trace, messages=3)
        self.see(9.5 + took_s, "answered", id_, detail=outcome)

    def order(self, id_: bytes = ID, trace: bytes = b"") -> None:
        self.see(20.0, "timestamped", id_, since=19.0)
        self.see(21.0, "decided", id_, blocked_on="replica:n2")
        self.see(22.0, "predecessors", id_, group="a#1", blocked_on="replica:n3")
        self.tracing.delivered("d", "a#1", id_, trace, DeliveredHere(7, 70, 3, 123))
        self.see(23.0, "delivered", id_, group="a#1", blocked_on="group:b#2")

    def told(self) -> dict[str, tuple[float, float]]:
        return {span.name: (span.begun, span.ended) for span in self.spans}


def test_what_is_not_kept_is_not_told_but_counted():
    process = Process()
    process.publish()
    process.order()
    assert process.spans == []
    stages = process.meters.histogram(names.METRIC_STAGE_DURATION).series
    found = [(labels[2], series.total, series.exemplars) for labels, series in stages.items()]
    assert found == [
        ("submit", 0.5, {}),
        ("timestamp", 1.0, {}),
        ("decide", 1.0, {}),
        ("predecessors", 1.0, {}),
        ("deliver", 1.0, {}),
    ]
    published = process.meters.histogram(names.METRIC_PUBLISH_DURATION).series
    assert {labels: series.total for labels, series in published.items()} == {("d", "a"): 1.0, ("d", "b"): 1.0}


def test_a_sampled_envelope_is_one_trace_over_all_processes():
    gateway, replica = Process("g1"), Process("n2")
    gateway.publish(trace=KEPT)
    replica.order(trace=KEPT)
    assert gateway.told() == {names.SPAN_SUBMIT: (9.5, 10.0), names.SPAN_PUBLISH: (9.5, 10.5)}
    assert replica.told() == {
        names.SPAN_TIMESTAMP: (19.0, 20.0),
        names.SPAN_DECIDE: (20.0, 21.0),
        names.SPAN_PREDECESSORS: (21.0, 22.0),
        names.SPAN_DELIVER: (22.0, 23.0),
    }
    spans = [*gateway.spans, *replica.spans]
    assert {span.trace for span in spans} == {TRACE}
    assert len({span.id for span in spans}) == len(spans)
    assert {span.parent for span in spans if span.name != names.SPAN_PUBLISH} == {root_id(TRACE)}
    (root,) = [span for span in spans if span.name == names.SPAN_PUBLISH]
    assert (root.id, root.parent, root.link) == (root_id(TRACE), b"", b"")
    assert root.attributes[names.ATTRIBUTE_MESSAGING_DESTINATION_NAME] == "a,b"
    assert root.attributes[names.ATTRIBUTE_MESSAGING_BATCH_MESSAGE_COUNT] == 3


def test_spans_say_what_they_waited_for_and_where_they_were_delivered():
    process = Process()
    process.order(trace=KEPT)
    by_name = {span.name: span.attributes for span in process.spans}
    assert by_name[names.SPAN_DECIDE][names.ATTRIBUTE_BLOCKED_ON] == "replica:n2"
    delivered = by_name[names.SPAN_DELIVER]
    assert delivered[names.ATTRIBUTE_BLOCKED_ON] == "group:b"
    assert delivered[names.ATTRIBUTE_GROUP] == "a"
    assert (delivered[names.ATTRIBUTE_POSITION], delivered[names.ATTRIBUTE_OFFSET]) == (7, 70)
    assert process.spans[-1].link == TRACE + root_id(TRACE)


def test_all_that_spans_say_is_in_the_schema():
    process = Process()
    process.publish(trace=CONTEXT)
    process.order()
    assert process.spans
    for span in process.spans:
        assert set(span.attributes) <= set(load().spans[span.name].attributes)


def test_a_clients_own_trace_asks_for_one_and_is_linked():
    process = Process()
    process.publish(trace=CONTEXT)
    (root,) = [span for span in process.spans if span.name == names.SPAN_PUBLISH]
    assert root.attributes[names.ATTRIBUTE_KEPT] == "asked"
    assert root.link == CONTEXT[:24]


def test_each_second_the_slowest_is_kept_here_and_by_the_replicas():
    process = Process()
    process.publish(ID, took_s=2.0)
    process.publish(OTHER, took_s=1.0)
    process.tracing.second()
    assert process.asked == [("d", ID, "a#1,b#2")]
    assert {span.trace for span in process.spans} == {TRACE}
    assert process.spans[-1].attributes[names.ATTRIBUTE_KEPT] == "slow"
    process.tracing.second()
    assert len(process.asked) == 1


def test_a_replica_that_is_asked_later_tells_what_it_remembers_and_what_is_still_to_come():
    process = Process()
    process.see(20.0, "timestamped", since=19.0)
    process.tracing.keep("d", ID)
    assert list(process.told()) == [names.SPAN_TIMESTAMP]
    process.see(21.0, "decided")
    assert list(process.told()) == [names.SPAN_TIMESTAMP, names.SPAN_DECIDE]


def test_a_replica_that_is_asked_before_it_has_heard_of_an_envelope_keeps_it():
    process = Process()
    process.tracing.keep("d", ID)
    process.order()
    assert len(process.spans) == 4


def test_what_somebody_wants_and_never_comes_is_forgotten():
    process = Process()
    for number in range(2 * WANTED_MAX):
        process.tracing.keep("d", number.to_bytes(16))
    assert len(process.tracing._wanted) == WANTED_MAX


def test_what_failed_is_kept_but_not_without_end():
    process = Process()
    for number in range(2 * FAILED_PER_S_MAX):
        process.publish(number.to_bytes(16), outcome="refused")
    roots = [span for span in process.spans if span.name == names.SPAN_PUBLISH]
    assert len(roots) == len(process.asked) == FAILED_PER_S_MAX
    assert all(span.failed for span in roots)
    process.tracing.second()
    process.publish(ID, outcome="refused")
    assert len(process.asked) == FAILED_PER_S_MAX + 1


@pytest.mark.parametrize("stage", ["decided", "delivered"])
def test_a_stage_of_which_nobody_knows_when_it_began_is_no_span(stage: str):
    """An envelope that came with the log of another replica was never on its way here."""
    process = Process()
    process.tracing.keep("d", ID)
    process.see(21.0, stage, group="a#1")
    assert process.spans == []
