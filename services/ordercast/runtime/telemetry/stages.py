"""Which span each stage ends, and where that began: what a domain's protocol says, and what gateways observe."""

from collections.abc import Mapping
from functools import cache

from ordercast.core.protocol import Stage
from ordercast.protocols.catalogue import protocols
from ordercast.runtime.telemetry.ring import StageMark, Way

#: Of gateways, whatever the protocol.
SUBMIT = {"submit": Stage("submit")}
#: What the names of spans begin with.
PREFIX = "ordercast."


@cache
def stages_of(protocol: str) -> Mapping[str, Stage]:
    """The stages of a protocol's envelopes, by the names that its machines use for them."""
    known = protocols().get(protocol)
    return {**SUBMIT, **known.stages} if known is not None else SUBMIT


def span_of(stage: Stage) -> str:
    return PREFIX + stage.label


def began(stage: Stage, mark: StageMark, way: Way) -> float | None:
    """None if nobody here knows: an envelope that came with a log was never on its way here."""
    if not stage.after:
        return mark.since
    return way.reached(stage.after, mark.group)
