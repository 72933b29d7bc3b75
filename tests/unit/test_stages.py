"""What processes note of envelopes on their way: what machines observe, and what is remembered and logged."""

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from ordercast.core.machine import Effect, Observe
from ordercast.runtime.process import logs
from ordercast.runtime.process.settings import LoggingSettings
from ordercast.runtime.telemetry.envelope_stages import EVENT, Marks, log_stages, marks_of
from ordercast.runtime.telemetry.ring import Ring
from tests.unit import gateway_host, scalatom_host
from tests.unit.driving import envelope_of

# ------------------------------------------------------------------------------------------- what is remembered


def marks_in(ring: Ring) -> dict[tuple[str, bytes], Marks]:
    return {key: marks_of(way) for key, way in ring.ways.items()}


def test_the_first_time_counts_and_a_delivery_once_for_each_group() -> None:
    ring = Ring()
    for now, group in enumerate(("a#1", "b#2", "a#1"), 10):
        ring.note("d", Observe("delivered", b"id", f"{group} 7", group=group), now)
    ring.note("d", Observe("decided", b"id", "sn 4"), 13.0)
    assert marks_in(ring) == {
        ("d", b"id"): {"delivered a#1": (10.0, 10.0), "delivered b#2": (11.0, 11.0), "decided": (13.0, 13.0)}
    }


def test_a_stage_that_began_earlier_has_both_times() -> None:
    ring = Ring()
    ring.note("d", Observe("timestamped", b"id", "rec_ts 5", since=8.5), 10.0)
    assert marks_in(ring)["d", b"id"] == {"timestamped": (8.5, 10.0)}


def test_envelopes_of_two_domains_with_one_id_are_two() -> None:
    ring = Ring()
    ring.note("d", Observe("submit", b"id"), 10.0)
    ring.note("e", Observe("decided", b"id"), 10.0)
    assert [list(marks) for marks in marks_in(ring).values()] == [["submit"], ["decided"]]


def test_only_the_latest_envelopes_are_remembered() -> None:
    ring = Ring(envelopes_max=2)
    for id_ in (b"1", b"2", b"3"):
        ring.note("d", Observe("submit", id_), 10.0)
    assert [id_ for _, id_ in marks_in(ring)] == [b"2", b"3"]


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    logs.configure("n1", LoggingSettings(), stream)
    yield stream
    structlog.reset_defaults()


def test_each_envelope_is_logged_whole(logged: io.StringIO) -> None:
    ring = Ring()
    for id_ in (b"\x01", b"\x02"):
        ring.note("d", Observe("submit", id_, "a#1", since=9.0), 10.0)
        ring.note("d", Observe("answered", id_), 10.0)
    log_stages(ring)
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert [(line["event"], line["domain"], line["envelope"]) for line in lines] == [
        (EVENT, "d", "01"),
        (EVENT, "d", "02"),
    ]
    assert lines[0]["marks"] == {"submit": [9.0, 10.0], "answered": [10.0, 10.0]}


# ---------------------------------------------------------------------------------------- what machines observe


def observed(effects: list[Effect]) -> list[tuple[str, float | None]]:
    return [(effect.stage, effect.since) for effect in effects if isinstance(effect, Observe)]


def observing_gateway() -> gateway_host.Host:
    host = gateway_host.Host()
    host.machine.observe = True
    return host


def test_a_gateway_tells_when_the_first_request_of_an_envelope_came() -> None:
    host = observing_gateway()
    first = host.submit("a")
    came = host.now = 3.0
    host.publish("a", first=2)
    host.now = 4.0
    host.publish("a", first=3)
    host.now = 5.0
    assert observed(host.decide(first, 7, "n1")) == [("submit", came)]


def test_a_gateway_tells_once_that_it_has_answered_behind_the_receipts() -> None:
    host = observing_gateway()
    envelope = host.submit("a", "b")
    assert observed(host.deliver(envelope, 7, "a")) == []
    effects = host.deliver(envelope, 7, "b")
    assert observed(effects) == [("answered", None)]
    assert isinstance(effects[-1], Observe)
    assert observed(host.deliver(envelope, 7, "b")) == []


def observing_replica() -> scalatom_host.Host:
    host = scalatom_host.Host()
    host.machine.observe = True
    return host


def test_a_replica_tells_when_an_envelope_came_when_it_proposed_and_when_it_knew() -> None:
    host, envelope = observing_replica(), envelope_of(0, "a")
    came = host.now
    assert observed(host.take(envelope)) == [("timestamped", came)]
    host.now += 1.0
    assert observed(host.stamp("n2", envelope, 0)) == [("proposed", None)]
    assert observed(host.decide(envelope, 0)) == [("decided", None)]
    assert observed(host.gossip("n2", 1)) == [("predecessors", None), ("delivered", None)]


def test_what_was_not_asked_for_is_not_observed() -> None:
    gateway, replica, envelope = gateway_host.Host(), scalatom_host.Host(), envelope_of(0, "a")
    submitted = gateway.publish("a")
    (sent,) = gateway_host.envelopes(submitted)
    effects = [*submitted, *gateway.deliver(sent, 7, "a"), *replica.order(envelope, 0)]
    assert observed(effects) == []
