"""A caller that is in a trace of its own has its messages kept as traces."""

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

from ordercast.client import tracing
from ordercast.core.tracing import CONTEXT_BYTES


def test_without_a_span_there_is_no_context():
    assert tracing.current_context() == b""


def test_the_callers_span_is_the_context_if_it_is_sampled():
    with TracerProvider(sampler=ALWAYS_ON).get_tracer("t").start_as_current_span("work") as span:
        found = tracing.current_context()
    context = span.get_span_context()
    assert len(found) == CONTEXT_BYTES
    assert found[:16].hex() == trace.format_trace_id(context.trace_id)
    assert found[16:24].hex() == trace.format_span_id(context.span_id)
    assert found[24] & 1
    with TracerProvider(sampler=ALWAYS_OFF).get_tracer("t").start_as_current_span("work"):
        assert tracing.current_context() == b""


def test_without_opentelemetry_nothing_is_looked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tracing, "trace", None)
    assert tracing.current_context() == b""
