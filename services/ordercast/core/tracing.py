"""The trace of an envelope: an id that everybody can work out, so that nobody has to be told it."""

from hashlib import blake2b

TRACE_BYTES = 16
SPAN_BYTES = 8
#: A trace's id, a span's, and the flags of a W3C trace context.
CONTEXT_BYTES = 25
#: Header.trace of an envelope whose trace is kept for itself: the flag of what is sampled.
KEPT = b"\x01"


def trace_id(cluster: bytes, domain: str, envelope: bytes) -> bytes:
    """Of an envelope: gateways number those of each domain apart."""
    return blake2b(cluster + b"\0" + domain.encode() + b"\0" + envelope, digest_size=TRACE_BYTES).digest()


def span_id(trace: bytes, process: str, name: str) -> bytes:
    """Of what one process does once in a trace; the root's is that of the gateway's own span."""
    return blake2b(trace + process.encode() + b"\0" + name.encode(), digest_size=SPAN_BYTES).digest()


def root_id(trace: bytes) -> bytes:
    """Of the span that all others of a trace are in: known before its process has said anything."""
    return trace[:SPAN_BYTES]
