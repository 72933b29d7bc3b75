"""The part of a trace that matters: the conversation around a violation."""

from collections.abc import Iterator

from ordercast.sim.run import Result

#: Lines of conversation before the end of a run that violated a property.
LINES = 400


def around(result: Result) -> Iterator[str]:
    """All of a run that went well; the last part of one that did not."""
    trace = result.trace
    if result.violation is not None and len(trace) > LINES:
        yield f"... {len(trace) - LINES} lines before this"
        trace = trace[-LINES:]
    yield from trace
