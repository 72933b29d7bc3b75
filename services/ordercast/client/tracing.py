"""The caller's own trace, if it has one: then the envelope of what it publishes is kept as a trace too, linked.

OpenTelemetry is the caller's to install. Without it, nothing is looked for.
"""

from ordercast.core.tracing import SPAN_BYTES, TRACE_BYTES

try:
    from opentelemetry import trace
except ImportError:
    trace = None  # type: ignore[assignment]


def current_context() -> bytes:
    """Of the span that the caller is in, as PublishRequest.trace wants it; nothing, unless that is sampled."""
    if trace is None:
        return b""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid or not context.trace_flags.sampled:
        return b""
    return (
        context.trace_id.to_bytes(TRACE_BYTES)
        + context.span_id.to_bytes(SPAN_BYTES)
        + int(context.trace_flags).to_bytes(1)
    )
