"""The part of a trace that matters: the conversation around a violation.

A run is thousands of lines. An explanation names envelopes (`8.12`) or messages (`c2 to a,b #3`); what was said of
those, and when faults struck, is usually the whole story.
"""

import re
from collections.abc import Iterator

from ordercast.sim.trial import RunResult

#: If an explanation names nothing, the end of the run is shown.
LINES = 200

_ENVELOPE = re.compile(r"\b(\d+\.\d+)\{|/(\d+\.\d+)\b|\bof (\d+\.\d+)\b")
_MESSAGE = re.compile(r"(c\d+) to ([a-z,]+) #(\d+)")
_FAULT = re.compile(r"\*\*\*\*|crashes|gone for good|snapshot")


def around(result: RunResult) -> Iterator[str]:
    """All of a run that went well; of one that did not, what concerns the violation."""
    trace = result.trace
    if result.violation is None:
        yield from trace
        return
    ids = _envelopes_in(result.violation.explanation, trace)
    if not ids:
        yield f"... {max(len(trace) - LINES, 0)} lines before this"
        yield from trace[-LINES:]
        return
    said = re.compile("|".join(rf"(?<![\d.]){re.escape(id_)}(?!\d)" for id_ in sorted(ids)))
    chosen = [line for line in trace if _FAULT.search(line) or said.search(line)]
    yield f"... {len(chosen)} of {len(trace)} lines: faults, and what was said of {', '.join(sorted(ids))}"
    yield from chosen


def _envelopes_in(explanation: str, trace: list[str]) -> set[str]:
    ids = {found for match in _ENVELOPE.finditer(explanation) for found in match.groups() if found}
    for client, groups, sequence in _MESSAGE.findall(explanation):
        ids |= _carriers(client, groups, int(sequence), trace)
    return ids


def _carriers(client: str, groups: str, sequence: int, trace: list[str]) -> set[str]:
    """The envelopes that a message rode in; several, if it was repeated."""
    carrier = re.compile(rf"\b(\d+\.\d+){{{groups}}} \[[^\]]*\b{client}:(\d+)\+(\d+)")
    matches = (match for line in trace for match in carrier.finditer(line))
    return {m[1] for m in matches if int(m[2]) <= sequence < int(m[2]) + int(m[3])}
