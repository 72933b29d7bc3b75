"""Which span each stage ends, and where that began."""

from dataclasses import dataclass

from ordercast.runtime.telemetry.ring import Mark, Way
from ordercast.telemetry.schema import names


@dataclass(frozen=True, slots=True)
class Stage:
    span: str
    #: In metrics, and as an attribute.
    label: str
    #: It begins when the latest of these was reached; or when the machine says, if there are none.
    after: tuple[str, ...] = ()


#: By what machines call the moment.
STAGES = {
    "submit": Stage(names.SPAN_SUBMIT, "submit"),
    "timestamped": Stage(names.SPAN_TIMESTAMP, "timestamp"),
    "decided": Stage(names.SPAN_DECIDE, "decide", ("timestamped",)),
    "predecessors": Stage(names.SPAN_PREDECESSORS, "predecessors", ("decided",)),
    "cast": Stage(names.SPAN_CAST, "cast", ("submitted",)),
    "causal": Stage(names.SPAN_CAUSAL, "causal", ("received", "cast", "part cast")),
    "ordered": Stage(names.SPAN_ORDER, "order", ("received", "cast", "part cast", "causal")),
    "delivered": Stage(
        names.SPAN_DELIVER,
        "deliver",
        ("decided", "predecessors", "received", "cast", "part cast", "causal", "ordered"),
    ),
    "stable": Stage(names.SPAN_STABLE, "stable", ("delivered",)),
}


def began(stage: Stage, mark: Mark, way: Way) -> float | None:
    """None if nobody here knows: an envelope that came with a log was never on its way here."""
    if not stage.after:
        return mark.since
    return way.reached(stage.after, mark.group)
